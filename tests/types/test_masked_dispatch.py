"""TensorFlow's operations on MaskedTensors equal those of numpy.ma."""

import base64
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.types import MaskedTensor

ma = np.ma
Spec = MaskedTensor.Spec


@st.composite
def arrays(draw, min_rank=1, max_rank=3, dtype=np.float64, min_size=1, mask=True):
    """Masked arrays of numpy.ma, in which invalid elements are often NaN."""
    shape = draw(st.lists(st.integers(min_size, 3), min_size=min_rank, max_size=max_rank))
    count = int(np.prod(shape))
    values = draw(st.lists(st.integers(-4, 4), min_size=count, max_size=count))
    masked = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    array = np.array(values, dtype).reshape(shape)
    invalid = np.array(masked, bool).reshape(shape)
    if np.issubdtype(dtype, np.floating) and draw(st.booleans()):
        array[invalid] = np.nan
    return ma.array(array, mask=invalid)


@st.composite
def pairs(draw, dtype=np.float64):
    """Two masked arrays that broadcast."""
    first = draw(arrays(dtype=dtype))
    kept = draw(st.lists(st.booleans(), min_size=first.ndim, max_size=first.ndim))
    shape = [size if keep else 1 for size, keep in zip(first.shape, kept, strict=True)]
    shape = shape[draw(st.integers(0, first.ndim - 1)) :]
    count = int(np.prod(shape))
    values = draw(st.lists(st.integers(-4, 4), min_size=count, max_size=count))
    masked = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    second = ma.array(np.array(values, dtype).reshape(shape), mask=np.reshape(masked, shape))
    return draw(st.permutations([first, second]))


def masked(array):
    return MaskedTensor.from_numpy(array)


def same(ours, theirs, exact=True):
    """Asserts that a MaskedTensor is an array of numpy.ma: the same mask, the same valid values."""
    assert isinstance(ours, MaskedTensor)
    assert ours.values.shape == ours.mask.shape == np.shape(theirs)
    np.testing.assert_array_equal(~ours.mask.numpy(), ma.getmaskarray(theirs))
    compare = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    compare(ours.values.numpy()[ours.mask.numpy()], np.reshape(ma.compressed(theirs), [-1]))


@pytest.fixture(params=["eager", "graph", "unknown sizes"])
def run(request):
    """Calls a function eagerly, in a tf.function, and in one without static sizes."""
    traced = {}

    def call(function, *args):
        if request.param == "eager":
            return function(*args)
        if function not in traced:
            specs = None
            if request.param == "unknown sizes":
                values = [tf.nest.map_structure(_converted, arg) for arg in args]
                specs = [_unsized(xt.spec_of(value)) for value in values]
            traced[function] = tf.function(function, input_signature=specs)
        return traced[function](*args)

    return call


def _converted(arg):
    return arg if isinstance(arg, MaskedTensor) else tf.convert_to_tensor(arg)


def _unsized(spec):
    if isinstance(spec, tf.TensorSpec):
        return tf.TensorSpec([None] * spec.shape.rank, spec.dtype)
    return MaskedTensor.Spec(_unsized(spec.values))


# Elementwise, against numpy.ma.

UNARY = {
    "negative": (tf.negative, ma.negative),
    "abs": (tf.abs, ma.abs),
    "square": (tf.square, lambda a: a**2),
    "exp": (tf.exp, ma.exp),
    "sin": (tf.sin, ma.sin),
    "floor": (tf.floor, ma.floor),
    "tanh": (tf.tanh, ma.tanh),
    "is_nan": (tf.math.is_nan, lambda a: ma.array(np.isnan(a.data), mask=a.mask)),
    "cast": (lambda x: tf.cast(tf.maximum(x, -9), tf.int32), lambda a: a.astype(np.int32)),
    "clip": (lambda x: tf.clip_by_value(x, -1, 2), lambda a: ma.clip(a, -1, 2)),
    "identity": (tf.identity, lambda a: a),
    "stop_gradient": (tf.stop_gradient, lambda a: a),
    "abs operator": (abs, ma.abs),
    "minus operator": (lambda x: -x, ma.negative),
    "zeros_like": (tf.zeros_like, ma.zeros_like),
    "ones_like": (tf.ones_like, ma.ones_like),
}


