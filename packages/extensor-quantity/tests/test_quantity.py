"""What a quantity does, in Python and in TensorFlow."""

import warnings

import pytest
import tensorflow as tf
from extensor_quantity import Quantity, QuantitySpec, UnitError

FLOUR = Quantity([500.0, 250.0], "g")


def test_amounts_are_converted():
    assert FLOUR.to("kg").amounts.numpy().tolist() == [0.5, 0.25]
    assert (FLOUR + Quantity([1.0, 2.0], "kg")).amounts.numpy().tolist() == [1500.0, 2250.0]
    assert Quantity(16.0, "tbsp").to("cup").amounts.numpy() == 1.0
    assert repr(FLOUR * 2) == "Quantity([1000.  500.], 'g')"


def test_what_does_not_measure_the_same_does_not_convert():
    with pytest.raises(UnitError, match="g: expected another unit of mass, got l, one of volume"):
        FLOUR.to("l")
    with pytest.raises(UnitError, match="'pinch': expected one of the units mg, g, kg"):
        Quantity(1.0, "pinch")


def test_a_function_is_traced_once_for_a_unit():
    traced = []

    @tf.function
    def double(amounts):
        traced.append(amounts.unit.name)
        return amounts + amounts

    assert double(FLOUR).amounts.numpy().tolist() == [1000.0, 500.0]
    double(FLOUR * 3)
    assert double(Quantity([1.0, 2.0], "l")).unit.name == "l"
    assert traced == ["g", "l"]


def test_datasets_batch_quantities():
    lines = tf.data.Dataset.from_tensor_slices(FLOUR).map(lambda one: one.to("kg")).batch(2)
    [batch] = lines
    assert batch.amounts.numpy().tolist() == [0.5, 0.25]
    assert batch.unit.name == "kg"


def test_a_model_is_saved_and_loaded(tmp_path):
    module = tf.Module()
    module.to_pounds = tf.function(
        lambda amounts: amounts.to("lb"), input_signature=[QuantitySpec([None], tf.float32, "kg")]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorFlow logs each named spec that it saves
        tf.saved_model.save(module, str(tmp_path))
    result = tf.saved_model.load(str(tmp_path)).to_pounds(FLOUR.to("kg"))
    assert isinstance(result, Quantity)
    assert result.unit.name == "lb"
    tf.debugging.assert_near(result.amounts, [1.1023113, 0.5511557])
