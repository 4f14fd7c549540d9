"""Model: subclassed and functional Keras models of extension values."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.call_spec import CallSpec
from extensor._keras.input_check import check_input
from extensor._keras.layer_call import TakesValues
from extensor._keras.lowering import lowered, raised, uncounted
from extensor._keras.saving import Saver
from extensor._keras.spec_key import check_savable
from extensor._keras.summary import field_lines
from extensor._keras.trainer import Trainer
from extensor.errors import StructureError

# The keys in the configuration of a functional model.
_FUNCTIONAL_CONFIG = {"name", "graph", "inputs"}


class Model(Trainer, Saver, TakesValues, keras.Model):
    """A Keras model of extension values.

    Subclass it like `keras.Model`, with a `call` that takes extension values. Or build it from
    the placeholders of `xt.keras.Input`: `Model(inputs, outputs)`.

    Args:
        inputs: A placeholder, or a nest of placeholders.
        outputs: The outputs of the layers for these placeholders.
        name: The model's name.

    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 3], tf.float32)})
    >>> record = xt.keras.Input(spec)
    >>> model = xt.keras.Model(record, keras.layers.Dense(1)(record["x"]))
    >>> model(xt.DenseStructuredTensor([2], {"x": tf.zeros([2, 3])})).shape
    TensorShape([2, 1])
    """

    _declares_input = False  # whether all inputs must have the type of the first input
    _output_spec: CallSpec | None = None  # of the first call

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Returns a functional model for `Model(inputs, outputs)`."""
        is_functional = cls is Model and _is_functional(args, kwargs)
        model_class: Any = FunctionalModel if is_functional else cls
        return super().__new__(model_class, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if _is_functional(args, kwargs):
            _make_functional(type(self))
            FunctionalModel.__init__(self, *args, **kwargs)  # pyright: ignore[reportArgumentType]
        else:
            super().__init__(*args, **kwargs)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Returns the model of a configuration from `get_config`."""
        if config.keys() == _FUNCTIONAL_CONFIG and not issubclass(cls, FunctionalModel):
            _make_functional(cls)
            return cls.from_config(config, custom_objects)
        return super().from_config(config, custom_objects)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the outputs of the model for values or placeholders."""
        args, kwargs = uncounted((args, kwargs))
        if self._call_spec is None:
            self._call_spec = CallSpec.of_call(self, args, kwargs)
        elif self._declares_input:
            received = CallSpec.of_call(self, args, kwargs).specs
            if "inputs" in received:
                check_input(self._call_spec.specs["inputs"], received["inputs"], self.name)
        outputs = super().__call__(*args, **kwargs)
        if self._output_spec is None:
            self._output_spec = CallSpec.of_values({"": outputs})
        return outputs

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`, and the fields of inputs and outputs."""
        super().summary(*args, **kwargs)
        self._print_fields(kwargs.get("print_fn") or print)

    def _print_fields(self, print_fn: Any) -> None:
        for title, spec in (("Inputs", self._call_spec), ("Outputs", self._output_spec)):
            lines = field_lines(spec.specs) if spec is not None else []
            if lines:
                print_fn(f" {title}:")
                for line in lines:
                    print_fn(f"   {line}")


@keras.saving.register_keras_serializable(package="extensor")
class Graph(keras.Model):
    """A plain functional model of Keras, whose inputs are the component tensors."""

    # Keras recognizes a functional model by this signature.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Keras 3.10 rejects an input that no layer uses, but a model need not use every field.
        keras.layers.Identity()(args[0] if args else kwargs["inputs"])
        super().__init__(*args, **kwargs)


@keras.saving.register_keras_serializable(package="extensor")
class FunctionalModel(Model):
    """The class of `Model(inputs, outputs)`. It runs a functional model of Keras on the tensors."""

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any) -> None:
        # No autocast, because the layers of the graph cast, as in a functional model of Keras.
        super().__init__(name=name, autocast=False, **kwargs)
        flat = tf.nest.flatten(lowered(inputs))
        _check_names(flat)
        graph = Graph(flat, lowered(outputs), name=f"{self.name}_graph")
        self._output_spec = CallSpec.of_values({"": outputs})
        self._set_graph(graph, CallSpec.of_call(self, [inputs], {}))

    @property
    def graph(self) -> Any:
        """The functional model of Keras that this model runs, on the tensors of the fields.

        `keras.utils.plot_model(model.graph, show_layer_names=True)` draws it, with the paths of the
        fields as the names of the inputs.
        """
        return self._graph

    @property
    def input(self) -> Any:
        """The placeholders of the model's inputs, for building another model."""
        assert self._call_spec is not None
        (form,) = self._call_spec.lowered.values()
        return raised(tf.nest.pack_sequence_as(form, self._graph.inputs))

    @property
    def output(self) -> Any:
        """The placeholders of the model's outputs."""
        return raised(self._graph.output)

    def _set_graph(self, graph: Any, call_spec: CallSpec) -> None:
        self._graph = graph
        self._call_spec, self._declares_input = call_spec, True
        self.built = True

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Returns the outputs of the functional model."""
        if type(self).call is not FunctionalModel.call:  # called by a subclass, with values
            return raised(self._graph(tf.nest.flatten(lowered(inputs)), training=training))
        return self._graph(tf.nest.flatten(inputs), training=training)

    call.takes_lowered = True  # type: ignore[attr-defined]

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`, and the fields of inputs and outputs."""
        self._graph.summary(*args, **kwargs)
        self._print_fields(kwargs.get("print_fn") or print)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        if type(self).__init__ is not FunctionalModel.__init__:
            return super().get_config()  # a subclass has its own arguments
        assert self._call_spec is not None
        return {
            "name": self.name,
            "graph": check_savable(keras.saving.serialize_keras_object(self._graph), self.name),
            "inputs": self._call_spec.to_config(),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> FunctionalModel:
        """Returns the model of a configuration from `get_config`."""
        if config.keys() != _FUNCTIONAL_CONFIG:
            return super().from_config(config, custom_objects)
        self = cls.__new__(cls)
        Model.__init__(self, name=config["name"], autocast=False)
        graph = keras.saving.deserialize_keras_object(config["graph"], custom_objects)
        self._set_graph(graph, CallSpec.from_config(config["inputs"]))
        return self

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """Returns a layer by its name or index, as `keras.Model.get_layer`."""
        return self._graph.get_layer(name, index)

    def get_build_config(self) -> None:
        """Returns None, because the constructor builds the functional model."""

    def build_from_config(self, config: Any) -> None:
        """Does nothing, because the constructor builds the functional model."""


def _is_functional(args: Any, kwargs: Any) -> bool:
    """Returns whether these are the arguments of a functional model."""
    return len(args) == 2 or "outputs" in kwargs


def _make_functional(cls: Any) -> None:
    """Changes the bases of a user's class, so that its instances are functional models.

    Keras does the same with its own subclasses.
    """
    bases = [FunctionalModel if base is Model else base for base in cls.__bases__]
    cls.__bases__ = (*bases, *([] if FunctionalModel in bases else [FunctionalModel]))


def _check_names(placeholders: list[Any]) -> None:
    names = [tensor.name for tensor in placeholders]
    duplicate = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if duplicate is not None:
        raise StructureError(
            path=duplicate,
            expected="a unique input name",
            received="two inputs of this name",
            mend='Name the placeholders: xt.keras.Input(spec, name="recipe").',
        )
