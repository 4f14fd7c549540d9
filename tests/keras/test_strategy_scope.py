"""Models trained inside of `strategy.scope()` give what they give outside of it."""

import pytest

pytestmark = [
    pytest.mark.whole("trains under strategies in other processes"),
    pytest.mark.first,
]

STRATEGIES = {
    "one device": 'tf.distribute.OneDeviceStrategy("/cpu:0")',
    "mirrored": 'tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])',
}

LAW = """
import contextlib
import itertools

import keras
import numpy as np
import tensorflow as tf
import extensor as xt

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.keras import kinds
from tests.keras.kinds import RATINGS


class Halved(xt.keras.Model):
    # Returns records, or a ragged tensor: the losses are by field, or of whole values.
    def __init__(self, by_field):
        super().__init__()
        self.by_field, self.dense = by_field, keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, records):
        rows = records["rows"]
        rows = rows.with_flat_values(self.dense(rows.flat_values[:, tf.newaxis])[:, 0])
        return records.with_updates(rows=rows) if self.by_field else rows


rows = tf.RaggedTensor.from_row_lengths(tf.linspace(0.0, 2.0, 17), [0, 1, 2, 5, 1, 0, 4, 4])
records = xt.DenseStructuredTensor([8], {"rows": rows})
targets = xt.DenseStructuredTensor([8], {"rows": rows**2})

# Each has a function that makes a model, its loss, the inputs and the targets.
MODELS = {
    f"{form} model of {name}": (lambda form=form, kind=kind: kinds.FORMS[form](kind), "mse",
                                kind.rows(0, 8), RATINGS[:8])
    for (name, kind), form in zip(kinds.KINDS.items(), kinds.FORMS, strict=True)
} | {
    "losses by field": (lambda: Halved(True), {"rows": "mse"}, records, targets),
    "a loss of whole values": (lambda: Halved(False), lambda y, y_pred: (y - y_pred) ** 2,
                               records, rows**2),
}


def data(*parts):
    return tf.data.Dataset.from_tensor_slices(parts).batch(4)


# Each takes a model, the inputs and the targets, and returns a nest of numbers.
CALLS = {
    # Each epoch makes two iterators for all replicas, which takes longer than its steps.
    "fit": lambda m, x, y: m.fit(x, y, 4, epochs=2 if isinstance(m, Halved) else 1, shuffle=False,
                                 validation_data=(x, y), verbose=0).history,
    "fit on a dataset": lambda m, x, y: m.fit(data(x, y), verbose=0).history,
    "evaluate": lambda m, x, y: m.evaluate(x, y, 4, verbose=0),
    "predict": lambda m, x, y: m.predict(x, 4, verbose=0),
    "train_on_batch": lambda m, x, y: m.train_on_batch(x, y),
    "test_on_batch": lambda m, x, y: m.test_on_batch(x, y),
}

strategy = STRATEGY
for model_name, call in itertools.product(MODELS, NAMES):
    make, loss, x, y = MODELS[model_name]
    results = []
    for calls_inside in (False, True):
        keras.utils.set_random_seed(1)
        with strategy.scope():
            model = make()
            model.compile(keras.optimizers.SGD(0.001), loss)
        with strategy.scope() if calls_inside else contextlib.nullcontext():
            result = CALLS[call](model, x, y)
        parts = tf.nest.flatten([result, model.get_weights()], expand_composites=True)
        results.append(np.concatenate([np.ravel(part) for part in parts]))
    np.testing.assert_allclose(*results, rtol=1e-5, err_msg=f"{model_name}, {call}")
"""


# In processes of their own, so that workers share the time.
CALLS = {
    "fit": ["fit"],
    "fit on a dataset": ["fit on a dataset"],
    "other calls": ["evaluate", "predict", "train_on_batch", "test_on_batch"],
}


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_call_gives_the_same_inside_and_outside(run_python, strategy, calls):
    law = LAW.replace("STRATEGY", STRATEGIES[strategy]).replace("NAMES", repr(CALLS[calls]))
    run_python(law, timeout=500)
