"""`xt.serving.save`: the signatures and files of saved models."""

import gc
import json

import keras
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature
from tests.samples.types import fresh_masked_type
from tests.serving.sample import (
    RECIPE,
    RECIPE_SPEC,
    Kitchen,
    Tables,
    assert_alike,
    raises,
    served,
)


def test_signatures_whose_operations_would_share_a_name_get_other_names(tmp_path):
    number = tf.TensorSpec([], tf.int32)
    signatures = {
        "a": flat_signature(lambda b_c: b_c + 1, number),
        "a_b": flat_signature(lambda c: c + 2, number),
        "plain": tf.function(lambda x: {"y": x + 3}, input_signature=[number]),
    }
    xt.serving.save(None, tmp_path / "model", signatures)
    loaded = tf.saved_model.load(str(tmp_path / "model")).signatures
    assert [int(loaded[key](tf.constant(0)).popitem()[1]) for key in signatures] == [1, 2, 3]
    words = json.loads((tmp_path / "model" / "assets.extra" / "extensor.json").read_text())
    assert words["signatures"].keys() == {"a", "a_b"}
    operations = {
        words["signatures"][key]["inputs"]["tensors"][0]["tensor"] for key in ("a", "a_b")
    }
    assert operations == {"a_b_c:0", "a_b_c_1:0"}


