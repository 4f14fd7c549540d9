"""Saved models run without extensor: in Python with only TensorFlow, and with the C API."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.serving import flat_signature
from tests.keras import sample_models
from tests.serving.sample import RAGGED, RECIPE, RECIPE_SPEC, VALUES, Tables, assert_alike

pytestmark = pytest.mark.whole("starts other runtimes")

CLIENT = Path(__file__).with_name("c_api.py")
PLAIN_PYTHON = """
import os, pickle, sys

for name in ("extensor", "keras", "pyarrow"):
    sys.modules[name] = None
import numpy as np
import tensorflow as tf

with open({runs!r}, "rb") as file:
    runs = pickle.load(file)
responses, loaded = [], {{}}
for model, key, request in runs:
    tensors = {{
        name: tf.reshape(tf.constant(data) if dtype == "string" else tf.io.decode_raw(data, dtype)
                         if dtype != "bool" else tf.cast(tf.io.decode_raw(data, "uint8"), "bool"),
                         shape)
        if data else tf.zeros(shape, dtype)
        for name, (dtype, shape, data) in request.items()
    }}
    if model not in loaded:
        loaded[model] = tf.saved_model.load(model)
    response = loaded[model].signatures[key](**tensors)
    responses.append({{
        name: (tensor.dtype.name, tensor.shape.as_list(),
               np.array(tensor.numpy(), object).ravel().tolist() if tensor.dtype == tf.string
               else tensor.numpy().tobytes())
        for name, tensor in response.items()
    }})
with open({results!r}, "wb") as file:
    pickle.dump(responses, file)
"""


def raw(tensors):
    """Tensors of a request or response, without NumPy."""
    return {
        name: (
            tensor.dtype.name,
            tensor.shape.as_list(),
            np.array(tensor.numpy(), object).ravel().tolist()
            if tensor.dtype == tf.string
            else tensor.numpy().tobytes(),
        )
        for name, tensor in tensors.items()
    }


class Scorer(tf.Module):
    """A model with a table, a variable, a dense layer, and operations on strings."""

    def __init__(self):
        super().__init__()
        words = tf.lookup.KeyValueTensorInitializer(["quick", "sweet"], [1, 2])
        self.numbers = tf.lookup.StaticHashTable(words, 0)
        random = np.random.default_rng(1)
        self.vectors = tf.Variable(random.normal(size=[3, 16]), dtype=tf.float32)
        self.kernel = tf.Variable(random.normal(size=[16, 5]), dtype=tf.float32)

    @tf.function
    def __call__(self, recipe, temperature=2.0):
        numbers = tf.ragged.map_flat_values(self.numbers.lookup, recipe["tags"])
        hidden = tf.reduce_sum(tf.gather(self.vectors, numbers), axis=1)
        scores = tf.nn.softmax(tf.nn.relu(hidden @ self.kernel) / temperature)
        shouted = tf.ragged.map_flat_values(tf.strings.upper, recipe["steps.tools"])
        return {"recipe": recipe.with_updates(score=scores), "shouted": shouted}


LONG = "a text that does not fit into the struct of a string itself, and " + "ünïcödé " * 20
MORE = RECIPE.with_updates(
    title=[LONG, ""], tags=tf.ragged.constant([["sweet", "quick", "unheard of"], []])
)
MORE_SPEC = RECIPE_SPEC


def models(path):
    """Yields folder, key, signature, arguments and the expected result of models, all saved."""
    for ragged in RAGGED:
        scorer = Scorer()
        signature = flat_signature(scorer, MORE_SPEC, tf.TensorSpec([]), ragged=ragged)
        xt.serving.save(scorer, path / f"scorer {ragged}", signature)
        folder = str(path / f"scorer {ragged}")
        yield folder, "serving_default", signature, (MORE, 0.5), scorer(MORE, 0.5)
        yield folder, "serving_default", signature, (MORE[:0], 1.0), scorer(MORE[:0], 1.0)
        every = {
            f"value_{i}": (flat_signature(lambda x: {"same": x}, value, ragged=ragged), value)
            for i, (value, _) in enumerate(VALUES.values())
        }
        folder = str(path / f"values {ragged}")
        xt.serving.save(None, folder, {key: one for key, (one, _) in every.items()})
        for key, (signature, value) in every.items():
            yield folder, key, signature, (value,), {"same": value}
    model, recipes = sample_models.Rating(), sample_models.recipes()
    model(recipes)
    spec = sample_models.batches().element_spec[0]
    signature = flat_signature(model, spec, training=False, validate=True)
    xt.serving.save(model, path / "keras", signature)
    expected = tf.function(model)(recipes)
    yield str(path / "keras"), "serving_default", signature, (recipes,), expected
    vocabulary = path / "words.txt"
    vocabulary.write_text("slow\nquick\n")
    tables = Tables(str(vocabulary))
    signature = flat_signature(tables, RECIPE_SPEC)
    xt.serving.save(tables, path / "tables", signature)
    yield str(path / "tables"), "serving_default", signature, (RECIPE,), tables(RECIPE)
    vocabulary.unlink()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return list(models(tmp_path_factory.mktemp("models")))


def check(runs, responses):
    assert len(responses) == len(runs)
    for (folder, key, signature, _, expected), response in zip(runs, responses, strict=True):
        assert response == raw(signature.outputs.encode(expected)), f"{folder} {key}"
        client = xt.serving.load_client(folder, key)
        tensors = {
            name: np.array(data, object).reshape(shape)
            if dtype == "string"
            else np.frombuffer(data, tf.dtypes.as_dtype(dtype).as_numpy_dtype).reshape(shape)
            for name, (dtype, shape, data) in response.items()
        }
        assert_alike(client.decode(tensors), expected)


def requests(runs):
    return [(folder, key, raw(one.encode(*args))) for folder, key, one, args, _ in runs]


def test_python_with_only_tensorflow_gives_the_same_numbers(tmp_path, run_python, runs):
    paths = {"runs": str(tmp_path / "runs"), "results": str(tmp_path / "results")}
    Path(paths["runs"]).write_bytes(pickle.dumps(requests(runs)))
    run_python(PLAIN_PYTHON.format(**paths), fresh=True)
    check(runs, pickle.loads(Path(paths["results"]).read_bytes()))


def library():
    """Returns the path of TensorFlow's shared library, which holds the C API."""
    found = sorted(Path(tf.sysconfig.get_lib()).glob("libtensorflow_cc*"))
    return str(found[0]) if found else None


