"""Operations of LabeledTensors along axes equal xarray's, for random axes."""

import functools
import itertools
import operator

import numpy as np
import pytest
import tensorflow as tf
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from tests.types.labeled_arrays import assert_equal, families, labeled, one

# Along axes.


def axis_arguments(dims, may_be_none=True):
    """One or several axes, as names or numbers, and their names."""
    single = st.sampled_from(range(len(dims)))
    many = st.lists(single, unique=True, min_size=1)
    spelled = st.booleans()

    def spell(numbers, by_name, from_end):
        names = [dims[i] for i in numbers]
        return (names if by_name else [i - len(dims) * from_end for i in numbers]), names

    several = st.builds(spell, many, spelled, spelled)
    alone = st.builds(
        lambda a: (a[0][0], a[1]), st.builds(spell, single.map(lambda i: [i]), spelled, spelled)
    )
    return several | alone | (st.just((None, list(dims))) if may_be_none else st.nothing())


def _norm(array, dim, keepdims):
    return np.sqrt((array**2).sum(dim, keepdims=keepdims))


def _logsumexp(array, dim, keepdims):
    return np.log(np.exp(array).sum(dim, keepdims=keepdims))


REDUCTIONS = {
    "reduce_sum": lambda a, d, k: a.sum(d, keepdims=k),
    "reduce_mean": lambda a, d, k: a.mean(d, keepdims=k),
    "reduce_max": lambda a, d, k: a.max(d, keepdims=k),
    "reduce_min": lambda a, d, k: a.min(d, keepdims=k),
    "reduce_prod": lambda a, d, k: a.prod(d, keepdims=k),
    "math.reduce_std": lambda a, d, k: a.std(d, keepdims=k),
    "math.reduce_variance": lambda a, d, k: a.var(d, keepdims=k),
    "math.reduce_euclidean_norm": _norm,
    "math.count_nonzero": lambda a, d, k: (a != 0).sum(d, keepdims=k),
    "reduce_logsumexp": _logsumexp,
}
OF_BOOLS = {
    "reduce_all": lambda a, d, k: a.all(d, keepdims=k),
    "reduce_any": lambda a, d, k: a.any(d, keepdims=k),
}


@pytest.mark.parametrize("name", [*REDUCTIONS, *OF_BOOLS])
@given(st.data())
def test_reductions(name, data):
    array = data.draw(one(min_rank=1))
    array = array > 0 if name in OF_BOOLS else array
    axis, dims = data.draw(axis_arguments(array.dims))
    keepdims = data.draw(st.booleans())
    expected = {**REDUCTIONS, **OF_BOOLS}[name](array, dims, keepdims)
    function = operator.attrgetter(name)(tf)
    assert_equal(function(labeled(array), axis, keepdims), expected)
    assert_equal(function(labeled(array), axis=axis, keepdims=keepdims), expected)
    if axis is None:
        assert_equal(function(labeled(array), keepdims=keepdims), expected)


@given(st.data())
def test_reductions_with_arguments_of_their_own(data):
    array = data.draw(one(min_rank=1))
    number = data.draw(st.integers(0, array.ndim - 1))
    x, name = labeled(array), array.dims[number]
    for axis in (name, number):
        assert_equal(tf.argmax(x, axis), array.argmax(name))
        assert_equal(tf.argmin(x, axis=axis), array.argmin(name))
    assert_equal(tf.argmax(x), array.argmax(array.dims[0]))
    assert_equal(tf.norm(x, axis=name), _norm(array, name, False))
    assert_equal(tf.norm(x, 1, [name], keepdims=True), abs(array).sum(name, keepdims=True))
    assert_equal(tf.norm(x), _norm(array, None, False))
    if array.ndim > 1:
        pair = data.draw(st.permutations(array.dims))[:2]
        assert_equal(tf.norm(x, axis=pair), _norm(array, pair, False))
    for axis, keepdims in itertools.product((name, [number], list(array.dims)), (True, False)):
        dims = array.dims if isinstance(axis, list) and axis != [number] else name
        mean, variance = tf.nn.moments(x, axis, keepdims=keepdims)
        assert_equal(mean, array.mean(dims, keepdims=keepdims))
        assert_equal(variance, array.var(dims, keepdims=keepdims))
    assert_equal(tf.nn.zero_fraction(x), (array == 0).mean().astype(np.float32))
    assert_equal(tf.nn.l2_loss(x), (array**2).sum() / 2)
    texts = array.astype(int).astype("S2").astype(object)
    every = [texts.isel({name: i}) for i in range(texts.sizes[name])]
    expected = functools.reduce(operator.add, every)
    assert_equal(tf.strings.reduce_join(labeled(texts), axis=name), expected)


def _softmax(array, name):
    exponentials = np.exp(array)
    return exponentials / exponentials.sum(name)


