"""fit, evaluate and predict, and their steps, against plain Keras over the same tensors."""

import functools

import keras
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import kinds
from tests.keras import sample_models as sample
from tests.keras.kinds import BATCH, COUNT, KINDS, RATINGS

pytestmark = pytest.mark.whole("trains models in every way")

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def assert_same_weights(model, bare):
    for weight, twin in zip(model.weights, bare.weights, strict=True):
        np.testing.assert_array_equal(weight, twin)


@functools.cache
def trained_plainly(kind):
    """Returns the first and the last weights of a model of plain Keras, and all that it gave."""
    _, bare = kinds.reused(kinds.twins, kind)
    first_weights = bare.get_weights()
    history = bare.fit(kind.bare_dataset(RATINGS), epochs=2, shuffle=False, verbose=0).history
    scores = bare.evaluate(kind.bare_dataset(RATINGS), verbose=0)
    predicted = bare.predict(kind.bare_dataset(), verbose=0)
    return first_weights, bare.get_weights(), history, scores, predicted


def of_form(kind, form):
    """Returns a model of a form, compiled as `kinds.twins` does it."""
    model = kinds.FORMS[form](kind)
    model(kind.value)
    model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    return model


@pytest.mark.parametrize("form", kinds.FORMS)
@EACH
def test_direct_values_train_as_a_dataset_of_plain_tensors_does(kind, form):
    first_weights, last_weights, *plain, plainly_predicted = trained_plainly(kind)
    if form == "subclassed":
        model, _ = kinds.reused(kinds.twins, kind)
    else:
        model = kinds.reused(of_form, kind, form)
    model.set_weights(first_weights)
    history = model.fit(kind.value, RATINGS, BATCH, epochs=2, shuffle=False, verbose=0).history
    for weight, twin in zip(model.get_weights(), last_weights, strict=True):
        np.testing.assert_array_equal(weight, twin)
    assert [history, model.evaluate(kind.value, RATINGS, BATCH, verbose=0)] == plain
    predicted = model.predict(kind.value, BATCH, verbose=0)
    np.testing.assert_array_equal(predicted, plainly_predicted)


TWINS = [(sample.functional, sample.bare_functional), (sample.Rating, sample.BareRating)]


def twins(make, make_bare):
    """A model and its twin with the same weights, compiled alike."""
    model, bare = make(), make_bare()
    model(sample.recipes())
    bare(sample.bare(sample.recipes()))
    assert [w.shape for w in model.weights] == [w.shape for w in bare.weights]
    bare.set_weights(model.get_weights())
    for one in (model, bare):
        one.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    return model, bare


def from_parquet(tmp_path):
    pq.write_table(sample.table(), tmp_path / "recipes.parquet", row_group_size=3)
    dataset = xt.data.parquet(tmp_path / "recipes.parquet", sample.BATCH)
    return dataset.map(lambda r: (r.without("rating"), r["rating"][:, tf.newaxis]))


SOURCES = {"Parquet": from_parquet, "slices": lambda _: sample.batches()}


@pytest.mark.parametrize(
    ("make", "make_bare", "source"), [(*TWINS[0], "Parquet"), (*TWINS[1], "slices")]
)
def test_training_gives_the_numbers_of_plain_keras(tmp_path, make, make_bare, source):
    model, bare = kinds.reused(twins, make, make_bare)
    records, tensors = SOURCES[source](tmp_path), sample.bare_batches()
    history = model.fit(records, validation_data=records, epochs=3, verbose=0).history
    expected = bare.fit(
        tensors, validation_data=tensors, epochs=3, shuffle=False, verbose=0
    ).history
    assert history == expected
    assert list(history) == ["loss", "mae", "val_loss", "val_mae"]
    assert history["loss"][2] < history["loss"][0]
    assert model.evaluate(records, verbose=0) == bare.evaluate(tensors, verbose=0)
    predicted = model.predict(records, verbose=0)
    np.testing.assert_array_equal(predicted, bare.predict(tensors, verbose=0))
    np.testing.assert_array_equal(predicted, model.predict(records.map(lambda x, y: x), verbose=0))
    for weight, twin in zip(model.weights, bare.weights, strict=True):
        np.testing.assert_array_equal(weight, twin)


def test_sample_weights_count_as_in_plain_keras():
    model, bare = kinds.reused(twins, *TWINS[0])

    def weighted(dataset):
        weights = tf.data.Dataset.from_tensor_slices(tf.range(10.0)).batch(sample.BATCH)
        return tf.data.Dataset.zip(dataset, weights).map(lambda pair, w: (*pair, w))

    history = model.fit(weighted(sample.batches()), verbose=0).history
    assert history == bare.fit(weighted(sample.bare_batches()), shuffle=False, verbose=0).history


