"""Model: subclassed and functional Keras models of extension values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras._keras_private import KerasFunctional, OwnInputs
from extensor._keras.call_spec import CallSpec, named_signature
from extensor._keras.component_tensors import without_slash
from extensor._keras.graph_node import (
    ValueKerasTensor,
    fields_read,
    is_symbolic,
    to_lowered_as,
    with_fields,
    with_value_tensors,
)
from extensor._keras.input_check import cast_input, check_input, is_cast, is_placeholder
from extensor._keras.layer_call import TakesValues, is_called_by_keras
from extensor._keras.lowering import (
    PassedValue,
    contains,
    from_lowered,
    is_extension,
    map_leaves,
    map_lowered,
    spec_of_lowered,
    spec_of_nest,
    spec_of_value,
    to_lowered,
    without_passed,
)
from extensor._keras.pruned_input import of_fields
from extensor._keras.python_input import holds_data
from extensor._keras.saving import Saver
from extensor._keras.serialization import with_serialized_values
from extensor._keras.spec_key import check_savable
from extensor._keras.trainer import Trainer
from extensor._keras.value_tensor import is_value_tensor, spec_of_value_tensor
from extensor._path import Path
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import component_specs
from extensor._typing import Nest, Value
from extensor.errors import DTypeError

if TYPE_CHECKING:
    pass


class Model(Trainer, Saver, TakesValues, keras.Model):
    """A Keras model of extension values.

    Subclass it like `keras.Model`, with a `call` that takes extension values. Or build it from
    the placeholders of `xt.keras.Input`: `Model(inputs, outputs)`.

    Args:
        inputs: A placeholder, or a nest of placeholders.
        outputs: The outputs of the layers for these placeholders.
        name: The model's name.

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 3], tf.float32)})
    >>> record = xt.keras.Input(spec)
    >>> model = xt.keras.Model(record, keras.layers.Dense(1)(record["x"]))
    >>> model(xt.DenseStructuredTensor([2], {"x": tf.zeros([2, 3])})).shape
    TensorShape([2, 1])
    """

    _output_spec: CallSpec | None = None  # of the first call

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Returns a functional model for `Model(inputs, outputs)`."""
        is_functional = cls is Model and _is_functional(args, kwargs)
        model_class: Any = Functional if is_functional else cls
        return super().__new__(model_class, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if _is_functional(args, kwargs):
            _make_functional(type(self))
            Functional.__init__(self, *args, **kwargs)  # pyright: ignore[reportArgumentType]
        else:
            super().__init__(*args, **kwargs)

    def __call__(self, *args: object, **kwargs: object) -> Nest:
        """Returns the outputs of the model for values or placeholders."""
        args, kwargs = without_passed((args, kwargs))
        if self._call_spec is None:
            self._call_spec = CallSpec.of_call(self, args, kwargs)
        elif self._declares_input and self._call_spec.specs:
            args, kwargs = self._cast_arguments(args, kwargs)
        outputs = super().__call__(*args, **kwargs)
        if self._output_spec is None:
            self._output_spec = CallSpec.of_values({"": outputs})
        return outputs

    def _cast_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments of a call, with the input cast to the type that it has."""
        assert self._call_spec is not None
        name, expected = next(iter(self._call_spec.specs.items()))
        try:
            self._check_call(name, expected, args, kwargs)
        except DTypeError:
            args, kwargs = from_lowered(to_lowered((args, kwargs)))
            if args:
                args = (cast_input(expected, args[0], is_declared=True), *args[1:])
            elif name in kwargs:
                kwargs = {**kwargs, name: cast_input(expected, kwargs[name], is_declared=True)}
            given = args[0] if args else kwargs.get(name)
            if not (is_placeholder(given) and is_cast(expected, spec_of_nest(given), True)):
                self._check_call(name, expected, args, kwargs)
        return args, kwargs

    def _known_specs(self) -> dict[str, Any]:
        """Returns the specs of the first call, also of a model that was saved after it."""
        return {} if self._call_spec is None else self._call_spec.specs

    def _check_call(
        self, name: str, expected: Nest, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if len(args) == 1 and is_extension(args[0]):
            received = {name: spec_of_value(args[0])}
        else:
            received = CallSpec.of_call(self, args, kwargs).specs
        if name in received:
            check_input(expected, received[name], self.name)

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`, and the fields of inputs and outputs."""
        super().summary(*args, **kwargs)
        self._print_fields(kwargs.get("print_fn") or print)

    def _print_fields(self, print_fn: Callable[[str], object]) -> None:
        outputs = {} if self._output_spec is None else self._output_spec.specs
        read = self._names_read()
        for title, specs in (("Inputs", self._named_inputs()), ("Outputs", outputs)):
            lines = _field_lines(specs, read if title == "Inputs" else None)
            if lines:
                print_fn(f" {title}:")
                for line in lines:
                    print_fn(f"   {line}")

    def _named_inputs(self) -> dict[str, Any]:
        """Returns the specs of the inputs by the names that `summary` prints."""
        return {} if self._call_spec is None else self._call_spec.specs

    def _names_read(self) -> set[str] | None:
        """Returns the names of the component tensors that the model reads, or None for all."""
        return None


@keras.saving.register_keras_serializable(package="extensor")
class Functional(OwnInputs, Model, KerasFunctional):
    """The class of `Model(inputs, outputs)`: a functional model of Keras for values."""

    # Keras 3.10 recognizes a functional model by this signature.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._create(*args, **kwargs)

    def _create(self, inputs: Nest, outputs: Nest, name: str | None = None, **kwargs: Any) -> None:
        inputs, outputs = with_value_tensors(to_lowered((inputs, outputs)))
        with_fields(inputs)  # because Keras 3.10 rejects an input that no operation reads
        self._declares_input = contains(inputs, is_value_tensor)
        self._returns_values = contains(outputs, is_value_tensor)
        with warnings.catch_warnings():
            if self._declares_input:
                # The keys of a dict need not be the names, because extensor checks the inputs.
                warnings.filterwarnings("ignore", "When providing `inputs` as a dict")
            KerasFunctional.__init__(self, inputs, outputs, name=name, **kwargs)
        for tensor in [*self.inputs, *self.outputs]:
            if is_value_tensor(tensor):
                tensor.__class__ = ValueKerasTensor  # a copy that Keras made is a plain KerasTensor
        self._call_spec = CallSpec.of_call(self, [self.input], {})
        self._output_spec = CallSpec.of_values({"": self.output})
        if is_value_tensor(self.input):
            # `xt.serving.flat_signature` names the tensors by the parameter.
            signature = named_signature(*self._named_inputs())
            if signature is not None:
                self.__signature__ = signature

    def __call__(self, *args: object, **kwargs: object) -> Nest:
        """Returns the outputs of the layers for values or placeholders."""
        if self._declares_input:
            if args and not is_extension(args[0]) and holds_data(args[0]):
                args = (self._as_input(args[0]), *args[1:])
            args, kwargs = map_leaves(_as_tensor, (args, kwargs))
        return super().__call__(*args, **kwargs)

    def lowered_arguments(self, arguments: Nest) -> Nest:
        """Returns the arguments of a call as Keras gets them.

        Keras passes a ragged tensor on, if it is the input for a placeholder of `keras.Input`.
        """
        if self._declares_input:
            return to_lowered(arguments)
        return map_leaves(
            lambda leaf: leaf if isinstance(leaf, tf.RaggedTensor) else to_lowered(leaf),
            from_lowered(arguments),
        )

    def call(
        self, inputs: Nest, training: bool | None = None, mask: Nest = None, **kwargs: object
    ) -> Nest:
        """Returns the outputs of the layers."""
        if self._declares_input:
            mask = None  # the component tensors have their masks
        outputs = KerasFunctional.call(self, inputs, training=training, mask=mask, **kwargs)
        if self._returns_values:
            flat = zip(self.outputs, self.output_names, keras.tree.flatten(outputs), strict=True)
            own = [_lowered_output(*each) for each in flat]
            outputs = keras.tree.pack_sequence_as(outputs, own)
        return outputs if is_called_by_keras(self) else from_lowered(outputs)

    call.takes_lowered = True  # type: ignore[attr-defined]

    def standardized(self, inputs: Nest) -> list[Any] | None:
        """Returns the flat inputs of the graph, or None if Keras converts them."""
        if not self._declares_input:
            return None
        flat = keras.tree.flatten(map_lowered(PassedValue, to_lowered(inputs)))
        return [
            value
            if value is None or isinstance(value, PassedValue)
            else keras.ops.convert_to_tensor(value, dtype=tensor.dtype)
            for value, tensor in zip(flat, self.inputs, strict=True)
        ]

    def compute_output_spec(
        self, inputs: Nest, training: object = None, mask: object = None
    ) -> Nest:
        """Returns the KerasTensors of the outputs for KerasTensors or values."""
        # The forms that are left are those of values.
        inputs = map_lowered(
            lambda form: ValueKerasTensor(spec_of_lowered(form)),
            with_value_tensors(to_lowered(inputs)),
        )
        outputs = KerasFunctional.compute_output_spec(self, inputs)
        for tensor in filter(is_value_tensor, keras.tree.flatten(outputs)):
            tensor.__class__, tensor.name = ValueKerasTensor, self._new_name()
        return outputs

    compute_output_spec.takes_lowered = True  # type: ignore[attr-defined]

    def _named_inputs(self) -> dict[str, Any]:
        layers = [layer for layer in self.layers if isinstance(layer, keras.layers.InputLayer)]
        names = {id(layer.output): layer.name for layer in layers}
        return {names[id(tensor)]: _spec_of(tensor) for tensor in self.inputs}

    def _with_fields_read(self, x: Nest) -> tuple[Any, Any]:
        # A class of a user may have a step that reads more fields.
        if type(self) is not Functional or not is_value_tensor(self.input) or self.run_eagerly:
            return x, None
        if not isinstance(x, DenseStructuredTensor):
            return x, None
        read = self._names_read() or set[str]()
        fields = {Path.parse(name).names[1] for name in read}
        return of_fields(x, [name for name in x.field_names() if without_slash(name) in fields])

    def _names_read(self) -> set[str] | None:
        parts = [
            fields_read(tensor, self.operations, self.outputs)
            if is_value_tensor(tensor)
            else {name}
            for tensor, name in zip(self.inputs, self._named_inputs(), strict=True)
        ]
        return set[str]().union(*parts)

    @property
    def input_spec(self) -> Nest:
        """The shapes that Keras checks, or None if extensor checks the inputs."""
        return None if self._declares_input else super().input_spec

    @input_spec.setter
    def input_spec(self, value: object) -> None:
        KerasFunctional.input_spec.fset(self, value)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return check_savable(with_serialized_values(super().get_config()), self.name)

    def get_build_config(self) -> None:
        """Returns None, because the constructor builds the functional model."""

    def build_from_config(self, config: object) -> None:
        """Does nothing, because the constructor builds the functional model."""


def _spec_of(tensor: keras.KerasTensor) -> tf.TypeSpec:
    if is_value_tensor(tensor):
        return spec_of_value_tensor(tensor)
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _lowered_output(tensor: keras.KerasTensor, name: str, value: Value) -> Nest:
    is_value = is_value_tensor(tensor) and not is_symbolic(to_lowered(value))
    return (
        to_lowered_as(spec_of_value_tensor(tensor), value, name) if is_value else to_lowered(value)
    )


def _as_tensor(leaf: object) -> object:
    """Returns an array as a tensor, because Keras takes no values and arrays in one nest."""
    return keras.ops.convert_to_tensor(leaf) if isinstance(leaf, np.ndarray) else leaf


def _is_functional(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Returns whether these are the arguments of a functional model."""
    return len(args) == 2 or "outputs" in kwargs


def _make_functional(cls: Any) -> None:
    """Changes the bases of a user's class, so that its instances are functional models.

    Keras does the same with its own subclasses.
    """
    bases = [Functional if base is Model else base for base in cls.__bases__]
    cls.__bases__ = (*bases, *([] if Functional in bases else [Functional]))


def _field_lines(nest: Nest, read: Set[str] | None = None) -> list[str]:
    """Returns a line for each tensor in a nest of specs: its path, dtype and shape.

    Args:
        nest: The specs.
        read: The names of the component tensors that are read: only their fields get a line.
            None: all fields.

    >>> from extensor._keras.model import _field_lines
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.DenseStructuredTensorSpec([None], {
    ...     "title": tf.TensorSpec([None], tf.string),
    ...     "steps": tf.RaggedTensorSpec([None, None], tf.float32)})
    >>> _field_lines({"recipe": spec})
    ['recipe.title: string (None,)', 'recipe.steps: float32 (None, None) ragged']
    """
    return [
        f"{path}: {text}" if path.names else text
        for path, text in _fields(nest, Path())
        if read is None or any(f"{name}.".startswith(f"{path}.") for name in read)
    ]


def _fields(
    part: Nest, path: Path, outer: tf.TensorShape | None = None, rank: int = 0
) -> Iterator[tuple[Path, str]]:
    """Yields the path of each tensor and the text for it.

    Args:
        part: A spec, or a nest of specs.
        path: The path of `part`.
        outer: If `part` is a field of ragged records, the shape of the records.
        rank: The number of dimensions of `part` that `outer` replaces.
    """
    if isinstance(part, (dict, list, tuple)):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for name, item in items:
            # A single output has the empty name.
            yield from _fields(item, path if name == "" else path / str(name))
    elif isinstance(part, StructuredTensorSpec):
        inner = part._record
        if outer is not None or inner is not part:
            outer = part.shape if outer is None else outer.concatenate(part.shape[rank:])
        for name, item in inner.field_specs.items():
            yield from _fields(item, path / name, outer, inner.rank)
    elif isinstance(part, (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec)):
        shape = part.shape if outer is None else outer.concatenate(part.shape[rank:])
        is_ragged = outer is not None or isinstance(part, tf.RaggedTensorSpec)
        kind = " sparse" if isinstance(part, tf.SparseTensorSpec) else " ragged" * is_ragged
        yield path, f"{part.dtype.name} {shape}{kind}"
    else:
        yield from _fields(component_specs(part), path)
