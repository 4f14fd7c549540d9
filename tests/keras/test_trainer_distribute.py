"""Models under tf.distribute: on two devices, and in two processes."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.whole("trains on several devices in other processes")

MIRRORED = """
import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf
import extensor as xt

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.keras import kinds
from tests.keras.kinds import RATINGS

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Same(xt.keras.Model):
    def call(self, inputs):
        return inputs


def compiled(model):
    model.compile(keras.optimizers.SGD(0.001), "mse", metrics=["mae"])
    return model


for (name, kind), form in zip(kinds.KINDS.items(), kinds.FORMS, strict=True):
    one = compiled(kinds.FORMS[form](kind))
    one(kind.value)
    with strategy.scope():
        two = compiled(kinds.FORMS[form](kind))
    two.predict(kind.value, 4, verbose=0)
    two.set_weights(one.get_weights())
    x, y = kind.rows(0, 8), RATINGS[:8]
    histories = [m.fit(x, y, 4, shuffle=False, verbose=0).history for m in (one, two)]
    for key in histories[0]:
        np.testing.assert_allclose(*[h[key] for h in histories], rtol=1e-5)
    for a, b in zip(one.weights, two.weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    results = [m.evaluate(x, y, 4, verbose=0) for m in (one, two)]
    np.testing.assert_allclose(*results, rtol=1e-5)
    results = [m.predict(kind.value, 4, verbose=0) for m in (one, two)]
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)
    # The last batch has one row, so that one replica gets none, as in plain Keras.
    weights = one.get_weights()
    with strategy.scope():
        mine = compiled(kinds.Net(kind.features()))
    mine.predict(kind.value, verbose=0)
    mine.set_weights(weights)
    data = kind.rows(0, 9)
    history = mine.fit(data, RATINGS[:9], 4, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all(), (name, history)
    if name == "protocol only":  # the components of the others are not cut by rows
        filled = np.where(data.mask, data.values, 0.0)
        with strategy.scope():
            bare = compiled(kinds.BareNet(keras.layers.Identity()))
            bare(filled)
        bare.set_weights(weights)
        plain = bare.fit(filled, RATINGS[:9].numpy(), batch_size=4, shuffle=False, verbose=0)
        for key in history:
            np.testing.assert_allclose(history[key], plain.history[key], rtol=1e-5)
        for a, b in zip(mine.weights, bare.weights, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    with strategy.scope():
        same = Same()
    predicted = same.predict(data, 4, verbose=0)
    assert kinds.numbers(predicted) == kinds.numbers(data), name
    assert mine.train_on_batch(data, RATINGS[:9])
    # Row splits that are cut like rows would be nonsense.
    try:
        mine.fit(((x, y) for _ in range(2)), verbose=0)
    except xt.errors.UnsupportedTypeError as error:
        assert "2 replicas" in error.path and "from_generator" in error.fix
    else:
        raise AssertionError(name)


# Losses of ragged fields are means over the values of both replicas, of which one has more.
class Scaled(xt.keras.Model):
    def __init__(self, by_field):
        super().__init__()
        self.by_field, self.dense = by_field, keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, rows):
        rows = rows.with_flat_values(self.dense(rows.flat_values[:, tf.newaxis])[:, 0])
        return xt.DenseStructuredTensor([None], {"rows": rows}) if self.by_field else rows


rows = tf.RaggedTensor.from_row_lengths(tf.linspace(0.0, 2.0, 17), [0, 1, 2, 5, 1, 0, 4, 4])
total = keras.losses.MeanSquaredError(reduction="sum")
for loss in ({"rows": "mse"}, {"rows": total}, "mse", lambda y, y_pred: (y - y_pred) ** 2):
    results = []
    for scope in (strategy.scope(), tf.distribute.get_strategy().scope()):
        with scope:
            model = Scaled(isinstance(loss, dict))
            model.compile(keras.optimizers.SGD(0.01), loss)
        y = {"rows": rows**2} if isinstance(loss, dict) else rows**2
        weights = np.linspace(0.5, 2.0, 8, dtype=np.float32)
        fit = model.fit(rows, y, 4, sample_weight=weights, shuffle=False, verbose=0)
        parts = [fit.history["loss"], *map(np.ravel, model.get_weights())]
        results.append(np.concatenate(parts))
    np.testing.assert_allclose(*results, rtol=1e-5, err_msg=str(loss))


# Losses of null targets are means over the rows that are known, of which one replica has more.
x = np.linspace(0.0, 2.0, 8, dtype=np.float32)[:, np.newaxis]
known = [False, False, True, True, True, False, True, True]
targets = xt.types.MaskedTensor(x**2, known)
for loss in ("mse", total):
    for sample_weight in (None, weights):
        results = []
        for scope in (strategy.scope(), tf.distribute.get_strategy().scope()):
            with scope:
                dense = keras.layers.Dense(1, kernel_initializer="ones")
                model = xt.keras.Sequential([dense])
                model.compile(keras.optimizers.SGD(0.01), loss, metrics=["mae"])
            fit = model.fit(x, targets, 4, sample_weight=sample_weight, shuffle=False, verbose=0)
            parts = [fit.history["loss"], fit.history["mae"], *map(np.ravel, model.get_weights())]
            results.append(np.concatenate(parts))
        np.testing.assert_allclose(*results, rtol=1e-5, err_msg=str(loss))


# Records in lists of records.
ingredient = pa.struct([("name", pa.string()), ("grams", pa.float32())])
step = pa.struct([("ingredients", pa.list_(ingredient)), ("minutes", pa.float32())])
recipes = xt.from_arrow(pa.Table.from_pylist(
    [
        {"steps": [
            {"ingredients": [{"name": "salt", "grams": i + k} for k in range(j)], "minutes": 1.0}
            for j in range(i % 4)
        ]}
        for i in range(9)
    ],
    pa.schema([("steps", pa.list_(step))]),
))


class Weight(xt.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, recipes):
        grams = recipes["steps", "ingredients", "grams"]
        return self.dense(tf.reduce_sum(tf.reduce_sum(grams, axis=2), axis=1)[:, tf.newaxis])


def weighing():
    model = Weight()
    model.compile(keras.optimizers.SGD(0.001), "mse")
    return model


y = np.arange(9, dtype=np.float32)[:, np.newaxis]
one = weighing()
with strategy.scope():
    two = weighing()
results = []
for model in (one, two):
    history = model.fit(recipes[:8], y[:8], batch_size=4, epochs=2, shuffle=False, verbose=0)
    loss = model.evaluate(recipes[:8], y[:8], batch_size=4, verbose=0)
    predicted = model.predict(recipes, batch_size=4, verbose=0)  # one replica gets no row at last
    results.append([*history.history["loss"], loss, *predicted[:, 0]])
np.testing.assert_allclose(*results, rtol=1e-5)
with strategy.scope():
    weighing()
"""


def test_two_devices_train_as_one(run_python):
    run_python(MIRRORED, timeout=400)


WORKER = """
import json
import os
import sys

import keras
import numpy as np
import tensorflow as tf

alone = "TF_CONFIG" not in os.environ
strategy = (
    tf.distribute.get_strategy() if alone else tf.distribute.MultiWorkerMirroredStrategy()
)
import extensor as xt
from tests.keras import kinds
from tests.keras.kinds import RATINGS

kind = kinds.KINDS["records"]
keras.utils.set_random_seed(1)
with strategy.scope():
    model = kinds.Net(kind.features())
    model(kind.value)
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
kernel, bias = model.weights
kernel.assign(np.linspace(-0.1, 0.1, 6)[:, np.newaxis])
bias.assign([0.1])


def step(data):
    x, y = data
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((model(x, training=True) - y) ** 2) / 4
    gradients = tape.gradient(loss, model.trainable_variables)
    if not alone:
        context = tf.distribute.get_replica_context()
        gradients = [context.all_reduce("sum", gradient) for gradient in gradients]
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        variable.assign_sub(0.001 * gradient)
    return loss


dataset = tf.data.Dataset.from_tensor_slices((kind.rows(0, 8), RATINGS[:8])).batch(4)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
inputs = dataset.with_options(options).map(lambda x, y: x)
dataset = strategy.experimental_distribute_dataset(dataset.with_options(options))
run = tf.function(lambda data: strategy.run(step, args=(data,)))
for data in dataset:
    run(data)
predicted = model.predict(inputs, verbose=0)
# As the values of lists that are empty in all processes.
nothing = tf.function(lambda: strategy.gather(strategy.run(tf.zeros, ([0, 2],)), 0))
assert alone or nothing().shape == [0, 2]
model.compile(loss="mse")
for call in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch) * (not alone):
    try:
        call(kind.rows(0, 8), RATINGS[:8])
    except TypeError as error:
        message = str(error)
    assert "expected a strategy of one process" in message
order = np.argsort(predicted[:, 0])  # the processes take turns with the batches
print(json.dumps([*(w.numpy().tolist() for w in model.weights), predicted[order].tolist()]))
"""


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.slow
def test_two_processes_train_to_the_weights_of_one_and_predict_the_same():
    workers = [f"127.0.0.1:{port}" for port in _free_ports(2)]
    environment = {**os.environ, "no_proxy": "127.0.0.1", "grpc_proxy": "", "http_proxy": ""}
    cases = [{}] + [
        {"TF_CONFIG": json.dumps(
            {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        )}
        for index in range(2)
    ]  # fmt: skip
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER],
            env={**environment, **case},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for case in cases
    ]
    try:
        outputs = [process.communicate(timeout=240) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for process, (_, errors) in zip(started, outputs, strict=True):
        assert process.returncode == 0, errors[-3000:]
    alone, *both = (json.loads(printed.splitlines()[-1]) for printed, _ in outputs)
    for worker in both:
        for mine, expected in zip(worker, alone, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-7)
