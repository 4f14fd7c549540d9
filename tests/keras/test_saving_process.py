"""Models of every kind of value, saved or exported, in processes that never saw them."""

import json
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import kinds
from tests.keras import sample_models as sample
from tests.keras.kinds import BATCH, KINDS, RATINGS
from tests.keras.test_serialization import Nearest

pytestmark = pytest.mark.whole("loads models in fresh processes")

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


FORM = pytest.mark.parametrize("form", kinds.FORMS)


LOADED = """
import json
import pickle
import keras
import numpy as np
import tensorflow as tf
from tests.keras import kinds, test_serialization

for name, kind in kinds.KINDS.items():
    layer = keras.saving.deserialize_keras_object(json.load(open(f"{root}/{{name}}.json")))
    assert type(layer) is test_serialization.Nearest and layer.spec == kind.spec, name
    assert type(layer.value) is type(kind.value), name
    assert kinds.numbers(layer.value) == kinds.numbers(kind.value), name
    for form in kinds.FORMS:
        folder = f"{root}/{{name}}-{{form}}"
        expected = np.load(folder + ".npy")
        model = keras.saving.load_model(folder + ".keras")
        assert np.array_equal(model(kind.value), expected), (name, form)
        fresh = type(model).from_config(model.get_config())
        fresh(kind.value)
        fresh.load_weights(folder + ".weights.h5")
        assert np.array_equal(fresh(kind.value), expected), (name, form)
        clone = keras.models.clone_model(model)
        clone(kind.value)
        clone.set_weights(model.get_weights())
        assert np.array_equal(clone(kind.value), expected), (name, form)
        history = model.fit(kind.dataset(kinds.RATINGS), verbose=0).history
        assert history == pickle.load(open(folder + ".history", "rb")), (name, form)
        served = tf.saved_model.load(folder)
        assert np.array_equal(served.serve(kind.value), expected), (name, form)
        assert np.array_equal(served.first(kind.value), expected), (name, form)
"""


BARE = """
import sys
import pickle
import numpy as np
import tensorflow as tf

for folder in {folders!r}:
    feed, expected = pickle.load(open(folder + "/feed.pkl", "rb"))
    served = tf.saved_model.load(folder + "/model").signatures["serving_default"]
    (output,) = served(**{{name: tf.constant(array) for name, array in feed.items()}}).values()
    assert np.array_equal(output, expected), folder
assert not any(name.split(".")[0] == "extensor" for name in sys.modules)
"""


def test_models_come_back_bit_for_bit_in_a_fresh_process(tmp_path, run_python):
    for name, kind in KINDS.items():
        config = keras.saving.serialize_keras_object(Nearest(kind.spec, kind.value))
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
        for form in kinds.FORMS:
            folder = f"{tmp_path}/{name}-{form}"
            model = kinds.FORMS[form](kind)
            model(kind.value)
            model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
            model.fit(kind.dataset(RATINGS), verbose=0)
            model.save(folder + ".keras")
            model.save_weights(folder + ".weights.h5")
            np.save(folder + ".npy", model(kind.value))
            archive = keras.export.ExportArchive()
            archive.track(model)
            archive.add_endpoint("serve", model.serving_function())
            archive.add_endpoint("first", model.serving_function([kind.spec]))
            with pytest.warns(UserWarning, match="Encoding a StructuredValue"):
                archive.write_out(folder, verbose=False)
            history = model.fit(kind.dataset(RATINGS), verbose=0).history
            with open(folder + ".history", "wb") as file:
                pickle.dump(history, file)
    run_python(LOADED.format(root=tmp_path))


def test_the_flat_signature_needs_neither_keras_nor_extensor(tmp_path, run_python):
    folders = []
    for name, kind in KINDS.items():
        model = kinds.functional(kind)
        signature = xt.serving.flat_signature(model, kind.spec)
        folder = tmp_path / name.replace(" ", "_")
        folders.append(str(folder))
        xt.serving.save(model, str(folder / "model"), signature)
        feed = {name: part.numpy() for name, part in signature.encode(kind.value).items()}
        with open(folder / "feed.pkl", "wb") as file:
            pickle.dump((feed, np.asarray(model(kind.value))), file)
    run_python(BARE.format(folders=folders))


