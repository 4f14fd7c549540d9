"""TensorFlow's and Python's operations on CSRSparseTensors equal those of NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, StructureError
from extensor.types import CSRSparseTensor
from tests.types.test_csr import EXAMPLE, csr, dense_arrays, equal


@given(st.data())
@pytest.mark.parametrize("turn", ["", "transpose", "adjoint"])
@pytest.mark.parametrize("is_left", [True, False])
def test_matmul_on_either_side(turn, is_left, data):
    array = data.draw(dense_arrays(2, 3, np.complex64)) * (1 + 2j)
    turned = array if not turn else array.swapaxes(-1, -2)
    turned = turned.conj() if turn == "adjoint" else turned
    rng = np.random.default_rng(0)
    options = {f"{turn}_{'a' if is_left else 'b'}": True} if turn else {}
    if is_left:
        dense = rng.integers(-3, 3, (*array.shape[:-2], turned.shape[-1], 2)).astype(np.complex64)
        product, expected = tf.matmul(csr(array), dense, **options), turned @ dense
    else:
        dense = rng.integers(-3, 3, (*array.shape[:-2], 2, turned.shape[-2])).astype(np.complex64)
        product, expected = tf.matmul(dense, csr(array), **options), dense @ turned
    np.testing.assert_array_equal(product, expected)


@pytest.mark.parametrize("option", ["transpose", "adjoint"])
def test_matmul_transposes_the_dense_operand(option):
    dense = np.arange(8).reshape(2, 4).astype(np.complex64) * (1 - 1j)
    turned = dense.T.conj() if option == "adjoint" else dense.T
    array = EXAMPLE.astype(np.complex64)
    right = tf.matmul(csr(array), dense, **{f"{option}_b": True})
    np.testing.assert_array_equal(right, array @ turned)
    high = dense.T[:3]
    turned = high.T.conj() if option == "adjoint" else high.T
    left = tf.matmul(high, csr(array), **{f"{option}_a": True})
    np.testing.assert_array_equal(left, turned @ array)


@given(st.data())
def test_sums_and_multiples(data):
    a = data.draw(dense_arrays())
    b = np.roll(a, 1) * 3
    assert equal(tf.add(csr(a), csr(b)), a + b)
    assert equal(csr(a) - csr(b), a - b)
    assert equal(-csr(a), -a)
    assert equal(csr(a) * 2.0, a * 2)
    assert equal(2.0 * csr(a), a * 2)
    assert equal(csr(a) / 2.0, a / 2)
    for dense in (b, tf.constant(b)):
        np.testing.assert_array_equal(csr(a) + dense, a + b)
        np.testing.assert_array_equal(dense + csr(a), a + b)
        np.testing.assert_array_equal(csr(a) - dense, a - b)
        np.testing.assert_array_equal(dense - csr(a), b - a)


ENDS = np.array([[np.nan, 1, 0], [np.inf, -np.inf, -np.inf], [-np.inf] * 3, [np.inf] * 3])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, np.bool_])
def test_sums_have_every_entry_and_dtype(dtype):
    a = np.nan_to_num(ENDS, posinf=2, neginf=1) if np.dtype(dtype).kind in "ub" else ENDS
    b = np.roll(a, 1, 0).astype(dtype)
    a = a.astype(dtype)
    assert csr(a)[1, 1].numpy() == a[1, 1]
    if dtype != np.bool_:
        for run in (lambda f: f, tf.function):
            total = run(lambda: (csr(a) + csr(b)).to_dense())()
            np.testing.assert_array_equal(total, tf.add(a, b))


@pytest.mark.parametrize("reduce", [tf.reduce_max, tf.reduce_min])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extremes_are_infinite_or_nan_where_those_of_tensors_are(reduce, axis):
    np.testing.assert_array_equal(reduce(csr(ENDS), axis), reduce(ENDS, axis))


def test_operators_of_products():
    dense = np.arange(8, dtype=np.float32).reshape(4, 2)
    for right in (dense, tf.constant(dense), dense.tolist()):
        np.testing.assert_array_equal(csr(EXAMPLE) @ right, EXAMPLE @ dense)
    left = np.arange(6, dtype=np.float32).reshape(2, 3)
    for other in (left, tf.constant(left), left.tolist()):
        np.testing.assert_array_equal(other @ csr(EXAMPLE), left @ EXAMPLE)


@given(dense_arrays(2))
def test_transposes(array):
    order = [*range(array.ndim - 2), array.ndim - 1, array.ndim - 2]
    turned = array.transpose(order)
    assert equal(tf.transpose(csr(array), order), turned)
    assert equal(tf.linalg.matrix_transpose(csr(array)), turned)
    if array.ndim == 2:
        assert equal(tf.transpose(csr(array)), array.T)
    imaginary = array * 1j
    assert equal(tf.transpose(csr(imaginary), order, conjugate=True), -turned * 1j)


@given(st.data())
def test_reductions(data):
    array = data.draw(dense_arrays().filter(lambda a: a.size))
    axis = data.draw(st.none() | st.integers(-array.ndim, array.ndim - 1))
    keepdims = data.draw(st.booleans())
    for ours, theirs in (
        (tf.reduce_sum, np.sum),
        (tf.reduce_mean, np.mean),
        (tf.reduce_max, np.max),
        (tf.reduce_min, np.min),
    ):
        expected = theirs(array, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(ours(csr(array), axis, keepdims), expected)
    np.testing.assert_allclose(tf.math.reduce_sum(csr(array), axis=[0]), np.sum(array, 0))


@pytest.mark.parametrize(
    "axis",
    [np.array([0, 1]), np.array(1), np.int64(0), tf.constant([1, 0]), tf.constant(-1), [], ()],
)
def test_axes_are_given_as_to_tensorflow(axis):
    np.testing.assert_array_equal(tf.reduce_sum(csr(EXAMPLE), axis), tf.reduce_sum(EXAMPLE, axis))
    reduced = tf.function(lambda x: tf.reduce_max(x, axis, keepdims=True))(csr(EXAMPLE))
    np.testing.assert_array_equal(reduced, tf.reduce_max(EXAMPLE, axis, keepdims=True))


@pytest.mark.parametrize(
    ("axis", "error"),
    [(2, StructureError), (0.5, DTypeError), ("0", DTypeError)],
)
def test_what_is_no_axis_is_an_error(axis, error):
    with pytest.raises(error, match=r"CSRSparseTensor\.reduce_sum: axis: expected") as raised:
        tf.reduce_sum(csr(EXAMPLE), axis)
    assert raised.value.fix
    with pytest.raises(DTypeError, match="known when the graph is made"):
        tf.function(lambda axis: tf.reduce_sum(csr(EXAMPLE), axis))(tf.constant(0))


@pytest.mark.parametrize("dtype", [tf.bool, tf.complex64])
@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min])
def test_values_that_cannot_be_reduced_are_an_error(reduce, dtype):
    values = csr(EXAMPLE)
    values = values.with_values(tf.cast(values.values, dtype))
    if dtype == tf.complex64 and reduce in (tf.reduce_sum, tf.reduce_mean):
        np.testing.assert_array_equal(reduce(values), reduce(EXAMPLE.astype(np.complex64)))
        return
    with pytest.raises(DTypeError, match=r"expected .*got (bool|complex64)\. Cast them"):
        reduce(values)


def test_rows_and_sizes():
    sparse = csr(EXAMPLE)
    assert equal(tf.gather(sparse, [2, 0]), EXAMPLE[[2, 0]])
    assert equal(tf.gather(sparse, 1, axis=0), EXAMPLE[1])
    assert equal(tf.stack([sparse, -sparse]), np.stack([EXAMPLE, -EXAMPLE]))
    assert tf.shape(sparse).numpy().tolist() == [3, 4]
    assert tf.shape(sparse, tf.int64).dtype == tf.int64
    assert tf.rank(sparse).numpy() == 2
    assert tf.cast(sparse, tf.int32).dtype == tf.int32
    assert len(sparse) == 3


def test_operations_inside_a_function():
    @tf.function(input_signature=[CSRSparseTensor.Spec([None, 4]), tf.TensorSpec([4, None])])
    def compute(sparse, dense):
        return tf.reduce_sum(tf.matmul(sparse * 2.0, dense)) + tf.reduce_sum(sparse + sparse)

    dense = np.ones([4, 2], np.float32)
    assert compute(csr(EXAMPLE), dense).numpy() == (EXAMPLE @ dense).sum() * 2 + EXAMPLE.sum() * 2


def test_gradients_of_operators():
    sparse = csr(EXAMPLE.astype(np.float64))
    values, dense = sparse.values * 3, tf.constant(np.arange(6.0).reshape(2, 3))

    def function(values, dense):
        return tf.sin(dense @ (sparse.with_values(values) / 2.0 - sparse))

    theoretical, numerical = tf.test.compute_gradient(function, [values, dense], delta=1e-5)
    for a, b in zip(theoretical, numerical, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: tf.exp(s),
        lambda s: tf.transpose(csr(np.ones([2, 2, 2]))),
        lambda s: tf.gather(s, [0], axis=1),
        lambda s: tf.stack([s, s], axis=1),
        lambda s: 2.0 / s,
    ],
)
def test_an_operation_that_makes_zeros_nonzero_is_an_error_that_names_the_type(call):
    with pytest.raises(
        (TypeError, ValueError), match=r"CSRSparseTensor (has no handler for|declined: its handler)"
    ):
        call(csr(EXAMPLE))


def test_only_scalars_divide_a_matrix():
    with pytest.raises(xt.ExtensorError, match="expected a scalar") as info:
        csr(EXAMPLE) / [1.0, 2.0]
    assert isinstance(info.value, ValueError)


def test_the_truth_of_a_matrix_is_an_error():
    with pytest.raises(TypeError, match=r"bool\(CSRSparseTensor\)"):
        bool(csr(EXAMPLE))
