"""A library author: a class of their own, without a base class, for TensorFlow and Keras.

It begins as a plain class that others use already; then it gets what TensorFlow needs.
"""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt


@xt.extension_type
class Interval(xt.dispatch.OperatorsMixin):
    """Numbers that are known up to an error."""

    low: tf.Tensor
    high: tf.Tensor


@xt.dispatch.implements(tf.add, on=Interval)
def add(x, y, name=None):
    return Interval(x.low + y.low, x.high + y.high)


@keras.saving.register_keras_serializable("journey")
class Width(xt.keras.Layer):
    def call(self, interval):
        return tf.stack([interval.low, interval.high - interval.low], axis=1)


def error_of(call):
    """Returns the message of the error that a user would see."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def main():
    heights = Interval([1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.5, 4.5])

    # A tf.function, a dataset, a loop.
    doubled = tf.function(lambda x: x + x)(heights)
    assert doubled.high.numpy().tolist() == [3.0, 5.0, 7.0, 9.0]
    batches = tf.data.Dataset.from_tensor_slices(heights).batch(3)
    assert [batch.low.shape[0] for batch in batches] == [3, 1]

    # What has no handler is an error that says what to write.
    error = error_of(lambda: tf.reduce_sum(heights))
    assert "Interval has no handler for tf.reduce_sum" in error
    assert "xt.dispatch.implements" in error

    # The laws that TensorFlow relies on.
    xt.testing.check_extension_type(heights)

    # A Keras model, saved and loaded, and served with plain tensors.
    interval = xt.keras.Input(batches.element_spec)
    model = xt.keras.Model(interval, keras.layers.Dense(1)(Width()(interval)))
    model.compile(keras.optimizers.Adam(0.1), "mse")
    targets = np.array([1.0, 2.0, 3.0, 4.0])
    losses = model.fit(heights, targets, epochs=50, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
    model.save("width.keras")
    loaded = keras.saving.load_model("width.keras")
    np.testing.assert_allclose(loaded(heights), model(heights))

    xt.serving.save(model, "width/1")
    server = tf.saved_model.load("width/1").signatures["serving_default"]
    client = xt.serving.load_client("width/1")
    served = client.decode(server(**client.encode(heights)))
    np.testing.assert_allclose(served, model(heights), rtol=1e-6)
    print("done")


if __name__ == "__main__":
    main()
