"""What people see of a model."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import kinds
from tests.keras import sample_models as sample
from tests.keras.kinds import KINDS

FIELDS = {
    "protocol only": ["0: float32 (None, 3)", "1: bool (None, 3)"],
    "declared": [
        "taste: float32 (None, 3)",
        "minutes: float32 (None, None) ragged",
        "title: string (None,)",
    ],
    "records": [
        "taste: float32 (None, 3)",
        "title: string (None,)",
        "minutes: float32 (None, None) ragged",
        "ingredients.name: string (None, None) ragged",
        "ingredients.amount: float32 (None, None) ragged",
    ],
}


def summary(model):
    lines = []
    model.summary(print_fn=lambda line, **_: lines.extend(line.split("\n")))
    return lines


@pytest.mark.parametrize("form", kinds.FORMS)
@pytest.mark.parametrize("name", KINDS)
def test_the_summary_lists_fields_by_their_paths(name, form):
    kind = KINDS[name]
    model = kinds.FORMS[form](kind)
    model(kind.value)
    lines = summary(model)
    start = lines.index(" Inputs:")
    listed = [line.strip() for line in lines[start + 1 :]]
    end = listed.index("Outputs:")
    at = model.inputs[0].name if form == "functional" else "inputs"
    assert listed[:end] == [f"{at}.{field}" for field in FIELDS[name]]
    assert listed[end + 1 :] == ["float32 (None, 1)"]
    assert any("dense" in line for line in lines[:start])
    assert not any("unknown" in line for line in lines)


def test_records_that_come_out_are_listed_too():
    recipe = xt.keras.Input(KINDS["records"].spec)
    model = xt.keras.Model(recipe, {"all": xt.keras.Identity()(recipe)})
    assert "   all.ingredients.name: string (None, None) ragged" in summary(model)


def test_a_functional_model_has_a_row_for_each_input_and_each_field_that_a_keras_layer_reads():
    recipe = xt.keras.Input(KINDS["records"].spec, name="recipe")
    totals = sample.Totals(name="totals")(recipe)
    joined = keras.layers.Concatenate(name="joined")([recipe["taste"], totals])
    model = xt.keras.Model(recipe, keras.layers.Dense(1, name="score")(joined), name="rating")
    names = ["recipe", "recipe.taste", "totals", "joined", "score"]
    assert sorted(operation.name for operation in model.operations) == sorted(names)
    lines = summary(model)
    assert lines[0] == 'Model: "rating"'
    table = "\n".join(lines[: lines.index(" Inputs:")])
    assert all(name in table for name in names)
    assert "minutes" not in table
    assert "   recipe.minutes: float32 (None, None) ragged" in lines


def test_the_summary_does_not_list_fields_that_the_model_does_not_read():
    recipe = xt.keras.Input(KINDS["records"].spec, name="recipe")
    minutes = xt.keras.layers.ListPooling("sum")(recipe["minutes"])
    vectors = keras.layers.Dense(1)(recipe["taste"])
    lines = summary(xt.keras.Model(recipe, [minutes, vectors]))
    listed = lines[lines.index(" Inputs:") + 1 : lines.index(" Outputs:")]
    assert listed == [
        "   recipe.taste: float32 (None, 3)",
        "   recipe.minutes: float32 (None, None) ragged",
    ]
    assert not any("title" in line or "row_splits" in line for line in lines)


def test_the_summary_lists_all_fields_that_a_model_in_the_model_gets():
    spec = KINDS["records"].spec
    recipe, other = xt.keras.Input(spec, name="recipe"), xt.keras.Input(spec, name="other")
    inner = xt.keras.Model(recipe, keras.layers.Dense(1)(recipe["taste"]))
    lines = summary(xt.keras.Model(other, keras.layers.Dense(1)(inner(other))))
    listed = lines[lines.index(" Inputs:") + 1 : lines.index(" Outputs:")]
    assert listed == [f"   other.{field}" for field in FIELDS["records"]]


def test_a_plot_has_one_edge_for_a_value_and_names_fields_by_path():
    pydot = pytest.importorskip("pydot", reason="pydot draws plots, and is not installed")
    recipe = xt.keras.Input(KINDS["records"].spec, name="recipe")
    totals = sample.Totals(name="totals")(xt.keras.Identity(name="same")(recipe))
    joined = keras.layers.Concatenate(name="joined")([recipe["taste"], totals])
    model = xt.keras.Model(recipe, joined)
    dot = keras.utils.model_to_dot(model, show_shapes=True, show_dtype=True)
    assert isinstance(dot, pydot.Dot)
    names = {node.get_name(): _name_in(node.get_label()) for node in dot.get_nodes()[1:]}
    edges = [(names[edge.get_source()], names[edge.get_destination()]) for edge in dot.get_edges()]
    assert sorted(edges) == [
        ("recipe", "recipe.taste"),
        ("recipe", "same"),
        ("recipe.taste", "joined"),
        ("same", "totals"),
        ("totals", "joined"),
    ]
    assert set(names.values()) == {name for edge in edges for name in edge}  # no orphans
    assert "DenseStructuredTensor" in dot.to_string()


def test_a_field_that_is_a_value_is_one_node_with_its_path():
    recipe = xt.keras.Input(KINDS["records"].spec, name="recipe")
    sums = xt.keras.layers.ListPooling("sum", name="sums")(recipe["minutes"])
    means = xt.keras.layers.ListPooling("mean", name="means")(recipe["minutes"])
    lengths = xt.keras.Lambda(lambda records: records["name"].row_lengths(), name="lengths")
    counts = lengths(recipe["ingredients"])
    some = lengths(recipe["ingredients"].with_only("name"))
    model = xt.keras.Model(recipe, [sums, means, counts, some])
    names = [operation.name for operation in model.operations]
    assert names.count("recipe.minutes") == names.count("recipe.ingredients") == 1
    assert not any("row_splits" in name or "flat_values" in name for name in names)
    value = KINDS["records"].value
    np.testing.assert_array_equal(model(value)[0], tf.reduce_sum(value["minutes"], axis=1))


@pytest.mark.whole("saves and loads models")
def test_a_field_and_its_flat_values_are_read_beside_each_other(tmp_path):
    recipe = xt.keras.Input(KINDS["records"].spec, name="recipe")
    minutes = recipe["minutes"]
    doubled = minutes.with_flat_values(keras.layers.Rescaling(2.0)(minutes.flat_values))
    pooling = xt.keras.layers.ListPooling("sum")
    model = xt.keras.Model(recipe, [pooling(minutes), pooling(doubled)])
    names = [operation.name for operation in model.operations]
    assert {"recipe.minutes", "recipe.minutes.flat_values"} <= set(names)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for same in (model, loaded, keras.models.clone_model(model)):
        one, two = same(KINDS["records"].value)
        np.testing.assert_allclose(two, one * 2)


def test_a_plot_of_several_values_and_a_model_in_it_has_no_orphans():
    pydot = pytest.importorskip("pydot", reason="pydot draws plots, and is not installed")
    spec = KINDS["records"].spec
    one, other = xt.keras.Input(spec, name="one"), xt.keras.Input(spec, name="other")
    inner_recipe = xt.keras.Input(spec, name="recipe")
    inner = xt.keras.Model(inner_recipe, sample.Totals()(inner_recipe), name="inner")
    joined = keras.layers.Concatenate(name="joined")([inner(one), other["taste"]])
    dot = keras.utils.model_to_dot(xt.keras.Model([one, other], joined), show_layer_names=True)
    assert isinstance(dot, pydot.Dot)
    names = {node.get_name(): _name_in(node.get_label()) for node in dot.get_nodes()[1:]}
    edges = [(names[edge.get_source()], names[edge.get_destination()]) for edge in dot.get_edges()]
    assert sorted(edges) == [
        ("inner", "joined"),
        ("one", "inner"),
        ("other", "other.taste"),
        ("other.taste", "joined"),
    ]
    assert set(names.values()) == {name for edge in edges for name in edge}


def _name_in(label):
    return label.partition("<b>")[2].partition("</b>")[0]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (dot), not installed, draws it")
def test_a_plot_is_drawn(tmp_path):
    pytest.importorskip("pydot", reason="pydot draws plots, and is not installed")
    model = sample.functional()
    # Keras 3.10 cannot return the image of an SVG file.
    keras.utils.plot_model(model, tmp_path / "model.png", show_layer_names=True, dpi=50)
    assert (tmp_path / "model.png").read_bytes().startswith(b"\x89PNG")
    drawn = keras.utils.model_to_dot(model, show_layer_names=True).create(format="svg")
    assert "ingredients.name" in drawn.decode()
