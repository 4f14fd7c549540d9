"""What is written of flat signatures beside a model, and what it takes to run one."""

import gc
import json

import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature
from tests.sample_serving import RAGGED, RECIPE, RECIPE_SPEC, VALUES, Kitchen, Tables, assert_alike


def test_the_file_says_without_python_types_what_a_client_must_know(tmp_path):
    signature = flat_signature(
        lambda recipe, plus=1: {"minutes": recipe["steps.minutes"] + plus},
        *(RECIPE_SPEC, tf.TensorSpec([], tf.int32)),
        ragged="row_lengths",
    )
    xt.serving.save(None, tmp_path / "model", {"minutes": signature})
    words = json.loads((tmp_path / "model" / "assets.extra" / "extensor.json").read_text())
    described = words["signatures"]["minutes"]
    assert described["ragged"] == "row_lengths"
    assert described["types"] == {
        "extensor.DenseStructuredTensorSpec": "extensor._struct.dense",
        "extensor.RaggedStructuredTensorSpec": "extensor._struct.ragged",
    }
    assert described["arguments"] == [
        {"name": "recipe", "kind": "POSITIONAL_OR_KEYWORD", "optional": False},
        {"name": "plus", "kind": "POSITIONAL_OR_KEYWORD", "optional": True},
    ]
    tensors = {one["name"]: one for one in described["inputs"]["tensors"]}
    assert tensors["recipe__steps___row_lengths"] == {
        "name": "recipe__steps___row_lengths",
        "path": "recipe.steps",
        "part": "row_lengths",
        "dtype": "int64",
        "shape": [None],
        "tensor": "minutes_recipe__steps___row_lengths:0",
    }
    assert tensors.keys() == {component.name for component in signature.inputs.components}
    [minutes, lengths] = described["outputs"]["tensors"]
    assert (minutes["name"], minutes["path"], minutes["dtype"]) == ("minutes", "minutes", "int32")
    assert (lengths["part"], lengths["shape"]) == ("row_lengths", [None])


def test_a_client_that_is_read_is_the_one_that_was_written(tmp_path):
    signatures = {
        f"{ragged} of {i}": flat_signature(lambda x, /, *, y=2: (x, y), value, ragged=ragged)
        for ragged in RAGGED
        for i, (value, _) in enumerate(VALUES.values())
    }
    xt.serving.save(None, tmp_path / "model", signatures)
    for key, signature in signatures.items():
        client = xt.serving.load_client(tmp_path / "model", key)
        assert client.parameters == signature.parameters
        for mine, theirs in [
            (signature.inputs, client.inputs),
            (signature.outputs, client.outputs),
        ]:
            assert mine.components == theirs.components
            assert mine.ragged == theirs.ragged
            tf.nest.assert_same_structure(mine.structure, theirs.structure)
            assert tf.nest.flatten(mine.structure) == tf.nest.flatten(theirs.structure)


def test_signatures_whose_operations_would_share_a_name_are_told_apart(tmp_path):
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


def test_what_the_functions_use_is_saved_and_nothing_else(tmp_path):
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


def test_a_signature_keeps_the_variables_of_its_module_alive(tmp_path):
    signature = flat_signature(Kitchen(), RECIPE_SPEC)
    gc.collect()
    xt.serving.save(None, tmp_path / "model", signature)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    response = loaded.signatures["serving_default"](**signature.encode(RECIPE))
    assert_alike(signature.decode(response), RECIPE["steps.minutes"] * 3)


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


def test_clients_are_added_to_a_model_that_was_saved_in_another_way(tmp_path):
    module = Kitchen()
    signature = flat_signature(module.traced, RECIPE_SPEC)
    bare = tf.Module()
    bare.factor = module.factor
    tf.saved_model.save(bare, str(tmp_path / "model"), signatures={"serve": signature.function})
    with pytest.raises(errors.MissingFileError, match="save_clients"):
        xt.serving.load_client(tmp_path / "model", "serve")
    with pytest.raises(errors.FieldError, match=r"'other'.*'serve'"):
        xt.serving.save_clients(tmp_path / "model", {"other": signature})
    xt.serving.save_clients(tmp_path / "model", {"serve": signature})
    client = xt.serving.load_client(tmp_path / "model", "serve")
    assert client.outputs.components == signature.outputs.components
