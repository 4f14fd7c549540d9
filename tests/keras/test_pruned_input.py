"""fit, evaluate and predict read only the fields that a model uses, with the same results."""

import keras
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given, settings

import extensor as xt
from tests.data.test_prunable import Reads
from tests.formats.test_parquet import folder
from tests.pruning.programs import EXPRESSIONS, table, value

pytestmark = pytest.mark.whole("trains models")


@pytest.fixture
def path(tmp_path):
    pq.write_table(table(0, 64), tmp_path / "records.parquet")
    return tmp_path / "records.parquet"


class Scorer(xt.keras.Model):
    """A model of an expression."""

    def __init__(self, expression):
        super().__init__()
        self.expression = expression
        self.dense = keras.layers.Dense(1)

    def call(self, records):
        return self.dense(tf.stack([records["a"], value(self.expression, records)], axis=1))


def with_label(records):
    return records, records["c"][:, tf.newaxis]


def results(model_of, path, columns):
    """Returns all that fit, evaluate and predict give."""
    keras.utils.set_random_seed(3)
    model = model_of()
    model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    source = xt.data.parquet(path, 16, columns=columns)
    labelled = source.map(with_label).shuffle(3)
    history = model.fit(labelled, epochs=2, validation_data=labelled, verbose=0).history
    scores = model.evaluate(labelled, verbose=0)
    outputs = model.predict(source, verbose=0)
    return [*history.values(), *scores, outputs, *model.get_weights()]


def assert_same(ours, plain):
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(one, other)


# Each example trains two models.
@settings(max_examples=settings.default.max_examples // 5)
@given(EXPRESSIONS)
def test_results_are_those_of_all_fields(expression):
    with folder() as name:
        pq.write_table(table(2, 40), f"{name}/records.parquet")
        both = [
            results(lambda: Scorer(expression), f"{name}/records.parquet", columns)
            for columns in ("auto", None)
        ]
        assert_same(*both)


def test_fields_that_the_model_does_not_use_are_not_read(path):
    model = Scorer(("sum", ("steps", "m")))
    model.compile("sgd", "mse")
    source = xt.data.parquet(path, 16)
    labelled = source.map(with_label).prefetch(1)
    with Reads() as fit:
        model.fit(labelled, verbose=0)
    assert fit.columns == {"a", "c", "steps.m"}
    with Reads() as evaluate:
        model.evaluate(labelled, verbose=0)
    assert evaluate.columns == {"a", "c", "steps.m"}
    with Reads() as predict:
        model.predict(source, verbose=0)
    assert predict.columns == {"a", "steps.m"}
    with Reads() as whole:
        model.predict(xt.data.parquet(path, 16, columns=None), verbose=0)
    assert len(whole.columns) == 11
    assert predict.nbytes < whole.nbytes / 3


def test_a_step_of_the_user_is_what_counts(path):
    class Own(Scorer):
        def train_step(self, data):
            records, label = data
            self.seen.assign_add(tf.reduce_sum(records["b"]))
            return super().train_step((records, label))

    model = Own(("number", ("a",)))
    model.seen = tf.Variable(0.0)
    model.compile("sgd", "mse")
    with Reads() as reads:
        model.fit(xt.data.parquet(path, 16).map(with_label), verbose=0)
    assert reads.columns == {"a", "b", "c"}
    assert model.seen.numpy() == pytest.approx(np.sum(table(0, 64)["b"].to_numpy()), rel=1e-4)


def test_an_eager_step_gets_all_fields(path):
    model = Scorer(("number", ("a",)))
    model.compile("sgd", "mse", run_eagerly=True)
    with Reads() as reads:
        model.fit(xt.data.parquet(path, 16).map(with_label), verbose=0)
    assert len(reads.columns) == 11


def test_compiling_again_finds_the_fields_again(path):
    class Switched(Scorer):
        field = "a"

        def call(self, records):
            return self.dense(records[self.field][:, tf.newaxis])

    model = Switched(None)
    source = xt.data.parquet(path, 16).map(with_label)
    for field in ("a", "b"):
        model.field = field
        model.compile("sgd", "mse")
        with Reads() as reads:
            model.fit(source, verbose=0)
        assert reads.columns == {field, "c"}
