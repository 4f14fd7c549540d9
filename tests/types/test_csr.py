"""CSRSparseTensor against SciPy, NumPy and finite differences."""

import copy
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._types.csr import kernel
from extensor.types import CSRSparseTensor

Spec = CSRSparseTensor.Spec

EXAMPLE = np.array([[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]], np.float32)


@st.composite
def dense_arrays(draw, min_rank=1, max_rank=4, dtype=np.float64):
    """Arrays with many zeros, of sizes of at least 0."""
    shape = draw(st.lists(st.integers(0, 3), min_size=min_rank, max_size=max_rank))
    count = int(np.prod(shape))
    values = draw(st.lists(st.sampled_from([0, 0, 0, 1, -2, 5]), min_size=count, max_size=count))
    return np.array(values, dtype).reshape(shape)


def matrices(dtype=np.float64):
    return dense_arrays(2, 2, dtype)


def csr(array):
    return CSRSparseTensor.from_dense(array)


def equal(sparse, array):
    """Whether a CSRSparseTensor equals a NumPy array, and is sorted as its constructor requires."""
    CSRSparseTensor(sparse.row_splits, sparse.columns, sparse.values, sparse.dense_shape)
    return sparse.shape == array.shape and np.array_equal(sparse.to_dense(), array)


# What it holds.


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize(
    "values",
    [
        [csr(EXAMPLE), csr(EXAMPLE * 2), csr(np.zeros([2, 4], np.float32))],
        [csr(EXAMPLE[0]), csr(EXAMPLE[1])],
        [csr(np.stack([EXAMPLE, EXAMPLE[::-1]]))],
        [CSRSparseTensor.from_dense(EXAMPLE.astype(np.complex64), tf.int32)],
        [CSRSparseTensor([0, 1, 1], [1], ["basil"], [2, 3])],
    ],
    ids=["matrix", "vector", "batch", "complex, int32", "string"],
)
def test_laws(values):
    xt.testing.check_extension_type(values)


@pytest.mark.slow
def test_laws_of_generated_matrices():
    spec = Spec([None, None], tf.float64)
    xt.testing.check_spec(spec, values=matrices().map(csr), max_examples=5)


@given(matrices())
def test_a_matrix_holds_what_scipy_holds(array):
    ours, theirs = csr(array), scipy.sparse.csr_array(array)
    np.testing.assert_array_equal(ours.row_splits, theirs.indptr)
    np.testing.assert_array_equal(ours.columns, theirs.indices)
    np.testing.assert_array_equal(ours.values, theirs.data)
    np.testing.assert_array_equal(ours.row_lengths(), np.diff(theirs.indptr))


@given(dense_arrays())
def test_dense_and_sparse_round_trip(array):
    ours = csr(array)
    assert equal(ours, array)
    sparse = tf.sparse.from_dense(array)
    again = ours.to_sparse()
    np.testing.assert_array_equal(again.indices, sparse.indices)
    np.testing.assert_array_equal(again.values, sparse.values)
    np.testing.assert_array_equal(again.dense_shape, sparse.dense_shape)
    assert equal(CSRSparseTensor.from_sparse(sparse), array)
    np.testing.assert_array_equal(ours.row_lengths(), (array != 0).sum(-1))


@pytest.mark.parametrize("dtype", [tf.bool, tf.int8, tf.uint16, tf.float16, tf.bfloat16, tf.string])
def test_values_of_any_dtype_round_trip(dtype):
    dense = tf.constant([["a", ""], ["", "b"]]) if dtype == tf.string else tf.cast([[1, 0]], dtype)
    assert (csr(dense).to_dense().numpy() == dense.numpy()).all()
    assert (csr(dense).transpose().to_dense().numpy() == dense.numpy().T).all()


def test_it_is_compressed_inside_a_function_as_outside():
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def through(dense):
        ours = CSRSparseTensor.from_dense(dense)
        assert ours.shape.as_list() == [None, None]
        again = CSRSparseTensor.from_sparse(ours.to_sparse(), validate=True)
        return again, again.to_dense()

    for array in (EXAMPLE, EXAMPLE[:0], EXAMPLE[:, :0]):
        ours, dense = through(array)
        assert equal(ours, array)
        np.testing.assert_array_equal(dense, array)


