"""Extension values as outputs of predict, which concatenates batches."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import kinds
from tests.keras.kinds import BATCH, COUNT, KINDS

RECORDS = KINDS["records"].value


class Same(xt.keras.Model):
    """Returns its input, beside a tensor made of it, in a nest."""

    def call(self, inputs):
        first = tf.nest.flatten(inputs, expand_composites=True)[0]
        return {"same": inputs, "pair": (inputs, first)}


OUTPUTS = {
    **{name: kind.value for name, kind in KINDS.items()},
    "ragged": RECORDS["minutes"],
    "list of records": RECORDS["ingredients"],
    "records of records": xt.DenseStructuredTensor(
        [COUNT], {"inner": RECORDS, "x": tf.range(COUNT)}
    ),
    "deeper ragged": tf.RaggedTensor.from_row_lengths(
        tf.ragged.constant([[i] * (i % 3) for i in range(20)], row_splits_dtype=tf.int64), [2] * 10
    ),
    "no ragged row": xt.DenseStructuredTensor([COUNT], {"x": tf.zeros([COUNT, 2], tf.bfloat16)}),
    "fields in another order": RECORDS.with_only("title", "ingredients", "minutes"),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"steps_per_execution": 2}])
@pytest.mark.parametrize("case", OUTPUTS)
def test_predicting_in_batches_is_one_call_on_everything(case, options):
    model, value = Same(), OUTPUTS[case]
    model.compile(**options)
    expected = model(value)
    predicted = model.predict(value, batch_size=BATCH, verbose=0)
    tf.nest.assert_same_structure(predicted, expected)
    for mine, whole in zip(tf.nest.flatten(predicted), tf.nest.flatten(expected), strict=True):
        assert kinds.numbers(mine) == kinds.numbers(whole)
        if isinstance(whole, xt.StructuredTensor):
            assert mine.field_names() == whole.field_names()
            assert mine.__tf_type_spec__().is_compatible_with(whole.__tf_type_spec__())
    on_batch = model.predict_on_batch(value)
    assert kinds.numbers(on_batch["same"]) == kinds.numbers(value)


def test_values_and_plain_arrays_are_concatenated_differently():
    predicted = Same().predict(RECORDS, verbose=0)
    assert isinstance(predicted["pair"], tuple)
    assert isinstance(predicted["pair"][1], np.ndarray)


def test_a_dense_field_that_was_padded_differently_is_an_error_that_names_it():
    class Padded(xt.keras.Model):
        def call(self, inputs):
            return inputs.with_only("title").with_updates(minutes=inputs["minutes"].to_tensor())

    with pytest.raises(errors.StructureError) as raised:
        Padded().predict(RECORDS.with_updates(
            minutes=tf.ragged.constant([[1.0] * i for i in range(COUNT)], row_splits_dtype=tf.int64)
        ), batch_size=BATCH, verbose=0)  # fmt: skip
    assert raised.value.path == "predict: minutes"
    assert "different sizes" in raised.value.received
