"""The private methods of specs, and base classes of specs.

| name | why |
| --- | --- |
| `BatchableTypeSpec` | `Dataset.batch`, `map_fn` and `vectorized_map` stack only values of these specs. |
| `VariableSpec` and `BaseResourceVariable` | The spec of a field that contains a variable, so that the variable is kept in a tf.function; and the class that identifies variables among components. |
| `TypeSpec.__make_cmp_key` | Creates the key by which TensorFlow compares and hashes specs. NaN is not equal to itself, so each value with NaN in its static data would have a different spec. |
| `TypeSpec._to_components` and others | TensorFlow's own specs have these methods only under private names. The laws of `extensor.testing` apply to these specs too. |
"""  # noqa: E501 - a table row is one line

# ruff: noqa: F401 - `extensor._tf` has the classes
# pyright: reportUnusedImport=false

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.type_spec import BatchableTypeSpec
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, VariableSpec

from extensor._typing import Nest, Value


def serialize(spec: tf.TypeSpec) -> Nest:
    """Returns the static parts of any spec."""
    return spec._serialize()


def deserialize(spec_class: type[tf.TypeSpec], serialization: Nest) -> tf.TypeSpec:
    """Returns the spec of a class that `serialize` described."""
    return spec_class._deserialize(serialization)


def component_specs(spec: tf.TypeSpec) -> Nest:
    """Returns the nest of specs of what `to_components` returns."""
    return spec._component_specs


def to_components(spec: tf.TypeSpec, value: Value) -> Nest:
    """Returns the components of a value of any spec."""
    return spec._to_components(value)


def from_components(spec: tf.TypeSpec, components: Nest) -> Value:
    """Returns the value of any spec from its components."""
    return spec._from_components(components)


def stacked(spec: tf.TypeSpec, num: int | None) -> tf.TypeSpec:
    """Returns the spec of `num` stacked values of any spec that stacks."""
    return spec._batch(num)


def unstacked(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of one element of a stacked value of any spec."""
    return spec._unbatch()


def boxes(spec: tf.TypeSpec, value: Value) -> list[tf.Tensor]:
    """Returns the tensors that datasets store for a value of any spec."""
    return spec._to_tensor_list(value)


def boxes_to_unstack(spec: tf.TypeSpec, value: Value) -> list[tf.Tensor]:
    """Returns the tensors for a value that is unstacked along the first dimension of each."""
    return spec._to_batched_tensor_list(value)


def unbox(spec: tf.TypeSpec, tensors: list[tf.Tensor]) -> Value:
    """Returns the value of any spec from the tensors that datasets store."""
    return spec._from_compatible_tensor_list(tensors)


def box_specs(spec: tf.TypeSpec) -> list[tf.TensorSpec]:
    """Returns the specs of the tensors that `boxes` returns."""
    return spec._flat_tensor_specs


def ranks_only(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns any spec with tensor specs of the same ranks and unknown sizes."""
    return spec._with_tensor_ranks_only()


def without_names(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns any spec without the names of its tensor specs."""
    return spec._without_tensor_names()


_NAN = object()
"""Replaces NaN in keys, because it is equal to itself."""


def number_key(number: Any) -> Any:
    """Returns a number, or nested lists of numbers, as a key in which NaN is equal to itself.

    Args:
        number: A number of Python or NumPy, or the result of an array's `tolist`.

    >>> from extensor._tf._tf_spec import number_key
    >>> import numpy as np
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
    """Like TensorFlow's function, with NaN equal to itself."""
    if isinstance(part, (float, np.generic)):
        return number_key(part)
    if isinstance(part, np.ndarray) and part.dtype.kind in "fc":
        return np.ndarray, part.shape, number_key(part.tolist())
    return _plain_make_key(self, part)


def nan_equal_to_itself(spec_class: type) -> None:
    """Makes specs of a class and its subclasses treat NaN as equal to itself."""
    spec_class._TypeSpec__make_cmp_key = _make_key  # pyright: ignore[reportAttributeAccessIssue]