needs_library = pytest.mark.skipif(
    library() is None, reason="this TensorFlow has no libtensorflow_cc beside its Python package"
)


def run_c_api(tmp_path, requests):
    runs, results = tmp_path / "runs", tmp_path / "results"
    runs.write_bytes(pickle.dumps(requests))
    done = subprocess.run(
        [sys.executable, "-I", str(CLIENT), library(), str(runs), str(results)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return done, pickle.loads(results.read_bytes()) if done.returncode == 0 else None


@needs_library
def test_the_c_api_alone_gives_the_same_numbers(tmp_path, runs):
    done, responses = run_c_api(tmp_path, requests(runs))
    assert done.returncode == 0, done.stderr
    check(runs, responses)


@needs_library
def test_a_client_of_the_c_api_may_omit_arguments_with_defaults(tmp_path):
    scorer = Scorer()
    signature = flat_signature(scorer, RECIPE_SPEC, tf.TensorSpec([]))
    xt.serving.save(scorer, tmp_path / "model", signature)
    request = signature.encode(MORE)
    assert "temperature" not in request
    done, responses = run_c_api(
        tmp_path, [(str(tmp_path / "model"), "serving_default", raw(request))]
    )
    assert done.returncode == 0, done.stderr
    assert responses == [raw(signature.outputs.encode(scorer(MORE)))]


@needs_library
def test_a_function_is_validated_in_other_runtimes(tmp_path):
    signature = flat_signature(lambda recipe: recipe["tags"], RECIPE_SPEC, validate=True)
    xt.serving.save(None, tmp_path / "model", signature)
    request = signature.encode(RECIPE)
    request["tags__row_splits"] += [0, 0, 1]
    done, _ = run_c_api(tmp_path, [(str(tmp_path / "model"), "serving_default", raw(request))])
    assert done.returncode == 1
    assert "recipe.tags: expected row splits that end with the number of values" in done.stderr


UNKNOWN = """
import extensor as xt
from extensor import errors

try:
    xt.serving.load_client({path!r})
except errors.RegistrationError as error:
    assert isinstance(error, ValueError)
    print(error)
import tests.serving.sample

print(xt.serving.load_client({path!r}).inputs)
"""


def test_the_error_for_an_unknown_type_says_what_to_import(tmp_path, run_python):
    value, _ = VALUES["a type with named components"]
    xt.serving.save(None, tmp_path / "model", flat_signature(lambda x: x, value))
    code = UNKNOWN.format(path=str(tmp_path / "model"))
    error, layout = run_python(code).stdout.splitlines()
    assert "tests.serving.sample.BoxSpec" in error
    assert "it is defined in tests.serving.sample." in error
    assert layout == "Layout(high__0, high__0__row_splits, low)"