@given(array=arrays())
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_unary_elementwise_operations(name, array):
    ours, theirs = UNARY[name]
    same(ours(masked(array)), theirs(array), exact=False)


BINARY = {
    "add": (tf.add, ma.add),
    "subtract": (tf.subtract, ma.subtract),
    "multiply": (tf.multiply, ma.multiply),
    "maximum": (tf.maximum, ma.maximum),
    "minimum": (tf.minimum, ma.minimum),
    "squared_difference": (tf.math.squared_difference, lambda a, b: (a - b) ** 2),
    "equal": (tf.equal, ma.equal),
    "not_equal": (tf.not_equal, ma.not_equal),
    "less": (tf.less, ma.less),
    "less_equal": (tf.less_equal, ma.less_equal),
    "greater": (tf.greater, ma.greater),
    "greater_equal": (tf.greater_equal, ma.greater_equal),
    "==": (lambda x, y: x == y, ma.equal),
    "!=": (lambda x, y: x != y, ma.not_equal),
    "<": (lambda x, y: x < y, ma.less),
    "+": (lambda x, y: x + y, ma.add),
    "-": (lambda x, y: x - y, ma.subtract),
    "*": (lambda x, y: x * y, ma.multiply),
    "atan2": (tf.atan2, ma.arctan2),
    "add_n": (lambda x, y: tf.add_n([x + y, y + x]), lambda a, b: a + b + b + a),
}


@pytest.mark.whole("draws many values")
@given(both=pairs())
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_binary_elementwise_operations(name, both):
    a, b = both
    ours, theirs = BINARY[name]
    plain = np.nan_to_num(b.data)
    same(ours(masked(a), masked(b)), theirs(a, b), exact=False)
    same(ours(masked(a), tf.constant(plain)), theirs(a, plain), exact=False)
    if name not in ("+", "-", "*", "<", "==", "!="):
        same(ours(plain, masked(a)), theirs(ma.array(plain), a), exact=False)
    same(ours(masked(a), 2.0), theirs(a, 2.0), exact=False)


@pytest.mark.parametrize("name", ["add", "multiply", "less", "maximum"])
def test_binary_elementwise_operations_in_graphs(name, run):
    ours, theirs = BINARY[name]
    a = ma.array([[1.0, np.nan, 3.0]], mask=[[False, True, False]])
    b = ma.array([[1.0], [2.0]], mask=[[False], [True]])

    def pairs(x, y, plain_x, plain_y):
        return ours(x, y), ours(x, plain_y), ours(plain_x, y), ours(x, 2.0)

    for x, y in ((a, b), (b, a), (a, a), (b, b)):
        plain_x, plain_y = np.nan_to_num(x.data), np.nan_to_num(y.data)
        results = run(pairs, masked(x), masked(y), plain_x, plain_y)
        expected = theirs(x, y), theirs(x, plain_y), theirs(plain_x, y), theirs(x, 2.0)
        for result, wanted in zip(results, expected, strict=True):
            same(result, wanted)


