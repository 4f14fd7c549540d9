"""Losses and metrics that take whole extension values."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import kinds
from tests.keras.kinds import BATCH, COUNT, KINDS
from tests.keras.scores import bare_targets, scores, targets

RECORDS = KINDS["records"].value


# Of a field without a loss.
UNUSED = pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning")


def whole(y_true, y_pred):
    assert isinstance(y_true, xt.StructuredTensor)
    return (y_true["score"] - y_pred["score"]) ** 2


class Distance(keras.metrics.Metric):
    """A metric that takes whole extension values."""

    def __init__(self, name="distance"):
        super().__init__(name=name)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(tf.reduce_sum(tf.abs(y_true["score"] - y_pred["score"])))

    def result(self):
        return self.total.value


@pytest.mark.whole("trains models")
@UNUSED
def test_a_loss_and_a_metric_may_take_whole_values():
    model, bare = scores(loss={"score": "mse"})
    model.compile(keras.optimizers.Adam(0.1), whole, metrics=[Distance()])
    weights = np.linspace(0.0, 2.0, COUNT, dtype=np.float32)
    history = model.fit(
        RECORDS, targets(), BATCH, sample_weight=weights, shuffle=False, verbose=0
    ).history
    plain = bare.fit(
        KINDS["records"].dataset(targets(), weights).map(
            lambda x, y, w: (
                KINDS["records"].bare(x), {"score": bare_targets(y)["score"]}, {"score": w}
            )
        ),
        shuffle=False, verbose=0,
    ).history  # fmt: skip
    np.testing.assert_allclose(history["loss"], plain["loss"], rtol=1e-6)
    np.testing.assert_allclose(model.score.kernel, bare.score.kernel, rtol=1e-5)
    distance = model.evaluate(RECORDS, targets(), verbose=0, return_dict=True)["distance"]
    expected = np.sum(np.abs(model(RECORDS)["score"] - targets()["score"]))
    np.testing.assert_allclose(distance, expected, rtol=1e-5)


@pytest.mark.whole("trains models")
def test_a_loss_of_whole_values_of_other_types():
    class Half(xt.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(3)

        def call(self, masked):
            return kinds.MaskedTensor(self.dense(masked.values), masked.mask)

    def masked_error(y_true, y_pred):
        error = tf.where(y_true.mask, y_true.values - y_pred.values, 0.0)
        return tf.reduce_mean(error**2, axis=1)

    value = KINDS["protocol only"].value
    model = Half()
    model.compile("adam", masked_error)
    loss = model.evaluate(value, value, verbose=0)
    np.testing.assert_allclose(loss, np.mean(masked_error(value, model(value))), rtol=1e-6)
    before = model.fit(value, value, epochs=3, verbose=0).history["loss"]
    assert len(set(before)) == 3


class Halved(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return y_pred / 2


@pytest.mark.parametrize(
    ("loss", "path"), [("mse", ""), (Halved(), ""), ({"steps": "mse"}, ": output steps")]
)
def test_a_loss_of_tensors_for_a_whole_value_is_an_error_that_says_so(loss, path):
    model, _ = scores(loss=loss)
    with pytest.raises(errors.DTypeError) as raised:
        model.evaluate(RECORDS, targets(), verbose=0)
    assert raised.value.path == f"{model.name}{path}"
    assert raised.value.expected.endswith("Halved" if isinstance(loss, Halved) else "mse")
    assert "by field" in raised.value.fix


@pytest.mark.whole("trains models")
@UNUSED
def test_a_lambda_is_a_loss_of_tensors_and_of_values():
    histories = []
    for loss in ("mse", lambda y_true, y_pred: tf.reduce_mean((y_true - y_pred) ** 2, -1)):
        record = xt.keras.Input(KINDS["records"].spec)
        dense = keras.layers.Dense(1, kernel_initializer="ones")
        model = xt.keras.Model(record, dense(record["taste"]))
        model.compile("sgd", loss)
        data = (RECORDS, np.ones([COUNT, 1]))
        histories.append(model.fit(*data, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-6)
    model, _ = scores(loss={"score": "mse"})
    model.compile("sgd", {"score": lambda y_true, y_pred: (y_true - y_pred) ** 2})
    assert np.isfinite(model.fit(RECORDS, targets(), verbose=0).history["loss"])
    model.compile("sgd", lambda y_true, y_pred: (y_true["score"] - y_pred["score"]) ** 2)
    assert np.isfinite(model.fit(RECORDS, targets(), verbose=0).history["loss"])


def test_a_partial_function_is_a_loss():
    record = xt.keras.Input(KINDS["records"].spec)
    model = xt.keras.Model(record, keras.layers.Dense(1)(record["taste"]))
    model.compile("sgd", functools.partial(keras.losses.huber, delta=0.5))
    assert model.fit(RECORDS, np.ones([COUNT, 1]), verbose=0).history["loss"][0] > 0
