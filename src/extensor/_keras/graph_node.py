"""The nodes for extension values in a functional graph of Keras.

A value is one KerasTensor in the graph, a `ValueKerasTensor`. The operation `Field` returns a
component tensor of a value, for layers of Keras. The operation `Part` returns a field that is a
value itself, such as a ragged field. The operation `Assemble` makes a value of other component
tensors. A layer of extensor takes and returns such KerasTensors. When the graph runs, it passes on
the values themselves, or a `PassedValue` with the lowered form.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.component_tensors import component_names, part_name
from extensor._keras.lowering import (
    PassedValue,
    from_lowered,
    is_lowered,
    map_lowered,
    spec_of_lowered,
    tensors_of_lowered,
    to_lowered,
)
from extensor._keras.spec_key import spec_of_key
from extensor._keras.value_tensor import (
    ComponentKerasTensor,
    ValueDtype,
    is_value_tensor,
    lowered_spec,
    owner_of,
    spec_of_value_tensor,
)
from extensor._protocol.symbolic import symbolic_spec
from extensor._typing import Nest, Value
from extensor.errors import DTypeError


class ValueKerasTensor(keras.KerasTensor):
    """The KerasTensor of an extension value. It has the fields of a placeholder for the value.

    Args:
        spec: The spec of the value.
        name: The name, a prefix for the names of the fields.
    """

    def __init__(self, spec: tf.TypeSpec, name: str | None = None) -> None:
        super().__init__((None,), ValueDtype(spec), name=name)

    def __getitem__(self, index: object) -> Value:
        return from_lowered(with_fields(self))[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(from_lowered(with_fields(self)), name)


@symbolic_spec.register
def _(value: ValueKerasTensor) -> tf.TypeSpec:
    return spec_of_value_tensor(value)


class _OfValue(keras.Operation):
    """An operation that takes component tensors of an extension value."""

    spec: tf.TypeSpec | None = None  # of the value for which the operation was called

    def __call__(self, value: Value) -> Value:
        """Returns the result for a value, or its KerasTensor."""
        if isinstance(value, PassedValue):
            return self.call(value)  # Keras's own __call__ is slow, and an input has many fields
        if not isinstance(value, keras.KerasTensor):
            form = to_lowered(value)  # maybe a placeholder, if Keras clones a model
            value = _value_tensor(form) if is_symbolic(form) else value
        return super().__call__(value)

    def tensors(self, value: Value) -> tuple[Any, ...]:
        """Returns the component tensors of a value."""
        if isinstance(value, PassedValue):
            return tensors_of_lowered(value.given)
        assert self.spec is not None
        return tensors_of_lowered(to_lowered_as(self.spec, value, self.name))


@keras.saving.register_keras_serializable(package="extensor")
class Field(_OfValue):
    """Returns a component tensor of an extension value.

    Args:
        index: The position of the component tensor in the lowered form.
        name: The operation's name: the path of the field.
    """

    def __init__(self, index: int, name: str | None = None) -> None:
        super().__init__(name=name)
        self.index = index

    def call(self, value: Value) -> tf.Tensor:
        """Returns the component tensor of a value."""
        return self.tensors(value)[self.index]

    def compute_output_spec(self, value: keras.KerasTensor) -> ComponentKerasTensor:
        """Returns the KerasTensor of the component tensor."""
        self.spec = spec_of_value_tensor(value)
        component = ComponentKerasTensor(value, self.index)
        _fields_of(value)[self.index] = component
        return component

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"index": self.index, "name": self.name}


@keras.saving.register_keras_serializable(package="extensor")
class Part(_OfValue):
    """Returns a part of an extension value, such as a ragged field, that is a value itself.

    Args:
        key: The key of the part's spec.
        indices: The positions of the part's component tensors in the lowered form of the value.
        name: The operation's name: the path of the field.
    """

    def __init__(self, key: str, indices: Sequence[int], name: str | None = None) -> None:
        super().__init__(name=name)
        self.key, self.indices = key, tuple(indices)

    def call(self, value: Value) -> PassedValue:
        """Returns the part of a value."""
        tensors = self.tensors(value)
        return PassedValue({self.key: tuple(tensors[index] for index in self.indices)})

    def compute_output_spec(self, value: keras.KerasTensor) -> ValueKerasTensor:
        """Returns the KerasTensor of the part."""
        self.spec = spec_of_value_tensor(value)
        return ValueKerasTensor(spec_of_key(self.key), self.name)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"key": self.key, "indices": list(self.indices), "name": self.name}


@keras.saving.register_keras_serializable(package="extensor")
class Assemble(keras.Operation):
    """Returns an extension value of component tensors.

    Args:
        key: The key of the value's spec.
        name: The operation's name.
    """

    def __init__(self, key: str, name: str | None = None) -> None:
        super().__init__(name=name)
        self.key = key

    def call(self, *tensors: tf.Tensor) -> PassedValue:
        """Returns the value of the tensors."""
        return PassedValue({self.key: tensors})

    def compute_output_spec(self, *tensors: keras.KerasTensor) -> ValueKerasTensor:
        """Returns the KerasTensor of the value."""
        return ValueKerasTensor(spec_of_key(self.key), self.name)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"key": self.key, "name": self.name}


def to_value_tensors(structure: Nest, new_name: Callable[[], str]) -> Nest:
    """Returns a nest with each extension value replaced by a new `ValueKerasTensor`.

    Args:
        structure: A nest of values or placeholders.
        new_name: Returns the name of the next `ValueKerasTensor`.
    """
    return map_lowered(
        lambda form: ValueKerasTensor(spec_of_lowered(form), new_name()), to_lowered(structure)
    )


def with_value_tensors(structure: Nest) -> Nest:
    """Returns a nest with each placeholder in lowered form replaced by its KerasTensor."""
    return map_lowered(_value_tensor, structure)


def with_fields(structure: Nest) -> Nest:
    """Returns a nest with each `ValueKerasTensor` replaced by its lowered form, of its fields."""
    return tf.nest.map_structure(_form_of_fields, structure)


def fields_read(
    tensor: keras.KerasTensor, operations: Sequence[Any], outputs: Sequence[Any]
) -> set[str]:
    """Returns the names of the component tensors of an input that a graph reads.

    Args:
        tensor: The KerasTensor of the input.
        operations: All operations of the graph. One that takes the value reads all of it.
        outputs: The outputs of the graph. If the input is one of them, all of it is read.
    """
    names = component_names(spec_of_value_tensor(tensor), tensor.name)
    read: set[str] = set()
    if any(one is tensor for one in outputs):
        return set(names)
    for operation in operations:
        if isinstance(operation, keras.layers.InputLayer):
            continue
        if isinstance(operation, keras.Model):
            return set(names)  # its `input` is that of its own graph
        try:
            inputs = tf.nest.flatten(operation.input)
        except (AttributeError, ValueError):
            return set(names)  # it is in several graphs
        if not any(one is tensor for one in inputs):
            continue
        if isinstance(operation, Field):
            read.add(names[operation.index])
        elif isinstance(operation, Part):
            read.update(names[index] for index in operation.indices)
        else:
            return set(names)
    return read


def is_symbolic(structure: Nest) -> bool:
    """Returns whether a nest holds a KerasTensor."""
    return any(isinstance(leaf, keras.KerasTensor) for leaf in tf.nest.flatten(structure))


def to_lowered_as(expected: tf.TypeSpec, value: Value, path: str) -> dict[str, Any]:
    """Returns the lowered form of a value that a layer returned.

    Args:
        expected: The spec of the value when the graph was built. It determines the order of the
            tensors.
        value: The value.
        path: The name of the operation, for the error.

    Raises:
        DTypeError: If the value has another type (also a TypeError).
    """
    global _last_lowered
    reference, spec, form = _last_lowered
    if reference() is value and spec is expected:
        return form
    form = to_lowered(value)
    if not is_lowered(form) or not expected.is_compatible_with(spec_of_lowered(form)):
        received = repr(tf.type_spec_from_value(value) if is_lowered(form) else value)
        fix = "Return values of the same type from every call of the layer."
        text = f"{expected}, the output of the layer when the model was built"
        raise DTypeError(path, text, received, fix)
    with contextlib.suppress(TypeError):  # the class does not support weak references
        _last_lowered = weakref.ref(value, _forget_last), expected, form
    return form


def _forget_last(reference: object) -> None:
    global _last_lowered
    if _last_lowered[0] is reference:
        _last_lowered = _nothing, None, {}


def _nothing() -> None:
    return None


# The last value that `to_lowered_as` got, with its arguments and result: a graph takes many fields
# of one value. The tensors live only as long as the value.
_last_lowered: tuple[Callable[[], Any], Any, dict[str, Any]] = (_nothing, None, {})


def _value_tensor(form: dict[str, Any]) -> Any:
    ((key, tensors),) = form.items()
    if not is_symbolic(tensors):
        return form
    owner = owner_of(tensors)
    if owner is None:
        return Assemble(key)(*tensors)
    indices = tuple(tensor.index for tensor in tensors)
    ((own_key, specs),) = lowered_spec(spec_of_value_tensor(owner)).items()
    if key == own_key and indices == tuple(range(len(specs))):
        return owner
    # One node for all layers that read the part.
    taken = vars(owner).setdefault("taken_parts", {})
    if (key, indices) not in taken:
        name = part_name(spec_of_value_tensor(owner), owner.name, spec_of_key(key), indices)
        taken[key, indices] = Part(key, indices, name)(owner)
    return taken[key, indices]


def _fields_of(tensor: keras.KerasTensor) -> dict[int, ComponentKerasTensor]:
    """Returns the fields that were taken of a `ValueKerasTensor` already, by index."""
    return vars(tensor).setdefault("taken_fields", {})


def _form_of_fields(tensor: Nest) -> Nest:
    if not is_value_tensor(tensor):
        return tensor
    spec, taken = spec_of_value_tensor(tensor), _fields_of(tensor)
    ((key, specs),) = lowered_spec(spec).items()
    if len(taken) < len(specs):
        for index, name in enumerate(component_names(spec, tensor.name)):
            if index not in taken:
                Field(index, name)(tensor)
    return {key: tuple(taken[index] for index in range(len(specs)))}