@given(both=pairs())
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (tf.truediv, ma.true_divide),
        (lambda x, y: x / y, ma.true_divide),
        (tf.math.floordiv, ma.floor_divide),
        (lambda x, y: x // y, ma.floor_divide),
        (lambda x, y: x % y, lambda a, b: a - ma.floor_divide(a, b) * b),
        (lambda x, y: tf.abs(x) ** tf.abs(y), lambda a, b: ma.power(ma.abs(a), ma.abs(b))),
        (lambda x, y: tf.math.log(tf.abs(x) + 1) * y, lambda a, b: ma.log(ma.abs(a) + 1) * b),
        (lambda x, y: tf.sqrt(tf.abs(x)) + y, lambda a, b: ma.sqrt(ma.abs(a)) + b),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_operations_that_are_not_defined_everywhere(ours, theirs, both):
    a, b = both
    b = ma.masked_equal(b, 0)  # numpy.ma masks what it cannot compute; TensorFlow gives inf
    same(ours(masked(a), masked(b)), theirs(a, b), exact=False)


@given(both=pairs(np.int64))
def test_integers_are_divided_where_both_are_valid(both):
    a, b = both
    b = ma.masked_equal(b, 0)
    same(masked(a) // masked(b), ma.floor_divide(a, b))
    same(masked(a) % masked(b), a - ma.floor_divide(a, b) * b)
    same(masked(a) & masked(b), a & b)
    same(masked(a) | masked(b), a | b)
    same(~masked(a), ~a)
    # An array as one side: it may have zeros where the other side is null.
    divisor = np.where(ma.getmaskarray(a), 0, 2)
    same(masked(a) // divisor, a // 2)
    same(masked(a) % divisor, a % 2)
    b = ma.masked_less(b, 0)
    same(masked(a) ** masked(b), ma.array(a.data ** np.where(b.mask, 0, b.data), mask=(a + b).mask))


TEXTS = {
    "numbers": (tf.strings.to_number, [b"1", b"", b"-2.5"], float),
    "base64": (
        tf.io.decode_base64, [b"YWI=", b"!!", b"YWM="], base64.b64decode
    ),
    "from": (lambda x: tf.strings.substr(x, 2, 1), [b"salt", b"", b"oil"], lambda text: text[2:3]),
    "from the end": (
        lambda x: tf.strings.substr(x, -2, 1), [b"salt", b"", b"oil"], lambda text: text[-2:-1]
    ),
    "from each": (
        lambda x: tf.strings.substr(x, [1, 1, 1], [1, 1, 1]),
        [b"salt", b"", b"oil"],
        lambda text: text[1:2],
    ),
    "unicode": (
        lambda x: tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE", errors="strict"),
        [b"salt", b"\xff", b"oil"],
        lambda text: text.decode().encode("utf-16-be"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_a_null_text_is_not_read(name):
    function, texts, expected = TEXTS[name]
    found = function(MaskedTensor(texts, [True, False, True]))
    assert found.to_py() == [expected(texts[0]), None, expected(texts[2])]


@given(both=pairs())
def test_logical_operations(both):
    a, b = (x > 0 for x in both)
    for ours, theirs in (
        (tf.logical_and, ma.logical_and),
        (tf.logical_or, ma.logical_or),
        (tf.math.logical_xor, ma.logical_xor),
        (lambda x, y: x & y, ma.logical_and),
        (lambda x, y: x | y, ma.logical_or),
        (lambda x, y: x ^ y, ma.logical_xor),
    ):
        same(ours(masked(a), masked(b)), theirs(a, b))
    same(~masked(a), ma.logical_not(a))


@given(both=pairs(), data=st.data())
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_where(both, data):
    a, b = both
    condition = ma.masked_invalid(a) > 0
    same(tf.where(masked(condition), masked(a), masked(b)), ma.where(condition, a, b))
    plain = condition.filled(False)
    same(tf.where(plain, masked(a), masked(b)), ma.where(plain, a, b))
    same(tf.where(plain, masked(a), 7.0), ma.where(plain, a, 7.0))
    same(tf.where(plain, 7.0, masked(b)), ma.where(plain, 7.0, b))
    same(tf.where(masked(condition), 1.0, 2.0), ma.where(condition, 1.0, 2.0))
    np.testing.assert_array_equal(tf.where(masked(condition)), np.argwhere(plain))


# Reductions.

REDUCTIONS = {
    "sum": (tf.reduce_sum, ma.sum),
    "prod": (tf.reduce_prod, ma.prod),
    "max": (tf.reduce_max, ma.max),
    "min": (tf.reduce_min, ma.min),
    "mean": (tf.reduce_mean, ma.mean),
    "variance": (tf.math.reduce_variance, ma.var),
    "std": (tf.math.reduce_std, ma.std),
    "any": (lambda x, *args: tf.reduce_any(x > 0, *args), lambda a, **kw: ma.any(a > 0, **kw)),
    "all": (lambda x, *args: tf.reduce_all(x > 0, *args), lambda a, **kw: ma.all(a > 0, **kw)),
    "logsumexp": (
        tf.reduce_logsumexp,
        lambda a, axis, keepdims: ma.log(ma.sum(ma.exp(a), axis=axis, keepdims=keepdims)),
    ),
    "euclidean norm": (
        tf.math.reduce_euclidean_norm,
        lambda a, axis, keepdims: ma.sqrt(ma.sum(a * a, axis=axis, keepdims=keepdims)),
    ),
}


@given(data=st.data())
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_reductions_ignore_masked_items(name, data):
    array = data.draw(arrays())
    axis = data.draw(st.none() | st.integers(-array.ndim, array.ndim - 1))
    keepdims = data.draw(st.booleans())
    ours, theirs = REDUCTIONS[name]
    # What numpy.ma leaves behind under the mask is another thing, and so is where it ends up.
    expected = theirs(array, axis=axis, keepdims=keepdims)
    if expected is ma.masked or np.ndim(expected) == 0:
        expected = ma.array(ma.filled(expected, 0), mask=ma.getmaskarray(expected))
    result = ours(masked(array), axis, keepdims)
    same(result, np.reshape(expected, result.shape), exact=False)


@pytest.mark.parametrize(
    ("call", "values", "text"),
    [
        (tf.reduce_sum, [True], "tf.reduce_sum: expected numbers, got bool. Count bools"),
        (tf.cumsum, [True], "tf.cumsum: expected numbers, got bool. Count bools"),
        (tf.argmax, ["a"], "tf.argmax: expected numbers, got string. Convert text"),
        (tf.reduce_all, [1], "tf.reduce_all: expected bools, got int32. Compare the values"),
    ],
)
@pytest.mark.parametrize("in_lists", [False, True])
def test_values_without_the_reduction_are_an_error(call, values, text, in_lists):
    flat = MaskedTensor(values)
    lists = xt.authoring.cut_rows(flat, tf.constant([0, 1]))
    array = MaskedTensor._of_parts(lists, tf.constant([True])) if in_lists else flat
    if in_lists and call in (tf.cumsum, tf.argmax):
        array = lists
    with pytest.raises(xt.errors.DTypeError, match=re.escape(text)):
        call(array)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_in_graphs_and_over_several_dimensions(name, run):
    array = ma.array(
        [[[1.0, np.nan], [-3.0, 4.0]], [[np.nan, np.nan], [np.nan, np.nan]]],
        mask=[[[False, True], [False, False]], [[True, True], [True, True]]],
    )
    ours, theirs = REDUCTIONS[name]
    dimensions = ([1, 2], [-1, 0])
    results = run(lambda x: [ours(x, axes, True) for axes in dimensions], masked(array))
    for axes, result in zip(dimensions, results, strict=True):
        expected = theirs(_merged(array, axes), axis=-1, keepdims=False)
        same(result, np.reshape(expected, result.shape), exact=False)


def _merged(array, axes):
    """The array with some dimensions as one, the last: numpy.ma reduces one at a time."""
    kept = [d for d in range(array.ndim) if d not in [a % array.ndim for a in axes]]
    moved = ma.transpose(array, [*kept, *(a % array.ndim for a in axes)])
    return moved.reshape([*(array.shape[d] for d in kept), -1])


OF_NOTHING = [
    *(tf.reduce_sum, tf.reduce_prod, tf.math.reduce_euclidean_norm, tf.reduce_logsumexp),
    *(tf.reduce_all, tf.reduce_any),
]


@given(lists=st.lists(st.lists(st.integers(-3, 3), max_size=3)))
def test_a_mask_without_nulls_does_not_change_sums_also_of_nothing(lists):
    plain = tf.ragged.constant(lists, tf.float32, ragged_rank=1, row_splits_dtype=tf.int64)
    for op in OF_NOTHING:
        is_logical = op in (tf.reduce_all, tf.reduce_any)
        values = tf.cast(plain, tf.bool) if is_logical else plain
        if op in (tf.reduce_logsumexp, tf.math.reduce_euclidean_norm):
            values = plain.to_tensor()
        mask = tf.cast(tf.ones_like(values, tf.int32), tf.bool)
        for axis in (1, None):
            expected = op(values, axis=axis)
            found = op(MaskedTensor(values, mask), axis=axis)
            np.testing.assert_array_equal(found.values, expected)
            assert found.mask.numpy().all()


AXES = (None, 0, 1, -1)
CALLS = {
    f"{op.__name__} {axis}": (lambda x, op=op, axis=axis: op(x, axis=axis))
    for op in (
        *(tf.reduce_sum, tf.reduce_prod, tf.reduce_max, tf.reduce_min, tf.reduce_mean),
        *(tf.math.reduce_variance, tf.math.reduce_std, tf.reduce_logsumexp, tf.norm),
        *(tf.math.reduce_euclidean_norm, tf.math.count_nonzero, tf.argmax, tf.argmin),
        *(tf.cumsum, tf.math.cumprod, tf.sort, tf.argsort, tf.nn.softmax, tf.reverse),
        *(tf.expand_dims, tf.squeeze),
    )
    for axis in AXES
} | {
    op.__name__: op
    for op in (
        *(tf.abs, tf.exp, tf.sigmoid, tf.round, tf.nn.relu, tf.ones_like, tf.zeros_like, tf.size),
        *(tf.shape, tf.rank, tf.square, tf.identity, tf.as_string, tf.math.is_nan),
    )
} | {
    "stack": lambda x: tf.stack([x, x]), "concat": lambda x: tf.concat([x, x], 0),
}  # fmt: skip


def listed(x):
    if isinstance(x, (list, tuple)):
        return [listed(each) for each in x]
    if isinstance(x, MaskedTensor):
        return x.to_py()
    if isinstance(x, tf.RaggedTensor):
        return x.to_list()
    return x.numpy().tolist() if hasattr(x, "numpy") else x


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "plain",
    [
        tf.ragged.constant([[1.0, 2.0], [4.0], [3.0]]),
        tf.ragged.constant([[1, 2], [4], [3]]),
        tf.constant([[1.0, 2.0], [3.0, 5.0]]),
        tf.ragged.constant([[[1.0, 2.0], [4.0]], [[3.0]]]),
    ],
    ids=["ragged", "ragged integers", "dense", "deep"],
)
def test_a_mask_without_nulls_equals_plain_or_plain_fails_too(name, plain):
    try:
        expected = listed(CALLS[name](plain))
    except Exception:  # any of TensorFlow's
        return
    found = listed(CALLS[name](MaskedTensor(plain)))
    flat, other = (tf.nest.flatten(each) for each in (found, expected))
    tf.nest.assert_same_structure(found, expected)
    for ours, theirs in zip(flat, other, strict=True):
        assert ours == (pytest.approx(theirs, 1e-5) if isinstance(theirs, float) else theirs)


@pytest.mark.whole("traces many functions")
def test_a_result_of_nulls_only_is_null_and_so_is_a_mean_of_nothing():
    lists = xt.struct.constant([{"n": [None, None]}, {"n": []}, {"n": None}], nulls="mask")["n"]
    assert tf.reduce_sum(lists, axis=1).to_py() == [None, 0, None]
    assert tf.reduce_sum(lists).to_py() is None
    assert tf.reduce_sum(lists[1:]).to_py() is None
    assert tf.reduce_sum(lists[1:2]).to_py() == 0
    for op in (tf.reduce_mean, tf.reduce_max, tf.reduce_min):
        assert op(lists, axis=1).to_py() == [None, None, None]
    in_graph = tf.function(lambda x: (tf.reduce_sum(x, axis=1), tf.reduce_sum(x)))
    assert [each.to_py() for each in in_graph(lists)] == [[None, 0, None], None]


@given(array=arrays(dtype=np.int32), data=st.data())
def test_places_and_counts(array, data):
    axis = data.draw(st.integers(0, array.ndim - 1))
    for ours, theirs in ((tf.argmax, ma.argmax), (tf.argmin, ma.argmin)):
        result = ours(masked(array), axis)
        nothing = ma.getmaskarray(array).all(axis)
        same(result, ma.array(theirs(array, axis=axis), mask=nothing))
    np.testing.assert_array_equal(masked(array).count(axis), array.count(axis))
    np.testing.assert_array_equal(masked(array).count(), array.count())
    nonzero = (array.filled(0) != 0).sum(axis)
    np.testing.assert_array_equal(tf.math.count_nonzero(masked(array), axis), nonzero)
    total = tf.reduce_sum(masked(array), axis)
    same(total, ma.sum(array, axis=axis))
    mean = tf.reduce_mean(masked(array), axis)
    same(mean, np.trunc(ma.mean(array, axis=axis)).astype(np.int32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32])
def test_a_mean_of_integers_whose_sum_does_not_fit_in_their_dtype(dtype):
    numbers = np.full(300, np.iinfo(dtype).max // 2 + 5, dtype)
    mask = np.arange(300) < 290
    mean = tf.reduce_mean(MaskedTensor(numbers, mask))
    assert mean.dtype == dtype
    assert mean.to_py() == numbers[0]
    lists = tf.RaggedTensor.from_row_lengths(numbers, [0, 300])
    valid = tf.RaggedTensor.from_row_lengths(mask, [0, 300])
    assert tf.reduce_mean(MaskedTensor(lists, valid), 1).to_py() == [None, numbers[0]]


def test_the_moments_of_more_short_floats_than_their_dtype_counts():
    numbers = tf.constant(np.arange(100_000) % 2 / 4 + 0.25, tf.float16)
    mask = np.arange(100_000) < 90_000
    for op, expected in (
        *((tf.reduce_mean, 0.375), (tf.math.reduce_variance, 0.125**2)),
        *((tf.math.reduce_std, 0.125), (lambda x: tf.nn.moments(x, [0])[0], 0.375)),
    ):
        found = op(MaskedTensor(numbers, mask))
        assert found.dtype == tf.float16
        assert found.to_py() == expected


@pytest.mark.parametrize(
    ("numbers", "mask"),
    [
        ([5.0, -np.inf, -np.inf], [False, True, True]),
        ([-5.0, np.inf, np.inf], [False, True, True]),
        (np.array([0, -128, 127], np.int8), [False, True, False]),
        (np.array([0, -128, 127], np.int8), [False, False, True]),
        ([True, False, True], [False, True, True]),
        ([1.0, np.nan, 3.0, 2.0], [False, True, True, True]),
    ],
)
def test_the_place_of_an_extreme_is_that_of_a_valid_value(numbers, mask):
    valid = np.flatnonzero(mask)
    for op in (tf.argmax, tf.argmin):
        expected = valid[op(np.asarray(numbers)[valid])]
        assert op(MaskedTensor(numbers, mask)).to_py() == expected


@given(array=arrays(dtype=np.int64), data=st.data())
def test_cumulative_operations(array, data):
    axis = data.draw(st.integers(0, array.ndim - 1))
    same(tf.cumsum(masked(array), axis), ma.cumsum(array, axis=axis))
    same(tf.math.cumprod(masked(array), axis), ma.cumprod(array, axis=axis))


@given(data=st.data())
def test_matmul_uses_zero_for_masked_items(data):
    a = data.draw(arrays(2, 2))
    count = data.draw(st.integers(1, 3))
    rng = np.random.default_rng(0)
    b = ma.array(
        rng.integers(-3, 3, (a.shape[1], count)).astype(float),
        mask=rng.random((a.shape[1], count)) < 0.4,
    )
    same(tf.matmul(masked(a), masked(b)), ma.dot(a, b))
    same(masked(a) @ masked(b), ma.dot(a, b))
    same(tf.matmul(masked(b), masked(a), True, True), ma.dot(a, b).T)
    same(masked(a) @ tf.constant(b.data), ma.dot(a, b.data))
    same(tf.constant(b.data.T) @ masked(a.T), ma.dot(b.data.T, a.T))
    same(tf.matmul(masked(a), b.data.T, transpose_b=True), ma.dot(a, b.data))
    same(tf.matmul(b.data.T, masked(a), transpose_b=True), ma.dot(b.data.T, a.T))


# What moves values.


def _stacked(join, axis):
    return lambda a: join([a, a[::-1]], axis)


REARRANGING = {
    "reshape": (lambda x: tf.reshape(x, [3, 4]), lambda a: a.reshape(3, 4)),
    "transpose": (tf.transpose, ma.transpose),
    "transpose by perm": (lambda x: tf.transpose(x, [1, 0, 2]), lambda a: a.transpose(1, 0, 2)),
    "matrix_transpose": (tf.linalg.matrix_transpose, lambda a: a.swapaxes(1, 2)),
    "tile": (lambda x: tf.tile(x, [1, 2, 1]), lambda a: ma.concatenate([a, a], 1)),
    "repeat": (lambda x: tf.repeat(x, [2, 0, 1], 1), lambda a: a.repeat([2, 0, 1], 1)),
    "expand_dims": (lambda x: tf.expand_dims(x, 1), lambda a: ma.expand_dims(a, 1)),
    "expand_dims last": (lambda x: tf.expand_dims(x, -1), lambda a: ma.expand_dims(a, -1)),
    "squeeze": (lambda x: tf.squeeze(x[:1]), lambda a: ma.squeeze(a[:1])),
    "broadcast_to": (
        lambda x: tf.broadcast_to(x, [2, 2, 3, 2]),
        lambda a: ma.array(np.broadcast_to(a.data, [2, 2, 3, 2]), mask=np.stack([a.mask] * 2)),
    ),
    "reverse": (lambda x: tf.reverse(x, [-1, 0]), lambda a: a[::-1, :, ::-1]),
    "roll": (
        lambda x: tf.roll(x, [1, 2], [0, 1]),
        lambda a: ma.array(np.roll(a.data, [1, 2], [0, 1]), mask=np.roll(a.mask, [1, 2], [0, 1])),
    ),
    "pad": (
        lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 0]]),
        lambda a: ma.array(
            np.pad(a.data, [[0, 0], [1, 2], [0, 0]]),
            mask=np.pad(a.mask, [[0, 0], [1, 2], [0, 0]], constant_values=True),
        ),
    ),
    "pad by reflection": (
        lambda x: tf.pad(x, [[0, 0], [2, 1], [0, 0]], "REFLECT"),
        lambda a: ma.array(
            np.pad(a.data, [[0, 0], [2, 1], [0, 0]], "reflect"),
            mask=np.pad(a.mask, [[0, 0], [2, 1], [0, 0]], "reflect"),
        ),
    ),
    "slice": (lambda x: tf.slice(x, [0, 1, 0], [-1, 2, 1]), lambda a: a[:, 1:3, :1]),
    "strided_slice": (
        lambda x: tf.strided_slice(x, [0, 2, 0], [2, 0, 2], [1, -1, 1]),
        lambda a: a[0:2, 2:0:-1, 0:2],
    ),
    "index": (lambda x: x[1], lambda a: a[1]),
    "indices": (lambda x: x[..., 1, ::-1], lambda a: a[..., 1, ::-1]),
    "new axis": (lambda x: x[:, tf.newaxis, 1:], lambda a: a[:, np.newaxis, 1:]),
    "gather": (lambda x: tf.gather(x, [1, 0, 1]), lambda a: a[[1, 0, 1]]),
    "gather in dimension 1": (lambda x: tf.gather(x, [[2, 0]], axis=1), lambda a: a[:, [[2, 0]]]),
    "gather in batches": (
        lambda x: tf.gather(x, [[2], [0]], axis=1, batch_dims=1),
        lambda a: ma.stack([a[0, [2]], a[1, [0]]]),
    ),
    "gather_nd": (lambda x: tf.gather_nd(x, [[1, 2], [0, 0]]), lambda a: a[[1, 0], [2, 0]]),
    "boolean_mask": (
        lambda x: tf.boolean_mask(x, [True, False, True], axis=1),
        lambda a: a[:, [True, False, True]],
    ),
    "concat": (
        lambda x: tf.concat([x, x[::-1]], 1),
        lambda a: ma.concatenate([a, a[::-1]], 1),
    ),
    "concat with plain": (
        lambda x: tf.concat([x, tf.ones([2, 3, 1], tf.float64)], -1),
        lambda a: ma.concatenate([a, np.ones([2, 3, 1])], -1),
    ),
    "stack": (lambda x: tf.stack([x, x[::-1]], -1), lambda a: ma.stack([a, a[::-1]], -1)),
    "stack with plain": (
        lambda x: tf.stack([np.ones([2, 3, 2]), x]),
        lambda a: ma.stack([np.ones([2, 3, 2]), a]),
    ),
    "split": (lambda x: tf.split(x, [1, 2], 1)[1], lambda a: a[:, 1:]),
    "unstack": (lambda x: tf.unstack(x, 3, 1)[2], lambda a: a[:, 2]),
    "reverse_sequence": (
        lambda x: tf.reverse_sequence(x, [2, 3], seq_axis=1, batch_axis=0),
        lambda a: ma.stack([a[0][[1, 0, 2]], a[1][::-1]]),
    ),
    "flip up": (tf.image.flip_up_down, lambda a: a[::-1]),
    "rot90": (tf.image.rot90, lambda a: a.swapaxes(0, 1)[::-1]),
    "transpose an image": (tf.image.transpose, lambda a: a.swapaxes(0, 1)),
    "flip": (tf.image.flip_left_right, lambda a: a[:, ::-1]),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", REARRANGING)
def test_operations_that_move_values_move_the_mask(name, run):
    ours, theirs = REARRANGING[name]
    rng = np.random.default_rng(5)
    for share in (0.0, 0.3, 1.0):
        array = ma.array(rng.standard_normal((2, 3, 2)), mask=rng.random((2, 3, 2)) < share)
        same(run(ours, masked(array)), theirs(array))


@given(array=arrays())
def test_indices_of_vectors_and_matrices(array):
    x = masked(array)
    same(x[0], ma.array(array.data[0], mask=array.mask[0]))
    same(x[::-1], array[::-1])
    same(x[..., -1:], array[..., -1:])
    same(tf.concat([x, x], 0), ma.concatenate([array, array]))
    same(tf.stack(list(x)), array)
    assert tf.shape(x).numpy().tolist() == list(array.shape)
    assert tf.size(x).numpy() == array.size
    assert tf.rank(x).numpy() == array.ndim
    assert len(x) == len(array)


def test_values_of_unknown_rank():
    @tf.function(input_signature=[Spec(tf.TensorSpec(None)), Spec(tf.TensorSpec(None))])
    def compute(x, y):
        return tf.sqrt(x) * y, tf.reduce_sum(x, 0), tf.concat([x, y], 0), tf.transpose(x), x + 1.0

    array = ma.array([[4.0, 9.0], [1.0, np.nan]], mask=[[False, True], [False, True]])
    results = compute(masked(array.astype(np.float32)), masked(array.astype(np.float32)))
    roots = ma.sqrt(ma.array(np.nan_to_num(array.data), mask=array.mask))
    expected = (
        roots * array,
        array.sum(0),
        ma.concatenate([array, array]),
        array.T,
        array + 1.0,
    )
    for ours, theirs in zip(results, expected, strict=True):
        same(ours, theirs)


# Bad input.


def test_an_operation_without_a_handler_is_an_error_that_names_it():
    x = MaskedTensor([3.0, 1.0], [True, False])
    with pytest.raises(TypeError, match=r"MaskedTensor has no handler for tf\.unique"):
        tf.unique(x)
    with pytest.raises(TypeError, match=r"MaskedTensor declined: its handler for tf\.gather"):
        tf.gather(tf.constant([1.0, 2.0]), tf.cast(x, tf.int32))
    with pytest.raises((TypeError, ValueError), match="SparseTensor"):
        tf.add(x, tf.sparse.from_dense([1.0, 0.0]))
    with pytest.raises(TypeError, match="expected a single bool"):
        bool(x > 1.0)
    with pytest.raises(TypeError, match=r"MaskedTensor has no handler for tf\.random\.shuffle"):
        tf.random.shuffle(x)


def test_shapes_that_do_not_broadcast_raise_the_error_of_tensorflow():
    x, y = MaskedTensor([1.0, 2.0]), MaskedTensor([1.0, 2.0, 3.0])
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"handled tf\.add"):
        x + y
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"handled tf\.add"):
        tf.function(lambda: x + y)()


def test_null_lists_of_nullable_items_are_computed_elementwise():
    items = xt.types.MaskedTensor(
        tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[True, False], [True]])
    )
    lists = xt.types.MaskedTensor(items, [True, False])
    assert (-lists).to_py() == [[-1, None], None]
    assert (lists * 2).to_py() == (2 * lists).to_py() == [[2, None], None]
    assert (lists + items).to_py() == (items + lists).to_py() == [[2, None], None]
    assert (lists + lists).to_py() == [[2, None], None]
    assert (lists > 1).to_py() == [[False, None], None]
    assert tf.function(lambda x: tf.abs(x) + 1)(lists).to_py() == [[2, None], None]
