"""fit, evaluate and predict over records: the numbers of plain Keras over bare tensors."""

import keras
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from tests import sample_models as sample

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
    model, bare = twins(make, make_bare)
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


@pytest.mark.parametrize(("make", "make_bare"), TWINS)
def test_single_batches_give_the_numbers_of_plain_keras(make, make_bare):
    model, bare = twins(make, make_bare)
    records, targets = next(iter(sample.batches()))
    tensors = sample.bare(records)
    assert model.test_on_batch(records, targets) == bare.test_on_batch(tensors, targets)
    assert model.train_on_batch(records, targets) == bare.train_on_batch(tensors, targets)
    np.testing.assert_array_equal(model.predict_on_batch(records), bare.predict_on_batch(tensors))


def test_a_generator_of_batches_is_as_good_as_a_dataset():
    model, bare = twins(*TWINS[0])
    history = model.fit(iter_pairs(sample.batches()), steps_per_epoch=3, verbose=0).history
    assert history == bare.fit(sample.bare_batches(), shuffle=False, verbose=0).history


def iter_pairs(dataset):
    yield from dataset


def test_sample_weights_count_as_in_plain_keras():
    model, bare = twins(*TWINS[0])

    def weighted(dataset):
        weights = tf.data.Dataset.from_tensor_slices(tf.range(10.0)).batch(sample.BATCH)
        return tf.data.Dataset.zip(dataset, weights).map(lambda pair, w: (*pair, w))

    history = model.fit(weighted(sample.batches()), verbose=0).history
    assert history == bare.fit(weighted(sample.bare_batches()), shuffle=False, verbose=0).history


MINUTES, INGREDIENTS = (lambda r: r["minutes"]), (lambda r: r["ingredients"])
FIRST_LEAVES = {
    "dense and ragged": (lambda r: r, MINUTES),
    "ragged fields alone": (lambda r: r.with_only("minutes", "ingredients"), MINUTES),
    "one ragged field": (lambda r: r.with_only("minutes"), MINUTES),
    "a ragged tensor": (MINUTES, lambda r: r),
    "a list of records": (INGREDIENTS, lambda r: r["amount"]),
    "two inputs": (
        lambda r: {"one": r.with_only("minutes"), "two": r["minutes"]},
        lambda r: r["two"],
    ),
    "an input and a tensor": (
        lambda r: {"one": r.with_only("minutes"), "two": r["taste"]},
        lambda r: r["one"]["minutes"],
    ),
}


class Sums(xt.keras.Layer):
    def __init__(self, field):
        super().__init__()
        self.field = field

    def call(self, inputs):
        return tf.reduce_sum(self.field(inputs), axis=1)[:, tf.newaxis]


class SumModel(xt.keras.Model):
    def __init__(self, field):
        super().__init__()
        self.sums, self.dense = Sums(field), keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, inputs):
        return self.dense(self.sums(inputs))


def functional_sum(field, spec):
    if isinstance(spec, dict):
        placeholder = {name: xt.keras.Input(spec[name], name=name) for name in spec}
    else:
        placeholder = xt.keras.Input(spec)
    dense = keras.layers.Dense(1, kernel_initializer="ones")
    return xt.keras.Model(placeholder, dense(Sums(field)(placeholder)))


@pytest.mark.parametrize("form", ["subclassed", "functional"])
@pytest.mark.parametrize("case", FIRST_LEAVES)
def test_the_loss_of_an_epoch_weighs_batches_by_their_records(case, form):
    part, field = FIRST_LEAVES[case]
    targets = tf.range(10.0)[:, tf.newaxis]
    dataset = sample.batches(targets=targets).map(lambda r, y: (part(r), y))
    spec = dataset.element_spec[0]
    model = SumModel(field) if form == "subclassed" else functional_sum(field, spec)
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mse"])
    history = model.fit(dataset, validation_data=dataset, verbose=0).history
    squares = (model.predict(dataset, verbose=0) - targets.numpy()) ** 2
    # Row splits are one more than the rows: weighed by them, the loss would be another.
    by_splits = np.average([squares[:4].mean(), squares[4:8].mean(), squares[8:].mean()],
                           weights=[5, 5, 3])  # fmt: skip
    assert abs(by_splits - squares.mean()) > 1e-2
    for name in ("loss", "mse", "val_loss", "val_mse"):
        np.testing.assert_allclose(history[name], [squares.mean()], rtol=1e-5)


@pytest.mark.parametrize("source", ["generator", "PyDataset"])
def test_batches_of_ragged_values_that_keras_took_apart_count_by_their_records(source):
    rows = tf.RaggedTensor.from_row_lengths(tf.range(20.0), [1, 9, 1, 1, 1, 7])
    targets = tf.constant([[0.0], [0.0], [5.0], [5.0], [5.0], [0.0]])
    batches = [(rows[:4], targets[:4]), (rows[4:], targets[4:])]

    class Pages(keras.utils.PyDataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return batches[index]

    model = SumModel(lambda rows: rows)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    data = Pages() if source == "PyDataset" else iter_pairs(batches)
    history = model.fit(data, steps_per_epoch=2, verbose=0).history
    squares = (model.predict(rows, verbose=0) - targets.numpy()) ** 2
    np.testing.assert_allclose(history["loss"], [squares.mean()], rtol=1e-5)


def test_ragged_outputs_are_concatenated_as_keras_does():
    class Minutes(xt.keras.Model):
        def call(self, records):
            return records["minutes"]

    predicted = Minutes().predict(sample.batches(), verbose=0)
    assert predicted.to_list() == sample.recipes()["minutes"].to_list()


def test_xla_is_used_only_on_request(monkeypatch):
    devices = tf.config.list_physical_devices()
    accelerator = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *_: [*devices, accelerator])
    plain = keras.Sequential([keras.layers.Dense(1)])
    plain.compile("sgd", "mse")
    assert plain.jit_compile  # strings and ragged tensors would not get through
    model = SumModel(MINUTES)
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
