"""The spec of CSRSparseTensors, and the boxing of the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor.authoring import box_rows, boxed_rows_specs, expect_unstacks, sizes_of, unbox_rows
from extensor.errors import StructureError
from extensor.typing import DTypeLike, ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self

    from extensor._types.csr.value import CSRSparseTensor


class CSRSpec:
    """The spec of sparse tensors of a shape and dtype, with any number of entries.

    Args:
        shape: The static shape; its rank must be known.
        dtype: The dtype of the values.
        row_splits_dtype: int64 or int32.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.types.CSRSparseTensor.Spec([None, 4], tf.float32).values
    TensorSpec(shape=(None,), dtype=tf.float32, name=None)
    """

    static_shape: tf.TensorShape
    value_type: Any

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = tf.float32,
        row_splits_dtype: DTypeLike = tf.int64,
    ) -> None:
        self.static_shape = tf.TensorShape(shape)
        if not self.static_shape.rank:
            expected, received = "a shape of known rank, 1 or more", str(self.static_shape)
            raise StructureError("CSRSparseTensor.Spec", expected, received, "Sizes may be None.")
        count = self.static_shape[:-1].num_elements()
        self.row_splits = tf.TensorSpec([None if count is None else count + 1], row_splits_dtype)
        self.columns = tf.TensorSpec([None], row_splits_dtype)
        self.values = tf.TensorSpec([None], dtype)
        self.dense_shape = tf.TensorSpec([self.static_shape.rank], tf.int64)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape."""
        return self.static_shape

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values."""
        return self.values.dtype

    @classmethod
    def of(cls, value: CSRSparseTensor) -> tf.TypeSpec:
        """Returns the spec of a tensor, for any number of entries."""
        return cls(value.shape, value.values.dtype, value.row_splits.dtype)

    def _with_shape(self, shape: tf.TensorShape) -> Self:
        return type(self)(shape, self.dtype, self.row_splits.dtype)

    def stacked(self, num: int | None) -> Self:
        """Returns the spec of a batch."""
        return self._with_shape(tf.TensorShape([num]).concatenate(self.static_shape))

    def unstacked(self) -> Self:
        """Returns the spec of a row of a matrix, or of a matrix of a batch."""
        if self.static_shape.rank == 1:
            received = f"shape {self.static_shape}"
            fix = "A vector has no rows: unstack value.to_dense()."
            raise StructureError("CSRSparseTensor.Spec", "rank 2 or more to unstack", received, fix)
        return self._with_shape(self.static_shape[1:])

    # The boxes are: the inner sizes, which are not in the shapes of the other boxes; columns;
    # values.

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec]:
        """Returns the TensorSpecs of the boxes."""
        # For minimum_rank 0, the number of stacked dimensions is not known.
        leading = [None] * minimum_rank
        sizes = [*leading, self.static_shape.rank - minimum_rank] if leading else None
        boxed = [*boxed_rows_specs(self.columns), *boxed_rows_specs(self.values)]
        return [tf.TensorSpec(sizes, tf.int64), *boxed]

    def to_boxed_tensor(self, value: CSRSparseTensor, minimum_rank: int = 0) -> list[tf.Tensor]:
        """Returns the boxes: the inner sizes, the columns and the values."""
        expect_unstacks(self, value, minimum_rank)
        sizes = sizes_of(value.shape[:-1], value.dense_shape)
        inner = value.dense_shape[minimum_rank:]
        leading = value.dense_shape[:minimum_rank]
        boxes = [tf.broadcast_to(inner, tf.concat([leading, tf.shape(inner, tf.int64)], 0))]
        for spec, part in ((self.columns, value.columns), (self.values, value.values)):
            boxes += box_rows(spec, part, value.row_splits, sizes, minimum_rank)
        return boxes

    def from_boxed_tensor(self, boxed_tensor: list[tf.Tensor]) -> CSRSparseTensor:
        """Returns the tensor, or the batch, that the boxes contain."""
        sizes, *boxes = boxed_tensor
        outer, dtype = self.static_shape[:-1], self.row_splits.dtype
        columns = unbox_rows(self.columns, outer, iter(boxes[:1]), dtype, cut=True)
        values = unbox_rows(self.values, outer, iter(boxes[1:]), dtype)
        dense_shape = _stacked_shape(sizes, self.static_shape)
        if isinstance(columns, tf.RaggedTensor):
            row_splits = columns.nested_row_splits[-1]
            columns = columns.flat_values
        else:
            row_splits = tf.stack([0, tf.size(columns, dtype)])
        return self.value_type._of_parts(
            row_splits, columns, values, dense_shape, self.static_shape
        )


def known_shape(shape: tf.TensorShape, dense_shape: tf.Tensor) -> tf.TensorShape:
    """Returns the static shape, from `dense_shape` if its value is known."""
    # It may be a placeholder of another library, which is not a tensor.
    known = tf.get_static_value(dense_shape) if isinstance(dense_shape, tf.Tensor) else None
    return shape if known is None else tf.TensorShape(known.tolist())


def _stacked_shape(sizes: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """Returns the dense shape of a batch, given the inner sizes of each element."""
    if shape.is_fully_defined():
        return tf.constant(shape.as_list(), tf.int64)
    full = tf.shape(sizes, tf.int64)
    count = full[-1]
    each = tf.reshape(sizes, tf.stack([-1, count]))
    # One row more, because an empty batch has no sizes.
    known = tf.constant([size or 0 for size in shape.as_list()], tf.int64)
    each = tf.concat([each, [known[-tf.cast(count, tf.int32) :]]], 0)
    first = each[0]
    check = tf.debugging.assert_equal(
        each[:-1], first, "Sparse tensors of different shapes do not stack."
    )
    with tf.control_dependencies([] if check is None else [check]):
        return tf.ensure_shape(tf.concat([full[:-1], first], 0), [shape.rank])