HUB = """
import sys
import types

import numpy as np
from packaging.version import parse

# tensorflow_hub takes one function from a module that setuptools no longer has.
sys.modules.setdefault("pkg_resources", types.SimpleNamespace(parse_version=parse))
import tensorflow_hub as hub
import extensor as xt
from tests.keras import kinds, test_saving

for name, kind in kinds.KINDS.items():
    folder = f"{root}/{{name}}"
    placeholder = xt.keras.Input(kind.spec)
    layer = test_saving.Wrapped(folder, hub.load)
    model = xt.keras.Model(placeholder, layer(placeholder))
    predicted = model.predict(kind.value, kinds.BATCH, verbose=0)
    assert np.array_equal(predicted, np.load(folder + ".npy")), name
    model.compile("sgd", "mse")
    model.fit(kind.value, kinds.RATINGS, kinds.BATCH, verbose=0)
"""


def test_a_layer_wraps_what_the_hub_loads(tmp_path, run_python):
    for name, kind in KINDS.items():
        model = kinds.functional(kind)
        model.export(tmp_path / name, verbose=False)
        np.save(tmp_path / f"{name}.npy", model.predict(kind.value, BATCH, verbose=0))
    run_python(HUB.format(root=tmp_path))


LITE = """
import sys
import numpy as np
import tensorflow as tf

content = tf.lite.TFLiteConverter.from_saved_model({path!r}).convert()
runner = tf.lite.Interpreter(model_content=content).get_signature_runner("serving_default")
for size in (10, 3):
    request = np.load(f"{path}/request{{size}}.npz", allow_pickle=True)
    (output,) = runner(**request).values()
    np.testing.assert_allclose(output, np.load(f"{path}/expected{{size}}.npy"), 1e-5, 1e-6)
assert not any(name.split(".")[0] == "extensor" for name in sys.modules)
"""


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")
def test_lite_runs_the_flat_signature_of_records(tmp_path, run_python):
    recipes = sample.recipes().without("ingredients")
    recipe = xt.keras.Input(tf.data.Dataset.from_tensor_slices(recipes).batch(4).element_spec)
    lookup = keras.layers.StringLookup()
    lookup.adapt(recipes["title"])
    title = keras.layers.Embedding(20, 2)(lookup(recipe["title"]))
    minutes = xt.keras.Lambda(lambda r: tf.reduce_sum(r["minutes"], axis=1)[:, tf.newaxis])(recipe)
    parts = keras.layers.Concatenate()([recipe["taste"], minutes, title])
    model = xt.keras.Model(recipe, keras.layers.Dense(2)(parts))
    spec = tf.data.Dataset.from_tensor_slices(recipes).batch(4).element_spec
    signature = xt.serving.flat_signature(model, spec)
    path = str(tmp_path / "model")
    xt.serving.save(model, path, signature)
    for size in (10, 3):
        request = signature.encode(recipes[:size])
        np.savez(f"{path}/request{size}.npz", **{k: v.numpy() for k, v in request.items()})
        np.save(f"{path}/expected{size}.npy", model(recipes[:size]))
    run_python(LITE.format(path=path))


TEXT = """
import keras
import numpy as np
import tensorflow as tf
import extensor as xt
from tests.keras import test_saving_process as here

one, two = here.two_inputs()
model = keras.saving.load_model({path!r})
expected = np.load({path!r} + ".npy")
assert np.array_equal(model((one, two)), expected)
clone = keras.models.clone_model(model)
clone.set_weights(model.get_weights())
kinds = (keras.layers.TextVectorization, keras.layers.StringLookup)
for layer in (layer for layer in model.layers if isinstance(layer, kinds)):
    clone.get_layer(layer.name).set_vocabulary(layer.get_vocabulary())
assert np.array_equal(clone((one, two)), expected)
assert model.predict(tf.data.Dataset.from_tensors(((one, two),)), verbose=0).shape == (10, 1)
"""


def two_inputs():
    """Recipes, and records of another type beside them."""
    recipes = sample.recipes()
    comments = ["plain flour cake", "sugar", "butter and salt", "", "flour"] * 2
    reviews = xt.DenseStructuredTensor([10], {"title": comments, "stars": tf.range(10)})
    return recipes, reviews


