"""A field of unions in lists of records: read by path, batched, boxed, trained on."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.types import MaskedTensor, UnionTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor

VALUES = [1.5, "a", 2.5, {"n": 7, "l": [1, 2]}, None, "b", 4.5]
PLAIN = [1.5, b"a", 2.5, {"n": 7, "l": [1, 2]}, None, b"b", 4.5]


def events(splits_dtype=tf.int64):
    """Lists of records with a number and a union: 3, 0, 1 and 3 of them."""
    records = Dense([7], {"id": tf.range(7), "what": UnionTensor.from_values(VALUES)})
    return Ragged.from_row_splits(records, tf.constant([0, 3, 3, 4, 7], splits_dtype))


def users(splits_dtype=tf.int64):
    return Dense([4], {"name": list("abcd"), "events": events(splits_dtype)})


ROWS = [PLAIN[:3], [], PLAIN[3:4], PLAIN[4:]]
LISTED = [
    {
        "name": name.encode(),
        "events": [{"id": PLAIN.index(what), "what": what} for what in row],
    }
    for name, row in zip("abcd", ROWS, strict=True)
]


def test_a_path_leads_to_a_ragged_union():
    what = users()["events.what"]
    assert isinstance(what, UnionTensor)
    assert what.to_py() == ROWS
    assert users()["events", 3, 1, "what"].to_py() == b"b"
    assert users().to_py() == LISTED
    masked = what.match({"float": lambda x: x}, default=lambda rows: 0.0)
    assert masked.to_list() == [[1.5, 0, 2.5], [], [0], [0, 0, 4.5]]


def test_a_union_of_the_same_rows_is_a_field_again():
    what = users()["events.what"]
    again = users().with_updates({"events.other": what})
    assert again["events.other"].to_py() == ROWS


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("splits_dtype", [tf.int64, tf.int32])
def test_lists_of_unions_are_batched_and_unbatched(splits_dtype):
    value = users(splits_dtype)
    dataset = tf.data.Dataset.from_tensor_slices(value)
    assert [user.to_py() for user in dataset] == LISTED
    batches = dataset.map(tf.function(lambda user: user)).batch(3)
    assert [row for batch in batches for row in batch.to_py()] == LISTED
    assert [user.to_py() for user in batches.unbatch()] == LISTED


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("splits_dtype", [tf.int64, tf.int32])
def test_records_with_lists_of_unions_are_batched_as_ragged(splits_dtype):
    rows = [{"u": [{"r": [1, None]}, "a"]}, {"u": []}, {"u": [None]}]
    records = xt.struct.constant(rows, conflicts="union", nulls="mask")
    dataset = tf.data.Dataset.from_tensor_slices(records)
    batches = dataset.ragged_batch(2, row_splits_dtype=splits_dtype)
    assert [row for batch in batches for row in batch.to_py()] == rows
    single = tf.data.Dataset.from_tensors(records[0]).concatenate(
        tf.data.Dataset.from_tensors(records[2])
    )
    (batch,) = single.ragged_batch(2)
    assert batch.to_py() == [rows[0], rows[2]]
    for stack in (tf.ragged.stack, tf.function(tf.ragged.stack)):
        assert stack([records[0], records[1]]).to_py() == rows[:2]


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize("make", [events, users])
def test_the_laws_hold_for_records_with_lists_of_unions(make):
    xt.testing.check_extension_type([make(), make()[1:3]])


def test_masked_and_ragged_values_in_unions_in_lists():
    union = UnionTensor(
        [0, 1, 0],
        {"list": tf.ragged.constant([["x"], ["y", "z"]]), "n": MaskedTensor([1], [False])},
    )
    records = Ragged.from_row_splits(Dense([3], {"u": union}), [0, 1, 3])
    [batch] = tf.data.Dataset.from_tensor_slices(records).batch(2)
    assert batch["u"].to_py() == [[[b"x"]], [None, [b"y", b"z"]]]


@pytest.mark.whole("trains models")
def test_a_model_is_trained_on_a_union_in_lists():
    class Total(xt.keras.Layer):
        def __init__(self):
            super().__init__()
            self.scale = self.add_weight(shape=(), initializer="zeros")
            self.words = self.add_weight(shape=(), initializer="zeros")

        def call(self, users):
            amounts = users["events.what"].match(
                {
                    "float": lambda x: x * self.scale,
                    "string": lambda s: tf.ones_like(s, tf.float32) * self.words,
                },
                default=lambda rows: 0.0,
            )
            return tf.reduce_sum(amounts, axis=1)

    spec = xt.spec_of(users()).unstacked().stacked(None)
    inputs = xt.keras.Input(spec)
    model = xt.keras.Model(inputs, Total()(inputs))
    model.compile(keras.optimizers.SGD(0.05), "mse")
    targets = np.array([2 * 4.0 + 3, 0, 0, 2 * 4.5 + 3], np.float32)
    data = tf.data.Dataset.from_tensor_slices((users(), targets)).batch(2)
    first = model.evaluate(data, verbose=0)
    model.fit(data, epochs=40, verbose=0)
    assert model.evaluate(data, verbose=0) < first / 20
    assert model.predict(users(), verbose=0).shape == (4,)
