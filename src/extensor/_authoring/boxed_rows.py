"""Boxed rows: flat values and row splits as variant tensors, which TensorFlow can stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from extensor._authoring.rows import cut_rows, num_elements
from extensor._protocol.box import box, boxed_specs, unbox
from extensor.errors import ProtocolError


def box_rows(
    spec: tf.TypeSpec,
    values: Any,
    row_splits: tf.Tensor,
    sizes: Sequence[Any] | tf.RaggedTensor,
    minimum_rank: int,
) -> list[tf.Tensor]:
    """Returns flat values, cut into rows, as boxed tensors. For use in a `to_boxed_tensor`.

    Args:
        spec: The spec of the values.
        values: A tensor, or a value of any type that stacks.
        row_splits: The row splits of the values.
        sizes: The sizes of the batch of rows: integers, or scalar tensors. For a ragged batch: a
            RaggedTensor of its shape, with one item for each row.
        minimum_rank: How many dimensions of the batch are dimensions of the boxes.

    Returns:
        One tensor for each spec that `boxed_rows_specs` returns.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec, values = tf.TensorSpec([None], tf.int32), tf.constant([7, 8, 9])
    >>> [boxed] = xt.authoring.box_rows(spec, values, tf.constant([0, 2, 3]), [2], 1)
    >>> xt.authoring.unbox_rows(spec, tf.TensorShape([]), iter([boxed[0]]), tf.int32).numpy()
    array([7, 8], dtype=int32)
    """
    if isinstance(values, (tf.Tensor, tf.RaggedTensor)):
        if isinstance(sizes, tf.RaggedTensor):
            batch: Any = sizes
            ragged, shape = _cut_like(batch, values, row_splits), batch.shape
        else:
            ragged, shape = cut_rows(values, row_splits, sizes), tf.TensorShape([None] * len(sizes))
        spec = _cut_spec(spec, shape, row_splits.dtype)
        return box(spec, ragged, minimum_rank)
    boxes: list[tf.Tensor] = []
    for part in box(spec, values, 1):
        if part.dtype == tf.variant:
            boxes.append(_box_variants(part, row_splits, sizes, minimum_rank))
        else:
            part_spec = tf.TensorSpec(part.shape, part.dtype)
            boxes += box_rows(part_spec, part, row_splits, sizes, minimum_rank)
    return boxes


def unbox_rows(
    spec: tf.TypeSpec,
    shape: tf.TensorShape,
    boxes: Iterator[Any],
    splits_dtype: tf.DType,
    cut: bool = False,
) -> Any:
    """Returns the flat values that boxes hold. For use in a `from_boxed_tensor`.

    Args:
        spec: The spec of the values.
        shape: The static shape of the batch of rows.
        boxes: An iterator whose next items are the boxes of these values.
        splits_dtype: The dtype of the row splits.
        cut: Whether tensors are returned as RaggedTensors of rows.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec, values = tf.TensorSpec([None], tf.int32), tf.constant([7, 8, 9])
    >>> boxes = xt.authoring.box_rows(spec, values, tf.constant([0, 2, 3]), [2], 1)
    >>> xt.authoring.unbox_rows(spec, tf.TensorShape([2]), iter(boxes), tf.int32, cut=True)
    <tf.RaggedTensor [[7, 8], [9]]>
    """
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
        values: Any = unbox(_cut_spec(spec, shape, splits_dtype), [next(boxes)])
        if isinstance(values, tf.RaggedTensor) and not cut:
            for _ in range(shape.rank):
                values = values.values
        return values
    parts: list[Any] = []
    for part_spec in boxed_specs(spec, 1):
        if part_spec.dtype == tf.variant:
            parts.append(_unbox_variants(next(boxes)))
        else:
            parts.append(unbox_rows(part_spec, shape, boxes, splits_dtype))
    return unbox(spec, parts)


def boxed_rows_specs(spec: tf.TypeSpec) -> list[tf.TensorSpec]:
    """Returns the TensorSpecs of the result of `box_rows`. For use in a `boxed_tensor_spec`.

    Args:
        spec: The spec of the values.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.boxed_rows_specs(tf.TensorSpec([None]))
    [TensorSpec(shape=<unknown>, dtype=tf.variant, name=None)]
    """
    is_tensor = isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec))
    count = 1 if is_tensor else len(boxed_specs(spec, 1))
    return [tf.TensorSpec(None, tf.variant)] * count


def _cut_spec(
    spec: tf.TypeSpec, shape: tf.TensorShape, splits_dtype: tf.DType
) -> tf.RaggedTensorSpec:
    """Returns the RaggedTensorSpec of flat values that are cut into a batch of rows."""
    inner = 0
    if isinstance(spec, tf.RaggedTensorSpec):
        inner = spec.ragged_rank
        splits_dtype = spec.row_splits_dtype if inner else splits_dtype
    of_values = tf.TensorShape([None]).concatenate(spec.shape[1:])
    return tf.RaggedTensorSpec(
        shape.concatenate(of_values), spec.dtype, shape.rank + inner, splits_dtype
    )


def _cut_like(
    batch: tf.RaggedTensor, values: tf.Tensor | tf.RaggedTensor, row_splits: tf.Tensor
) -> tf.RaggedTensor:
    """Returns flat values cut into one row for each item of a ragged batch."""
    flat: Any = batch.flat_values
    rows = cut_rows(values, row_splits, tf.unstack(tf.shape(flat, tf.int64), flat.shape.rank))
    if isinstance(rows, tf.RaggedTensor):  # TensorFlow does not mix row splits of two dtypes
        batch = batch.with_row_splits_dtype(rows.row_splits.dtype)
    return batch.with_flat_values(rows)


# Other types box into variant tensors. TensorFlow cannot encode a ragged tensor of variants, but it
# can serialize a sparse tensor of variants, which has no gradient.


def _box_variants(
    variants: tf.Tensor,
    row_splits: tf.Tensor,
    sizes: Sequence[Any] | tf.RaggedTensor,
    minimum_rank: int,
) -> tf.Tensor:
    if variants.shape.rank not in (1, None):
        expected = "a type that boxes into one tensor, or into vectors of variants"
        received = f"variants of shape {variants.shape}"
        fix = "Use a RaggedTensor or an xt.types.CSRSparseTensor instead of a SparseTensor."
        raise ProtocolError("rows of values of other types", expected, received, fix)
    if isinstance(sizes, tf.RaggedTensor):
        leading, begins = _limits(sizes, minimum_rank)
    else:
        leading = [tf.cast(size, tf.int64) for size in sizes[:minimum_rank]]
        begins = tf.range(num_elements(leading) + 1) * num_elements(sizes[minimum_rank:])
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


def _limits(batch: tf.RaggedTensor, minimum_rank: int) -> tuple[list[Any], tf.Tensor]:
    """Returns the leading sizes of a ragged batch, and the limits of the items of each element."""
    if minimum_rank == 0:
        return [], tf.stack([0, tf.size(batch.flat_values, tf.int64)])
    inner: Any = batch
    leading = [batch.nrows(tf.int64)]
    for _ in range(minimum_rank - 1):  # these dimensions have one size, because they are unstacked
        inner = inner.values
        leading.append(inner.nrows(tf.int64) // tf.maximum(num_elements(leading), 1))
    limits = tf.cast(inner.row_splits, tf.int64)
    inner = inner.values
    while isinstance(inner, tf.RaggedTensor):
        limits, inner = tf.gather(tf.cast(inner.row_splits, tf.int64), limits), inner.values
    return leading, limits * num_elements(tf.unstack(tf.shape(inner)[1:], inner.shape.rank - 1))


def _unbox_variants(boxed: tf.Tensor) -> tf.Tensor:
    def none() -> tf.Tensor:
        return tf.raw_ops.SerializeManySparse(
            sparse_indices=tf.zeros([0, 2], tf.int64),
            sparse_values=tf.reshape(boxed, [-1])[:0],
            sparse_shape=[1, 0],
            out_type=tf.variant,
        )

    # DeserializeSparse fails for an empty tensor.
    some = tf.cond(tf.equal(tf.size(boxed), 0), none, lambda: tf.reshape(boxed, [-1, 3]))
    unpacked = tf.raw_ops.DeserializeSparse(serialized_sparse=some, dtype=tf.variant)
    return unpacked.sparse_values
