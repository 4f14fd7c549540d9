"""Batches of whole values, stacked and unstacked through their boxed tensors."""

from __future__ import annotations

from typing import Any, TypeVar

import tensorflow as tf

from extensor._authoring.rows import stacked_boxes
from extensor._protocol.box import box, expect_type, stacked_spec, unbox, unstacked_spec
from extensor._protocol.box_ragged import take
from extensor.errors import DTypeError, RowError, StructureError

_Value = TypeVar("_Value", bound=Any)


def expect_unstacks(spec: tf.TypeSpec, value: object, times: int) -> None:
    """Raises an error unless a value has a spec's type and can be unstacked `times` times.

    Call it first in a `to_boxed_tensor`, with its `minimum_rank`.

    Args:
        spec: An `xt.StackableTypeSpec`.
        value: The value to box.
        times: How often the boxes will be unstacked.

    Raises:
        DTypeError: If the value is of another type (also a TypeError).
        StructureError: If the value has too few dimensions (also a ValueError).

    >>> import extensor as xt
    >>> spec = xt.types.CSRSparseTensor.Spec([2, 3])
    >>> value = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 3])
    >>> xt.authoring.expect_unstacks(spec, value, 1)
    """
    expect_type(spec, value)
    for _ in range(times):
        spec = spec.unstacked()


def batch_of(cls: type[_Value], values: list[_Value]) -> _Value:
    """Returns a batch of values of one class.

    If the spec has a method `joined(values)`, and the specs of all values are the same, it makes
    the batch without boxes, or returns None.

    Args:
        cls: A class whose spec is an `xt.StackableTypeSpec`.
        values: At least one value.

    Raises:
        DTypeError: If a value is of another class (also a TypeError).
        StructureError: If the list is empty, or the specs of the values cannot be merged (also a
            ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Interval:
    ...     low: tf.Tensor
    ...     high: tf.Tensor
    >>> xt.authoring.batch_of(Interval, [Interval(0.0, 1.0), Interval(2.0, 5.0)]).high.numpy()
    array([1., 5.], dtype=float32)
    """
    path = f"{cls.__qualname__}.batch"
    if not values:
        fix = "The spec of a batch is derived from its values."
        raise StructureError(path, "at least one value", "an empty list", fix)
    for value in values:
        if not isinstance(value, cls):
            expected, received = f"values of type {cls.__qualname__}", type(value).__qualname__
            raise DTypeError(path, expected, received, "Make all values of one type first.")
    spec, *others = [value.__tf_type_spec__() for value in values]
    same = all(other == spec for other in others)
    batch = spec.joined(values) if same and hasattr(spec, "joined") else None
    if batch is not None:
        return batch
    for other in others:
        merged = spec.most_specific_compatible_type(other)
        if merged is None:
            fix = "Give all of them the same features, of the same dtypes."
            raise StructureError(path, f"values of {spec}", f"a value of {other}", fix)
        spec = merged
    columns = zip(*(box(spec, value) for value in values), strict=True)
    return unbox(spec.stacked(len(values)), list(map(stacked_boxes, columns)))


def batch_item(batch: _Value, index: int | slice | tf.Tensor) -> _Value:
    """Returns one value of a batch, or, for a slice, a smaller batch.

    Args:
        batch: A value whose spec is an `xt.StackableTypeSpec` with a `shape`. If the spec has a
            method `part(batch, index)`, it cuts the batch without boxes, or returns None.
        index: An integer, a scalar tensor, or a slice.

    Raises:
        RowError: If the index is out of range, or the value is no batch (also an IndexError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Interval:
    ...     low: tf.Tensor
    ...     high: tf.Tensor
    ...     class Spec:
    ...         shape = tf.TensorShape([2])
    >>> batch = xt.authoring.batch_of(Interval, [Interval(0.0, 1.0), Interval(2.0, 5.0)])
    >>> xt.authoring.batch_item(batch, 1).high.numpy().item()
    5.0
    """
    spec = batch.__tf_type_spec__()
    path = f"{type(batch).__qualname__}[...]"
    if spec.shape.rank == 0:
        raise RowError(path, "a batch", "a single value", "This is no batch: it has no rows.")
    expect_row(path, index, spec.shape[0])
    part = spec.part(batch, index) if hasattr(spec, "part") else None
    return item_of_boxes(spec, box(spec, batch, 1), index) if part is None else part


def expect_row(path: str, index: int | slice | tf.Tensor, size: int | None) -> None:
    """Raises RowError if a number is known to be no row of as many rows."""
    known = tf.get_static_value(index) if isinstance(index, tf.Tensor) else index
    if isinstance(known, slice) or known is None or size is None or -size <= known < size:
        return
    expected = f"a row from {-size} to {size - 1}" if size else "no index, for 0 rows"
    raise RowError(path, expected, str(int(known)), f"The number of rows is {size}.")


def item_of_boxes(spec: tf.TypeSpec, boxes: list[tf.Tensor], index: int | slice | tf.Tensor) -> Any:
    """Returns one row of the value in boxes, or, for a slice, some rows."""
    path = type(spec).__qualname__
    taken = [take(part, index) for part in boxes]
    row = unstacked_spec(spec, path)
    if isinstance(index, slice):
        row = stacked_spec(row, taken[0].shape[0], path)
    return unbox(row, taken)
