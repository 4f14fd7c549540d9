"""What people see of a model."""

import shutil

import keras
import pytest

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
    assert listed[:end] == [f"inputs.{field}" for field in FIELDS[name]]
    assert listed[end + 1 :] == ["float32 (None, 1)"]
    assert any("dense" in line for line in lines[:start])
    assert not any("unknown" in line for line in lines)


def test_records_that_come_out_are_listed_too():
    recipe = xt.keras.Input(KINDS["records"].spec)
    model = xt.keras.Model(recipe, {"all": xt.keras.Identity()(recipe)})
    assert "   all.ingredients.name: string (None, None) ragged" in summary(model)


def test_a_graph_names_its_inputs_by_path():
    model = kinds.functional(KINDS["declared"])
    names = [layer.name for layer in model.graph.layers]
    assert {"taste", "minutes", "minutes.row_splits", "title"} < set(names)


def test_a_plot_names_fields_by_path():
    pydot = pytest.importorskip("pydot", reason="pydot draws plots, and is not installed")
    dot = keras.utils.model_to_dot(sample.functional().graph, show_shapes=True, show_dtype=True)
    assert isinstance(dot, pydot.Dot)
    text = dot.to_string()
    assert "ingredients.amount" in text
    assert "unknown" not in text.lower()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (dot), not installed, draws it")
def test_a_plot_is_drawn(tmp_path):
    pytest.importorskip("pydot", reason="pydot draws plots, and is not installed")
    graph = sample.functional().graph
    keras.utils.plot_model(graph, tmp_path / "model.svg", show_layer_names=True)
    assert "ingredients.amount" in (tmp_path / "model.svg").read_text(encoding="utf-8")
