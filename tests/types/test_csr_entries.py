"""Sparse products, joined tensors and selected columns of CSRSparseTensors equal those of SciPy."""

import functools
import operator

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, RowError, StructureError
from extensor.types import CSRSparseTensor


@functools.cache
def in_graph(function):
    """Returns a function of which the examples share a few traces: of static, then of open sizes.

    Args:
        function: A function of the module, and not of a test that defines it for each example.
    """
    return tf.function(function, reduce_retracing=True)


RUNS = {"eager": lambda f: f, "graph": in_graph}
each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@st.composite
def matrices(draw, height=None, width=None, dtype=np.float64):
    """Matrices of SciPy with sizes from 0 to 4, of few entries."""
    sizes = st.integers(0, 4)
    shape = [draw(sizes) if size is None else size for size in (height, width)]
    numbers = draw(st.lists(st.sampled_from([0, 0, 0, 1, -2, 3]), min_size=16, max_size=16))
    dense = np.resize(np.array(numbers, dtype), shape)
    return scipy.sparse.csr_array(dense)


def ours(theirs, dtype=tf.int64):
    return CSRSparseTensor.from_scipy(theirs, row_splits_dtype=dtype)


def same(result, theirs):
    """Asserts that a checked CSRSparseTensor equals a sparse array of SciPy."""
    assert isinstance(result, CSRSparseTensor)
    result = CSRSparseTensor(  # which checks the order of the entries
        result.row_splits, result.columns, result.values, result.dense_shape
    )
    assert result.shape.as_list() == list(theirs.shape)
    np.testing.assert_array_equal(result.to_dense(), theirs.toarray())


def products(a, b, transposed):
    return a @ b, tf.matmul(a, transposed, transpose_b=True)


@each_run
@given(data=st.data())
@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int32])
def test_the_product_of_two_sparse_matrices_is_sparse(run, dtype, data):
    a = data.draw(matrices(dtype=dtype))
    b = data.draw(matrices(height=a.shape[1], dtype=dtype))
    for product in run(products)(ours(a), ours(b, tf.int32), ours(b.T.tocsr())):
        same(product, a @ b)
    same(ours(a.T.tocsr()).matmul(ours(b), transpose_a=True), a @ b)


@each_run
def test_a_sparse_tensor_of_tensorflow_is_taken_as_csr(run):
    a, b = np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[0.0, 5.0], [7.0, 0.0]])
    csr = CSRSparseTensor.from_dense
    same(run(lambda b: csr(a) @ b)(tf.sparse.from_dense(b)), scipy.sparse.csr_array(a @ b))
    same(run(lambda a: a @ csr(b))(tf.sparse.from_dense(a)), scipy.sparse.csr_array(a @ b))


def test_batches_of_sparse_matrices_multiply_one_by_one():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-1, 2, (2, 3, 4, 2)).astype(float), rng.integers(-1, 2, (2, 3, 2, 5)) * 1.0
    product = CSRSparseTensor.from_dense(a) @ CSRSparseTensor.from_dense(b)
    np.testing.assert_array_equal(product.to_dense(), a @ b)


@pytest.mark.whole("draws many values")
@each_run
@given(data=st.data())
def test_products_by_element_keep_common_entries(run, data):
    a = data.draw(matrices())
    b = data.draw(matrices(*a.shape))
    multiply = run(operator.mul)
    same(multiply(ours(a), ours(b)), a.multiply(b))
    dense = b.toarray() + 0.5
    for factor in (dense, dense[:1], dense[:, :1]):
        if factor.size or not dense.size:
            same(multiply(ours(a), tf.constant(factor)), a.multiply(factor))
            same(multiply(tf.constant(factor), ours(a)), a.multiply(factor))
    same(ours(a) * dense.tolist(), a.multiply(dense)) if dense.size else None


JOINS = {axis: functools.partial(tf.concat, axis=axis) for axis in (0, 1, -1)}


@pytest.mark.whole("draws many values")
@each_run
@given(data=st.data())
@pytest.mark.parametrize("axis", JOINS)
def test_joined_matrices_are_those_of_scipy(run, axis, data):
    a = data.draw(matrices())
    size = {"height": a.shape[0]} if axis else {"width": a.shape[1]}
    others = data.draw(st.lists(matrices(**size), max_size=2))
    stack = scipy.sparse.hstack if axis else scipy.sparse.vstack
    same(run(JOINS[axis])([ours(a, tf.int32), *map(ours, others)]), stack([a, *others], "csr"))


def test_vectors_and_batches_are_joined():
    dense = np.array([[0.0, 1, 0], [2, 0, 3]])
    vectors = [CSRSparseTensor.from_dense(row) for row in dense]
    np.testing.assert_array_equal(tf.concat(vectors, 0).to_dense(), np.concatenate(dense))
    batch = CSRSparseTensor.from_dense(np.stack([dense, dense * 2, dense * 3]))
    for axis in (0, -1):
        joined = tf.concat([batch[:2], batch[1:]], axis).to_dense()
        whole = batch.to_dense().numpy()
        np.testing.assert_array_equal(joined, np.concatenate([whole[:2], whole[1:]], axis))
    with pytest.raises(DTypeError, match=r"CSRSparseTensor declined"):
        tf.concat([batch, batch], 1)


SLICES = [slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(2, 2)]


