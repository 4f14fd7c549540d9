"""Elementwise operations of LabeledTensors equal xarray's, for random axes."""

import numpy as np
import pytest
import tensorflow as tf
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor._dispatch.operation import FUNCTIONS, operation_of
from extensor.types import LabeledTensor
from tests.dispatch.brute import call
from tests.dispatch.samples import EXCLUDED, arguments
from tests.types.labeled_arrays import NAMES, arrays, assert_equal, families, labeled, one, orders

# Elementwise, and all of them: xarray broadcasts, and calls the same function on plain arrays.

OPERATIONS = {
    public.name: operation_of(function)
    for function, public in FUNCTIONS.items()
    if public.name not in EXCLUDED
}
UNARY = sorted(n for n, o in OPERATIONS.items() if xt.dispatch.is_unary_elementwise_op(o.function))
# It takes the shape itself: see test_ensure_shape.
UNARY.remove("ensure_shape")
BINARY = sorted(
    n for n, o in OPERATIONS.items() if xt.dispatch.is_binary_elementwise_op(o.function)
)
# TensorFlow does not broadcast for them.
OF_ONE_SHAPE = [
    "nn.log_poisson_loss",
    "nn.sigmoid_cross_entropy_with_logits",
    "nn.weighted_cross_entropy_with_logits",
    "quantization.fake_quant_with_min_max_args_gradient",
]


def sample_of(name, count):
    """The first tensor arguments of a sample call, as flat arrays, and the other arguments."""
    given = arguments(OPERATIONS[name])
    first, others = list(given)[:count], list(given)[count:]
    return [np.asarray(given[p]).ravel() for p in first], {p: given[p] for p in others}


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=3)
@given(st.data())
def test_unary_elementwise(name, data):
    [values], others = sample_of(name, 1)
    array = data.draw(one(values=values))

    def function(x):
        return call(OPERATIONS[name], {next(iter(arguments(OPERATIONS[name]))): x, **others})

    expected = xr.apply_ufunc(lambda a: np.asarray(function(a)), array)
    assert_equal(function(labeled(array)), expected)


def test_ensure_shape():
    x = LabeledTensor(tf.zeros([2, 3]), ["word", "feature"])
    assert tf.ensure_shape(x, [2, None]).axes == ("word", "feature")


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=5)
@given(st.data())
def test_binary_elementwise(name, data):
    flat, others = sample_of(name, 2)
    sizes = {n: data.draw(st.integers(1, 3)) for n in NAMES}
    ranks = (0 if name == "scalar_mul" else 2, 2)
    x, y = (
        data.draw(arrays(sizes, data.draw(orders(max_rank=rank)), values))
        for rank, values in zip(ranks, flat, strict=True)
    )
    function = OPERATIONS[name].function
    ours = function(labeled(x), labeled(y), **others)
    both = xr.broadcast(x, y) if name in OF_ONE_SHAPE else (x, y)
    expected = xr.apply_ufunc(lambda a, b: np.asarray(function(a, b, **others)), *both)
    assert_equal(ours, expected)
    scalar = y.values.ravel()[0]
    both = xr.broadcast(x, xr.DataArray(scalar)) if name in OF_ONE_SHAPE else (x, scalar)
    expected = xr.apply_ufunc(lambda a, b: np.asarray(function(a, b, **others)), *both)
    for plain in (scalar, tf.constant(scalar)):
        assert_equal(function(labeled(x), plain, **others), expected)


OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "@": lambda x, y: x @ y,
    "&": lambda x, y: (x > 0) & (y > 0),
    "|": lambda x, y: (x > 0) | (y > 0),
    "^": lambda x, y: (x > 0) ^ (y > 0),
    "~": lambda x, y: ~(x > y),
    "abs": lambda x, y: abs(-x),
    "number": lambda x, y: 2.0 - x * 3.0 + y / 4.0,
}


@pytest.mark.parametrize("name", OPERATORS)
@given(families())
def test_operators(name, both):
    x, y = both
    assert_equal(OPERATORS[name](labeled(x), labeled(y)), OPERATORS[name](x, y))


@given(families(3))
def test_operations_of_three(three):
    x, y, z = three
    assert_equal(
        tf.where(labeled(x > 0), labeled(y), labeled(z)), xr.where(x > 0, y, z, keep_attrs=False)
    )
    assert_equal(tf.where(labeled(x > 0), labeled(y), 0.0), xr.where(x > 0, y, 0.0))
    assert_equal(tf.add_n([labeled(x), labeled(y), labeled(z)]), x + y + z)
    low, high = np.minimum(y, z), np.maximum(y, z)
    assert_equal(tf.clip_by_value(labeled(x), labeled(low), labeled(high)), x.clip(low, high))
    assert_equal(tf.clip_by_value(labeled(x), -1.0, 2.0), x.clip(-1.0, 2.0))


@given(one())
def test_shapes(array):
    x = labeled(array)
    assert tf.shape(x).numpy().tolist() == list(array.shape)
    assert tf.rank(x).numpy() == array.ndim
    assert tf.size(x).numpy() == array.size
    assert [shape.numpy().tolist() for shape in tf.shape_n([x, x])] == [list(array.shape)] * 2
    assert_equal(tf.zeros_like(x), xr.zeros_like(array))
    assert_equal(tf.ones_like(x, tf.int32), xr.ones_like(array, np.int32))
    assert x.sizes == dict(array.sizes)
    if array.ndim:
        np.testing.assert_array_equal(tf.where(x), np.argwhere(array.values))


# What does not fit, there and here.


@given(families())
def test_axes_of_two_sizes_are_an_error_in_both(both):
    x, y = both
    shared = [name for name in x.dims if name in y.dims]
    y = y.pad({shared[0]: (0, 1)}, constant_values=0.0) if shared else y
    if not shared:
        assert_equal(labeled(x) + labeled(y), x + y)
        return
    for function in (lambda x, y: x + y, lambda x, y: x @ y):
        with pytest.raises(ValueError):  # noqa: PT011 - its words are xarray's own
            function(x, y)
        with pytest.raises(xt.ExtensorError, match=f"expected the same size of axis '{shared[0]}'"):
            function(labeled(x), labeled(y))


def test_documented_differences_from_xarray_exist():
    x = xr.DataArray([[1.0, np.nan], [3.0, 4.0]], dims=["word", "feature"])
    y = x.isel(word=0)
    assert np.isnan(tf.reduce_sum(labeled(x)).numpy())
    assert x.sum() == 8
    assert xr.concat([x, y], "word").shape == (3, 2)
    with pytest.raises(xt.ExtensorError, match=r"tf.concat: expected the same axes"):
        tf.concat([labeled(x), labeled(y)], "word")
    assert (x + np.ones(2)).dims == x.dims
    with pytest.raises(xt.ExtensorError, match="without names"):
        labeled(x) + np.ones(2)
    whole = x.fillna(0.0).astype(np.int32)
    assert (x + whole).dtype == np.float64
    with pytest.raises(tf.errors.InvalidArgumentError):
        labeled(x) + labeled(whole)
    assert x.argmax(...).keys() == {"word", "feature"}
    assert tf.argmax(labeled(x)).axes == ("feature",)
