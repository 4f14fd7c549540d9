"""Functional models: what `xt.keras.Model(inputs, outputs)` makes."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.call_spec import Inputs, specs_apart, specs_together
from extensor._keras.lowering import lower, raised, uncounted
from extensor._keras.model import FUNCTIONAL_CONFIG, Model
from extensor._keras.spec_key import check_savable
from extensor.errors import StructureError


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
    """What `Model(inputs, outputs)` makes: a functional Keras model behind a door of its own."""

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any) -> None:
        # The layers of the graph cast for themselves, as in a functional model of Keras's own.
        super().__init__(name=name, autocast=False, **kwargs)
        flat = tf.nest.flatten(lower(inputs))
        _check_names(flat)
        graph = Graph(flat, lower(outputs), name=f"{self.name}_graph")
        self._outputs_given = Inputs.of_values({"": outputs})
        self._set_graph(graph, Inputs.of(self, [inputs], {}).lowered)

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
        assert self._inputs_taken is not None
        (form,) = self._inputs_taken.lowered.values()
        return raised(tf.nest.pack_sequence_as(form, self._graph.inputs))

    @property
    def output(self) -> Any:
        """What the layers made of the placeholders."""
        return raised(self._graph.output)

    def _set_graph(self, graph: Any, specs: dict[str, Any]) -> None:
        self._graph = graph
        self._inputs_taken, self._declares_input = Inputs(specs), True
        self.built = True

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs the functional model."""
        if type(self).call is not FunctionalModel.call:  # for a subclass's own, which has values
            return raised(self._graph(tf.nest.flatten(lower(inputs)), training=training))
        return self._graph(tf.nest.flatten(uncounted(inputs)), training=training)

    call.takes_lowered = True  # type: ignore[attr-defined]

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`, and the fields of inputs and outputs."""
        self._graph.summary(*args, **kwargs)
        self._print_fields(kwargs.get("print_fn") or print)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs to build the model again."""
        if type(self).__init__ is not FunctionalModel.__init__:
            return super().get_config()  # of a subclass, whose arguments are of its own
        assert self._inputs_taken is not None
        return {
            "name": self.name,
            "graph": check_savable(keras.saving.serialize_keras_object(self._graph), self.name),
            "inputs": specs_apart(self._inputs_taken.lowered),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> FunctionalModel:
        """Returns the model that `get_config` described."""
        if config.keys() != FUNCTIONAL_CONFIG:
            return super().from_config(config, custom_objects)
        self = cls.__new__(cls)
        Model.__init__(self, name=config["name"], autocast=False)
        graph = keras.saving.deserialize_keras_object(config["graph"], custom_objects)
        self._set_graph(graph, specs_together(config["inputs"]))
        return self

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """Returns a layer by its name or place, as `keras.Model.get_layer`."""
        return self._graph.get_layer(name, index)

    def get_build_config(self) -> None:
        """Returns nothing: the functional model is built with the model itself."""

    def build_from_config(self, config: Any) -> None:
        """Does nothing: the functional model is built with the model itself."""


Model.functional = FunctionalModel


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
