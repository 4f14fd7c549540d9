"""Placeholders: extension values whose tensors are KerasTensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import keras
import tensorflow as tf

from extensor._protocol.symbolic import symbolic_rows, symbolic_spec
from extensor.errors import UnsupportedTypeError

# The id of each placeholder, mapped to a reference to the placeholder and its spec.
_specs: dict[int, tuple[Callable[[], Any], tf.TypeSpec]] = {}


class _Keeper:
    """Keeps a placeholder whose class does not support weak references.

    The placeholder's tensors refer to this object, and it refers to the placeholder. So Python
    deletes all of them together.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _Keeper, (None,)  # a copy of the tensors does not belong to the placeholder


def remember_spec(value: object, spec: tf.TypeSpec, tensors: list[Any]) -> None:
    """Stores the spec of a placeholder for `remembered_spec`.

    Args:
        value: The placeholder.
        spec: The spec of the placeholder.
        tensors: The KerasTensors in the placeholder.
    """
    key = id(value)

    def forget(_: object) -> None:
        _specs.pop(key, None)

    try:
        _specs[key] = weakref.ref(value, forget), spec
    except TypeError:
        keeper = _Keeper(value)
        for tensor in tensors:
            tensor._extensor_kept = [*getattr(tensor, "_extensor_kept", ()), keeper]
        reference = weakref.ref(keeper, forget)
        _specs[key] = (lambda: getattr(reference(), "value", None)), spec


def remembered_spec(value: object) -> tf.TypeSpec | None:
    """Returns the spec that `remember_spec` stored for a value, or None."""
    reference, spec = _specs.get(id(value), (lambda: None, None))
    return spec if reference() is value else None


class SymbolicRagged:
    """A placeholder for a RaggedTensor, to build a functional model from.

    Pass it to an `xt.keras.Layer`, whose `call` gets the RaggedTensor. Or apply a Keras layer to
    its values: `names.with_flat_values(lookup(names.flat_values))`.

    Args:
        flat_values: The KerasTensor of the innermost values.
        nested_row_splits: The KerasTensors of the row splits, outermost first.
        row_sizes: The size of the rows of each of them, None where rows differ. Default: all
            differ.
    """

    __slots__ = ("flat_values", "nested_row_splits", "row_sizes")

    def __init__(
        self,
        flat_values: keras.KerasTensor,
        nested_row_splits: Sequence[Any],
        row_sizes: Sequence[int | None] | None = None,
    ) -> None:
        self.flat_values = flat_values
        self.nested_row_splits = tuple(nested_row_splits)
        self.row_sizes = tuple(row_sizes or [None] * len(self.nested_row_splits))

    @property
    def row_splits(self) -> keras.KerasTensor:
        """The outermost row splits."""
        return self.nested_row_splits[0]

    @property
    def values(self) -> keras.KerasTensor | SymbolicRagged:
        """The values below the outermost ragged dimension."""
        inner = self.nested_row_splits[1:]
        if not inner:
            return self.flat_values
        return SymbolicRagged(self.flat_values, inner, self.row_sizes[1:])

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values."""
        return tf.dtypes.as_dtype(self.flat_values.dtype)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape, None for the dimensions in which rows differ."""
        nsplits = self.row_splits.shape[0]
        outer = [None if nsplits is None else nsplits - 1, *self.row_sizes]
        return tf.TensorShape(outer).concatenate(self.flat_values.shape[1:])

    def with_flat_values(self, flat_values: keras.KerasTensor) -> SymbolicRagged:
        """Returns a placeholder with the same rows and other flat values, one for each value."""
        return SymbolicRagged(flat_values, self.nested_row_splits, self.row_sizes)

    def __tf_tensor__(self, dtype: object = None, name: str | None = None) -> NoReturn:
        """Raises UnsupportedTypeError, because a placeholder holds no values."""
        fix = "Compute with it in an xt.keras.Layer or Lambda; layers of Keras take flat_values."
        raise UnsupportedTypeError(f"{self}", "a tensor", "a placeholder for a ragged tensor", fix)

    def __repr__(self) -> str:
        return f"<SymbolicRagged shape={self.shape}, dtype={self.dtype.name}>"


class SymbolicValue:
    """A placeholder for a value whose type cannot hold KerasTensors, because it computes with them.

    Pass it to an `xt.keras.Layer`, whose `call` gets the value.

    Args:
        spec: The spec of the value.
        tensors: The KerasTensors of its components, in the order of `tf.nest`.
    """

    __slots__ = ("spec", "tensors")

    def __init__(self, spec: tf.TypeSpec, tensors: Sequence[Any]) -> None:
        self.spec = spec
        self.tensors = list(tensors)

    def __repr__(self) -> str:
        return f"<SymbolicValue {self.spec}>"


@symbolic_spec.register
def _(value: keras.KerasTensor) -> tf.TensorSpec:
    return tf.TensorSpec(value.shape, value.dtype)


@symbolic_spec.register
def _(value: SymbolicRagged) -> tf.RaggedTensorSpec:
    splits_dtype = tf.dtypes.as_dtype(value.row_splits.dtype)
    return tf.RaggedTensorSpec(value.shape, value.dtype, value.ragged_rank, splits_dtype)


@symbolic_spec.register
def _(value: SymbolicValue) -> tf.TypeSpec:
    return value.spec


@symbolic_rows.register
def _(values: keras.KerasTensor, row_splits: keras.KerasTensor) -> SymbolicRagged:
    return SymbolicRagged(values, [row_splits])


@symbolic_rows.register
def _(values: SymbolicRagged, row_splits: keras.KerasTensor) -> SymbolicRagged:
    splits = [row_splits, *values.nested_row_splits]
    return SymbolicRagged(values.flat_values, splits, [None, *values.row_sizes])