def test_only_the_parts_that_functions_use_are_saved(tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("slow\nquick\n")
    module = Tables(str(vocabulary))
    expected = module(RECIPE)  # traces a function that takes records, which is not saved
    signature = flat_signature(module, RECIPE_SPEC)
    xt.serving.save(module, tmp_path / "model", signature)
    vocabulary.unlink()
    assert [shape for _, shape in tf.train.list_variables(tmp_path / "model/variables/variables")
            if shape] == []  # fmt: skip
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    response = loaded.signatures["serving_default"](**signature.encode(RECIPE))
    assert_alike(signature.decode(response), expected)
    assert not callable(loaded)


def test_the_variables_of_all_signatures_are_saved(tmp_path):
    module = tf.Module()
    module.scale, module.shift = tf.Variable(2.0), tf.Variable(3.0)
    number = tf.TensorSpec([], name="x")
    shifted = tf.function(lambda x: {"y": x + module.shift})
    signatures = {
        "scaled": flat_signature(lambda x: x * module.scale, number),
        "traced": shifted.get_concrete_function(number),
        "plain": tf.function(lambda x: {"y": x - module.shift}, input_signature=[number]),
    }
    xt.serving.save(module, tmp_path / "model", signatures)
    loaded = tf.saved_model.load(str(tmp_path / "model")).signatures
    assert [float(loaded[key](x=tf.constant(5.0)).popitem()[1]) for key in signatures] == [10, 8, 2]


def test_keys_that_are_no_strings_are_an_error_before_anything_is_written(tmp_path):
    signature = flat_signature(lambda x: x[1], {1: tf.TensorSpec([])})
    error = raises(errors.UnsupportedTypeError, xt.serving.save, None, tmp_path / "m", signature)
    assert error.expected == "dicts whose keys are strings"
    assert not (tmp_path / "m").exists()


def test_a_signature_keeps_the_variables_of_its_module_alive(tmp_path):
    signature = flat_signature(Kitchen(), RECIPE_SPEC)
    gc.collect()
    xt.serving.save(None, tmp_path / "model", signature)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    response = loaded.signatures["serving_default"](**signature.encode(RECIPE))
    assert_alike(signature.decode(response), RECIPE["steps.minutes"] * 3)


class Looked(xt.keras.Layer):
    """Holds layers with tables in a dict, in which Keras finds variables but no tables."""

    def __init__(self):
        super().__init__()
        words = keras.layers.StringLookup(vocabulary=["slow", "quick"])
        self.tables = {
            "tags": [words],
            "more": ({"inner": keras.layers.IntegerLookup(vocabulary=[3, 6])},),
        }

    def call(self, recipe):
        tags = self.tables["tags"][0](recipe["tags"].flat_values)
        inner = self.tables["more"][0]["inner"](tags * 3)
        return recipe["tags"].with_flat_values(inner)


@pytest.mark.whole("saves and loads models")
@pytest.mark.parametrize("build", [Looked, lambda: xt.keras.Sequential([Looked()])])
@pytest.mark.parametrize("with_module", [True, False])
def test_the_tables_of_layers_in_a_dict_are_saved(tmp_path, build, with_module):
    model = build()
    signature = flat_signature(model, RECIPE_SPEC)
    xt.serving.save(model if with_module else None, tmp_path / "model", signature)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    response = loaded.signatures["serving_default"](**signature.encode(RECIPE))
    assert_alike(signature.decode(response), model(RECIPE))
    assert model(RECIPE).to_list() == [[2], []]


def test_the_module_itself_is_saved_on_demand(tmp_path):
    module = Kitchen()
    module.traced(RECIPE)
    signature = flat_signature(module.traced, RECIPE_SPEC)
    with pytest.warns(UserWarning, match="Encoding a StructuredValue"):
        xt.serving.save(module, tmp_path / "model", signature, functions=True)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    assert_alike(loaded.traced(RECIPE), module.traced(RECIPE))
    response = loaded.signatures["serving_default"](**signature.encode(RECIPE))
    assert_alike(signature.decode(response), module.traced(RECIPE))


def test_a_type_without_a_registered_name_is_an_error_before_anything_is_written(tmp_path):
    masked_type, masked_spec = fresh_masked_type()
    signature = flat_signature(lambda x: x.values, masked_spec([None], tf.float32))
    value = masked_type(tf.constant([1.0]), tf.constant([True]))
    assert served(signature, value) == [1.0]
    error = raises(errors.RegistrationError, xt.serving.save, None, tmp_path / "model", signature)
    assert "register_type_spec" in error.fix
    assert not (tmp_path / "model").exists()
    error = raises(errors.DTypeError, xt.serving.save, None, tmp_path / "model", lambda x: x)
    assert "flat_signature" in error.fix


def test_a_file_at_the_path_is_an_error_that_names_it(tmp_path):
    (tmp_path / "model").write_bytes(b"kept")
    with pytest.raises(xt.errors.StructureError, match=r"model: expected a folder .*got a file"):
        xt.serving.save(
            None, tmp_path / "model", xt.serving.flat_signature(tf.abs, tf.TensorSpec([]))
        )
    assert (tmp_path / "model").read_bytes() == b"kept"


def test_a_path_in_place_of_the_module_is_an_error_with_the_mend(tmp_path):
    with pytest.raises(errors.DTypeError, match=r"save\(model, path\)"):
        xt.serving.save(tmp_path / "model", tf.Module())


@pytest.mark.parametrize("module", ["module", 3, len, {}], ids=repr)
def test_an_object_without_variables_is_an_error_as_a_module(tmp_path, module):
    signature = flat_signature(lambda x: x, RECIPE_SPEC)
    error = raises(errors.DTypeError, xt.serving.save, module, tmp_path / "model", signature)
    assert (error.path, error.received) == ("module", type(module).__name__)
    assert not (tmp_path / "model").exists()


def _lookup(*words):
    return keras.layers.StringLookup(vocabulary=list(words))


class InCollections(keras.Model):
    """Keeps layers with tables in collections."""

    def __init__(self, layers):
        super().__init__()
        self.kept = layers

    def call(self, words):
        return sum(layer(words) for layer in tf.nest.flatten(self.kept))


class InCells(keras.layers.Layer):
    """Keeps a layer in a collection in a collection."""

    def __init__(self):
        super().__init__()
        self.cells = [{"first": (_lookup("x", "z"),)}]

    def call(self, words):
        return self.cells[0]["first"][0](words)


@pytest.mark.parametrize(
    "layers",
    [
        lambda: {"a": _lookup("x", "y")},
        lambda: [_lookup("x", "y")],
        lambda: (_lookup("x", "y"), _lookup("y")),
        lambda: {"a": {"b": [_lookup("x", "y")]}, "c": InCells()},
    ],
    ids=["dict", "list", "tuple", "deep"],
)
def test_tables_of_layers_in_collections_are_saved(tmp_path, layers):
    model = InCollections(layers())
    words = tf.constant(["x", "y", "z"])
    expected = model(words)
    signature = flat_signature(lambda words: model(words), tf.TensorSpec([None], tf.string))
    xt.serving.save(model, tmp_path / "model", signature)
    loaded = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    (result,) = loaded(words=words).values()
    assert result.numpy().tolist() == expected.numpy().tolist()