def test_the_spec_contains_neither_number_nor_positions_of_entries():
    traces = []

    @tf.function
    def double(sparse):
        traces.append(sparse.shape)
        return sparse.with_values(sparse.values * 2)

    for array in (EXAMPLE, EXAMPLE[::-1], np.zeros_like(EXAMPLE)):
        assert equal(double(csr(array)), array * 2)
    assert traces == [tf.TensorShape([3, 4])]
    assert csr(EXAMPLE).__tf_type_spec__() == Spec([3, 4])
    assert Spec([None, 4]).is_compatible_with(csr(EXAMPLE))
    assert not Spec([None, 4], tf.int32).is_compatible_with(csr(EXAMPLE))


def test_static_shapes_are_kept_inside_a_function():
    @tf.function(input_signature=[Spec([2, None, 4])])
    def through(batch):
        assert batch.transpose().shape.as_list() == [2, 4, None]
        assert batch[0].shape.as_list() == [None, 4]
        assert batch.gather([0, 1, 0]).shape.as_list() == [3, None, 4]
        assert batch.matmul(tf.ones([4, 7])).shape.as_list() == [2, None, 7]
        assert batch.reduce_sum(axis=(0, 1)).shape.as_list() == [4]
        assert batch.reduce_max(-1, keepdims=True).shape.as_list() == [2, None, 1]
        assert batch.to_dense().shape.as_list() == [2, None, 4]
        assert batch.to_sparse().shape.as_list() == [2, None, 4]
        return batch

    array = np.stack([EXAMPLE, -EXAMPLE])
    assert equal(through(csr(array)), array)
    assert through(csr(array)).shape.as_list() == [2, 3, 4]


# SciPy.


def aligned(array):
    """Returns a copy at a multiple of 64 bytes, as NumPy's large arrays are."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    result = memory[start : start + array.nbytes].view(array.dtype)
    result[:] = array
    return result


def unaligned(array):
    memory = aligned(np.concatenate([array[:1], array]))
    return memory[1:]


def scipy_csr(place, index_dtype):
    array = scipy.sparse.csr_array(EXAMPLE)
    array.data = place(array.data)
    array.indices = place(array.indices.astype(index_dtype))
    array.indptr = place(array.indptr.astype(index_dtype))
    return array


def address(tensor):
    return np.asarray(memoryview(tensor)).ctypes.data


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_aligned_memory_of_scipy_is_shared(dtype):
    theirs = scipy_csr(aligned, dtype.as_numpy_dtype)
    ours = CSRSparseTensor.from_scipy(theirs, row_splits_dtype=dtype)
    assert address(ours.values) == theirs.data.ctypes.data
    assert address(ours.columns) == theirs.indices.ctypes.data
    assert address(ours.row_splits) == theirs.indptr.ctypes.data
    assert equal(ours, EXAMPLE)
    data = theirs.data
    del theirs
    data[0] = 7
    assert ours.values[0].numpy() == 7


def test_other_memory_of_scipy_is_copied():
    theirs = scipy_csr(unaligned, np.int64)
    ours = CSRSparseTensor.from_scipy(theirs)
    assert address(ours.values) != theirs.data.ctypes.data
    theirs.data[0] = 7
    assert equal(ours, EXAMPLE)
    # An unaligned tensor would end the process here.
    np.testing.assert_array_equal(ours.reduce_sum(axis=0), EXAMPLE.sum(0))
    assert CSRSparseTensor.from_scipy(scipy_csr(aligned, np.int32)).columns.dtype == tf.int64


def test_memory_is_shared_with_scipy():
    ours = csr(EXAMPLE)
    theirs = ours.to_scipy()
    assert isinstance(theirs, scipy.sparse.csr_array)
    assert theirs.data.ctypes.data == address(ours.values)
    assert theirs.indices.ctypes.data == address(ours.columns)
    assert theirs.indptr.ctypes.data == address(ours.row_splits)
    with pytest.raises(ValueError, match="read-only"):
        theirs.data[0] = 7
    np.testing.assert_array_equal(theirs.toarray(), EXAMPLE)
    np.testing.assert_array_equal((theirs @ theirs.T).toarray(), EXAMPLE @ EXAMPLE.T)


@pytest.mark.parametrize("kind", ["coo", "csc", "bsr", "lil", "dok", "dia", "csr"])
def test_every_format_of_scipy_is_taken(kind):
    for make in (scipy.sparse.csr_array, scipy.sparse.csr_matrix):
        assert equal(CSRSparseTensor.from_scipy(make(EXAMPLE).asformat(kind)), EXAMPLE)


def test_columns_that_scipy_left_out_of_order_are_sorted_in_a_copy():
    theirs = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [3, 0, 0], [0, 3]), shape=(1, 4))
    assert equal(CSRSparseTensor.from_scipy(theirs), np.array([[5.0, 0, 0, 1]]))
    np.testing.assert_array_equal(theirs.indices, [3, 0, 0])


@given(dense_arrays(1, 2))
def test_scipy_round_trip(array):
    theirs = csr(array).to_scipy()
    assert theirs.shape == array.shape
    np.testing.assert_array_equal(theirs.toarray(), array)
    assert equal(CSRSparseTensor.from_scipy(theirs), array)


# Products.

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(params=["few numbers", "many numbers"], scope="module")
def kernel_of(request):
    """Runs a test with each of the two kernels of eager products."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "many numbers":
            patch.setattr(kernel, "_FEW", -1)
        yield


