"""The boxes of rows: ragged tensors, which TensorFlow knows how to stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from extensor._protocol.box import box, boxed_specs, unbox
from extensor._types import rows
from extensor.errors import DTypeError, ProtocolError, RowError, StructureError


def expect_unstacks(spec: Any, times: int) -> None:
    """Raises what `unstacked` raises, if a spec does not unstack so many times."""
    for _ in range(times):
        spec = spec.unstacked()


def box_rows(
    spec: tf.TypeSpec, values: Any, row_splits: tf.Tensor, sizes: Sequence[Any], minimum_rank: int
) -> list[tf.Tensor]:
    """Returns flat values, cut into rows, as boxed tensors.

    Args:
        spec: The spec of the values.
        values: A tensor, or a value of any type that stacks.
        row_splits: Where rows begin and end.
        sizes: The sizes of the batch of rows.
        minimum_rank: How many dimensions of the batch the boxes have as their own.
    """
    if isinstance(values, (tf.Tensor, tf.RaggedTensor)):
        ragged = rows.cut(values, row_splits, sizes)
        [rows_spec] = _row_specs(spec, tf.TensorShape([None] * len(sizes)), row_splits.dtype)
        return box(rows_spec, ragged, minimum_rank)
    boxes: list[tf.Tensor] = []
    for part in box(spec, values, 1):
        if part.dtype == tf.variant:
            boxes.append(_box_variants(part, row_splits, sizes, minimum_rank))
        else:
            part_spec = tf.TensorSpec(part.shape, part.dtype)
            boxes += box_rows(part_spec, part, row_splits, sizes, minimum_rank)
    return boxes


def unbox_rows(
    spec: tf.TypeSpec, shape: tf.TensorShape, boxes: Iterator[Any], splits_dtype: tf.DType
) -> Any:
    """Returns the flat values that stand in boxes.

    Args:
        spec: The spec of the values.
        shape: The static shape of the batch of rows.
        boxes: Yields the boxes of these values, and goes on.
        splits_dtype: The dtype of the row splits.
    """
    return flat(unbox_cut(spec, shape, boxes, splits_dtype), shape.rank)


def unbox_cut(
    spec: tf.TypeSpec, shape: tf.TensorShape, boxes: Iterator[Any], splits_dtype: tf.DType
) -> Any:
    """As `unbox_rows`, and leaves tensors cut into rows."""
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
        [rows_spec] = _row_specs(spec, shape, splits_dtype)
        return unbox(rows_spec, [next(boxes)])
    parts: list[Any] = []
    for part_spec in boxed_specs(spec, 1):
        if part_spec.dtype == tf.variant:
            parts.append(_unbox_variants(next(boxes)))
        else:
            parts.append(unbox_rows(part_spec, shape, boxes, splits_dtype))
    return unbox(spec, parts)


def flat(values: Any, rank: int) -> Any:
    """Returns the flat values of what `unbox_cut` returned."""
    if isinstance(values, tf.RaggedTensor):
        for _ in range(rank):
            values = values.values
    return values


def count_boxes(spec: tf.TypeSpec) -> int:
    """Returns how many boxed tensors `box_rows` returns."""
    is_tensor = isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec))
    return 1 if is_tensor else len(boxed_specs(spec, 1))


def _row_specs(spec: Any, shape: tf.TensorShape, splits_dtype: tf.DType) -> list[Any]:
    inner = 0
    if isinstance(spec, tf.RaggedTensorSpec):
        inner = spec.ragged_rank
        splits_dtype = spec.row_splits_dtype if inner else splits_dtype
    of_values = tf.TensorShape([None]).concatenate(spec.shape[1:])
    return [
        tf.RaggedTensorSpec(
            shape.concatenate(of_values), spec.dtype, shape.rank + inner, splits_dtype
        )
    ]


# What other types box into are variants, which no ragged tensor can be made of in a box. Sparse
# tensors can; they have no gradient.


def _box_variants(
    variants: tf.Tensor, row_splits: tf.Tensor, sizes: Sequence[Any], minimum_rank: int
) -> tf.Tensor:
    if variants.shape.rank not in (1, None):
        raise ProtocolError(
            path="rows of values of other types",
            expected="a type that boxes into one tensor, or into vectors of variants",
            received=f"variants of shape {variants.shape}",
            mend="Use a RaggedTensor or an xt.types.CSRSparseTensor instead of a SparseTensor.",
        )
    leading = [tf.cast(size, tf.int64) for size in sizes[:minimum_rank]]
    begins = tf.range(rows.count_of(leading) + 1) * rows.count_of(sizes[minimum_rank:])
    splits = tf.gather(tf.cast(row_splits, tf.int64), begins)
    numbers = tf.range(tf.size(variants, tf.int64))
    ragged = tf.raw_ops.RaggedTensorToSparse(rt_nested_splits=[splits], rt_dense_values=numbers)
    boxed = tf.raw_ops.SerializeManySparse(
        sparse_indices=ragged.sparse_indices,
        sparse_values=variants,
        sparse_shape=ragged.sparse_dense_shape,
        out_type=tf.variant,
    )
    return tf.reshape(boxed, [*leading, 3])


def _unbox_variants(boxed: tf.Tensor) -> tf.Tensor:
    def none() -> tf.Tensor:
        return tf.raw_ops.SerializeManySparse(
            sparse_indices=tf.zeros([0, 2], tf.int64),
            sparse_values=tf.reshape(boxed, [-1])[:0],
            sparse_shape=[1, 0],
            out_type=tf.variant,
        )

    # There is no kernel that unpacks nothing.
    some = tf.cond(tf.equal(tf.size(boxed), 0), none, lambda: tf.reshape(boxed, [-1, 3]))
    unpacked = tf.raw_ops.DeserializeSparse(serialized_sparse=some, dtype=tf.variant)
    return unpacked.sparse_values


# Batches of whole values.


def stacked(cls: Any, values: list[Any]) -> Any:
    """Returns a batch of values of one class.

    Raises:
        StructureError: If there is none, or they are of types that do not stack (also a
            ValueError).
    """
    path = f"{cls.__qualname__}.batch"
    if not values:
        raise StructureError(
            path=path,
            expected="one value or more",
            received="none",
            mend="What no values have in common is not known.",
        )
    for value in values:
        if not isinstance(value, cls):
            raise DTypeError(
                path=path,
                expected=f"values of type {cls.__qualname__}",
                received=type(value).__qualname__,
                mend="Make all values of one type first.",
            )
    spec = values[0].__tf_type_spec__()
    for value in values[1:]:
        merged = spec.most_specific_compatible_type(value.__tf_type_spec__())
        if merged is None:
            raise StructureError(
                path=path,
                expected=f"values of {spec}",
                received=f"one of {value.__tf_type_spec__()}",
                mend="Give all of them the same features, of the same dtypes.",
            )
        spec = merged
    columns = zip(*(box(spec, value) for value in values), strict=True)
    return unbox(spec.stacked(len(values)), [tf.stack(column) for column in columns])


def indexed(batch: Any, index: Any) -> Any:
    """Returns a value of a batch, or a batch of some.

    Raises:
        RowError: If the index points outside, or this is no batch (also an IndexError).
    """
    spec = batch.__tf_type_spec__()
    size = spec.shape[0] if spec.shape.rank else 0
    is_outside = isinstance(index, int) and size is not None and not -size <= index < size
    if spec.shape.rank == 0 or is_outside:
        raise RowError(
            path=f"{type(batch).__qualname__}[...]",
            expected=f"a position from {-size} to {size - 1}" if size else "no position",
            received=str(index),
            mend=f"There are {size} in the batch." if spec.shape.rank else "This is no batch.",
        )
    boxes = [part[index] for part in box(spec, batch, 1)]
    spec = spec.unstacked()
    return unbox(spec.stacked(None) if isinstance(index, slice) else spec, boxes)
