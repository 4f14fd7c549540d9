"""CSRSparseTensor: a sparse tensor that keeps its entries row by row."""

# While a value is made its fields may be assigned, which type checkers do not know.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

import tensorflow as tf

from extensor import extension_type
from extensor._types.csr import algebra, check, conversion
from extensor._types.csr.spec import CSRSpec, refined
from extensor.authoring import integers, known_arrays, lossless
from extensor.dispatch import OperatorsMixin
from extensor.errors import DTypeError, RowError


@extension_type(name="extensor.types.CSRSparseTensor")
class CSRSparseTensor(OperatorsMixin):
    """A sparse tensor in compressed sparse rows, as `scipy.sparse.csr_array` keeps a matrix.

    The entries of a matrix stand row by row in `columns` and `values`; `row_splits` tells where
    each row begins and ends. A vector has one row. A tensor of more dimensions is a batch of
    matrices whose rows stand one after another, so that it has `prod(shape[:-1])` rows.

    In each row the columns ascend, none twice. Outside a graph that is always checked, in NumPy.

    Args:
        row_splits: An int64 or int32 vector of one number more than there are rows. A list becomes
            an int64 tensor.
        columns: A vector of the same dtype: the column of each entry.
        values: A vector of any dtype: the value of each entry, which may be zero.
        dense_shape: An int64 vector or list: the sizes of all dimensions.
        validate: Whether assertions that these fit each other are added to a graph.

    Raises:
        StructureError: If they do not fit each other (also a ValueError).
        DTypeError: If splits or columns are no integers, or of two dtypes (also a TypeError).

    >>> matrix = xt.types.CSRSparseTensor([0, 2, 2, 3], [0, 3, 1], [1.0, 2.0, 3.0], [3, 4])
    >>> matrix
    <CSRSparseTensor shape=(3, 4) dtype=float32, 3 entries>
    >>> matrix.to_dense().numpy()
    array([[1., 0., 0., 2.],
           [0., 0., 0., 0.],
           [0., 3., 0., 0.]], dtype=float32)
    >>> (matrix @ tf.ones([4, 1])).numpy().ravel()
    array([3., 0., 3.], dtype=float32)
    """

    Spec = CSRSpec

    row_splits: tf.Tensor
    """Where each row begins and ends: `[prod(shape[:-1]) + 1]`, int64 or int32."""
    columns: tf.Tensor
    """The column of each entry: `[entries]`, of the dtype of the row splits."""
    values: tf.Tensor
    """The value of each entry: `[entries]`."""
    dense_shape: Annotated[tf.Tensor, tf.TensorSpec([None], tf.int64)]
    """The sizes of all dimensions: `[rank]`."""
    static_shape: tf.TensorShape = dataclasses.field(default=tf.TensorShape(None), kw_only=True)
    """The same as far as it was known when a function was traced; the rank always is."""

    def __init__(
        self, row_splits: Any, columns: Any, values: Any, dense_shape: Any, validate: bool = False
    ) -> None:
        self.row_splits = integers(row_splits, "CSRSparseTensor.row_splits", rank=1)
        self.columns = integers(columns, "CSRSparseTensor.columns", rank=1)
        self.values = tf.convert_to_tensor(lossless(values, None, "CSRSparseTensor.values"))
        sizes = integers(dense_shape, "CSRSparseTensor.dense_shape", rank=1)
        self.dense_shape = tf.cast(sizes, tf.int64)
        check.sizes(self.dense_shape)
        if validate and not tf.executing_eagerly():
            with tf.control_dependencies(check.in_graph(self)):
                self.columns = tf.identity(self.columns)

    def __post_init__(self) -> None:
        if self.static_shape.rank is None:
            self.static_shape = tf.TensorShape([None] * self.dense_shape.shape[0])
        self.static_shape = refined(self.static_shape, self.dense_shape)
        check.shapes(self)
        arrays = known_arrays(self.row_splits, self.columns, self.dense_shape)
        if arrays is not None and hasattr(self.values, "numpy"):
            check.numbers(arrays[0], arrays[1], self.shape)

    @classmethod
    def of_parts(
        cls, row_splits: Any, columns: Any, values: Any, dense_shape: Any, shape: tf.TensorShape
    ) -> CSRSparseTensor:
        """Returns the tensor of parts that are known to fit. Runs no op and checks nothing."""
        # `shape` is as much of the static shape as is known.
        self = object.__new__(cls)
        self.__dict__.update(
            row_splits=row_splits,
            columns=columns,
            values=values,
            dense_shape=dense_shape,
            static_shape=shape,
        )
        return self

    # From and to other types: see conversion.

    @classmethod
    def from_dense(cls, dense: Any, row_splits_dtype: tf.DType = tf.int64) -> CSRSparseTensor:
        """Returns the entries of a dense tensor that are not zero.

        Args:
            dense: A tensor of one dimension or more, or what converts to one.
            row_splits_dtype: int64 or int32.

        >>> xt.types.CSRSparseTensor.from_dense([[0.0, 2.0], [0.0, 0.0]]).columns.numpy()
        array([1])
        """
        return conversion.from_dense(cls, dense, row_splits_dtype)

    @classmethod
    def from_sparse(
        cls,
        sparse: tf.SparseTensor,
        row_splits_dtype: tf.DType = tf.int64,
        validate: bool = False,
    ) -> CSRSparseTensor:
        """Returns a `tf.SparseTensor` in compressed rows.

        Args:
            sparse: Of one dimension or more, its indices in order and none twice.
            row_splits_dtype: int64 or int32.
            validate: Whether an assertion of that order is added to a graph. Outside a graph it is
                always checked.

        Raises:
            StructureError: If indices are out of order, or outside the shape (also a ValueError).

        >>> sparse = tf.sparse.from_dense([[0.0, 2.0], [0.0, 0.0]])
        >>> xt.types.CSRSparseTensor.from_sparse(sparse).row_splits.numpy()
        array([0, 1, 1])
        """
        return conversion.from_sparse(cls, sparse, row_splits_dtype, validate)

    @classmethod
    def from_scipy(cls, array: Any, row_splits_dtype: tf.DType = tf.int64) -> CSRSparseTensor:
        """Returns a matrix or vector of SciPy, over its memory where that can be.

        Shared are the values, and columns and row splits if they are of `row_splits_dtype` (SciPy
        has int32 as long as that suffices), each if it begins at a multiple of 64 bytes, as NumPy's
        larger arrays do. What is shared must not be written to.

        Args:
            array: Any sparse array or matrix of SciPy's. One that is not in compressed rows, or has
                columns out of order or twice, is converted first, which copies.
            row_splits_dtype: int64 or int32.

        >>> import scipy.sparse
        >>> xt.types.CSRSparseTensor.from_scipy(scipy.sparse.eye_array(3, format="csr"))
        <CSRSparseTensor shape=(3, 3) dtype=float64, 3 entries>
        """
        return conversion.from_scipy(cls, array, row_splits_dtype)

    def to_dense(self) -> tf.Tensor:
        """Returns all values, zeros included, as a dense tensor of the same shape."""
        return conversion.to_dense(self)

    def to_sparse(self) -> tf.SparseTensor:
        """Returns the entries as a `tf.SparseTensor` of the same shape."""
        return conversion.to_sparse(self)

    def to_scipy(self) -> Any:
        """Returns a vector or matrix as a `scipy.sparse.csr_array` over the same memory.

        That cannot be written to: copy the result to change it.

        Raises:
            StructureError: If there are more than two dimensions (also a ValueError).
            MissingDependencyError: If SciPy is not installed (also an ImportError).

        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.to_scipy().sum(axis=0)
        array([0., 2.], dtype=float32)
        """
        return conversion.to_scipy(self)

    # Rows.

    def row_lengths(self) -> tf.Tensor:
        """Returns how many entries each row has: of the shape but for its last dimension."""
        lengths = self.row_splits[1:] - self.row_splits[:-1]
        return lengths if self.shape.rank == 2 else tf.reshape(lengths, self.dense_shape[:-1])

    def with_values(self, values: Any) -> CSRSparseTensor:
        """Returns a tensor with other values in the same places.

        Args:
            values: A vector of as many values, of any dtype.

        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.with_values(matrix.values * 3).to_dense().numpy()
        array([[0., 6.],
               [0., 0.]], dtype=float32)
        """
        values = tf.convert_to_tensor(values)
        if not values.shape.is_compatible_with(self.columns.shape):
            raise check.apart("values", self.columns.shape, values.shape)
        return self.of_parts(self.row_splits, self.columns, values, self.dense_shape, self.shape)

    def gather(self, indices: Any) -> CSRSparseTensor:
        """Returns the rows at the given places; of a batch, the matrices.

        Args:
            indices: An integer tensor of any shape, or a list or number.

        Returns:
            A tensor of shape `indices.shape + shape[1:]`.

        Raises:
            StructureError: If this is a vector, which has no rows (also a ValueError).

        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.gather([1, 0, 0]).to_dense().numpy()
        array([[0., 0.],
               [0., 2.],
               [0., 2.]], dtype=float32)
        """
        return algebra.gathered(self, tf.convert_to_tensor(indices))

    def __getitem__(self, index: Any) -> CSRSparseTensor:
        """Returns a row, or a slice of rows; of a batch, matrices.

        Args:
            index: A number or slice, or a scalar tensor.

        Raises:
            RowError: If it points outside (also an IndexError).
            DTypeError: If it is anything else (also a TypeError).

        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix[0], matrix[1:]
        (<CSRSparseTensor shape=(2,) dtype=float32, 1 entry>,
         <CSRSparseTensor shape=(1, 2) dtype=float32, 0 entries>)
        """
        if isinstance(index, (tuple, list)) or index is None or index is Ellipsis:
            raise DTypeError(
                path="CSRSparseTensor[...]",
                expected="a number or a slice of rows",
                received=type(index).__name__,
                mend="Pick many rows with gather; other dimensions cannot be indexed.",
            )
        size = self.shape[0]
        if isinstance(index, int) and size is not None and not -size <= index < size:
            raise RowError(
                path="CSRSparseTensor[...]",
                expected=f"a row from {-size} to {size - 1}" if size else "no row",
                received=str(index),
                mend=f"There are {size}.",
            )
        return self.gather(tf.range(self.dense_shape[0] if size is None else size)[index])

    # Algebra: see algebra.

    def matmul(self, dense: Any, transpose_a: bool = False, adjoint_a: bool = False) -> tf.Tensor:
        """Returns the product of this matrix and a dense one, by TensorFlow's own CSR kernels.

        Outside a graph the matrix keeps what the kernels make of it, for the next product.

        Args:
            dense: Shape `[..., columns, n]`, where leading dimensions are those of this tensor, or
                only one of the two has any.
            transpose_a: Whether this matrix is transposed first.
            adjoint_a: Whether it is transposed and conjugated first.

        Returns:
            A dense tensor of shape `[..., rows, n]`.

        Raises:
            DTypeError: If the dtype is not float32, float64, complex64 or complex128, for which
                there are kernels, or `dense` has another one (also a TypeError).
            StructureError: If shapes do not fit (also a ValueError).

        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.matmul([[1.0], [3.0]]).numpy()
        array([[6.],
               [0.]], dtype=float32)
        """
        return algebra.product(self, dense, transpose_a or adjoint_a, adjoint_a)

    def add(self, other: Any) -> Any:
        """Returns the sum with another sparse tensor, or with a dense one, of the same shape.

        Args:
            other: A CSRSparseTensor, which makes the sum one too, or a dense tensor.

        Raises:
            StructureError: If the shapes differ (also a ValueError).
            DTypeError: If the dtypes differ (also a TypeError).

        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.add(matrix).values.numpy()
        array([4.], dtype=float32)
        """
        return algebra.added(self, other)

    def transpose(self) -> CSRSparseTensor:
        """Returns each matrix with rows and columns swapped: `[..., columns, rows]`.

        Raises:
            StructureError: If this is a vector (also a ValueError).

        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.transpose().to_dense().numpy()
        array([[0., 0.],
               [2., 0.]], dtype=float32)
        """
        return algebra.transposed(self)

    def reduce_sum(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns sums along some dimensions, dense.

        Args:
            axis: The dimensions to reduce; None for all.
            keepdims: Whether they stay as dimensions of size 1.

        >>> xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2]).reduce_sum(axis=0).numpy()
        array([0., 2.], dtype=float32)
        """
        return algebra.reduced(self, "sum", axis, keepdims)

    def reduce_mean(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns means along some dimensions, in which the zeros count; as `reduce_sum`."""
        return algebra.reduced(self, "mean", axis, keepdims)

    def reduce_max(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns maxima along some dimensions, in which the zeros count; as `reduce_sum`."""
        return algebra.reduced(self, "max", axis, keepdims)

    def reduce_min(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns minima along some dimensions, in which the zeros count; as `reduce_sum`."""
        return algebra.reduced(self, "min", axis, keepdims)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape; its rank is always known, outside a graph its sizes too."""
        shape = self.__dict__.get("_extensor_shape")
        if shape is None:
            shape = refined(self.static_shape, self.dense_shape)
            self.__dict__["_extensor_shape"] = shape
        return shape

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values."""
        return self.values.dtype

    def __repr__(self) -> str:
        count = self.columns.shape[0]
        entries = "" if count is None else f", {count} {'entry' if count == 1 else 'entries'}"
        return f"<CSRSparseTensor shape={self.shape} dtype={self.dtype.name}{entries}>"
