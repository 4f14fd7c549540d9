"""xt.keras needs the TensorFlow backend of Keras 3, says so, and leaves Keras as it was."""

import json
import re
import sys

import pytest

import extensor as xt
from extensor import errors
from extensor._keras import backend

pytestmark = pytest.mark.whole("imports Keras in fresh processes")

OTHER_BACKEND = """
import os
import sys
import tensorflow as tf
import extensor as xt

try:
    xt.keras.Layer
except ImportError as error:
    assert isinstance(error, xt.ExtensorError), type(error)
    assert error.path == "extensor.keras"
    assert error.expected == "the TensorFlow backend of Keras"
    assert error.received == "KERAS_BACKEND=" + os.environ["KERAS_BACKEND"]
    assert "Set KERAS_BACKEND=tensorflow" in error.fix
    assert "or give xt.data.arrays(dataset) to a keras.Model" in error.fix
    assert len(str(error).splitlines()) == 1
else:
    raise SystemExit("no error")
assert "jax" not in sys.modules and "torch" not in sys.modules

records = xt.DenseStructuredTensor([2], {"x": [1.0, 2.0], "r": tf.ragged.constant([[1], []])})
assert tf.function(lambda r: r["x"] * 2)(records).numpy().tolist() == [2.0, 4.0]
assert len(list(tf.data.Dataset.from_tensor_slices(records).batch(1))) == 2
"""


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_another_backend_is_an_import_error_and_the_rest_works(run_python, name):
    run_python(OTHER_BACKEND, env={"KERAS_BACKEND": name}, fresh=True)


IN_FILE = """
import os
import extensor as xt

try:
    xt.keras.Layer
except ImportError as error:
    path = os.path.join(os.environ["KERAS_HOME"], "keras.json")
    assert error.received == f"'jax' in {path}", error.received
    assert f'Write "backend": "tensorflow" into {path}' in error.fix, error.fix
else:
    raise SystemExit("no error")
"""


def test_a_configuration_file_with_another_backend_is_named(run_python, tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    run_python(IN_FILE, env={"KERAS_HOME": str(tmp_path), "KERAS_BACKEND": ""}, fresh=True)
    # A variable wins over the file, as in Keras.
    code = "import extensor as xt; xt.keras.Layer"
    run_python(code, env={"KERAS_HOME": str(tmp_path), "KERAS_BACKEND": "tensorflow"}, fresh=True)


@pytest.mark.parametrize("text", ['{"floatx": "float32"}', "not JSON", "[]"])
def test_a_configuration_file_without_a_backend_is_fine(monkeypatch, tmp_path, text):
    (tmp_path / "keras.json").write_text(text)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.delitem(sys.modules, "keras")
    assert backend._chosen_in_file()[1] == "tensorflow"


def test_keras_is_not_imported_before_it_is_needed(run_python):
    # TensorFlow imports Keras on its own where it is asked for; extensor must not be the one.
    run_python(
        """
        import sys
        import extensor as xt
        assert "extensor.keras" not in sys.modules
        assert xt.keras.Layer.__module__ == "extensor._keras.layer"
        """
    )


def test_keras_that_is_missing_is_an_error_with_the_mend(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(errors.MissingDependencyError) as raised:
        backend.check_backend()
    assert isinstance(raised.value, ImportError)
    assert raised.value.expected == "Keras 3"
    assert "a failed import" in raised.value.received
    assert re.fullmatch(r"pip install .*\[keras\]'", raised.value.fix)


@pytest.mark.parametrize("version", ["2.15.0", "3.9.2"])
def test_keras_that_is_too_old_is_an_error_with_the_mend(monkeypatch, version):
    monkeypatch.setattr("keras.__version__", version)
    with pytest.raises(errors.MissingDependencyError) as raised:
        backend.check_backend()
    assert raised.value.expected == "Keras 3.10 or newer"
    assert raised.value.received == f"Keras {version}"
    assert "upgrade keras" in raised.value.fix


@pytest.mark.parametrize("version", ["3.10.0", "3.15.1", "3.16.0.dev202601", "4.0.0rc1"])
def test_newer_keras_passes(monkeypatch, version):
    monkeypatch.setattr("keras.__version__", version)
    backend.check_backend()


PLAIN = """
import json
{imports}
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
x = np.random.default_rng(0).random((32, 6), np.float32)


class Scaled(keras.layers.Layer):
    def call(self, x, training=False):
        return {{"x": x * 2}}["x"]


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.scaled, self.dense = Scaled(), keras.layers.Dense(1)

    def call(self, x, training=False):
        return self.dense(self.scaled(x))


inputs = keras.Input((6,))
functional = keras.Model(inputs, keras.layers.Dense(1)(Scaled()(inputs)))
weights = []
for model in (functional, Net(), keras.Sequential([Scaled(), keras.layers.Dense(1)])):
    model.compile("adam", "mse")
    model.fit(x, x[:, :1], epochs=2, verbose=0)
    weights.append([w.tolist() for w in model.get_weights()])
ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
try:
    Scaled()(ragged)
    weights.append("accepted")
except Exception as error:
    weights.append([type(error).__name__, str(error).split(":")[0]])
members = [dir(c) for c in (keras.Model, keras.layers.Layer, keras.layers.Dense)]
print(json.dumps([weights, members]))
"""


def test_plain_keras_is_the_same_after_the_import(run_python):
    with_us = run_python(PLAIN.format(imports="import extensor as xt; xt.keras"), fresh=True)
    without = run_python(PLAIN.format(imports=""))
    with_us, without = (json.loads(done.stdout.splitlines()[-1]) for done in (with_us, without))
    assert with_us == without


def test_public_names():
    assert sorted(xt.keras.__all__) == [
        "Identity",
        "Input",
        "Lambda",
        "Layer",
        "Masked",
        "Model",
        "RNN",
        "Sequential",
        "TimeDistributed",
        "callbacks",
        "layers",
        "serialize",
    ]