@pytest.mark.usefixtures("kernel_of")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turn", [{}, {"transpose_a": True}, {"adjoint_a": True}])
@given(data=st.data())
def test_matmul(dtype, turn, data):
    array = data.draw(dense_arrays(2, 4, dtype))
    if np.iscomplexobj(array):
        array = array * (1 + 2j)
    batch = data.draw(st.sampled_from([(), array.shape[:-2]]))
    if array.ndim == 2:
        batch = data.draw(st.sampled_from([(), (2,), (0,), (2, 3)]))
    inner = array.shape[-2] if turn else array.shape[-1]
    n = data.draw(st.integers(0, 3))
    dense = np.random.default_rng(0).integers(-3, 3, (*batch, inner, n)).astype(dtype)
    left = array.swapaxes(-1, -2) if turn else array
    left = left.conj() if "adjoint_a" in turn else left
    expected = np.matmul(left, dense)
    product = csr(array).matmul(dense, **turn)
    assert product.dtype.as_numpy_dtype == dtype
    np.testing.assert_array_equal(product, expected)


@pytest.mark.usefixtures("kernel_of")
@given(matrices(np.float32), st.integers(0, 3))
def test_matmul_equals_scipy(array, n):
    dense = np.random.default_rng(0).integers(-3, 3, (array.shape[1], n)).astype(np.float32)
    np.testing.assert_array_equal(csr(array) @ dense, scipy.sparse.csr_array(array) @ dense)


@pytest.mark.parametrize("signature", [[None, None], [3, None], [None, 4], [3, 4]])
@pytest.mark.parametrize("transpose", [False, True])
def test_matmul_in_a_function_of_any_size(signature, transpose):
    """TensorFlow's kernels end the process if there are no rows."""

    @tf.function(input_signature=[Spec(signature), tf.TensorSpec([None, None])])
    def times(sparse, dense):
        return sparse.matmul(dense, transpose_a=transpose)

    for array in (EXAMPLE, EXAMPLE[:0], EXAMPLE[:, :0], np.zeros_like(EXAMPLE)):
        if not tf.TensorShape(signature).is_compatible_with(array.shape):
            continue
        left = array.T if transpose else array
        for n in (0, 2):
            dense = np.arange(left.shape[1] * n, dtype=np.float32).reshape(
                [-1, n] if n else [left.shape[1], 0]
            )
            np.testing.assert_array_equal(times(csr(array), dense), left @ dense)


@pytest.mark.usefixtures("kernel_of")
def test_a_second_product_uses_the_cache_of_the_first():
    sparse = csr(EXAMPLE)
    assert equal(sparse, EXAMPLE)
    first = sparse.matmul(np.eye(4, dtype=np.float32))
    for _ in range(2):
        np.testing.assert_array_equal(sparse.matmul(np.eye(4, dtype=np.float32)), first)
        np.testing.assert_array_equal(sparse.matmul(np.eye(3), transpose_a=True), EXAMPLE.T)
        with tf.GradientTape() as tape:
            tape.watch(sparse)
            total = tf.reduce_sum(sparse @ np.ones([4, 1]))
        assert equal(tape.gradient(total, sparse), (EXAMPLE != 0).astype(np.float32))
    # What was kept belongs to this value alone.
    doubled = sparse.with_values(sparse.values * 2)
    np.testing.assert_array_equal(doubled.matmul(np.eye(4)), EXAMPLE * 2)
    np.testing.assert_array_equal(
        xt.replace(sparse, values=sparse.values * 3) @ np.eye(4), EXAMPLE * 3
    )
    for again in (copy.deepcopy(sparse), pickle.loads(pickle.dumps(sparse))):
        assert equal(again, EXAMPLE)
        np.testing.assert_array_equal(again @ np.eye(4), EXAMPLE)


