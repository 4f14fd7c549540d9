"""Specs: the jobs of those that are TensorFlow's own, and what a spec of ours is one of.

| name | why |
| --- | --- |
| `BatchableTypeSpec` | `Dataset.batch`, `map_fn` and `vectorized_map` stack values of these specs only. |
| `VariableSpec` and `BaseResourceVariable` | A field that holds a variable is described by the first, so that the variable survives tf.function; the second is what is asked of every component to find one. |
| `TypeSpec.__make_cmp_key` | Makes the key by which TensorFlow compares and hashes specs. NaN is not equal to itself in it, so each value with a NaN among its static data would have a spec of its own. |
| `TypeSpec._to_components` and its kin | The jobs of TensorFlow's own specs have private names only; the laws hold for them too, so `extensor.testing` calls every spec's jobs by these. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.type_spec import BatchableTypeSpec
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, VariableSpec

__all__ = [
    "BaseResourceVariable",
    "BatchableTypeSpec",
    "VariableSpec",
    "box_specs",
    "boxes",
    "boxes_to_unstack",
    "component_specs",
    "deserialize",
    "from_components",
    "nan_equal_to_itself",
    "number_key",
    "ranks_only",
    "serialize",
    "stacked",
    "to_components",
    "unboxed",
    "unstacked",
    "without_names",
]


def serialize(spec: Any) -> Any:
    """Returns the static parts of any spec."""
    return spec._serialize()


def deserialize(spec_class: Any, serialization: Any) -> Any:
    """Returns the spec of a class that `serialize` described."""
    return spec_class._deserialize(serialization)


def component_specs(spec: Any) -> Any:
    """Returns the nest of specs of what `to_components` returns."""
    return spec._component_specs


def to_components(spec: Any, value: Any) -> Any:
    """Returns the components of a value of any spec."""
    return spec._to_components(value)


def from_components(spec: Any, components: Any) -> Any:
    """Returns the value of any spec that is made of the given components."""
    return spec._from_components(components)


def stacked(spec: Any, num: int | None) -> Any:
    """Returns the spec of `num` stacked values of any spec that stacks."""
    return spec._batch(num)


def unstacked(spec: Any) -> Any:
    """Returns the spec of one of the values that are stacked in a value of any spec."""
    return spec._unbatch()


def boxes(spec: Any, value: Any) -> Any:
    """Returns the tensors by which datasets hold a value of any spec."""
    return spec._to_tensor_list(value)


def boxes_to_unstack(spec: Any, value: Any) -> Any:
    """Returns the same of a value that is unstacked, along the first dimension of each tensor."""
    return spec._to_batched_tensor_list(value)


def unboxed(spec: Any, tensors: Any) -> Any:
    """Returns the value of any spec that datasets hold by the given tensors."""
    return spec._from_compatible_tensor_list(tensors)


def box_specs(spec: Any) -> Any:
    """Returns the specs of what `boxes` returns."""
    return spec._flat_tensor_specs


def ranks_only(spec: Any) -> Any:
    """Returns any spec with tensors of the same ranks, but of any sizes."""
    return spec._with_tensor_ranks_only()


def without_names(spec: Any) -> Any:
    """Returns any spec without the names of tensors in it."""
    return spec._without_tensor_names()


_NAN = object()
"""Stands for NaN in keys, because it is equal to itself."""


def number_key(number: Any) -> Any:
    """Returns a number, or nested lists of numbers, as a key in which NaN is equal to itself.

    Args:
        number: A number, of Python's or NumPy's, or what an array's `tolist` returns.

    >>> number_key(np.float32("nan")) == number_key(float("nan"))
    True
    """
    if isinstance(number, list):
        return tuple(map(number_key, number))
    if number == number:
        return number
    if isinstance(number, (complex, np.complexfloating)):
        return complex, number_key(number.real), number_key(number.imag)
    if isinstance(number, (np.datetime64, np.timedelta64)):  # NaT
        return type(number), _NAN
    return _NAN


_plain_make_key: Any = tf.TypeSpec._TypeSpec__make_cmp_key  # pyright: ignore[reportAttributeAccessIssue]


def _make_key(self: Any, part: Any) -> Any:
    """As TensorFlow's own, with NaN equal to itself."""
    if isinstance(part, (float, np.generic)):
        return number_key(part)
    if isinstance(part, np.ndarray) and part.dtype.kind in "fc":
        return np.ndarray, part.shape, number_key(part.tolist())
    return _plain_make_key(self, part)


def nan_equal_to_itself(spec_class: type) -> None:
    """Lets specs of a class, and of its subclasses, be equal if NaN is all that differs."""
    spec_class._TypeSpec__make_cmp_key = _make_key  # pyright: ignore[reportAttributeAccessIssue]