KEEPING = {
    "cumsum": (tf.cumsum, lambda a, n: a.cumsum(n)),
    "cumprod": (tf.math.cumprod, lambda a, n: a.cumprod(n)),
    "cumulative_logsumexp": (
        tf.math.cumulative_logsumexp,
        lambda a, n: np.log(np.exp(a).cumsum(n)),
    ),
    "softmax": (tf.nn.softmax, _softmax),
    "log_softmax": (tf.nn.log_softmax, lambda a, n: np.log(_softmax(a, n))),
    "l2_normalize": (
        tf.nn.l2_normalize,
        lambda a, n: a / np.sqrt(np.maximum((a**2).sum(n), 1e-12)),
    ),
    "clip_by_norm": (
        lambda x, axis: tf.clip_by_norm(x, 2.0, [axis]),
        lambda a, n: a * 2 / np.maximum(_norm(a, n, False), 2),
    ),
    "sort": (tf.sort, lambda a, n: xr.apply_ufunc(np.sort, a, **_core(n)).transpose(*a.dims)),
    "argsort": (
        lambda x, axis: tf.argsort(x, axis, stable=True),
        lambda a, n: xr.apply_ufunc(
            lambda v: np.argsort(v, -1, kind="stable"), a, **_core(n)
        ).transpose(*a.dims),
    ),
    "reverse": (tf.reverse, lambda a, n: a.isel({n: slice(None, None, -1)})),
    "reverse of a list": (
        lambda x, axis: tf.reverse(x, [axis]),
        lambda a, n: a.isel({n: slice(None, None, -1)}),
    ),
    "roll": (lambda x, axis: tf.roll(x, 2, axis), lambda a, n: a.roll({n: 2})),
    "fftshift": (
        lambda x, axis: tf.signal.fftshift(x, axis),
        lambda a, n: a.roll({n: a.sizes[n] // 2}),
    ),
    "ifftshift": (
        lambda x, axis: tf.signal.ifftshift(x, [axis]),
        lambda a, n: a.roll({n: -(a.sizes[n] // 2)}),
    ),
    "normalize": (
        lambda x, axis: tf.linalg.normalize(x + 9.0, axis=axis)[0],
        lambda a, n: (a + 9) / _norm(a + 9, n, False),
    ),
    "norm of normalize": (
        lambda x, axis: tf.linalg.normalize(x + 9.0, axis=axis)[1],
        lambda a, n: _norm(a + 9, n, True),
    ),
    "unstack": (
        lambda x, axis: tf.stack(tf.unstack(x, axis=axis), "part"),
        lambda a, n: a.transpose(n, ...).rename({n: "part"}),
    ),
    "repeat": (
        lambda x, axis: tf.repeat(x, 2, axis),
        lambda a, n: a.isel({n: np.repeat(range(a.sizes[n]), 2)}),
    ),
}


def _core(name):
    return {"input_core_dims": [[name]], "output_core_dims": [[name]]}


@pytest.mark.parametrize("name", KEEPING)
@given(st.data())
def test_operations_along_an_axis(name, data):
    array = data.draw(one(min_rank=1))
    number = data.draw(st.integers(0, array.ndim - 1))
    ours, theirs = KEEPING[name]
    expected = theirs(array, array.dims[number]).transpose(
        *(array.dims if name != "unstack" else ("part", ...))
    )
    for axis in (array.dims[number], number, number - array.ndim):
        assert_equal(ours(labeled(array), axis=axis), expected)


@given(st.data())
def test_defaults_of_axes_are_those_of_tensorflow(data):
    array = data.draw(one(min_rank=1))
    x, first, last = labeled(array), array.dims[0], array.dims[-1]
    assert_equal(tf.cumsum(x, exclusive=True), array.cumsum(first) - array)
    assert_equal(tf.nn.softmax(x), _softmax(array, last).transpose(*array.dims))
    values, positions = tf.nn.top_k(x, array.sizes[last])
    descending = -xr.apply_ufunc(np.sort, -array, **_core(last))
    assert_equal(values, descending)
    assert_equal(
        positions,
        xr.apply_ufunc(lambda v: np.argsort(-v, -1, kind="stable"), array, **_core(last)),
    )
    shifts = dict(zip(array.dims, [1, -1, 2], strict=False))
    assert_equal(tf.roll(x, [*shifts.values()], [*shifts]), array.roll(shifts))


@given(families(min_rank=1))
def test_cross_entropy(both):
    logits = both[0]
    labels = _softmax(logits[tuple([slice(None, None, -1)] * logits.ndim)], logits.dims[0])
    axis = logits.dims[-1]
    expected = -(labels * np.log(_softmax(logits, axis))).sum(axis).transpose(*logits.dims[:-1])
    shuffled = labeled(labels.transpose(*logits.dims[::-1]))
    ours = tf.nn.softmax_cross_entropy_with_logits(shuffled, labeled(logits), axis=axis)
    assert_equal(ours, expected.transpose(*[n for n in shuffled.axes if n != axis]))
