"""Models over extension values: subclassed, and functional, `Model(inputs, outputs)`."""

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

# What the configuration of a functional model holds.
_FUNCTIONAL_CONFIG = {"name", "graph", "inputs"}


class Model(Trainer, Saver, TakesValues, keras.Model):
    """A Keras model over extension values.

    Subclass it as `keras.Model`, with a `call` that takes extension values; or build it from the
    placeholders of `xt.keras.Input`, as `Model(inputs, outputs)`.

    Args:
        inputs: A placeholder, or a nest of them.
        outputs: What layers made of them.
        name: The model's name.

    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 3], tf.float32)})
    >>> record = xt.keras.Input(spec)
    >>> model = xt.keras.Model(record, keras.layers.Dense(1)(record["x"]))
    >>> model(xt.DenseStructuredTensor([2], {"x": tf.zeros([2, 3])})).shape
    TensorShape([2, 1])
    """

    _declares_input = False  # whether all inputs must be of the type of the first
    _output_spec: CallSpec | None = None  # of the first call

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes the functional model for `Model(inputs, outputs)`."""
        is_functional = cls is Model and _is_functional(args, kwargs)
        made: Any = FunctionalModel if is_functional else cls
        return super().__new__(made, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if _is_functional(args, kwargs):
            _make_functional(type(self))
            FunctionalModel.__init__(self, *args, **kwargs)  # pyright: ignore[reportArgumentType]
        else:
            super().__init__(*args, **kwargs)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Returns the model that `get_config` described."""
        if config.keys() == _FUNCTIONAL_CONFIG and not issubclass(cls, FunctionalModel):
            _make_functional(cls)
            return cls.from_config(config, custom_objects)
        return super().from_config(config, custom_objects)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model on values or placeholders."""
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
    """A functional model of Keras's own over the tensors of its inputs."""

    # Keras takes the class for a functional model by this signature.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Keras 3.10 refuses an input that no layer reads, and a model need not read every field.
        keras.layers.Identity()(args[0] if args else kwargs["inputs"])
        super().__init__(*args, **kwargs)


@keras.saving.register_keras_serializable(package="extensor")
class FunctionalModel(Model):
    """What `Model(inputs, outputs)` makes: it runs a functional model of Keras over the tensors."""

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any) -> None:
        # The layers of the graph cast for themselves, as in a functional model of Keras's own.
        super().__init__(name=name, autocast=False, **kwargs)
        flat = tf.nest.flatten(lowered(inputs))
        _check_names(flat)
        graph = Graph(flat, lowered(outputs), name=f"{self.name}_graph")
        self._output_spec = CallSpec.of_values({"": outputs})
        self._set_graph(graph, CallSpec.of_call(self, [inputs], {}))

    @property
    def graph(self) -> Any:
        """The functional model of Keras that it runs, over the tensors of the fields.

        `keras.utils.plot_model(model.graph, show_layer_names=True)` draws it, each input by the
        path of its field.
        """
        return self._graph

    @property
    def input(self) -> Any:
        """The placeholders that the model was made of, to make another one of them."""
        assert self._call_spec is not None
        (form,) = self._call_spec.lowered.values()
        return raised(tf.nest.pack_sequence_as(form, self._graph.inputs))

    @property
    def output(self) -> Any:
        """What the layers made of the placeholders."""
        return raised(self._graph.output)

    def _set_graph(self, graph: Any, call_spec: CallSpec) -> None:
        self._graph = graph
        self._call_spec, self._declares_input = call_spec, True
        self.built = True

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs the functional model."""
        if type(self).call is not FunctionalModel.call:  # for a subclass's own, which has values
            return raised(self._graph(tf.nest.flatten(lowered(inputs)), training=training))
        return self._graph(tf.nest.flatten(inputs), training=training)

    call.takes_lowered = True  # type: ignore[attr-defined]

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`, and the fields of inputs and outputs."""
        self._graph.summary(*args, **kwargs)
        self._print_fields(kwargs.get("print_fn") or print)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs to build the model again."""
        if type(self).__init__ is not FunctionalModel.__init__:
            return super().get_config()  # of a subclass, whose arguments are of its own
        assert self._call_spec is not None
        return {
            "name": self.name,
            "graph": check_savable(keras.saving.serialize_keras_object(self._graph), self.name),
            "inputs": self._call_spec.to_config(),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> FunctionalModel:
        """Returns the model that `get_config` described."""
        if config.keys() != _FUNCTIONAL_CONFIG:
            return super().from_config(config, custom_objects)
        self = cls.__new__(cls)
        Model.__init__(self, name=config["name"], autocast=False)
        graph = keras.saving.deserialize_keras_object(config["graph"], custom_objects)
        self._set_graph(graph, CallSpec.from_config(config["inputs"]))
        return self

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """Returns a layer by its name or place, as `keras.Model.get_layer`."""
        return self._graph.get_layer(name, index)

    def get_build_config(self) -> None:
        """Returns nothing: the functional model is built with the model itself."""

    def build_from_config(self, config: Any) -> None:
        """Does nothing: the functional model is built with the model itself."""


def _is_functional(args: Any, kwargs: Any) -> bool:
    """Returns whether these are the arguments of a functional model."""
    return len(args) == 2 or "outputs" in kwargs


def _make_functional(cls: Any) -> None:
    """Makes the class of a user one of functional models, as Keras does with its subclasses.

    Its instance stays one of that class, so the class gets another base.
    """
    bases = [FunctionalModel if base is Model else base for base in cls.__bases__]
    cls.__bases__ = (*bases, *([] if FunctionalModel in bases else [FunctionalModel]))


def _check_names(placeholders: list[Any]) -> None:
    names = [tensor.name for tensor in placeholders]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise StructureError(
            path=twice,
            expected="inputs of different names",
            received="two of this name",
            mend='Name the placeholders: xt.keras.Input(spec, name="recipe").',
        )
