"""Sequential: a chain of layers that may take and return extension values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from extensor._keras._keras_private import OwnGraph
from extensor._keras.call_spec import CallSpec
from extensor._keras.graph_node import with_fields, with_value_tensors
from extensor._keras.input import Input
from extensor._keras.layer_call import TakesValues, returning_value_tensors
from extensor._keras.lowering import (
    contains,
    is_extension,
    is_extension_spec,
    is_lowered,
    to_lowered,
)
from extensor._keras.model import Functional, Model
from extensor._keras.serialization import with_serialized_values
from extensor._keras.spec_key import check_savable
from extensor._keras.value_tensor import is_value_tensor, spec_of_value_tensor
from extensor._typing import Nest
from extensor.errors import DTypeError


@keras.saving.register_keras_serializable(package="extensor")
class Sequential(OwnGraph, Model, keras.Sequential):
    """A model that passes its input through a chain of layers, as `keras.Sequential`.

    Args:
        layers: The layers. The first item may be a placeholder of `xt.keras.Input`: it builds the
            model, which then accepts only values of the placeholder's type.
        trainable: Whether the model's variables are trained.
        name: The model's name.

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 3], tf.float32)})
    >>> model = xt.keras.Sequential([
    ...     xt.keras.Lambda(lambda record: record["x"]), keras.layers.Dense(2)])
    >>> model(xt.DenseStructuredTensor([4], {"x": tf.zeros([4, 3])})).shape
    TensorShape([4, 2])
    """

    _first_graph: Any = None

    def __init__(
        self, layers: Sequence[Any] | None = None, trainable: bool = True, name: str | None = None
    ) -> None:
        # Model.__init__ would take two arguments for inputs and outputs.
        keras.Sequential.__init__(self, layers, trainable=trainable, name=name)

    def add(self, layer: keras.layers.Layer, rebuild: bool = True) -> None:
        """Adds a layer, or a placeholder of `xt.keras.Input` as the first item.

        Args:
            layer: The layer or the placeholder.
            rebuild: Whether to build the model again, if its input is known.

        Raises:
            ValueError: If `layer` is neither, or if its name is not new.
        """
        if is_extension(layer):
            layer = with_value_tensors(to_lowered(layer))
        elif not self.layers and self.declared_input is None:
            # Keras would give such a model an input of floats.
            known = layer.functional if isinstance(layer, Sequential) else layer
            inputs: list[Any] = getattr(known, "inputs", None) or [None]
            if is_value_tensor(inputs[0]) and len(inputs) == 1:
                self.add(Input(spec_of_value_tensor(inputs[0])), rebuild=False)
        super().add(layer, rebuild)  # type: ignore[misc]

    def build(self, input_shape: Nest = None) -> None:
        """Creates the variables of the layers for an input of this shape."""
        if is_value_tensor(self.declared_input):
            with_fields(self.declared_input)  # Keras 3.10 rejects an input that no operation reads
        last = self.layers[-1] if self.layers else None
        with returning_value_tensors(last):
            super().build(input_shape)

    build.takes_lowered = True  # type: ignore[attr-defined]

    @property
    def inputs(self) -> list[Any]:
        """The placeholders of the declared input, or of the values of the first call."""
        graph = self._graph_of_first_call()
        return super().inputs if graph is None else graph.inputs

    @property
    def outputs(self) -> list[Any]:
        """The placeholders of the outputs for `inputs`."""
        graph = self._graph_of_first_call()
        return super().outputs if graph is None else graph.outputs

    @property
    def input_shape(self) -> Nest:
        """The shape of the input."""
        graph = self._graph_of_first_call()
        return super().input_shape if graph is None else graph.input_shape

    @property
    def output_shape(self) -> Nest:
        """The shape of the output."""
        graph = self._graph_of_first_call()
        return super().output_shape if graph is None else graph.output_shape

    def _graph_of_first_call(self) -> Functional | None:
        """Returns the graph of the layers for the values of the first call.

        The model does not run it, because it accepts other values too.

        Returns:
            The graph, or None if the model has its own graph, or was not called with a value.
        """
        if self.functional is not None or self._call_spec is None or not self.layers:
            return None
        specs = list(self._call_spec.specs.values())
        if len(specs) != 1 or not is_extension_spec(specs[0]):
            return None
        layers = self.layers
        if self._first_graph is None or self._first_graph[0]() != layers:
            inputs = outputs = Input(specs[0])
            for layer in layers:
                outputs = layer(outputs)
            graph = Functional(inputs, outputs)
            # In functions, because Keras would track a layer or a list of layers.
            self._first_graph = (lambda: layers), (lambda: graph)
        return self._first_graph[1]()

    def functional_model(self, inputs: Nest, outputs: Nest, name: str) -> Functional:
        """Returns the functional model of the chain, which takes and returns values."""
        first = self.layers[0]
        if is_value_tensor(inputs) and not isinstance(first, TakesValues):
            expected = "a layer of xt.keras, because the input is an extension value"
            received = type(first).__name__
            fix = "Select a field first: xt.keras.Lambda(lambda records: records['x'])."
            raise DTypeError(f"{self.name}: layer {first.name}", expected, received, fix)
        self._call_spec = CallSpec.of_call(self, [inputs], {})
        self._output_spec = CallSpec.of_values({"": outputs})
        self._declares_input = is_value_tensor(inputs)
        return Functional(inputs, outputs, name=name)

    def clone_with(
        self, clone_function: Callable[[keras.Layer], keras.Layer], input_tensors: Nest
    ) -> Sequential:
        """Returns a model of clones of the layers, as `keras.models.clone_model`."""
        inputs = input_tensors
        if isinstance(inputs, (list, tuple)):
            (inputs,) = inputs
        declared = self.declared_input
        if inputs is None and declared is not None:
            layer = keras.layers.InputLayer(
                batch_shape=declared.shape, dtype=declared.dtype, name=declared.name
            )
            inputs = layer.output
        layers = [clone_function(layer) for layer in self.layers]
        clone = Sequential(
            layers if inputs is None else [inputs, *layers], self.trainable, self.name
        )
        if self.compiled:
            clone.compile_from_config(self.get_compile_config())
        return clone

    def call(
        self, inputs: Nest, training: bool | None = None, mask: Nest = None, **kwargs: object
    ) -> Nest:
        """Returns the output of the last layer."""
        return super().call(inputs, training=training, mask=mask, **kwargs)

    def compute_output_spec(self, inputs: Nest, *args: object, **kwargs: object) -> Nest:
        """Returns placeholders for the outputs of the last layer."""
        if self.functional is None and contains(inputs := to_lowered(inputs), is_lowered):
            # Keras would compute the shapes of the layers without creating their variables.
            outputs = keras.Operation.compute_output_spec(self, inputs, *args, **kwargs)
            return self._value_tensors(outputs)
        return super().compute_output_spec(inputs, *args, **kwargs)

    compute_output_spec.takes_lowered = True  # type: ignore[attr-defined]

    @property
    def input_dtype(self) -> str:
        """The dtype to which Keras casts the floats of an input."""
        return self.compute_dtype if self._declares_input else super().input_dtype

    def _named_inputs(self) -> dict[str, Any]:
        graph = self.functional
        return Model._named_inputs(self) if graph is None else graph._named_inputs()

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return check_savable(with_serialized_values(super().get_config()), self.name)

    def get_build_config(self) -> dict[str, Any] | None:
        """Returns the build configuration, or None if the layers of the configuration suffice."""
        return None if self._declares_input else super().get_build_config()
