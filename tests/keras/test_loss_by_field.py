"""Losses and metrics by field: those of a dict of plain tensors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import kinds
from tests.keras.kinds import BATCH, COUNT, KINDS
from tests.keras.scores import Scores, bare_targets, scores, targets

RECORDS = KINDS["records"].value


BY_FIELD = {
    "loss": {"score": "mse", "steps.done": "binary_crossentropy"},
    "loss_weights": {"score": 1.0, "steps.done": 0.5},
    "metrics": {"score": ["mae"], "steps.done": ["accuracy"]},
}


def scores_by_field():
    """Returns a model and its twin with losses and metrics by field."""
    return scores(**BY_FIELD)


def bare_pairs(*weights):
    dataset = KINDS["records"].dataset(targets(), *weights)
    return dataset.map(
        lambda x, y, *rest: (KINDS["records"].bare(x), bare_targets(y), *map(bare_weights, rest))
    )


def bare_weights(weights):
    return weights


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("y", ["records", "dict by path", "nested dict"])
def test_loss_and_metrics_by_field_are_those_of_a_dict_of_tensors(y):
    value = {
        "records": targets(),
        "dict by path": {"score": targets()["score"], "steps.done": targets()["steps.done"]},
        "nested dict": {"score": targets()["score"], "steps": targets()["steps"]},
    }[y]
    model, bare = kinds.reused(scores_by_field)
    history = model.fit(RECORDS, value, BATCH, epochs=2, shuffle=False, verbose=0).history
    plain = bare.fit(bare_pairs(), epochs=2, shuffle=False, verbose=0).history
    assert sorted(history) == sorted(plain)
    for name in plain:
        np.testing.assert_allclose(history[name], plain[name], rtol=1e-6)
    # Threads add in any order, and Adam divides by what little they differ in.
    for weight, twin in zip(model.weights, bare.weights, strict=True):
        np.testing.assert_allclose(weight, twin, rtol=1e-4, atol=1e-6)


@pytest.mark.whole("trains models")
def test_a_model_with_losses_by_field_comes_back_with_them(tmp_path):
    model, _ = kinds.reused(scores_by_field)
    model.fit(RECORDS, targets(), BATCH, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", custom_objects={"Scores": Scores})
    logs = [m.evaluate(RECORDS, targets(), verbose=0, return_dict=True) for m in (model, loaded)]
    assert logs[0] == logs[1]
    assert {"score_mae", "steps.done_accuracy"} < set(logs[0])
    histories = [
        m.fit(RECORDS, targets(), BATCH, shuffle=False, verbose=0).history for m in (model, loaded)
    ]
    assert histories[0] == histories[1]


def test_the_fields_of_a_declared_type_are_its_attributes():
    class Doubled(xt.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(3)

        def call(self, dish):
            return kinds.Dish(self.dense(dish.taste), dish.minutes * 2.0, dish.title)

    dish, model = KINDS["declared"].value, Doubled()
    model.compile("sgd", {"taste": "mse", "minutes": "mae"}, metrics={"minutes": "mse"})
    logs = model.evaluate(dish, dish, batch_size=COUNT, verbose=0, return_dict=True)
    minutes = dish.minutes.flat_values
    np.testing.assert_allclose(
        logs["taste_loss"], np.mean((model(dish).taste - dish.taste) ** 2), 1e-5
    )
    np.testing.assert_allclose(logs["minutes_loss"], np.mean(np.abs(minutes)), rtol=1e-5)
    np.testing.assert_allclose(logs["minutes_mse"], np.mean(minutes**2), rtol=1e-5)


def test_a_field_without_a_loss_is_left_alone():
    model, _ = scores(loss={"score": "mse"}, metrics=["mae"])
    logs = model.test_on_batch(RECORDS, targets(), return_dict=True)
    error = model(RECORDS)["score"] - targets()["score"]
    np.testing.assert_allclose(logs["loss"], np.mean(error**2), rtol=1e-5)
    np.testing.assert_allclose(logs["mae"], np.mean(np.abs(error)), rtol=1e-5)
    assert set(logs) == {"loss", "mae"}


@pytest.mark.whole("traces many functions")
def test_weights_of_records_weigh_each_of_their_values():
    weights = np.linspace(0.0, 2.0, COUNT, dtype=np.float32)
    model, _ = scores(loss={"score": "mse", "steps.done": "mae"})
    logs = model.evaluate(
        RECORDS, targets(), sample_weight=weights, batch_size=COUNT, verbose=0, return_dict=True
    )
    output, y = model(RECORDS), targets()
    score = np.mean(weights * (output["score"] - y["score"]) ** 2)
    np.testing.assert_allclose(logs["score_loss"], score, rtol=1e-5)
    lengths = RECORDS["minutes"].row_lengths()
    error = np.abs((output["steps.done"] - y["steps.done"]).flat_values)
    done = np.mean(np.repeat(weights, lengths) * error)
    np.testing.assert_allclose(logs["steps.done_loss"], done, rtol=1e-5)


class RowsOf(xt.keras.Model):
    """Returns a ragged tensor, of which rows are empty, alone or in a nest."""

    def __init__(self, nest):
        super().__init__()
        self.nest, self.dense = nest, keras.layers.Dense(1)

    def call(self, rows):
        values = self.dense(rows.flat_values[:, tf.newaxis])[:, 0]
        return self.nest(rows.with_flat_values(values), tf.reduce_sum(rows, 1)[:, tf.newaxis])


NESTS = {
    "alone": lambda rows, sums: rows,
    "dict": lambda rows, sums: {"rows": rows, "sums": sums},
    "list": lambda rows, sums: [sums, rows],
}


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("nest", NESTS)
def test_one_loss_for_all_compares_a_ragged_tensor_by_its_values(nest):
    rows = tf.ragged.constant([[1.0, 2.0], [], [4.0]], row_splits_dtype=tf.int64)
    targets, weights = rows * 3.0, np.array([1.0, 2.0, 3.0], np.float32)
    model = RowsOf(NESTS[nest])
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae"] if nest == "alone" else None)
    y = NESTS[nest](targets, tf.zeros([3, 1]))
    logs = model.evaluate(
        rows, y, sample_weight=weights if nest == "alone" else None, verbose=0, return_dict=True
    )
    error = (model.dense(rows.flat_values[:, tf.newaxis])[:, 0] - targets.flat_values).numpy()
    if nest == "alone":
        np.testing.assert_allclose(logs["loss"], np.mean([1, 1, 3] * error**2), rtol=1e-5)
        np.testing.assert_allclose(logs["mae"], np.mean(np.abs(error)), rtol=1e-5)
    else:
        sums = np.mean(np.square([3.0, 0.0, 4.0]))
        np.testing.assert_allclose(logs["loss"], np.mean(error**2) + sums, rtol=1e-5)


def test_weights_for_a_field_without_a_loss_are_an_error():
    model, _ = scores(loss={"score": "mse"}, metrics={"steps.done": "mae"})
    weights = np.ones(COUNT, np.float32)
    model.evaluate(RECORDS, targets(), sample_weight={"steps.done": weights}, verbose=0)
    with pytest.raises(errors.FieldError) as raised:
        model.evaluate(RECORDS, targets(), sample_weight={"scor": weights}, verbose=0)
    assert raised.value.path == f"{model.name}: sample_weight scor"
    assert raised.value.expected.endswith("score, steps.done")
    with pytest.raises(errors.FieldError) as raised:
        model.compile("sgd", {"score": "mse"}, loss_weights={"scor": 2.0})
    assert raised.value.path == f"{model.name}: loss_weights scor"


WRONG = {
    "no such output": ({"scor": "mse"}, lambda y: y, "output scor", "title, score"),
    "no such target": ({"score": "mse"}, lambda y: y.without("score"), "target score", "steps"),
    "beyond a tensor": ({"score.deep": "mse"}, lambda y: y, "output score.deep", "Tensor"),
}


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("case", WRONG)
def test_names_that_match_no_field_are_an_error_that_says_so(case):
    loss, change, path, received = WRONG[case]
    model, _ = scores(loss=loss)
    with pytest.raises(errors.FieldError) as raised:
        model.fit(RECORDS, change(targets()), verbose=0)
    assert raised.value.path == f"{model.name}: {path}"
    assert received.split(", ")[-1] in raised.value.received
    assert "compile(loss=" in raised.value.fix


def test_a_ragged_target_needs_a_ragged_output_of_the_same_rows():
    dense = {"steps.done": tf.zeros([COUNT, 3])}
    rows = tf.RaggedTensor.from_row_lengths(
        targets()["steps.done"].flat_values, RECORDS["minutes"].row_lengths()[::-1]
    )
    model, _ = scores(loss={"steps.done": "mse"})
    with pytest.raises(errors.DTypeError, match="got a dense target and a ragged output"):
        model.evaluate(RECORDS, dense, verbose=0)
    model, _ = scores(loss={"steps.done": "mse"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows of the outputs differ"):
        model.evaluate(RECORDS, {"steps.done": rows}, verbose=0)


@pytest.mark.whole("trains models")
def test_the_loss_of_an_inner_field_is_in_the_name_of_a_checkpoint(tmp_path):
    model, _ = kinds.reused(scores_by_field)
    named = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs.update(done=logs["steps.done_loss"])
    )
    saved = keras.callbacks.ModelCheckpoint(
        str(tmp_path / "{epoch}-{done:.3f}.weights.h5"), save_weights_only=True
    )
    history = model.fit(RECORDS, targets(), BATCH, callbacks=[named, saved], verbose=0).history
    [file] = tmp_path.iterdir()
    assert file.name == f"1-{history['steps.done_loss'][0]:.3f}.weights.h5"
