"""Placeholders of ragged tensors."""

import keras
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample
from tests.keras.test_named_types import NAMED

SPEC = sample.batches().element_spec[0]


@pytest.mark.parametrize("use", [tf.math.abs, keras.ops.sum])
def test_a_ragged_placeholder_in_an_operation_is_an_error_with_the_mend(use):
    with pytest.raises(errors.UnsupportedTypeError, match=r"xt\.keras\.Layer or Lambda"):
        use(xt.keras.Input(SPEC)["minutes"])


def test_a_ragged_dimension_of_equal_rows_keeps_its_size():
    rows = tf.ragged.constant([[1], [], [2, 3], [4], [], [5]])
    ragged = tf.RaggedTensor.from_uniform_row_length(rows, 3)
    placeholder = xt.keras.Input(tf.RaggedTensorSpec([None, 3, None], tf.int32))
    assert placeholder.shape == placeholder.with_flat_values(placeholder.flat_values).shape
    assert placeholder.shape.as_list() == [None, 3, None]
    assert placeholder.values.shape.as_list() == [None, None]
    model = xt.keras.Model(placeholder, {"ragged": placeholder})
    assert model(ragged)["ragged"].to_list() == ragged.to_list()


LABELED = xt.types.LabeledTensor.Spec(tf.TensorSpec([None, 2]), ["word", "feature"])


@pytest.mark.parametrize("named", NAMED.values(), ids=NAMED)
def test_placeholders_of_all_types_have_a_repr(named):
    spec = tf.data.Dataset.from_tensor_slices(named.value).batch(3).element_spec
    assert type(named.value).__name__ in repr(xt.keras.Input(spec))


def test_the_repr_of_a_labeled_placeholder_names_its_axes():
    assert repr(xt.keras.Input(LABELED)) == "<LabeledTensor (word=None, feature=2) float32>"
