"""Types that cannot be written work in this process, and say so when a model is saved."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor._keras.spec_key import key_of_spec, spec_of_key
from tests.samples.types import fresh_masked_type


def called(model, *args, **kwargs):
    model(*args, **kwargs)
    return model


def model_of_an_unregistered_type(form):
    masked_type, masked_spec = fresh_masked_type()

    class Filled(xt.keras.Layer):
        def call(self, masked):
            return tf.where(masked.mask, masked.values, 0.0)

    class Filling(xt.keras.Model):
        def __init__(self):
            super().__init__()
            self.filled, self.dense = Filled(), keras.layers.Dense(1)

        def call(self, masked):
            return self.dense(self.filled(masked))

    value = masked_type(tf.ones([4, 3]), tf.cast([[1, 0, 1]] * 4, tf.bool))
    if form == "subclassed":
        return called(Filling(), value), value
    masked = xt.keras.Input(masked_spec([None, 3], tf.float32))
    return xt.keras.Model(masked, keras.layers.Dense(1)(Filled()(masked))), value


@pytest.mark.parametrize("form", ["functional", "subclassed"])
def test_a_type_that_is_not_registered_works_in_its_process_alone(tmp_path, form):
    model, value = model_of_an_unregistered_type(form)
    kernel, bias = model.weights
    np.testing.assert_allclose(model(value), tf.fill([4, 1], kernel[0, 0] + kernel[2, 0] + bias[0]))
    model.compile("sgd", "mse")
    dataset = tf.data.Dataset.from_tensor_slices((value, tf.ones([4, 1]))).batch(3)
    assert len(model.fit(dataset, epochs=2, verbose=0).history["loss"]) == 2
    for write in (lambda: model.save(tmp_path / "m.keras"), lambda: model.export(tmp_path / "m")):
        with pytest.raises(errors.RegistrationError) as raised:
            write()
        assert isinstance(raised.value, ValueError)
        assert raised.value.path.endswith("MaskedTensorSpec")
        assert "a registered TypeSpec" in raised.value.expected
        assert "not registered" in raised.value.received
        assert "@xt.register_type_spec" in raised.value.fix


@xt.extension_type
class Tagged:
    x: tf.Tensor
    tag: object = None


@keras.saving.register_keras_serializable("tests")
class Untagged(xt.keras.Layer):
    def call(self, tagged):
        return tagged.x


@pytest.mark.parametrize("form", ["functional", "subclassed"])
def test_static_data_that_cannot_be_written_is_an_error_that_names_it(tmp_path, form):
    value = Tagged(tf.ones([4, 2]), object())
    if form == "functional":
        placeholder = xt.keras.Input(tf.type_spec_from_value(value))
        model = xt.keras.Model(placeholder, Untagged()(placeholder))
    else:
        model = called(xt.keras.Sequential([Untagged()]), value)
    np.testing.assert_array_equal(model(value), value.x)
    for write in (lambda: model.save(tmp_path / "m.keras"), lambda: model.export(tmp_path / "m")):
        with pytest.raises(errors.DTypeError) as raised:
            write()
        assert raised.value.path == f"{model.name}: Tagged.tag"
        assert "static data" in raised.value.expected
        assert "object" in raised.value.received
        assert raised.value.fix


# Written by extensor 0.2.0.dev, when RaggedStructuredTensorSpec described rows too.
ROW = (
    "extensor:eNrj4BHaw7iIeQcjl8AvRl4hbo7_MMDINY9xEtMsRg4eIatFzOZY5JUXMStwyS1iluZizmKs4BLpYhIUQlUi"
    "wSillFpRkppXnF-k5wKkUoNLikqTS0qLUlNCwKLBBanJCoyr2vil4erii8Fq9FJA6uOLgQo2tfELL2IW4GLNYs4vz-Ni"
    "X8TMwsWUwMDF3MDEKaUM1xiUmJ6emoLTBhkMG4rAGmBWqC5iVoJZIbmIWQy7hwCkX3Dk"
)


def test_the_spec_of_a_row_loads_that_a_former_version_wrote():
    values = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])})
    spec = spec_of_key(ROW)
    assert spec == xt.RaggedStructuredTensorSpec([None], values)
    assert spec == spec.stacked(2).unstacked() == spec_of_key(str(key_of_spec(spec)))
    assert not isinstance(spec, xt.RaggedStructuredTensorSpec)
