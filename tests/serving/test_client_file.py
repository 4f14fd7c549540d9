"""The file that describes a client beside a saved model: written, and read again."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature
from tests.serving.sample import RAGGED, RECIPE_SPEC, VALUES, Kitchen, raises
from tests.stored_model import serve


def test_the_file_describes_a_client_without_python_types(tmp_path):
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
        "extensor.DenseStructuredTensorSpec": "extensor._struct.dense_spec",
        "extensor.RaggedStructuredTensorSpec": "extensor._struct.ragged_spec",
    }
    assert described["arguments"] == [
        {"name": "recipe", "kind": "POSITIONAL_OR_KEYWORD", "optional": False},
        {"name": "plus", "kind": "POSITIONAL_OR_KEYWORD", "optional": True},
    ]
    tensors = {one["name"]: one for one in described["inputs"]["tensors"]}
    assert tensors["recipe__steps__row_lengths"] == {
        "name": "recipe__steps__row_lengths",
        "path": "recipe.steps",
        "part": "row_lengths",
        "dtype": "int64",
        "shape": [None],
        "tensor": "minutes_recipe__steps__row_lengths:0",
    }
    assert tensors.keys() == {component.name for component in signature.inputs.components}
    [minutes, lengths] = described["outputs"]["tensors"]
    assert (minutes["name"], minutes["path"], minutes["dtype"]) == ("minutes", "minutes", "int32")
    assert (lengths["part"], lengths["shape"]) == ("row_lengths", [None])


def test_a_request_of_another_signature_names_it(tmp_path):
    double, half = (
        flat_signature(f, tf.TensorSpec([])) for f in (lambda x: x * 2, lambda x: x / 2)
    )
    xt.serving.save(None, tmp_path, {"serving_default": double, "half": half})
    default, other = xt.serving.load_client(tmp_path), xt.serving.load_client(tmp_path, "half")
    assert json.loads(default.encode_json(1.0)) == {"inputs": {"x": 1.0}}
    named = {"signature_name": "half", "inputs": {"x": 1.0}}
    assert json.loads(pickle.loads(pickle.dumps(other)).encode_json(1.0)) == named


@pytest.mark.whole("saves and loads models")
def test_a_client_comes_back_from_its_file(tmp_path):
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


@pytest.mark.whole("saves and loads a model")
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")
def test_records_of_any_depth_are_saved_and_loaded(tmp_path):
    """Protocol buffers read 100 levels of messages; a level of records takes eight or twelve."""
    rows = {}
    for key, around in {"records": lambda row: row, "lists": lambda row: [row]}.items():
        row = {"x": 1}
        for _ in range(11):
            row = {"of": around(row)}
        rows[key] = [row, row]
    module = tf.Module()
    signatures = {}
    for key, row in rows.items():
        spec = xt.spec_of(xt.struct.constant(row))
        setattr(module, key, tf.function(lambda x: x, input_signature=[[{"nested": spec}]]))
        signatures[key] = flat_signature(lambda x: {"y": x["of"]}, spec)
    xt.serving.save(module, tmp_path / "model", signatures, functions=True)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    for key, row in rows.items():
        [same] = getattr(loaded, key)([{"nested": xt.struct.constant(row)}])
        assert same["nested"].to_py() == row
        client = xt.serving.load_client(tmp_path / "model", key)
        output = client.decode(loaded.signatures[key](**client.encode(row)))
        assert output["y"].to_py() == [one["of"] for one in row]


OLD = "tests/saved/0.2/served"
"""A model of version 0.2, whose names have the words of all components."""

ROWS = [
    {"price": 1.5, "author": None, "tags": None, "kind": 2, "title": "soup"},
    {"price": None, "author": {"name": "Ann", "age": None}, "tags": [2.0, None], "kind": "a",
     "title": "tea"},
]  # fmt: skip


def test_an_old_file_keeps_its_names():
    client = xt.serving.load_client(OLD)
    described = json.loads(Path(OLD, "assets.extra", "extensor.json").read_text())
    for side, layout in (("inputs", client.inputs), ("outputs", client.outputs)):
        tensors = described["signatures"]["serving_default"][side]["tensors"]
        assert [c.name for c in layout.components] == [one["name"] for one in tensors]
    assert "recipe__tags__values__values___row_splits" in client.encode(ROWS, 1.0)


@pytest.mark.whole("loads a model")
def test_an_old_model_runs():
    served = tf.saved_model.load(OLD).signatures["serving_default"]
    client = xt.serving.load_client(OLD)
    result = client.decode(served(**client.encode(ROWS, 1.0)))
    assert result["number"].numpy().tolist() == [1.0, 3.0]
    expected = serve(client.inputs.structure["recipe"].cast(ROWS), 1.0)
    for price in (result["price"], expected["price"]):
        assert price.to_numpy().tolist() == [1.5, None]


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: tensor.update(path=tensor["path"].replace("title", "name")),
        lambda tensor: tensor.update(dtype="float64"),
        lambda tensor: tensor.update(part="mask"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_other_components_is_an_error(version, change, tmp_path):
    file = tmp_path / "assets.extra" / "extensor.json"
    if version == 1:
        file.parent.mkdir()
        shutil.copy(Path(OLD, "assets.extra", "extensor.json"), file)
    else:
        xt.serving.save(None, tmp_path, flat_signature(lambda x: x, RECIPE_SPEC))
    described = json.loads(file.read_text())
    tensors = described["signatures"]["serving_default"]["inputs"]["tensors"]
    change(next(one for one in tensors if one["path"].endswith("title")))
    file.write_text(json.dumps(described))
    raises(errors.StructureError, xt.serving.load_client, tmp_path)


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


def damaged(tmp_path, change):
    path = tmp_path / "model"
    xt.serving.save(None, path, flat_signature(lambda x: x, RECIPE_SPEC))
    file = path / "assets.extra" / "extensor.json"
    file.write_text(change(file.read_text()))
    return path


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda text: text[:100], errors.FormatError),
        (lambda text: "[]", errors.FormatError),
        (lambda text: text.replace("version 2", "version 9"), errors.FormatError),
        (lambda text: text.replace('"inputs"', '"in"'), errors.FormatError),
        (lambda text: text.replace("dictValue", "wrong"), errors.FormatError),
        (lambda text: text.replace("POSITIONAL_OR_KEYWORD", "other"), errors.FormatError),
        (lambda text: text.replace('"x.title"', '"x.name"'), errors.StructureError),
        (
            lambda text: text.replace(
                '"types": {', '"types": {"tests.UnheardOfSpec": "some.module",'
            ),
            errors.RegistrationError,
        ),
        (lambda text: text.replace("serving_default", "other"), errors.FieldError),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path, change, error):
    path = damaged(tmp_path, change)
    raised = raises(error, xt.serving.load_client, path)
    if error is errors.RegistrationError:
        assert "some.module" in raised.fix
    else:
        assert raised.path == str(path / "assets.extra" / "extensor.json")
