"""The KerasTensor that represents an extension value in a functional graph of Keras.

An extension value is one KerasTensor: one input, one output, one edge of the graph. Its dtype is a
`ValueDtype`, which holds the spec. Keras copies a KerasTensor by its shape, dtype and name, for
example when it clones a model. So the copy has the spec too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from extensor._keras import component_tensors
from extensor._keras.open_spec import any_batch_size
from extensor._keras.spec_key import key_of_spec


class ValueDtype(str):
    """The dtype of a KerasTensor that represents an extension value.

    It equals "string", a dtype that Keras does not cast.

    Args:
        spec: The spec of the value.
    """

    spec: tf.TypeSpec

    def __new__(cls, spec: tf.TypeSpec) -> ValueDtype:
        """Returns the dtype of values of a spec."""
        self = super().__new__(cls, "string")
        self.spec = spec
        return self

    def __deepcopy__(self, memo: object) -> ValueDtype:
        return self  # Keras copies configurations

    def __format__(self, format_spec: str) -> str:
        return format(self.spec.value_type.__name__, format_spec)


class ComponentKerasTensor(keras.KerasTensor):
    """The KerasTensor of one component tensor of an extension value.

    Args:
        owner: The KerasTensor of the value.
        index: The position of the component tensor in the lowered form.
    """

    def __init__(self, owner: keras.KerasTensor, index: int) -> None:
        (specs,) = lowered_spec(spec_of_value_tensor(owner)).values()
        spec = specs[index]
        super().__init__(spec.shape.as_list(), spec.dtype.name)
        self.owner, self.index = owner, index


def is_value_tensor(value: object) -> bool:
    """Returns whether `value` is the KerasTensor of an extension value."""
    return isinstance(value, keras.KerasTensor) and isinstance(value.dtype, ValueDtype)


def spec_of_value_tensor(tensor: keras.KerasTensor) -> tf.TypeSpec:
    """Returns the spec of the value that a KerasTensor represents."""
    dtype: Any = tensor.dtype
    return dtype.spec


def lowered_spec(spec: tf.TypeSpec) -> dict[str, tuple[tf.TensorSpec, ...]]:
    """Returns the lowered form of a spec, with TensorSpecs instead of component tensors."""
    spec = any_batch_size(spec)
    leaves = tf.nest.flatten(spec, expand_composites=True)
    return {key_of_spec(spec): tuple(component_tensors.batch_first(spec, leaves))}


def form_of_value_tensor(tensor: keras.KerasTensor) -> dict[str, Any]:
    """Returns the lowered form of a value, of tensors that are not part of a graph."""
    ((key, specs),) = lowered_spec(spec_of_value_tensor(tensor)).items()
    return {key: tuple(ComponentKerasTensor(tensor, index) for index in range(len(specs)))}


def owner_of(tensors: Sequence[Any]) -> keras.KerasTensor | None:
    """Returns the KerasTensor of the one value that all tensors are components of, or None."""
    owner: Any = getattr(tensors[0], "owner", None) if tensors else None
    of_one = (isinstance(one, ComponentKerasTensor) and one.owner is owner for one in tensors)
    return owner if is_value_tensor(owner) and all(of_one) else None
