"""TensorFlow's operations rearrange the rows of a UnionTensor like those of a tensor."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.types import UnionTensor

NUMBERS = np.arange(6)


def union(shape=(6,)):
    """The numbers from 0 to 5; odd ones are text."""
    codes = tf.constant(NUMBERS % 2, tf.int8, shape)
    return UnionTensor(codes, {"even": [0, 2, 4], "odd": ["1", "3", "5"]})


def plain(values):
    """The values of a union that correspond to these numbers of a tensor."""
    if isinstance(values, list):
        return [plain(value) for value in values]
    return str(values).encode() if values % 2 else values


def listed(value):
    return value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy().tolist()


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(
    "change",
    [
        lambda x: tf.gather(x, [5, 0, 0]),
        lambda x: tf.gather(x, [[1, 2], [3, 4]]),
        lambda x: tf.gather(x, tf.ragged.constant([[1], [], [2, 3]])),
        lambda x: tf.gather(tf.reshape(x, [2, 3]), [2, 0], axis=1),
        lambda x: tf.gather_nd(tf.reshape(x, [2, 3]), [[1, 2], [0, 0]]),
        lambda x: tf.boolean_mask(x, [True, False, True, True, False, False]),
        lambda x: tf.reverse(x, [0]),
        lambda x: tf.roll(x, 2, 0),
        lambda x: tf.tile(x, [2]),
        lambda x: tf.repeat(x, [1, 0, 2, 0, 0, 1]),
        lambda x: tf.transpose(tf.reshape(x, [2, 3])),
        lambda x: tf.slice(x, [1], [3]),
        lambda x: tf.expand_dims(x, 1),
        lambda x: tf.squeeze(tf.expand_dims(x, 0)),
        lambda x: tf.reshape(x, [3, -1]),
        lambda x: tf.concat([x, x[:2]], 0),
        lambda x: tf.concat([tf.reshape(x, [2, 3]), tf.reshape(x, [2, 3])], 1),
        lambda x: tf.stack([x, tf.reverse(x, [0])]),
        lambda x: tf.stack([x, x], axis=1),
        lambda x: tf.where([True, False, False, True, True, False], x, tf.reverse(x, [0])),
        lambda x: tf.split(x, 3)[1],
        lambda x: tf.unstack(x)[3],
        lambda x: tf.identity(x),
        lambda x: tf.ensure_shape(x, [6]),
        lambda x: x[1:5:2],
        lambda x: x[::-1],
        lambda x: x[-1],
        lambda x: x[tf.newaxis, ...],
        lambda x: tf.reshape(x, [2, 3])[:, 1],
        lambda x: tf.reshape(x, [2, 3])[1, 2],
    ],
)
def test_an_operation_does_the_same_as_with_a_tensor(change):
    expected = change(tf.constant(NUMBERS))
    received = change(union())
    assert isinstance(received, UnionTensor)
    assert received.shape == expected.shape
    assert received.to_py() == plain(listed(expected))
    traced = tf.function(change)(union())
    assert traced.to_py() == received.to_py()


def test_shapes():
    assert tf.shape(union([2, 3])).numpy().tolist() == [2, 3]
    assert tf.size(union()).numpy() == 6
    assert tf.rank(union([2, 3])).numpy() == 2


def test_unions_of_other_variants_are_joined():
    other = UnionTensor([1, 0], {"flag": [True], "odd": ["7"]})
    joined = tf.concat([union(), other], 0)
    assert joined.names == ("even", "odd", "flag")
    assert joined.to_py() == [*plain(NUMBERS.tolist()), b"7", True]
    wrong = UnionTensor([0], {"even": [1.5]})
    with pytest.raises(xt.errors.DTypeError, match="the same type"):
        tf.concat([union(), wrong], 0)


@pytest.mark.parametrize(
    "compute",
    [lambda x: x + 1, lambda x: tf.sqrt(x), lambda x: tf.reduce_sum(x), lambda x: -x],
)
def test_a_computation_is_an_error_that_names_the_alternative(compute):
    with pytest.raises(
        xt.errors.UnsupportedTypeError, match=r"union.match\(\{'even': ..., 'odd': ...\}\)"
    ):
        compute(union())
