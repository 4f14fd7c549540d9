"""Hypothesis strategies: xarray DataArrays with random axes, and LabeledTensors of them."""

import numpy as np
import tensorflow as tf
import xarray as xr
from hypothesis import strategies as st

from extensor.types import LabeledTensor

NAMES = ["word", "feature", "head", "recipe"]


@st.composite
def families(draw, count=2, min_rank=0, max_rank=3, values=None, min_size=1):
    """DataArrays whose axes with one name have one size; each has some axes, in any order."""
    sizes = {name: draw(st.integers(min_size, 3)) for name in NAMES}
    return [draw(arrays(sizes, draw(orders(min_rank, max_rank)), values)) for _ in range(count)]


@st.composite
def orders(draw, min_rank=0, max_rank=3, names=NAMES):
    axes = draw(st.permutations(names))
    return axes[: draw(st.integers(min_rank, min(max_rank, len(axes))))]


@st.composite
def arrays(draw, sizes, axes, values=None):
    shape = [sizes[name] for name in axes]
    count = int(np.prod(shape, dtype=int))
    if values is None:
        flat = np.array(draw(st.lists(st.integers(-4, 4), min_size=count, max_size=count)), float)
    else:
        picked = draw(st.lists(st.integers(0, len(values) - 1), min_size=count, max_size=count))
        flat = values[picked]
    return xr.DataArray(flat.reshape(shape), dims=axes)


def one(min_rank=0, max_rank=3, values=None, min_size=1):
    return families(1, min_rank, max_rank, values, min_size).map(lambda found: found[0])


def labeled(array):
    return LabeledTensor(tf.convert_to_tensor(array.values), array.dims)


def assert_equal(ours, theirs, rtol=1e-5):
    theirs = theirs.variable if isinstance(theirs, xr.DataArray) else theirs
    assert isinstance(ours, LabeledTensor)
    assert (ours.axes, ours.shape) == (theirs.dims, theirs.shape)
    if theirs.dtype.kind in "fc":
        np.testing.assert_allclose(ours.numpy(), theirs.values, rtol=rtol, atol=1e-6)
    else:
        np.testing.assert_array_equal(ours.numpy(), theirs.values)
