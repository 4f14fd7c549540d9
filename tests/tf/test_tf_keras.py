"""Values in tf_keras (Keras 2), which sets a mask on the inputs of a model."""

import pickle

import pytest
import tensorflow as tf

import extensor as xt


@xt.extension_type
class Grams:
    values: tf.Tensor

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)

    class Spec:
        shape = property(lambda self: self.values.shape)
        dtype = property(lambda self: self.values.dtype)


@pytest.mark.whole("starts a process")
def test_a_declared_value_is_an_input_of_a_functional_model(run_python):
    run_python("""
    import tensorflow as tf, tf_keras, extensor as xt
    from tests.tf.test_tf_keras import Grams

    class Doubled(tf_keras.layers.Layer):
        def call(self, grams):
            return grams.values * 2

    grams = Grams(tf.ones([2, 3]))
    given = tf_keras.Input(type_spec=xt.spec_of(grams))
    model = tf_keras.Model(given, Doubled()(given))
    tf.debugging.assert_equal(model(grams), 2 * tf.ones([2, 3]))
    tf.debugging.assert_equal(
        model.predict(tf.data.Dataset.from_tensors(grams), verbose=0), 2 * tf.ones([2, 3])
    )
    """)


@pytest.mark.parametrize(
    "value",
    [
        Grams(tf.ones([2])),
        xt.DenseStructuredTensor([2], {"grams": [500.0, 3.0]}),
        xt.types.MaskedTensor([500.0, 3.0], [True, False]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_mask_is_not_a_component(value):
    spec, text = value.__tf_type_spec__(), repr(value)
    value._keras_mask = None
    assert value._keras_mask is None
    value._keras_mask = tf.constant([True, False])
    assert value.__tf_type_spec__() == spec
    assert len(tf.nest.flatten(value, expand_composites=True)) == len(tf.nest.flatten(spec, True))
    assert repr(value) == text
    assert not hasattr(pickle.loads(pickle.dumps(value)), "_keras_mask")
    del value._keras_mask
    assert not hasattr(value, "_keras_mask")


def test_setting_another_attribute_is_an_error():
    for value in (Grams(tf.ones([2])), xt.DenseStructuredTensor([2], {"grams": [500.0, 3.0]})):
        for change in (
            lambda value=value: setattr(value, "_keras_history", 1),
            lambda value=value: delattr(value, "_keras_mask"),
        ):
            with pytest.raises(AttributeError):
                change()
