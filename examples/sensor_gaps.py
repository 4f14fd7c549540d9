"""Time series with gaps: a mask goes with the values, from NaN to the layers of Keras.

A sensor misses many of its hourly readings. `xt.types.MaskedTensor` keeps which readings are
valid; `xt.keras.Masked` gives this mask to Keras's own layers. A model that reads zeros instead of
the gaps is the baseline.

    $ python examples/sensor_gaps.py
"""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt

HOURS = 24


def days(count, seed=0):
    """Readings of a machine with NaN in the gaps, and the level that it really had."""
    random = np.random.default_rng(seed)
    level = random.uniform(-1, 1, [count, 1])
    readings = 2 + level + random.normal(0, 0.3, [count, HOURS])
    share = random.uniform(0, 0.9, [count, 1])  # from few gaps to almost a whole day
    gaps = random.random([count, HOURS]) < share
    gaps[:, 0] = False
    return np.where(gaps, np.nan, readings).astype("float32"), level.astype("float32")


def model_of(spec):
    steps = xt.keras.Input(spec)
    tensor = xt.keras.Masked()(steps)  # a plain tensor with a mask of Keras
    mean = keras.layers.GlobalAveragePooling1D()(tensor)
    return xt.keras.Model(steps, keras.layers.Dense(1)(mean))


def error_of(inputs, targets, test_inputs, test_targets):
    """Returns the mean absolute error of a model that is trained on these inputs."""
    keras.utils.set_random_seed(1)
    spec = tf.data.Dataset.from_tensor_slices(inputs).batch(2).element_spec
    model = model_of(spec)
    model.compile(keras.optimizers.Adam(0.03), "mae")
    model.fit(inputs, targets, batch_size=50, epochs=20, verbose=0)
    return model.evaluate(test_inputs, test_targets, verbose=0)


def main():
    (train, level), (test, truth) = days(1500), days(500, seed=1)

    def masked(readings):
        steps = readings[..., np.newaxis]
        return xt.types.MaskedTensor(steps, ~np.isnan(steps))

    def zeros(readings):
        return xt.types.MaskedTensor(np.nan_to_num(readings)[..., np.newaxis])

    print("a day:", masked(test)[0, :4, 0])
    # Operations use valid readings only, also outside of models.
    print("mean of each day:", np.round(tf.reduce_mean(masked(test)[:2, :, 0], axis=1).to_py(), 2))
    without = error_of(zeros(train), level, zeros(test), truth)
    with_mask = error_of(masked(train), level, masked(test), truth)
    print("error with zeros in the gaps:", round(without, 3))
    print("error with the mask:", round(with_mask, 3))
    return without, with_mask


if __name__ == "__main__":
    main()
