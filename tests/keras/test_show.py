"""What people see of a model, and what callbacks do with it."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests import sample_models as sample
from tests.keras import kinds
from tests.keras.kinds import BATCH, KINDS, RATINGS

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


@pytest.mark.parametrize("name", KINDS)
def test_callbacks(tmp_path, name):
    kind = KINDS[name]
    model, _ = kinds.twins(kind)
    best = str(tmp_path / "best.keras")
    model.fit(
        kind.value, RATINGS, BATCH, epochs=4, validation_split=0.2, verbose=0,
        callbacks=[
            keras.callbacks.ModelCheckpoint(best, monitor="val_loss", save_best_only=True),
            keras.callbacks.EarlyStopping(monitor="val_loss", patience=3),
            keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
            keras.callbacks.BackupAndRestore(str(tmp_path / "backup")),
        ],
    )  # fmt: skip
    losses = np.genfromtxt(tmp_path / "log.csv", delimiter=",", names=True)["val_loss"]
    loaded = keras.saving.load_model(best)
    x, y = kind.rows(8, 10), RATINGS[8:]
    loss, _ = loaded.evaluate(x, y, verbose=0)
    np.testing.assert_allclose(loss, losses.min(), rtol=1e-5)


def test_tensorboard_reads_the_losses(tmp_path):
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard, which is not installed, reads what is written for it",
    )
    kind = KINDS["records"]
    model, _ = kinds.twins(kind, "functional")
    history = model.fit(
        kind.value, RATINGS, BATCH, epochs=2, verbose=0,
        callbacks=[keras.callbacks.TensorBoard(str(tmp_path))],
    ).history  # fmt: skip
    written = reader.EventAccumulator(str(tmp_path / "train")).Reload()
    losses = [float(tf.make_ndarray(event.tensor_proto)) for event in written.Tensors("epoch_loss")]
    assert losses == pytest.approx(history["loss"])
