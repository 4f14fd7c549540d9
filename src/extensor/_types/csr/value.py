"""CSRSparseTensor: a sparse tensor in compressed sparse rows."""

# Type checkers do not know that __init__ may assign the fields.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import tensorflow as tf

from extensor._types.csr import algebra, check, conversion, entries
from extensor._types.csr.spec import CSRSpec, known_shape
from extensor.authoring import (
    array_over,
    as_tensor,
    extension_type,
    integers,
    known_arrays,
    row_splits_of,
    sizes_of,
)
from extensor.dispatch import OperatorsMixin
from extensor.errors import DTypeError, RowError, StructureError
from extensor.typing import TensorLike

if TYPE_CHECKING:
    import scipy.sparse as sp


@extension_type(name="extensor.types.CSRSparseTensor")
class CSRSparseTensor(OperatorsMixin):
    """A sparse tensor in compressed sparse rows (CSR), the layout of `scipy.sparse.csr_array`.

    `columns` and `values` contain the entries row by row; `row_splits` contains the limits of each
    row. A vector has one row. A tensor of rank 3 or more is a batch of matrices, stored one after
    another with `prod(shape[:-1])` rows in all.

    The columns of each row are ascending, without duplicates. Eager arguments are always checked,
    in NumPy.

    Args:
        row_splits: An int64 or int32 vector of `rows + 1` numbers. A list becomes an int64 tensor.
        columns: The column of each entry: a vector of the dtype of `row_splits`.
        values: The value of each entry, possibly zero: a vector of any dtype.
        dense_shape: The sizes of all dimensions: an int64 vector or list.
        validate: Whether a graph gets assertions that check the arguments.

    Raises:
        StructureError: If the arguments do not match each other (also a ValueError).
        DTypeError: If splits or columns are not integers, or differ in dtype (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
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
    """The static shape when the function was traced; its rank is always known."""

    def __init__(
        self,
        row_splits: TensorLike,
        columns: TensorLike,
        values: TensorLike,
        dense_shape: TensorLike,
        validate: bool = False,
    ) -> None:
        self.row_splits = integers(row_splits, "CSRSparseTensor.row_splits", rank=1)
        self.columns = integers(columns, "CSRSparseTensor.columns", rank=1)
        self.values = as_tensor(values, "CSRSparseTensor.values")
        sizes = integers(dense_shape, "CSRSparseTensor.dense_shape", rank=1)
        self.dense_shape = tf.cast(sizes, tf.int64)
        check.sizes(self.dense_shape)
        if validate and not tf.executing_eagerly():
            with tf.control_dependencies(check.in_graph(self)):
                self.columns = tf.identity(self.columns)

    def __post_init__(self) -> None:
        if self.static_shape.rank is None:
            self.static_shape = tf.TensorShape([None] * self.dense_shape.shape[0])
        self.static_shape = known_shape(self.static_shape, self.dense_shape)
        check.shapes(self)
        arrays = known_arrays(self.row_splits, self.columns, self.dense_shape)
        if arrays is not None and hasattr(self.values, "numpy"):
            check.numbers(arrays[0], arrays[1], self.shape)

    @classmethod
    def _of_parts(
        cls,
        row_splits: TensorLike,
        columns: TensorLike,
        values: TensorLike,
        dense_shape: TensorLike,
        shape: tf.TensorShape,
    ) -> CSRSparseTensor:
        """Returns a tensor from parts that match. Runs no op and checks nothing."""
        # `shape` is the static shape.
        self = object.__new__(cls)
        self.__dict__.update(
            row_splits=row_splits,
            columns=columns,
            values=values,
            dense_shape=dense_shape,
            static_shape=shape,
        )
        return self

    # Conversion.

    @classmethod
    def from_dense(
        cls, dense: TensorLike, row_splits_dtype: tf.DType = tf.int64
    ) -> CSRSparseTensor:
        """Returns a sparse tensor of the nonzero entries of a dense tensor.

        Args:
            dense: A tensor of rank 1 or more, or a value that converts to one.
            row_splits_dtype: int64 or int32.

        >>> import extensor as xt
        >>> xt.types.CSRSparseTensor.from_dense([[0.0, 2.0], [0.0, 0.0]]).columns.numpy()
        array([1])
        """
        dense = as_tensor(dense, "CSRSparseTensor.from_dense")
        conversion.expect_dimensions(dense.shape, "from_dense")
        dense_shape = tf.shape(dense, tf.int64)
        tall = tf.reshape(dense, tf.stack([tf.reduce_prod(dense_shape[:-1]), dense_shape[-1]]))
        is_entry = tf.not_equal(tall, tf.zeros([], dense.dtype))
        places = tf.where(is_entry)
        splits = row_splits_of(tf.math.count_nonzero(is_entry, axis=1))
        return cls._of_parts(
            tf.cast(splits, row_splits_dtype),
            tf.cast(places[:, 1], row_splits_dtype),
            tf.gather_nd(tall, places),
            dense_shape,
            dense.shape,
        )

    @classmethod
    def from_sparse(
        cls, sparse: tf.SparseTensor, row_splits_dtype: tf.DType = tf.int64, validate: bool = False
    ) -> CSRSparseTensor:
        """Returns a `tf.SparseTensor` converted to compressed sparse rows.

        Args:
            sparse: A tensor of rank 1 or more, with sorted indices without duplicates.
            row_splits_dtype: int64 or int32.
            validate: Whether a graph gets assertions of that order. Eager indices are always
                checked.

        Raises:
            StructureError: If indices are not sorted, or out of range (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> sparse = tf.sparse.from_dense([[0.0, 2.0], [0.0, 0.0]])
        >>> xt.types.CSRSparseTensor.from_sparse(sparse).row_splits.numpy()
        array([0, 1, 1])
        """
        conversion.expect_dimensions(sparse.shape, "from_sparse")
        indices, dense_shape = sparse.indices, sparse.dense_shape
        rank = sparse.shape.rank
        numbers = tf.zeros_like(indices[:, 0])
        for axis in range(rank - 1):
            numbers = numbers * dense_shape[axis] + indices[:, axis]
        if hasattr(indices, "numpy") and hasattr(dense_shape, "numpy"):
            conversion.expect_order(
                array_over(indices), array_over(numbers), array_over(dense_shape)
            )
        elif validate:
            in_range = tf.reduce_all((indices >= 0) & (indices < dense_shape))
            checks = [
                tf.debugging.Assert(in_range, ["from_sparse: indices must be inside the shape"]),
                tf.debugging.assert_non_negative(
                    numbers[1:] - numbers[:-1], "from_sparse: indices must be in order"
                ),
            ]
            with tf.control_dependencies(checks):
                numbers = tf.identity(numbers)
        count = tf.reduce_prod(dense_shape[:-1])
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(numbers), numbers, count)
        result = cls(
            tf.cast(row_splits_of(lengths), row_splits_dtype),
            tf.cast(indices[:, -1], row_splits_dtype),
            sparse.values,
            dense_shape,
            validate=validate,
        )
        return cls._of_parts(
            result.row_splits, result.columns, result.values, dense_shape, sparse.shape
        )

    @classmethod
    def from_scipy(
        cls, array: sp.sparray | sp.spmatrix, row_splits_dtype: tf.DType = tf.int64
    ) -> CSRSparseTensor:
        """Returns a matrix or vector of SciPy, without a copy where possible.

        The result shares the memory of the values, and of columns and row splits of dtype
        `row_splits_dtype` (SciPy uses int32 if that suffices). Memory that is not aligned to 64
        bytes is copied; NumPy's larger arrays are aligned. Do not write to shared memory.

        Args:
            array: Any sparse array or matrix of SciPy. It is copied if it is not in compressed
                sparse rows, or if its columns are not sorted or have duplicates.
            row_splits_dtype: int64 or int32.

        >>> import extensor as xt
        >>> import scipy.sparse
        >>> xt.types.CSRSparseTensor.from_scipy(scipy.sparse.eye_array(3, format="csr"))
        <CSRSparseTensor shape=(3, 3) dtype=float64, 3 entries>
        """
        return conversion.from_scipy(cls, array, row_splits_dtype)

    def to_dense(self) -> tf.Tensor:
        """Returns the dense tensor of the same shape."""
        # The entries are sorted already.
        dense = tf.sparse.to_dense(conversion.tall(self), validate_indices=False)
        if self.shape.rank == 2 and dense.shape == self.shape:
            return dense
        return tf.ensure_shape(tf.reshape(dense, self.dense_shape), self.shape)

    def to_sparse(self) -> tf.SparseTensor:
        """Returns the entries as a `tf.SparseTensor` of the same shape."""
        numbers = conversion.row_numbers(self)
        places = [tf.cast(self.columns, tf.int64)]
        for size in reversed(sizes_of(self.shape[:-1], self.dense_shape)):
            places.insert(0, numbers % size)
            numbers //= size
        return conversion.sparse_tensor(
            tf.stack(places, 1), self.values, self.dense_shape, self.shape
        )

    def to_scipy(self) -> sp.csr_array:
        """Returns a vector or matrix as a `scipy.sparse.csr_array` that shares its memory.

        The result is read-only; copy it to change it.

        Raises:
            StructureError: If the rank is more than 2 (also a ValueError).
            MissingDependencyError: If SciPy is not installed (also an ImportError).

        >>> import extensor as xt
        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.to_scipy().sum(axis=0)
        array([0., 2.], dtype=float32)
        """
        return conversion.to_scipy(self)

    # Rows.

    def row_lengths(self) -> tf.Tensor:
        """Returns the number of entries of each row: shape `shape[:-1]`."""
        lengths = self.row_splits[1:] - self.row_splits[:-1]
        return lengths if self.shape.rank == 2 else tf.reshape(lengths, self.dense_shape[:-1])

    def with_values(self, values: TensorLike) -> CSRSparseTensor:
        """Returns a tensor with the same rows and columns, and other values.

        Args:
            values: One value for each entry: a vector of any dtype.

        >>> import extensor as xt
        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.with_values(matrix.values * 3).to_dense().numpy()
        array([[0., 6.],
               [0., 0.]], dtype=float32)
        """
        values = as_tensor(values, "CSRSparseTensor.with_values")
        if not values.shape.is_compatible_with(self.columns.shape):
            raise check.shape_error("values", self.columns.shape, values.shape)
        return self._of_parts(self.row_splits, self.columns, values, self.dense_shape, self.shape)

    def gather(self, indices: TensorLike) -> CSRSparseTensor:
        """Returns the rows with the given indices; for a batch, the matrices.

        Args:
            indices: An integer tensor of any shape, or a list or number.

        Returns:
            A tensor of shape `indices.shape + shape[1:]`.

        Raises:
            StructureError: If this is a vector, which has no rows (also a ValueError).

        >>> import extensor as xt
        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.gather([1, 0, 0]).to_dense().numpy()
        array([[0., 0.],
               [0., 2.],
               [0., 2.]], dtype=float32)
        """
        indices = tf.convert_to_tensor(indices)
        if self.shape.rank == 1:
            expected = "a tensor of rank 2 or more"
            fix = "A vector has no rows: gather from matrix.to_dense()."
            raise StructureError("CSRSparseTensor.gather", expected, f"shape {self.shape}", fix)
        dtype = self.row_splits.dtype
        numbers = tf.cast(tf.reshape(indices, [-1]), dtype)
        if self.shape.rank > 2:
            height = tf.cast(tf.reduce_prod(self.dense_shape[1:-1]), dtype)
            numbers = tf.reshape(numbers[:, tf.newaxis] * height + tf.range(height), [-1])
        begins, ends = self.row_splits[:-1], self.row_splits[1:]
        places = tf.ragged.range(
            tf.gather(begins, numbers), tf.gather(ends, numbers), row_splits_dtype=dtype
        )
        return self._of_parts(
            places.row_splits,
            tf.gather(self.columns, places.values),
            tf.gather(self.values, places.values),
            tf.concat([tf.shape(indices, tf.int64), self.dense_shape[1:]], 0),
            indices.shape.concatenate(self.shape[1:]),
        )

    def __getitem__(self, index: Any) -> Any:
        """Returns rows, columns, or one element; for a batch, matrices.

        Args:
            index: A number or slice, or a scalar tensor: of rows, of the elements of a vector, or
                of the matrices of a batch. For a matrix, also two of these: rows and columns.

        Returns:
            A sparse tensor; a scalar tensor for one element.

        Raises:
            RowError: If an index is out of range (also an IndexError).
            DTypeError: If an index has another type (also a TypeError).

        >>> import extensor as xt
        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix[0], matrix[1:]
        (<CSRSparseTensor shape=(2,) dtype=float32, 1 entry>,
         <CSRSparseTensor shape=(1, 2) dtype=float32, 0 entries>)
        >>> matrix[0, 1].numpy().item(), matrix[:, 1:].to_dense().numpy().tolist()
        (2.0, [[2.0], [0.0]])
        """
        rank = self.shape.rank
        keys = index if isinstance(index, tuple) else (index,)
        if (
            not 1 <= len(keys) <= min(rank, 2)
            or not all(map(entries.is_index, keys))
            or (len(keys) == 2 and rank > 2)
        ):
            expected = "a number or a slice" + ", or two of these" * (rank == 2)
            received = type(index).__name__ + f" of {len(keys)}" * isinstance(index, tuple)
            fix = "Select several rows with gather. Index a batch first: x[0][:, 1]."
            raise DTypeError("CSRSparseTensor[...]", expected, received, fix)
        for axis, key in enumerate(keys):
            self._expect_inside(axis, key)
        if rank == 1:
            return entries.columns_at(self, index if len(keys) == 1 else keys[0])
        size = self.shape[0]
        whole = keys[0] == slice(None) if isinstance(keys[0], slice) else False
        rows = self
        if not whole or len(keys) == 1:
            rows = self.gather(tf.range(self.dense_shape[0] if size is None else size)[keys[0]])
        return rows if len(keys) == 1 else entries.columns_at(rows, keys[1])

    def _expect_inside(self, axis: int, key: int | slice | tf.Tensor) -> None:
        """Raises RowError if a number is known to be outside of an axis."""
        size = self.shape[axis]
        known = tf.get_static_value(key) if isinstance(key, tf.Tensor) else key
        if isinstance(known, slice) or None in (known, size) or -size <= known < size:
            return
        name = "column" if axis or self.shape.rank == 1 else "row"
        expected = f"a {name} from {-size} to {size - 1}" if size else f"no index, for 0 {name}s"
        fix = f"The number of {name}s is {size}."
        raise RowError("CSRSparseTensor[...]", expected, str(int(known)), fix)

    # Algebra.

    def matmul(
        self,
        dense: CSRSparseTensor | TensorLike,
        transpose_a: bool = False,
        adjoint_a: bool = False,
    ) -> CSRSparseTensor | tf.Tensor:
        """Returns the product of this matrix and a dense one, by TensorFlow's CSR kernels.

        An eager matrix caches the input of the kernels for the next product.

        Args:
            dense: Shape `[..., columns, n]`. The leading dimensions equal those of this tensor, or
                only one of the two tensors has leading dimensions. Or a CSRSparseTensor with the
                same leading dimensions; the product is sparse then.
            transpose_a: Whether this matrix is transposed first.
            adjoint_a: Whether this matrix is transposed and conjugated first.

        Returns:
            A dense tensor of shape `[..., rows, n]`.

        Raises:
            DTypeError: If the dtype is not float32, float64, complex64 or complex128, or the dtype
                of `dense` differs (also a TypeError).
            StructureError: If the shapes do not match (also a ValueError).

        >>> import extensor as xt
        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.matmul([[1.0], [3.0]]).numpy()
        array([[6.],
               [0.]], dtype=float32)
        """
        if isinstance(dense, CSRSparseTensor):
            return tf.matmul(self, dense, transpose_a=transpose_a, adjoint_a=adjoint_a)
        return algebra.product(self, dense, transpose_a or adjoint_a, adjoint_a)

    def add(self, other: CSRSparseTensor | TensorLike) -> CSRSparseTensor | tf.Tensor:
        """Returns the sum of this tensor and a sparse or dense tensor of the same shape.

        Args:
            other: A CSRSparseTensor or a dense tensor. The sum has the type of `other`.

        Raises:
            StructureError: If the shapes differ (also a ValueError).
            DTypeError: If the dtypes differ (also a TypeError).

        >>> import extensor as xt
        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.add(matrix).values.numpy()
        array([4.], dtype=float32)
        """
        return algebra.add(self, other)

    def transpose(self) -> CSRSparseTensor:
        """Returns each matrix with rows and columns swapped: `[..., columns, rows]`.

        Raises:
            StructureError: If this is a vector (also a ValueError).

        >>> import extensor as xt
        >>> matrix = xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2])
        >>> matrix.transpose().to_dense().numpy()
        array([[0., 0.],
               [2., 0.]], dtype=float32)
        """
        return algebra.transpose(self)

    def reduce_sum(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns the dense sums along `axis`.

        Args:
            axis: The dimensions to reduce; None for all.
            keepdims: Whether to keep reduced dimensions with size 1.

        >>> import extensor as xt
        >>> xt.types.CSRSparseTensor([0, 1, 1], [1], [2.0], [2, 2]).reduce_sum(axis=0).numpy()
        array([0., 2.], dtype=float32)
        """
        return algebra.reduce(self, "sum", axis, keepdims)

    def reduce_mean(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns the dense means along `axis`, zeros included; see `reduce_sum`."""
        return algebra.reduce(self, "mean", axis, keepdims)

    def reduce_max(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns the dense maxima along `axis`, zeros included; see `reduce_sum`."""
        return algebra.reduce(self, "max", axis, keepdims)

    def reduce_min(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> tf.Tensor:
        """Returns the dense minima along `axis`, zeros included; see `reduce_sum`."""
        return algebra.reduce(self, "min", axis, keepdims)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape. Its rank is always known; its sizes are known in eager mode."""
        shape = self.__dict__.get("_extensor_shape")
        if shape is None:
            shape = known_shape(self.static_shape, self.dense_shape)
            self.__dict__["_extensor_shape"] = shape
        return shape

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values."""
        return tf.dtypes.as_dtype(self.values.dtype)  # of a KerasTensor, it is a string

    def __repr__(self) -> str:
        count = self.columns.shape[0]
        entries = "" if count is None else f", {count} {'entry' if count == 1 else 'entries'}"
        return f"<CSRSparseTensor shape={self.shape} dtype={self.dtype.name}{entries}>"


Op = Callable[..., Any]
Operand = CSRSparseTensor | tf.Tensor
"""An argument of an operation: a tensor may be any value that converts to one."""
Axes = int | Sequence[int] | tf.Tensor | None