@pytest.mark.usefixtures("kernel_of")
@given(st.data())
def test_gradients_of_matmul_are_finite_differences(data):
    array = data.draw(dense_arrays(2, 3))
    transpose = data.draw(st.booleans())
    inner = array.shape[-2] if transpose else array.shape[-1]
    batch = data.draw(st.sampled_from([(), array.shape[:-2]]))
    dense = np.random.default_rng(0).normal(size=(*batch, inner, 2))
    sparse = csr(array)

    def product(values, dense):
        return tf.sin(sparse.with_values(values).matmul(dense, transpose_a=transpose))

    _expect_gradients(product, [sparse.values, tf.constant(dense)])


def _expect_gradients(function, arguments):
    if any(a.shape.num_elements() == 0 for a in arguments):
        return
    theoretical, numerical = tf.test.compute_gradient(function, arguments, delta=1e-5)
    for a, b in zip(theoretical, numerical, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.whole("traces many functions")
@pytest.mark.usefixtures("kernel_of")
@pytest.mark.parametrize("in_function", [False, True])
def test_gradients_of_gradients_of_matmul(in_function):
    sparse, dense = csr(EXAMPLE.astype(np.float64)), tf.constant(np.arange(8.0).reshape(4, 2) / 8)

    def gradients(values, dense):
        with tf.GradientTape() as tape:
            tape.watch([values, dense])
            product = tf.sin(sparse.with_values(values) @ dense)
        return tape.gradient(product, [values, dense])

    for i in range(2):
        function = tf.function(gradients) if in_function else gradients
        _expect_gradients(lambda *args, i=i, f=function: f(*args)[i], [sparse.values, dense])


@pytest.mark.whole("computes numeric gradients")
@pytest.mark.usefixtures("kernel_of")
def test_gradients_of_complex_matmul():
    values = tf.constant([1 + 2j, 3 - 1j, 0.5j], tf.complex128)
    dense = tf.constant(np.arange(8).reshape(4, 2) * (1 - 1j))
    sparse = csr(EXAMPLE.astype(np.complex128))
    for turn in ({}, {"adjoint_a": True}):
        other = dense if not turn else dense[:3]
        _expect_gradients(
            lambda v, d, turn=turn: tf.square(sparse.with_values(v).matmul(d, **turn)),
            [values, other],
        )


@pytest.mark.usefixtures("kernel_of")
def test_the_gradient_of_a_matrix_has_its_positions():
    sparse, dense = csr(EXAMPLE), tf.ones([4, 2])
    with tf.GradientTape() as tape:
        tape.watch(sparse)
        loss = tf.reduce_sum((sparse @ dense) ** 2)
    gradient = tape.gradient(loss, sparse)
    expected = np.where(EXAMPLE, 2 * (EXAMPLE @ dense.numpy()) @ dense.numpy().T, 0)
    assert equal(gradient, expected)


@pytest.mark.usefixtures("kernel_of")
def test_forward_gradients_of_matmul():
    sparse, dense = csr(EXAMPLE), tf.ones([4, 2])
    with xt.ForwardAccumulator(dense, 3 * dense) as accumulator:
        product = sparse @ dense
    np.testing.assert_allclose(accumulator.jvp(product), EXAMPLE @ (3 * dense.numpy()))


def test_matmul_in_loops_has_gradients():
    sparse = csr(EXAMPLE[:, :3] / 4)

    @tf.function
    def power(values, start):
        matrix = sparse.with_values(values)
        with tf.GradientTape() as tape:
            tape.watch(values)
            _, end = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, matrix @ x), (0, start))
        return end, tape.gradient(end, values)

    end, gradient = power(sparse.values, tf.ones([3, 1]))
    array, ones = EXAMPLE[:, :3] / 4, np.ones([3, 1])
    powers = [np.linalg.matrix_power(array, i) for i in range(4)]
    np.testing.assert_allclose(end, powers[3] @ ones)
    dense = sum((ones.T @ powers[2 - i]).T @ (powers[i] @ ones).T for i in range(3))
    np.testing.assert_allclose(gradient, dense[np.nonzero(array)])


