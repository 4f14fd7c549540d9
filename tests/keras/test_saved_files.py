"""Files of models that were saved with Keras 3.10, the oldest that is supported, load."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt

SAVED = Path(__file__).parents[1] / "saved" / "keras-3.10"
RECORDS = xt.DenseStructuredTensor(
    [3], {"x": tf.ones([3, 3]), "tags": tf.ragged.constant([[1, 2], [], [4]])}
)
X = RECORDS["x"].numpy()

# All kernels and embeddings are ones.
FILES = {
    "plain_sequential": (keras.Sequential, X, [[3], [3], [3]]),
    "sequential": (xt.keras.Sequential, RECORDS, [[6], [6], [6]]),
    "functional": (xt.keras.Model, RECORDS, [[5], [3], [4]]),
}


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_an_older_keras_loads(name):
    model_class, x, expected = FILES[name]
    model = keras.saving.load_model(SAVED / f"{name}.keras")
    assert isinstance(model, model_class)
    np.testing.assert_allclose(model.predict(x, verbose=0), expected)
    model.fit(x, np.zeros([3, 1]), verbose=0)
    assert (model.predict(x, verbose=0) < expected).all()


def test_an_older_sequential_of_keras_becomes_one_of_extensor():
    plain = keras.saving.load_model(SAVED / "plain_sequential.keras")
    model = xt.keras.Sequential.from_config(plain.get_config())
    model.set_weights(plain.get_weights())
    np.testing.assert_array_equal(model.predict(X, verbose=0), FILES["plain_sequential"][2])