def test_xla_is_used_only_on_request(monkeypatch):
    devices = tf.config.list_physical_devices()
    accelerator = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *_: [*devices, accelerator])
    plain = keras.Sequential([keras.layers.Dense(1)])
    plain.compile("sgd", "mse")
    assert plain.jit_compile  # strings and ragged tensors would not get through
    model = kinds.Net(KINDS["records"].features())
    for options in ({}, {"jit_compile": "auto"}):
        model.compile("sgd", "mse", **options)
        assert not model.jit_compile
    model.compile("sgd", "mse", jit_compile=True)
    assert model.jit_compile


def test_the_plain_path_is_as_in_keras():
    x, y = np.random.default_rng(0).random((2, 9, 3), np.float32)
    inputs, mine = keras.Input((3,)), keras.Input((3,))
    plain = keras.Model(inputs, keras.layers.Dense(3)(inputs))
    model = xt.keras.Model(mine, keras.layers.Dense(3)(mine))
    plain.set_weights(model.get_weights())
    for one in (plain, model):
        one.compile("sgd", "mse")
    runs = [one.fit(x, y, 4, 2, shuffle=False, verbose=0).history for one in (plain, model)]
    assert runs[0] == runs[1]
    np.testing.assert_array_equal(plain.predict(x, 4, 0), model.predict(x, 4, 0))


@EACH
def test_single_batches(kind):
    model, bare = kinds.reused(kinds.twins, kind)
    x, y = kind.rows(0, 4), RATINGS[:4]
    tensors = kind.bare(x)
    assert model.train_on_batch(x, y) == bare.train_on_batch(tensors, y)
    weights = tf.range(4.0)
    assert model.test_on_batch(x, y, weights) == bare.test_on_batch(tensors, y, weights)
    np.testing.assert_array_equal(model.predict_on_batch(x), bare.predict_on_batch(tensors))


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"steps_per_execution": 2}])
@EACH
def test_ways_to_run_a_step(kind, options):
    model, bare = kinds.twins(kind, **options)
    history = model.fit(kind.value, RATINGS, BATCH, shuffle=False, verbose=0).history
    plain = bare.fit(kind.bare_dataset(RATINGS), shuffle=False, verbose=0).history
    assert history == plain
    np.testing.assert_array_equal(
        model.predict(kind.value, BATCH, verbose=0), bare.predict(kind.bare_dataset(), verbose=0)
    )


def test_xla_compiles_a_model_of_values_without_strings():
    kind = KINDS["protocol only"]
    model, bare = kinds.twins(kind, jit_compile=True)
    assert model.jit_compile
    history = model.fit(kind.value, RATINGS, 5, shuffle=False, verbose=0).history
    batches = tf.data.Dataset.from_tensor_slices((kind.bare(kind.value), RATINGS)).batch(5)
    plain = bare.fit(batches, shuffle=False, verbose=0).history
    assert history == plain
    np.testing.assert_allclose(
        model.predict(kind.value, 5, verbose=0), bare.predict(kind.bare(kind.value), verbose=0),
        rtol=1e-6,
    )  # fmt: skip


class OwnSteps(kinds.Net):
    """A model whose steps a user wrote."""

    def train_step(self, data):
        x, y = data
        assert not isinstance(x, dict)
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss}

    def predict_step(self, data):
        assert not isinstance(data, dict)
        return {"twice": 2 * super().predict_step(data), "input": data}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        assert not isinstance(x, dict)
        return super().compute_loss(x, y, y_pred, sample_weight, training)


@EACH
def test_steps_that_a_user_wrote_are_given_values(kind):
    _, bare = kinds.reused(kinds.twins, kind)
    model = OwnSteps(kind.features())
    model(kind.value)
    model.set_weights(bare.get_weights())
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(kind.value, RATINGS, BATCH, shuffle=False, verbose=0)
    bare.fit(kind.bare_dataset(RATINGS), shuffle=False, verbose=0)
    assert_same_weights(model, bare)
    predicted = model.predict(kind.value, BATCH, verbose=0)
    assert kinds.numbers(predicted["input"]) == kinds.numbers(kind.value)
    plain = bare.predict(kind.bare_dataset(), verbose=0)
    np.testing.assert_array_equal(predicted["twice"], 2 * plain)


class Counted(keras.layers.Layer):
    """Counts how often `call` runs in training."""

    count = 0

    def call(self, x, training=False):
        self.count += bool(training)
        return x


def scored(model_class=xt.keras.Model):
    records = xt.DenseStructuredTensor([4], {"x": tf.random.normal([4, 2])})
    record = xt.keras.Input(tf.data.Dataset.from_tensors(records).element_spec)
    counted, first, second = Counted(), keras.layers.Dense(3), keras.layers.Dense(1)
    model = model_class(record, second(first(counted(record["x"]))))
    model.compile("adam", "mse")
    return model, records, counted, second


