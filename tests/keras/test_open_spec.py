"""Specs with sizes left open keep all else."""

import numpy as np
import pyarrow as pa
import tensorflow as tf

import extensor as xt
from tests.keras.kinds import KINDS

RECORDS = KINDS["records"].value


def test_the_order_of_fields_is_kept_whichever_was_seen_first():
    class Same(xt.keras.Layer):
        def call(self, inputs):
            return inputs

    orders = [("taste", "title", "minutes"), ("minutes", "taste", "title")]
    for names in orders:
        assert Same()(RECORDS.with_only(*names)).field_names() == names


LABELED = xt.types.LabeledTensor(tf.reshape(tf.range(6.0), [3, 2]), ["word", "feature"])


class Doubled(xt.keras.Model):
    def call(self, inputs):
        return inputs * 2.0


def in_records(labeled):
    return xt.DenseStructuredTensor([3], {"x": labeled, "size": tf.range(3)})


def test_the_axes_of_labeled_tensors_keep_their_names():
    assert xt.keras.Identity()(LABELED).axes == ("word", "feature")
    assert Doubled()(LABELED).axes == ("word", "feature")
    assert Doubled().predict(LABELED, batch_size=2, verbose=0).axes == ("word", "feature")
    assert xt.keras.Identity()(in_records(LABELED))["x"].axes == ("word", "feature")
    spec = tf.type_spec_from_value(LABELED)
    placeholder = xt.keras.Input(spec)
    assert placeholder.axes == ("word", "feature")
    model = xt.keras.Model(placeholder, xt.keras.Identity()(placeholder))
    result = model(LABELED)
    assert result.axes == ("word", "feature")
    np.testing.assert_array_equal(result.values, LABELED.values)
    shorter = xt.types.LabeledTensor(LABELED.values[:2], LABELED.axes)
    assert model(shorter).axes == ("word", "feature")


def test_batches_of_labeled_tensors_are_of_one_type():
    traced = []

    class Traced(xt.keras.Model):
        def call(self, inputs):
            traced.append(inputs.axes)
            return inputs.values

    model = Traced()
    model.compile("sgd", "mse")
    model.predict(LABELED, batch_size=2, verbose=0)  # a batch of 2 and one of 1
    assert set(traced) == {("word", "feature")}


def test_arrow_types_and_names_are_those_of_the_value_whichever_was_seen_first():
    numbers = pa.array([1, 2])
    spans, units = pa.array([1, 2], pa.duration("s")), pa.array([1, 2], pa.duration("ns"))
    inputs = [xt.from_arrow(pa.table({"leak": part})) for part in (spans, numbers, units)]
    records = xt.keras.Input(spec=xt.spec_of(inputs[1]))
    model = xt.keras.Model(records, xt.keras.Identity()(records))
    for _ in range(2):
        for value in inputs:
            schema = xt.to_arrow(value).schema
            assert xt.to_arrow(xt.keras.Identity()(value)).schema == schema
            model(value)
            model.predict(value, verbose=0)
    pages = xt.DenseStructuredTensor([1, 2], {"leak": [[1, 2]]})
    for dims in (None, (None, "page"), (None, "leaf")):
        assert xt.keras.Identity()(pages.with_dims(dims)).dims == (dims or (None, None))
