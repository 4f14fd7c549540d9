"""Placeholders of ragged tensors."""

import keras
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample

SPEC = sample.batches().element_spec[0]


@pytest.mark.parametrize("use", [tf.math.abs, keras.ops.sum])
def test_a_ragged_placeholder_in_an_operation_is_an_error_with_the_mend(use):
    with pytest.raises(errors.UnsupportedTypeError, match=r"xt\.keras\.Lambda"):
        use(xt.keras.Input(SPEC)["minutes"])