# Sums, transposes, reductions.


@given(st.data())
def test_add(data):
    a = data.draw(dense_arrays())
    b = np.roll(a, 1) * 3
    assert equal(csr(a) + csr(b), a + b)
    assert equal(csr(a).add(csr(-a)), a * 0)
    np.testing.assert_array_equal(csr(a) + tf.constant(b), a + b)
    if a.ndim == 2:
        total = scipy.sparse.csr_array(a) + scipy.sparse.csr_array(b)
        np.testing.assert_array_equal((csr(a) + csr(b)).to_scipy().toarray(), total.toarray())


@given(dense_arrays(2))
def test_transpose(array):
    turned = csr(array).transpose()
    assert equal(turned, array.swapaxes(-1, -2))
    if array.ndim == 2:
        theirs = scipy.sparse.csr_array(array).T.tocsr()
        np.testing.assert_array_equal(turned.row_splits, theirs.indptr)
        np.testing.assert_array_equal(turned.columns, theirs.indices)


@given(st.data())
def test_reductions(data):
    array = data.draw(dense_arrays())
    axes = st.integers(-array.ndim, array.ndim - 1)
    axis = data.draw(st.none() | axes | st.lists(axes, max_size=2))
    keepdims = data.draw(st.booleans())
    np_axis = tuple({a % array.ndim for a in axis}) if isinstance(axis, list) else axis
    for ours, theirs in (("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min)):
        reduced = (
            array.size
            if np_axis is None
            else np.prod([array.shape[a] for a in np.atleast_1d(np_axis).astype(int)])
        )
        if reduced == 0 and ours != "sum":
            continue  # NumPy refuses, or warns
        result = getattr(csr(array), f"reduce_{ours}")(axis, keepdims=keepdims)
        np.testing.assert_allclose(result, theirs(array, axis=np_axis, keepdims=keepdims))


@given(matrices(np.int64), st.sampled_from([None, 0, 1]))
def test_reductions_equal_scipy(array, axis):
    ours, theirs = csr(array), scipy.sparse.csr_array(array)
    np.testing.assert_array_equal(ours.reduce_sum(axis), theirs.sum(axis))
    if array.size:
        for how in ("max", "min"):
            expected = getattr(theirs, how)(axis)
            expected = expected.toarray() if scipy.sparse.issparse(expected) else expected
            np.testing.assert_array_equal(getattr(ours, f"reduce_{how}")(axis), expected)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(
    "compute",
    [
        lambda s: s.to_dense(),
        lambda s: s.transpose().values,
        lambda s: s.gather([1, 0, 0]).values,
        lambda s: s.add(s.with_values(s.values**2)).values,
        lambda s: s.add(tf.ones([2, 3, 4], tf.float64)),
        lambda s: s.reduce_sum(-1),
        lambda s: s.reduce_mean((0, 1)),
        lambda s: s.reduce_max(1),
        lambda s: s.to_sparse().values,
        lambda s: tf.map_fn(lambda row: row.reduce_sum(0), s, fn_output_signature=tf.float64),
    ],
)
def test_gradients_are_finite_differences(compute):
    array = np.stack([EXAMPLE, EXAMPLE[::-1]]).astype(np.float64)
    sparse = csr(np.where(array, array + np.arange(24).reshape(2, 3, 4) / 9, 0))
    _expect_gradients(lambda values: tf.sin(compute(sparse.with_values(values))), [sparse.values])


def test_gradients_by_a_dense_tensor_pass_through():
    dense = tf.constant(EXAMPLE.astype(np.float64) + 1)
    _expect_gradients(lambda x: CSRSparseTensor.from_dense(x).reduce_sum(0) ** 2, [dense])


# Rows.


@given(st.data())
def test_gather(data):
    array = data.draw(dense_arrays(2).filter(lambda a: a.shape[0]))
    rows = st.integers(0, array.shape[0] - 1)
    indices = np.array(data.draw(rows | st.lists(rows) | st.just([[0], [0]])), np.int64)
    assert equal(csr(array).gather(indices), array[indices])


@given(st.data())
def test_indexing(data):
    array = data.draw(dense_arrays(2))
    size = array.shape[0]
    bounds = st.none() | st.integers(-size - 1, size + 1)
    key = slice(data.draw(bounds), data.draw(bounds), data.draw(st.sampled_from([None, 1, 2, -1])))
    assert equal(csr(array)[key], array[key])
    if size:
        at = data.draw(st.integers(-size, size - 1))
        assert equal(csr(array)[at], array[at])
        assert equal(csr(array)[tf.constant(at % size)], array[at])
    assert len(list(csr(array))) == size


# Datasets, functions, saved models.


def test_rows_become_batches_and_rows_again():
    batches = list(tf.data.Dataset.from_tensor_slices(csr(EXAMPLE)).batch(2))
    assert [b.shape.as_list() for b in batches] == [[2, 4], [1, 4]]
    assert equal(batches[0], EXAMPLE[:2])
    dataset = tf.data.Dataset.from_tensor_slices(csr(EXAMPLE)).batch(2).unbatch()
    assert dataset.element_spec == Spec([4])
    for row, array in zip(dataset, EXAMPLE, strict=True):
        assert equal(row, array)


def test_batches_of_batches():
    array = np.arange(48.0).reshape(4, 3, 4) * (np.arange(4) % 2)
    dataset = tf.data.Dataset.from_tensor_slices(csr(array)).batch(2).batch(2)
    [whole] = dataset
    assert equal(whole, array.reshape(2, 2, 3, 4))
    for matrix, expected in zip(dataset.unbatch().unbatch(), array, strict=True):
        assert equal(matrix, expected)
    rows = tf.data.Dataset.from_tensor_slices(csr(array)).unbatch().batch(12)
    assert equal(next(iter(rows)), array.reshape(12, 4))


def test_a_dataset_of_matrices_made_in_python_is_batched_and_multiplied():
    arrays = [EXAMPLE, EXAMPLE[::-1], np.zeros_like(EXAMPLE)]

    def matrices():
        yield from map(csr, arrays)

    dataset = tf.data.Dataset.from_generator(matrices, output_signature=Spec([3, 4])).batch(3)
    [products] = dataset.map(lambda batch: batch @ tf.ones([3, 4, 2]))
    np.testing.assert_array_equal(products, np.stack(arrays) @ np.ones([3, 4, 2]))


def test_matrices_of_different_shapes_do_not_stack():
    dataset = tf.data.Dataset.from_tensors(csr(EXAMPLE)).concatenate(
        tf.data.Dataset.from_tensors(csr(EXAMPLE[:2]))
    )
    assert dataset.element_spec == Spec([None, 4])
    with pytest.raises(tf.errors.InvalidArgumentError, match="of different shapes do not stack"):
        list(dataset.batch(2))


def test_map_fn_takes_and_returns_rows():
    doubled = tf.map_fn(
        lambda row: row.with_values(row.values * 2), csr(EXAMPLE), fn_output_signature=Spec([4])
    )
    assert equal(doubled, EXAMPLE * 2)


@pytest.mark.whole("starts a process")
@pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type extensor.types:UserWarning:tensorflow"
)
def test_a_saved_model_takes_matrices_in_a_fresh_process(run_python, tmp_path, monkeypatch):
    constant = csr(EXAMPLE)
    constant.matmul(np.eye(4))
    with monkeypatch.context() as patch:
        patch.setattr(kernel, "_FEW", -1)
        constant.matmul(np.eye(4))  # keeps a variant, which no model can hold

    @tf.function(input_signature=[Spec([None, 4])])
    def scores(rows):
        return constant.matmul(tf.linalg.matrix_transpose(rows.to_dense())), rows.transpose()

    module = tf.Module()
    module.scores = scores
    folder = str(tmp_path / "model")
    tf.saved_model.save(module, folder)
    run_python(f"""
        import numpy as np
        import tensorflow as tf
        import extensor as xt

        model = tf.saved_model.load({folder!r})
        array = np.array({EXAMPLE.tolist()}, np.float32)
        for size in (3, 0, 1):
            rows = xt.types.CSRSparseTensor.from_dense(array[:size])
            with tf.GradientTape() as tape:
                tape.watch(rows)
                scores, turned = model.scores(rows)
            assert np.array_equal(scores, array @ array[:size].T)
            gradient = tape.gradient(scores, rows).values
            assert np.array_equal(gradient, array.sum(0)[rows.columns])
            assert np.array_equal(turned.to_dense(), array[:size].T)
    """)


# Bad input.

BAD = {
    "columns out of order": (
        ([0, 2], [3, 1], [1.0, 2.0], [1, 4]),
        r"columns: expected ascending columns without duplicates .*, got 3 before 1 in one row",
    ),
    "a column twice": (
        ([0, 1, 3], [3, 1, 1], [1.0, 2.0, 3.0], [2, 4]),
        r"got 1 before 1 in one row, at entry 2",
    ),
    "a column too large": (
        ([0, 2], [1, 4], [1.0, 2.0], [1, 4]),
        r"columns: expected columns from 0 to 3, got column 4 in entry 1",
    ),
    "a negative column": (([0, 1], [-1], [1.0], [1, 4]), r"from 0 to 3, got column -1 in entry 0"),
    "no columns": (([0, 1], [0], [1.0], [1, 0]), r"expected 0 entries, for 0 columns"),
    "splits that do not begin with 0": (([1, 2], [1], [1.0], [1, 4]), r"begin with 0"),
    "splits that decrease": (([0, 2, 1, 2], [1, 2], [1.0, 2.0], [3, 4]), r"decrease after row 1"),
    "splits that end early": (([0, 1], [1, 2], [1.0, 2.0], [1, 4]), r"end with 2"),
    "too few splits": (([0, 1], [1], [1.0], [2, 4]), r"row_splits: expected shape \(3,\), for 2"),
    "too few values": (([0, 2], [1, 2], [1.0], [1, 4]), r"values: expected shape \(2,\)"),
    "values of rank 2": (([0, 1], [1], [[1.0]], [1, 4]), r"values: expected shape \(1,\)"),
    "no dimension": (([0, 1], [0], [1.0], []), r"dense_shape: expected a known number of sizes"),
    "a negative size": (([0], [], [], [-1, 4]), r"dense_shape: .* all >= 0, got \[-1, 4\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_an_error_with_four_parts(case):
    arguments, message = BAD[case]
    with pytest.raises(xt.ExtensorError, match=message) as info:
        CSRSparseTensor(*arguments)
    assert isinstance(info.value, ValueError)


IN_A_GRAPH = [
    case for case, (_, message) in BAD.items() if "shape" not in message and "size" not in message
]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("case", IN_A_GRAPH)
def test_bad_input_is_an_error_in_a_graph_if_validated(case):
    arguments, _ = BAD[case]
    columns, sizes = arguments[1], arguments[3]

    def through(splits, columns, values, sizes, validate):
        return CSRSparseTensor(splits, columns, values, sizes, validate=validate).columns

    for validate in (True, False):
        function = tf.function(lambda *args, v=validate: through(*args, v)).get_concrete_function(
            *(tf.TensorSpec([None], tf.int64) for _ in range(2)),
            tf.TensorSpec([None]),
            tf.TensorSpec([len(sizes)], tf.int64),
        )
        has_assertion = any(op.type == "Assert" for op in function.graph.get_operations())
        assert has_assertion == validate
        tensors = [
            tf.constant(a, d)
            for a, d in zip(arguments, [tf.int64, tf.int64, tf.float32, tf.int64], strict=True)
        ]
        if validate:
            with pytest.raises(tf.errors.InvalidArgumentError):
                function(*tensors)
        else:
            np.testing.assert_array_equal(function(*tensors), columns)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CSRSparseTensor([0.0, 1.0], [0], [1.0], [1, 2]), r"row_splits: expected int64"),
        (lambda: CSRSparseTensor([0, 1], ["a"], [1.0], [1, 2]), r"columns: expected int64"),
        (
            lambda: CSRSparseTensor([0, 1], [None], [1.0], [1, 2]),
            r"columns: expected int64 or int32, got object",
        ),
        (
            lambda: CSRSparseTensor([0, 1], np.zeros([1], np.int32), [1.0], [1, 2]),
            r"columns: expected int64, the dtype of row_splits, got int32",
        ),
        (lambda: csr(EXAMPLE) @ tf.ones([4, 1], tf.float64), r"float32, .* got float64"),
        (lambda: csr(EXAMPLE.astype(int)) @ tf.ones([4, 1], tf.int64), r"kernels, got int64"),
        (lambda: csr(EXAMPLE) + csr(EXAMPLE.astype(int)), r"add: expected float32"),
        (lambda: csr(EXAMPLE.astype(int)).reduce_mean(), r"reduce_mean: expected floating"),
        (lambda: csr(EXAMPLE)[0, None], r"expected a number or a slice"),
        (lambda: CSRSparseTensor.from_scipy(EXAMPLE), r"from_scipy: expected a sparse array"),
        (
            lambda: CSRSparseTensor.from_scipy(
                scipy.sparse.csr_array(EXAMPLE.astype(np.longdouble))
            ),
            r"expected a dtype that TensorFlow has",
        ),
        (lambda: csr([["a", ""]]).to_scipy(), r"to_scipy: expected a dtype"),
    ],
)
def test_other_types_are_type_errors(make, message):
    with pytest.raises(xt.ExtensorError, match=message) as info:
        make()
    assert isinstance(info.value, TypeError)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: csr(EXAMPLE) @ tf.ones([3, 1]), r"expected shape \(4, None\), got \(3, 1\)"),
        (lambda: csr(EXAMPLE) @ tf.ones([4]), r"expected a dense tensor of rank 2"),
        (lambda: csr(EXAMPLE[0]) @ tf.ones([4, 1]), r"expected a tensor of rank 2"),
        (lambda: csr(EXAMPLE[None]) @ tf.ones([2, 4, 1]), r"shape \(1, 4, None\), got \(2, 4, 1\)"),
        (lambda: csr(EXAMPLE) + csr(EXAMPLE.T), r"add: expected shape \(3, 4\), got \(4, 3\)"),
        (lambda: csr(EXAMPLE) + tf.ones([4]), r"add: expected shape \(3, 4\), got \(4,\)"),
        (lambda: csr(EXAMPLE[0]).transpose(), r"transpose: expected a tensor of rank 2"),
        (lambda: csr(EXAMPLE[0]).gather([0]), r"gather: expected a tensor of rank 2"),
        (lambda: csr(EXAMPLE).reduce_sum(2), r"expected an axis from -2 to 1, got 2"),
        (lambda: csr(EXAMPLE).with_values([1.0]), r"values: expected shape \(3,\), got \(1,\)"),
        (lambda: csr(EXAMPLE[None]).to_scipy(), r"expected a vector or a matrix"),
        (lambda: csr(1.0), r"from_dense: expected a known rank"),
        (lambda: Spec(None), r"expected a shape of known rank"),
        (lambda: Spec([4]).unstacked(), r"expected rank 2 or more"),
        (lambda: Spec([3, 4]).to_boxed_tensor(csr(EXAMPLE), 2), r"expected rank 2 or more"),
        (
            lambda: CSRSparseTensor.from_sparse(
                tf.SparseTensor([[1, 0], [0, 0]], [1.0, 2.0], [2, 2])
            ),
            r"expected sorted indices",
        ),
        (
            lambda: CSRSparseTensor.from_sparse(
                tf.SparseTensor([[0, 0], [2, 0]], [1.0, 2.0], [2, 2])
            ),
            r"expected indices from 0 to 1 in dimension 0, got index 2 in entry 1",
        ),
    ],
)
def test_shapes_that_do_not_match_are_value_errors(make, message):
    with pytest.raises(xt.ExtensorError, match=message) as info:
        make()
    assert isinstance(info.value, ValueError)


def test_a_row_out_of_range_is_an_error():
    for at in (3, -4):
        with pytest.raises(IndexError, match=rf"expected a row from -3 to 2, got {at}"):
            csr(EXAMPLE)[at]


def test_scipy_is_needed_only_for_its_conversions(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(xt.ExtensorError, match=r"pip install .*\[scipy\]\"") as info:
        csr(EXAMPLE).to_scipy()
    assert isinstance(info.value, ImportError)


@pytest.mark.parametrize("few", [True, False])
def test_jacobians_of_eager_products(few, monkeypatch):
    if not few:
        monkeypatch.setattr("extensor._types.csr.kernel._FEW", -1)
    matrix, dense = csr(EXAMPLE), tf.ones([EXAMPLE.shape[1], 2])
    with tf.GradientTape() as tape:
        tape.watch(dense)
        product = tf.matmul(matrix, dense)
    expected = np.einsum("ij,kl->ikjl", EXAMPLE, np.eye(2))
    np.testing.assert_allclose(tape.jacobian(product, dense), expected)
