"""Memory that NumPy and TensorFlow share: equal numbers, and no tensor over unaligned memory."""

import gc

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from extensor._memory import ALIGNMENT, aligned_empty
from extensor.authoring import array_over, tensor_over

DTYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.complex64]


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=2, min_side=0))
    ),
    st.sampled_from([slice(None), slice(1, None), slice(None, None, -1)]),
)
def test_a_tensor_equals_the_array(array, part):
    array = array[part] if array.ndim else array
    tensor = tensor_over(array)
    assert tensor.dtype == array.dtype
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(tf.identity(tensor).numpy(), array)
    np.testing.assert_array_equal(array_over(tensor), array)


def address(tensor):
    return array_over(tensor).ctypes.data


def test_an_aligned_vector_is_shared_and_stays_alive():
    array = aligned_empty(4, np.dtype(np.int32))
    array[:] = [1, 2, 3, 4]
    tensor, begin = tensor_over(array), array.ctypes.data
    assert address(tensor) == begin
    del array
    gc.collect()
    assert tensor.numpy().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("part", [slice(1, None), slice(None, None, 2)], ids=["offset", "step"])
def test_other_vectors_are_copied_to_aligned_memory(part):
    array = aligned_empty(6, np.dtype(np.int32))
    array[:] = range(6)
    tensor = tensor_over(array[part])
    assert address(tensor) % ALIGNMENT == 0
    array[:] = 0
    assert tensor.numpy().tolist() == list(range(6))[part]


@pytest.mark.parametrize(
    "array",
    [np.array([1, 2], ">i4"), np.array(["a", "b"]), np.array([b"a"], object), np.zeros(0)],
    ids=["byte order", "text", "bytes", "empty"],
)
def test_arrays_that_are_not_shared_are_converted(array):
    expected = tf.convert_to_tensor(array)
    tensor = tensor_over(array)
    assert tensor.dtype == expected.dtype
    assert tensor.numpy().tolist() == expected.numpy().tolist()


def test_an_array_over_a_tensor_is_read_only_and_shares_its_memory():
    tensor = tf.constant([[1.5, 2.0]])
    array = array_over(tensor)
    assert np.shares_memory(array, np.asarray(memoryview(tensor)))
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 3.0
