"""One Parquet file and one model: TensorFlow, JAX and PyTorch give the same losses."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import extensor as xt
from backends import baskets
from backends.page import example

STEPS = 200


def run(backend, *arguments):
    """Runs Python with a backend of Keras, and returns what it prints."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("baskets") / "baskets.parquet"
    baskets.write_baskets(path, 64 * STEPS)
    return path


@pytest.fixture(scope="module")
def report(path):
    """Returns a function from a backend to the results of its training."""
    reports = {}

    def of(backend):
        if backend not in reports:
            printed = run(backend, "-m", "backends.train", path, STEPS)
            reports[backend] = json.loads(printed.splitlines()[-1])
            assert reports[backend]["backend"] == backend
        return reports[backend]

    return of


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_losses_are_those_of_tensorflow(report, backend):
    found, expected = report(backend), report("tensorflow")
    assert len(found["losses"]) == STEPS
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=0, atol=1e-5)
    assert expected["losses"][-1] < expected["losses"][0] / 50
    for name in ("loss", "val_loss"):
        np.testing.assert_allclose(found["epochs"][name], expected["epochs"][name], atol=1e-5)
    assert abs(found["evaluated"] - expected["evaluated"]) < 1e-5
    assert found["steps"] == expected["steps"] == STEPS


@pytest.mark.parametrize("backend", ["jax", "torch", "numpy"])
def test_predictions_are_those_of_tensorflow(report, backend):
    found, expected = report(backend)["predicted"], report("tensorflow")["predicted"]
    assert len(found) == 64 * STEPS
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


DOORS = """
import os
import sys
import extensor as xt
import tensorflow as tf

records = xt.DenseStructuredTensor([2], {"x": [1.0, 2.0], "l": tf.ragged.constant([[1], []])})
for name, read, write in [
    ("r.parquet", xt.read_parquet, xt.write_parquet),
    ("r.jsonl", xt.read_json, xt.write_json),
    ("r.arrow", xt.read_arrow, xt.write_arrow),
    ("r.tfrecord", xt.read_tfrecord, xt.write_tfrecord),
]:
    path = os.path.join(sys.argv[1], name)
    write(records, path)
    assert read(path).to_py() == records.to_py(), name
[batch] = xt.data.parquet(os.path.join(sys.argv[1], "r.parquet"), 2)
assert batch.to_py() == records.to_py()
static = records.to_static({"l": 2})
assert xt.struct.from_static(static, xt.spec_of(records)).to_py() == records.to_py()
rows = tf.data.Dataset.from_tensor_slices(records)
[arrays] = xt.data.arrays(xt.data.bucket(rows, "l", [2], 2))
assert arrays["l"].tolist() == [[1, 0], [0, 0]]
import keras
assert keras.backend.backend() == os.environ["KERAS_BACKEND"]
for use in (lambda: xt.keras.Layer, lambda: __import__("extensor.keras")):
    try:
        use()
    except xt.errors.MissingDependencyError as error:
        assert error.expected == "the TensorFlow backend of Keras"
        assert "xt.data.arrays(dataset)" in error.fix
    else:
        raise SystemExit("no error")
model = keras.Sequential([keras.layers.Dense(1)])
for given in (records, tf.data.Dataset.from_tensors(records)):
    try:
        model.predict(given, verbose=0)
    except xt.errors.DTypeError as error:
        assert "Give arrays: xt.data.arrays(dataset)" in error.fix, error
    else:
        raise SystemExit("no error")
"""


@pytest.mark.parametrize("backend", ["jax", "torch", "numpy"])
def test_files_and_datasets_work_and_xt_keras_says_what_to_use(backend, tmp_path):
    run(backend, "-c", DOORS, tmp_path)


@pytest.fixture(scope="module")
def batch(path):
    [(inputs, _)] = baskets.batches(path, 64).take(1)
    return inputs


def test_torch_shares_the_memory_of_the_batch(batch):
    torch = pytest.importorskip("torch")
    for array in batch.values():
        assert torch.from_dlpack(array).data_ptr() == array.ctypes.data


def test_jax_shares_the_memory_of_the_batch(batch):
    jax = pytest.importorskip("jax")
    for array in batch.values():
        on_device = jax.device_put(array)
        np.testing.assert_array_equal(on_device, array)
        if array.ctypes.data % 64 == 0:
            assert on_device.unsafe_buffer_pointer() == array.ctypes.data


@pytest.mark.parametrize("framework", ["JAX", "PyTorch"])
def test_the_loop_of_the_page_trains(framework, path):
    assert "loss" in run("tensorflow", "-c", example(framework), path)


def test_the_spec_of_a_batch_is_known_before_its_arrays(path):
    inputs, spent = baskets.batches(path, 64).element_spec
    assert inputs["items.price"].shape == (64, baskets.ITEMS)
    assert inputs["items__mask"].dtype == bool
    assert spent.shape == (64,)
    assert xt.data.state(baskets.batches(path, 64), 0)["step"] == 0