def test_a_model_of_two_records_and_stock_text_layers_comes_back(tmp_path, run_python):
    recipes, reviews = two_inputs()
    words = keras.layers.TextVectorization(output_sequence_length=3)
    words.adapt(reviews["title"])
    lookup = keras.layers.StringLookup()
    lookup.adapt(recipes["title"])
    scaled = keras.layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0])
    specs = tf.data.Dataset.from_tensor_slices((recipes, reviews)).batch(4).element_spec
    recipe, review = (xt.keras.Input(spec, name) for spec, name in zip(specs, "ab", strict=True))
    embedded = keras.layers.Embedding(20, 2)(words(review["title"]))
    title = keras.layers.Embedding(20, 2)(lookup(recipe["title"]))
    parts = [scaled(recipe["taste"]), keras.layers.GlobalAveragePooling1D()(embedded), title]
    model = xt.keras.Model((recipe, review), keras.layers.Dense(1)(
        keras.layers.Concatenate()(parts)))  # fmt: skip
    path = str(tmp_path / "text.keras")
    model.save(path)
    np.save(path + ".npy", model((recipes, reviews)))
    run_python(TEXT.format(path=path))


LOADED_PLAINLY = """
import os
import sys
{imports}
import numpy as np
import pyarrow.parquet as pq

assert "extensor.keras" not in sys.modules
assert keras.models.load_model is keras.saving.load_model
# The class of a user is imported by the user before its model is loaded.
parts = [("", {names!r}[:2]), ("import tests.keras.test_saving_process", {names!r}[2:])]
broken = []
for own, names in parts:
    child = os.fork()
    if child == 0:
        break
    if os.waitpid(child, 0)[1] != 0:
        broken.append(names)
else:
    sys.exit(f"These models were not loaded: {{broken}}" if broken else 0)

# From here on, each child goes on as a process that has imported the libraries and done nothing.
exec(own)
table = pq.read_table({root!r} + "/recipes.parquet")
for name in names:
    model = keras.saving.load_model(f"{root}/{{name}}.keras")
    expected = np.load(f"{root}/{{name}}.npy")
    assert np.array_equal(model.predict(xt.from_arrow(table), verbose=0), expected), name
"""


@keras.saving.register_keras_serializable(package="tests")
class Scorer(xt.keras.Model):
    """A subclass, which a process has to import before it loads it, as any class of Keras."""

    def __init__(self, **options):
        super().__init__(**options)
        self.pool = xt.keras.layers.ListPooling("sum")
        self.dense = keras.layers.Dense(1)

    def call(self, recipes):
        return self.dense(self.pool(recipes["minutes"])[:, None])


def _scorers():
    """Models of each form, of the records that `_recipes` returns."""
    spec = xt.spec_of(_recipes())
    recipe = xt.keras.Input(spec.unstacked().stacked(None))
    total = xt.keras.layers.ListPooling("sum")(recipe["minutes"])
    yield "functional", xt.keras.Model(recipe, keras.layers.Dense(1)(total[:, None]))
    features = xt.keras.layers.RecordFeatures()
    features.adapt(_recipes())
    yield "sequential", xt.keras.Sequential([features, keras.layers.Dense(1)])
    yield "subclassed", Scorer()


def _recipes():
    return xt.struct.constant([{"minutes": [5.0, 20.0]}, {"minutes": []}, {"minutes": [1.0]}])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns a folder of saved models with their predictions, and their names."""
    folder, names = tmp_path_factory.mktemp("saved"), []
    xt.write_parquet(_recipes(), folder / "recipes.parquet")
    for name, model in _scorers():
        np.save(f"{folder}/{name}.npy", model.predict(_recipes(), verbose=0))
        model.save(f"{folder}/{name}.keras")
        names.append(name)
    return folder, names


@pytest.mark.parametrize(
    "imports",
    [
        "import extensor as xt; import keras",
        "import keras; import extensor as xt",
    ],
    ids=["extensor first", "keras first"],
)
def test_a_process_that_did_not_use_our_keras_loads_models(saved, run_python, imports):
    folder, names = saved
    code = LOADED_PLAINLY.format(imports=imports, root=str(folder), names=names)
    run_python(code, fresh=True, timeout=600)