def test_the_step_of_a_model_that_is_built_is_traced_once():
    model, records, counted, _ = scored()
    model.fit(records, tf.zeros([4, 1]), verbose=0)
    assert counted.count == 1


class TrainsTheLast(xt.keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        chosen = self.layers[-1].trainable_variables
        self.optimizer.apply(tape.gradient(loss, chosen), chosen)
        return {"loss": loss}


def test_the_optimizer_has_only_the_variables_that_the_step_of_a_user_trains():
    model, records, _, last = scored(TrainsTheLast)
    model.fit(records, tf.zeros([4, 1]), verbose=0)
    slots = {tuple(v.shape) for v in model.optimizer.variables if len(v.shape)}
    assert slots == {tuple(v.shape) for v in last.trainable_variables}


def test_gradients_reach_the_components_of_an_input():
    kind = KINDS["protocol only"]
    model = kinds.functional(kind)
    values = tf.constant(kinds.VALUES)
    with tf.GradientTape() as tape:
        tape.watch(values)
        output = model(kinds.MaskedTensor(values, kind.value.mask))
    kernel = model.weights[0][:, 0]
    expected = np.where(kind.value.mask, kernel, 0.0)
    np.testing.assert_array_equal(tape.gradient(output, values), expected)
    records = KINDS["records"].value
    with tf.GradientTape() as tape:
        tape.watch(records)
        loss = tf.reduce_sum(kinds.functional(KINDS["records"])(records))
    gradient = tape.gradient(loss, records)
    assert isinstance(gradient, xt.StructuredTensor)
    assert gradient["taste"].shape == [COUNT, 3]


@pytest.mark.parametrize("name", KINDS)
def test_callbacks(tmp_path, name):
    kind = KINDS[name]
    model, _ = kinds.reused(kinds.twins, kind)
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
    model = kinds.reused(of_form, kind, "functional")
    history = model.fit(
        kind.value, RATINGS, BATCH, epochs=2, verbose=0,
        callbacks=[keras.callbacks.TensorBoard(str(tmp_path))],
    ).history  # fmt: skip
    written = reader.EventAccumulator(str(tmp_path / "train")).Reload()
    losses = [float(tf.make_ndarray(event.tensor_proto)) for event in written.Tensors("epoch_loss")]
    assert losses == pytest.approx(history["loss"])


def test_xla_is_not_used_by_itself_where_a_gpu_is(monkeypatch):
    devices = [*tf.config.list_physical_devices(), tf.config.PhysicalDevice("GPU:0", "GPU")]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *kind: devices)
    assert keras.Sequential([keras.layers.Dense(1)]).jit_compile  # as Keras alone does

    inputs = xt.keras.Input(tf.RaggedTensorSpec([None, None], tf.float32))
    model = xt.keras.Model(inputs, xt.keras.layers.ListPooling("sum")(inputs))
    rows = tf.ragged.constant([[1.0, 2.0], []])
    np.testing.assert_array_equal(model.predict(rows, verbose=0), [3.0, 0.0])
    np.testing.assert_array_equal(model.predict_on_batch(rows), [3.0, 0.0])
    assert not model.jit_compile

    # A layer for lists in a model of Keras, which compiles it where a GPU is. XLA has not its ops.
    items = keras.Input((3, 1))
    total = xt.keras.layers.ListPooling("sum")(keras.layers.Masking()(items))
    model = keras.Model(items, total)
    rows = np.array([[[2.0], [0.0], [4.0]]], np.float32)
    np.testing.assert_array_equal(model.predict(rows, verbose=0), [[6.0]])
    model.compile("sgd", "mse")
    assert not model.jit_compile


@pytest.mark.filterwarnings("ignore:.*ran out of data")
def test_the_end_of_a_dataset_of_unknown_length_counts_as_no_step():
    """Keras begins a step more, whose updates without a tensor of the batch TensorFlow ran."""
    x = np.arange(6, dtype=np.float32)[:, np.newaxis]
    records = xt.DenseStructuredTensor([6], {"x": x})
    batches = tf.data.Dataset.from_tensor_slices((records, x)).batch(2, drop_remainder=True)
    model = xt.keras.Sequential([xt.keras.Lambda(lambda records: records["x"] + 2.0)])
    model.add(keras.layers.Dense(1, kernel_initializer="ones"))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    history = model.fit(batches.filter(lambda *_: True), epochs=2, shuffle=False, verbose=0)
    assert history.history["loss"] == [4.0, 4.0]
    assert int(model.optimizer.iterations.numpy()) == 6
