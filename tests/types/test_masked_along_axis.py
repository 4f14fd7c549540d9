"""Operations along an axis of MaskedTensors equal those of the valid values of each line alone."""

import numpy as np
import pytest
import scipy.special
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.types import MaskedTensor
from tests.types.test_masked_dispatch import arrays, masked, same

ma = np.ma


def lines_of(array, axis, function):
    """Applies a function of the valid values of a line to each line; masks the others."""
    result = ma.array(np.zeros(array.shape), mask=ma.getmaskarray(array).copy())
    moved, lines = np.moveaxis(array, axis, -1), np.moveaxis(result, axis, -1)
    for place in np.ndindex(moved.shape[:-1]):
        valid = ~ma.getmaskarray(moved[place])
        if valid.any():
            lines.data[(*place, valid)] = function(moved[place].data[valid])
    return result


SCALED = {
    "softmax": (tf.nn.softmax, scipy.special.softmax),
    "log_softmax": (tf.nn.log_softmax, scipy.special.log_softmax),
    "l2_normalize": (
        tf.nn.l2_normalize,
        lambda line: line / max(np.linalg.norm(line), 1e-6),
    ),
}


@given(array=arrays(), data=st.data())
@pytest.mark.parametrize("name", SCALED)
def test_scaled_lines_are_those_of_the_valid_values(name, array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    ours, theirs = SCALED[name]
    same(ours(masked(array), axis), lines_of(array, axis, theirs), exact=False)


@given(array=arrays(dtype=np.float64) | arrays(dtype=np.int32), data=st.data())
def test_sorted_values_are_those_of_numpy_ma(array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    x = masked(array)
    same(tf.sort(x, axis), ma.sort(array, axis=axis))
    descending = tf.sort(x, axis, "DESCENDING")
    valid_first = -ma.sort(-array, axis=axis)
    same(descending, valid_first)
    order = tf.argsort(x, axis)
    assert isinstance(order, tf.Tensor)
    np.testing.assert_array_equal(np.sort(order, axis), np.indices(array.shape)[axis])
    same(
        masked(ma.take_along_axis(array, order.numpy(), axis))
        if hasattr(ma, "take_along_axis")
        else masked(_taken(array, order.numpy(), axis)),
        ma.sort(array, axis=axis),
    )


def _taken(array, order, axis):
    parts = (array.data, ma.getmaskarray(array))
    values, mask = (np.take_along_axis(part, order, axis) for part in parts)
    return ma.array(values, mask=mask)


def test_the_largest_number_that_is_valid_comes_before_those_that_are_not():
    top = np.iinfo(np.int32).max
    array = ma.array([top, 0, top, 5], np.int32, mask=[False, True, True, False])
    assert tf.sort(masked(array)).to_py() == [5, top, None, None]
    array = ma.array([-np.inf, 0, 3], mask=[False, True, False])
    assert tf.sort(masked(array), direction="DESCENDING").to_py() == [3.0, -np.inf, None]


@given(array=arrays(), k=st.integers(0, 3))
def test_top_k_are_the_largest_valid_values(array, k):
    k = min(k, array.shape[-1])
    values, places = tf.nn.top_k(masked(array), k)
    same(values, -ma.sort(-array, axis=-1)[..., :k])
    same(masked(_taken(array, places.values.numpy(), -1)), -ma.sort(-array, axis=-1)[..., :k])


@given(array=arrays(), data=st.data())
@pytest.mark.parametrize("ord", ["euclidean", 1, 2, 3, np.inf])
def test_norms_are_those_of_the_valid_values(ord, array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    keepdims = data.draw(st.booleans())
    number = 2 if ord == "euclidean" else ord
    filled = np.where(ma.getmaskarray(array), 0, array.data)
    want = ma.array(
        np.linalg.norm(filled, number, axis, keepdims=keepdims),
        mask=ma.getmaskarray(array).all(axis, keepdims=keepdims),
    )
    same(tf.norm(masked(array), ord, axis, keepdims), want, exact=False)


@given(array=arrays(), data=st.data())
def test_moments_are_those_of_numpy_ma(array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    keepdims = data.draw(st.booleans())
    mean, variance = tf.nn.moments(masked(array), [axis], keepdims=keepdims)
    same(mean, ma.array(ma.mean(array, axis, keepdims=keepdims)), exact=False)
    same(variance, ma.array(ma.var(array, axis, keepdims=keepdims)), exact=False)


@given(array=arrays(dtype=np.int32), axis=st.sampled_from([-1, 0, 1]))
def test_one_hot_vectors_are_those_of_the_valid_indices(array, axis):
    vectors = tf.one_hot(masked(array), 3, axis=axis, dtype=tf.float64)
    plain = tf.one_hot(array.data, 3, axis=axis, dtype=tf.float64).numpy()
    invalid = np.expand_dims(ma.getmaskarray(array), array.ndim if axis == -1 else axis)
    valid = np.broadcast_to(~invalid, plain.shape)
    same(MaskedTensor(vectors.values, valid), ma.array(plain, mask=~valid))
    mask = vectors.mask.numpy()  # of vectors, or of single numbers
    mask = mask.reshape(mask.shape + (1,) * (plain.ndim - mask.ndim))
    np.testing.assert_array_equal(np.broadcast_to(mask, plain.shape), valid)


@pytest.mark.parametrize("k", [4, -1])
def test_top_k_of_more_values_than_there_are_is_an_error(k):
    array = MaskedTensor([1.0, 2.0, 3.0], [True, False, True])
    text = "tf.nn.top_k: k: expected 0 or more values, at most"
    with pytest.raises(xt.errors.StructureError, match=f"{text}.* got {k}"):
        tf.nn.top_k(array, k)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.function(lambda k: tf.nn.top_k(array, k))(tf.constant(k))


def test_dropout_keeps_the_mask_and_scales_the_valid_values():
    array = ma.array(np.ones([40, 50]), mask=np.arange(2000).reshape(40, 50) % 3 == 0)
    array.data[array.mask] = np.nan
    for dropped in (
        tf.nn.dropout(masked(array), 0.5, seed=1),
        tf.nn.experimental.stateless_dropout(masked(array), 0.5, seed=[1, 2]),
    ):
        np.testing.assert_array_equal(~dropped.mask.numpy(), array.mask)
        valid = dropped.values.numpy()[~array.mask]
        assert set(valid.tolist()) == {0.0, 2.0}
        assert 0.4 < np.mean(valid == 0) < 0.6
    same(tf.nn.dropout(masked(array), 0.0), array)


# Losses, against the rows without their invalid classes.


@pytest.fixture
def logits():
    random = np.random.default_rng(0)
    mask = np.array([[False] * 4, [True, False, False, True], [False, False, True, False]])
    values = random.normal(size=[3, 4])
    values[mask] = np.nan
    return ma.array(values, mask=mask)


def test_the_cross_entropy_is_that_of_the_valid_classes(logits):
    labels = np.array([[0.5, 0.5, 0, 0], [9, 0.25, 0.75, 9], [1, 0, 9, 0]])
    want = [
        -np.sum(label[~line.mask] * scipy.special.log_softmax(line.compressed()))
        for label, line in zip(labels, logits, strict=True)
    ]
    loss = tf.nn.softmax_cross_entropy_with_logits(labels, masked(logits))
    same(loss, ma.array(want), exact=False)
    hidden = ma.array(labels, mask=[[False] * 4, [False] * 4, [True] * 4])
    loss = tf.nn.softmax_cross_entropy_with_logits(masked(hidden), masked(logits))
    same(loss, ma.array(want, mask=[False, False, True]), exact=False)
    rows = MaskedTensor(labels, [True, False, True])
    loss = tf.nn.softmax_cross_entropy_with_logits(rows, masked(logits))
    same(loss, ma.array(want, mask=[False, True, False]), exact=False)


def test_the_sparse_cross_entropy_is_that_of_the_valid_classes(logits):
    want = [-scipy.special.log_softmax(line.compressed())[0] for line in logits]
    first = np.argmin(logits.mask, -1)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    same(cross_entropy(first, masked(logits)), ma.array(want), exact=False)
    hidden = ma.array([0, 0, 2], mask=[False, False, True])
    loss = cross_entropy(masked(hidden), masked(logits))  # the class 0 of row 1 is not valid
    same(loss, ma.array(want, mask=[False, True, True]), exact=False)
    plain = logits.filled(0.0)
    loss = cross_entropy(masked(ma.array(first, mask=[True, False, False])), plain)
    all_classes = scipy.special.log_softmax(plain, -1)[range(3), first]
    same(loss, ma.array(-all_classes, mask=[True, False, False]), exact=False)


# A mask of rows, gradients, graphs.


def test_a_mask_of_rows_stays_one():
    x = MaskedTensor([[3.0, 1.0], [np.nan, 2.0], [5.0, 4.0]], [True, False, True])
    for result, want in (
        (tf.nn.softmax(x), scipy.special.softmax([[3.0, 1.0], [5.0, 4.0]], -1)),
        (tf.sort(x), [[1.0, 3.0], [4.0, 5.0]]),
        (tf.norm(x, axis=1), np.linalg.norm([[3.0, 1.0], [5.0, 4.0]], axis=1)),
        (tf.nn.moments(x, [1])[0], [2.0, 4.5]),
    ):
        assert result.mask.numpy().tolist() == [True, False, True]
        np.testing.assert_allclose(tf.boolean_mask(result.values, result.mask), want, rtol=1e-6)
    assert tf.sort(x, 0).to_py() == [[3.0, 1.0], [5.0, 4.0], [None, None]]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "l2_normalize", "norm", "loss", "sort"])
def test_gradients_are_those_of_the_valid_values(name):
    call = {
        "softmax": tf.nn.softmax,
        "log_softmax": tf.nn.log_softmax,
        "l2_normalize": tf.nn.l2_normalize,
        "norm": lambda x: tf.norm(x, axis=-1),
        "sort": tf.sort,
        "loss": lambda x: tf.nn.softmax_cross_entropy_with_logits(
            tf.constant([0.25, 0.5, 0.25])[: x.shape[-1]], x),
    }[name]  # fmt: skip
    row = tf.constant([[1.0, -2.0, np.nan], [np.nan] * 3])
    alone = row[:1, :2]
    weights = tf.constant([0.3, 0.7, 9.0])
    gradients = []
    for source, x in ((row, MaskedTensor(row, [[True, True, False], [False] * 3])), (alone, alone)):
        with tf.GradientTape() as tape:
            tape.watch(source)
            values = x.values if isinstance(x, MaskedTensor) else x
            result = call(MaskedTensor(tf.identity(values), x.mask) if source is row else values)
            if isinstance(result, MaskedTensor):
                result = result.fill(0.0)
            size = result.shape[-1] if result.shape.rank == 2 else None
            total = tf.reduce_sum(tf.square(result) * (weights[:size] if size else 1.0))
        gradients.append(tape.gradient(total, source).numpy())
    np.testing.assert_allclose(gradients[0][:1, :2], gradients[1], rtol=1e-5, atol=1e-6)
    assert not gradients[0][1].any()
    assert gradients[0][0, 2] == 0


def test_a_graph_without_static_sizes_gives_the_same():
    array = ma.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]], mask=[[True, False, False]] * 2)
    spec = MaskedTensor.Spec(tf.TensorSpec([None, None], tf.float64))

    @tf.function(input_signature=[spec])
    def every(x):
        return (
            *(tf.nn.softmax(x), tf.sort(x, 0), tf.argsort(x), *tf.nn.top_k(x, 2), tf.norm(x, 1, 0)),
            *(*tf.nn.moments(x, [0]), tf.one_hot(tf.cast(x, tf.int32), 7)),
            tf.nn.softmax_cross_entropy_with_logits(tf.ones([2, 3], tf.float64) / 3, x),
        )

    eager = every.python_function(masked(array))
    for ours, theirs in zip(every(masked(array)), eager, strict=True):
        ours, theirs = (
            one.to_py() if isinstance(one, MaskedTensor) else one.numpy().tolist()
            for one in (ours, theirs)
        )
        assert ours == theirs


@pytest.mark.parametrize("call", [tf.sort, tf.norm, lambda x: tf.one_hot(x, 3)])
def test_ragged_values_have_no_handler_yet(call):
    ragged = MaskedTensor(tf.ragged.constant([[1], [2, 3]]))
    with pytest.raises(TypeError, match="MaskedTensor declined"):
        call(ragged)


@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_the_activations_of_keras_take_masked_values(name):
    numbers = np.ma.masked_array([[1.0, 9.0, 3.0]], [[False, True, False]], np.float32)
    ours = getattr(tf.keras.activations, name)(MaskedTensor(numbers.filled(9.0), ~numbers.mask))
    theirs = getattr(tf.keras.activations, name)(tf.constant([numbers.compressed()]))
    assert isinstance(ours, MaskedTensor)
    np.testing.assert_allclose(ours.to_numpy().compressed(), theirs[0], rtol=1e-5)