@each_run
@pytest.mark.parametrize("rows", [*SLICES[:4], 1, -1], ids=str)
@pytest.mark.parametrize("columns", [*SLICES, 0, -2], ids=str)
def test_rows_and_columns_are_those_of_numpy(run, rows, columns):
    dense = np.array([[1.0, 0, 2, 0], [0, 0, 0, 3], [4, 5, 0, 0]])
    result = run(lambda x: x[rows, columns])(CSRSparseTensor.from_dense(dense))
    want = dense[rows, columns]
    assert isinstance(result, tf.Tensor) == (np.ndim(want) == 0)
    np.testing.assert_array_equal(result.to_dense() if np.ndim(want) else result, want)


def test_an_index_may_be_a_tensor_and_a_vector_has_elements():
    dense = np.array([[1.0, 0, 2, 0], [0, 0, 0, 3]])
    matrix = CSRSparseTensor.from_dense(dense)
    element = tf.function(lambda x, i, j: x[i, j])
    for i, j in np.ndindex(2, 4):
        assert element(matrix, tf.constant(i), tf.constant(j)).numpy() == dense[i, j]
        assert matrix[i][j].numpy() == dense[i, j]
    np.testing.assert_array_equal(matrix[0][1:].to_dense(), dense[0, 1:])


UNARY = [tf.abs, tf.sqrt, tf.nn.relu, tf.square, tf.sign, tf.math.log1p, tf.tanh, tf.floor]


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.__name__)
def test_functions_that_map_zero_to_zero_keep_the_entries(op):
    dense = np.array([[1.0, 0, 0.25], [0, 4, 0]]) * (1 if op is tf.sqrt else -0.5)
    result = op(CSRSparseTensor.from_dense(dense))
    np.testing.assert_allclose(result.to_dense(), op(dense))
    assert result.values.shape == [3]


def test_every_function_in_the_table_maps_zero_to_zero():
    from extensor._types.csr.handlers import _ZERO_STAYS_ZERO

    for op in _ZERO_STAYS_ZERO:
        assert op(tf.constant(0.0)).numpy() == 0, op


def test_dense_tensors_by_the_function_of_tensorflow():
    dense = np.array([[1.0, 0, 2], [0, 0, 3]])
    matrix = CSRSparseTensor.from_dense(dense)
    np.testing.assert_array_equal(tf.sparse.to_dense(matrix), dense)
    filled = tf.sparse.to_dense(matrix, default_value=-1.0)
    np.testing.assert_array_equal(filled, np.where(dense, dense, -1))


@pytest.mark.parametrize("name", ["product", "multiply", "by dense", "concat", "columns"])
def test_gradients_are_those_of_dense_tensors(name):
    a = np.array([[1.0, 0, 2], [0, 3, 0]])
    b = np.array([[0.0, 5, 1], [2, 0, 0]])
    calls = {
        "product": lambda x, y: x @ tf.linalg.matrix_transpose(y),
        "multiply": lambda x, y: x * y,
        "by dense": lambda x, y: x * tf.constant(b + 1),
        "concat": lambda x, y: tf.concat([x, y, x], 1),
        "columns": lambda x, y: x[:, ::-2],
    }
    gradients = []
    for make in (CSRSparseTensor.from_dense, tf.constant):
        x, y = make(a), make(b)
        with tf.GradientTape() as tape:
            tape.watch(x.values if make is not tf.constant else x)
            result = calls[name](x, y)
            result = result if isinstance(result, tf.Tensor) else result.to_dense()
            total = tf.reduce_sum(tf.square(result + 1))
        source = x if isinstance(x, tf.Tensor) else x.values
        gradients.append(tf.convert_to_tensor(tape.gradient(total, source)).numpy())
    np.testing.assert_allclose(gradients[0], gradients[1][a != 0])


X = CSRSparseTensor.from_dense(np.eye(2, 3))
BAD = {
    "product": (lambda: X @ X, StructureError, r"matmul: expected shape \(3, None\), got \(2, 3\)"),
    "product of dtypes": (lambda: X @ tf.cast(X, tf.float32), DTypeError, r"matmul: .*float64"),
    "factor": (lambda: X * tf.ones([3, 3], tf.float64), StructureError, r"broadcasts to \(2, 3\)"),
    "sparse factor": (lambda: X * X[:1], StructureError, r"multiply: expected shape \(2, 3\)"),
    "joined": (
        lambda: tf.concat([X, X[:, 1:]], 0), StructureError, r"expected shape \(None, 3\), got",
    ),
    "column": (lambda: X[0, 3], RowError, r"a column from -3 to 2, got 3"),
    "row": (lambda: X[2, 0], RowError, r"a row from -2 to 1, got 2"),
    "a column of a vector": (lambda: X[0][3], RowError, r"a column from -3 to 2, got 3"),
    "three": (lambda: X[0, 0, 0], DTypeError, r"or two of these, got tuple of 3"),
    "a mask": (lambda: X[[True, False]], DTypeError, r"a number or a slice, .*got list"),
    "columns of a batch": (
        lambda: tf.stack([X, X])[0, :, 1], DTypeError, r"Index a batch first",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_an_error_that_names_the_place(case):
    call, kind, message = BAD[case]
    with pytest.raises(kind, match=message) as info:
        call()
    assert isinstance(info.value, xt.ExtensorError)
