"""Values that are given to fit directly: cut into batches, shuffled, split and weighed by rows."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor._keras.fit_data import Rows
from tests.keras import kinds
from tests.keras.kinds import BATCH, COUNT, KINDS, RATINGS

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Recorder(xt.keras.Model):
    """Keeps what each step was given."""

    def __init__(self):
        super().__init__()
        self.dense, self.steps = keras.layers.Dense(1), []

    def call(self, inputs):
        return self.dense(tf.cast(inputs["plain"][:, tf.newaxis], tf.float32))

    def train_step(self, data):
        self.steps.append(data)
        return super().train_step(data)

    def test_step(self, data):
        self.steps.append(data)
        return super().test_step(data)


def numbered(value, start=0):
    """A value beside the numbers of its rows."""
    return {"value": value, "plain": tf.range(start, start + len(kinds.rows_of(value)))}


def recorder():
    model = Recorder()
    model.compile("sgd", "mse", run_eagerly=True)
    return model


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("shuffle", [False, True, "batch"])
@EACH
def test_each_step_gets_the_rows_that_numpy_would_cut(kind, shuffle):
    model = recorder()
    weights = np.arange(COUNT, dtype=np.float32)
    model.fit(
        numbered(kind.value), RATINGS, batch_size=BATCH, epochs=2,
        shuffle=shuffle, sample_weight=weights, verbose=0,
    )  # fmt: skip
    order = [x["plain"].numpy().tolist() for x, *_ in model.steps]
    assert [len(rows) for rows in order] == [4, 4, 2] * 2
    epochs = [[*first, *second, *third] for first, second, third in (order[:3], order[3:])]
    assert all(sorted(epoch) == list(range(COUNT)) for epoch in epochs)
    if shuffle is False:
        assert epochs == [list(range(COUNT))] * 2
    else:
        assert epochs[0] != epochs[1]
    if shuffle == "batch":
        assert [sorted(rows) for rows in order[:3]] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    for rows, (x, y, weight) in zip(order, model.steps, strict=True):
        assert type(x["value"]) is type(kind.value)
        assert kinds.numbers(x["value"]) == kinds.numbers(kinds.take(kind.value, rows))
        np.testing.assert_array_equal(y, RATINGS.numpy()[rows])
        np.testing.assert_array_equal(weight, weights[rows])


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("shuffle", [True, "batch"])
def test_a_seed_repeats_a_fit_and_not_its_first_epoch(shuffle):
    def order():
        keras.utils.set_random_seed(3)
        model = recorder()
        model.fit(
            numbered(KINDS["records"].value),
            RATINGS,
            batch_size=BATCH,
            epochs=2,
            shuffle=shuffle,
            verbose=0,
        )
        return [x["plain"].numpy().tolist() for x, *_ in model.steps]

    first = order()
    assert first[:3] != first[3:]
    assert order() == first


@pytest.mark.whole("trains models")
@EACH
def test_the_last_rows_validate(kind):
    model = recorder()
    model.fit(numbered(kind.value), RATINGS, batch_size=BATCH, validation_split=0.3, verbose=0)
    sizes = [len(y) for _, y, *_ in model.steps]
    assert sizes == [4, 3, 3]
    assert kinds.numbers(model.steps[2][0]["value"]) == kinds.numbers(kind.rows(7, 10))
    model = recorder()
    model.fit(
        numbered(kind.value), RATINGS, batch_size=BATCH, verbose=0, validation_batch_size=2,
        validation_data=(numbered(kind.rows(0, 5)), RATINGS[:5]), shuffle=False,
    )  # fmt: skip
    assert [len(y) for _, y, *_ in model.steps] == [4, 4, 2, 2, 2, 1]
    assert kinds.numbers(model.steps[4][0]["value"]) == kinds.numbers(kind.rows(2, 4))


def test_weights_of_classes_are_for_the_rows_that_train_alone():
    kind, model = KINDS["records"], recorder()
    classes = [[number % 2] for number in range(COUNT)]  # a list is as good as an array
    model.fit(
        numbered(kind.value), classes, batch_size=BATCH, class_weight={1: 3.0},
        validation_split=0.3, shuffle=False, verbose=0,
    )  # fmt: skip
    *trained, validated = model.steps
    assert [weights.numpy().tolist() for _, _, weights in trained] == [[1, 3, 1, 3], [1, 3, 1]]
    _, targets = validated
    assert targets.numpy().tolist() == [[1], [0], [1]]


@pytest.mark.parametrize(
    ("call", "error", "path"),
    [
        (lambda m, x: m.fit(x, RATINGS[:4]), errors.StructureError, "y"),
        (lambda m, x: m.fit({"a": x, "b": tf.zeros([3])}, RATINGS), errors.StructureError, "x.b"),
        (lambda m, x: m.fit(x, 3.0), errors.DTypeError, "y"),
        (lambda m, x: m.fit(x, RATINGS, validation_split=0.99), errors.StructureError,
         "validation_split"),
        (lambda m, x: m.fit(x, RATINGS, sample_weight=RATINGS, class_weight={0: 1.0}),
         errors.DTypeError, "class_weight"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_an_error_that_names_them(call, error, path):
    with pytest.raises(error) as raised:
        call(recorder(), KINDS["records"].value)
    assert raised.value.path == path
    assert raised.value.fix


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("shuffle", [False, True, "batch"])
def test_no_rows_are_no_batches(shuffle):
    records = KINDS["records"].value[:0]
    targets = np.zeros([0, 1], np.float32)
    first = xt.keras.Lambda(lambda records: records["taste"])
    model = xt.keras.Sequential([first, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="ran out of data"):  # by Keras
        assert model.fit(records, targets, shuffle=shuffle, verbose=0).history == {}


@pytest.mark.parametrize("size", [-1, 2.5, "two"])
@pytest.mark.parametrize("name", ["batch_size", "validation_batch_size"])
def test_the_size_of_batches_is_a_positive_int(name, size):
    model, value = recorder(), numbered(KINDS["records"].value)
    given = {name: size, "validation_data": (value, RATINGS)}
    with pytest.raises(errors.ArgumentError, match=f"{name}: expected a positive int"):
        model.fit(value, RATINGS, verbose=0, **given)
    if name == "batch_size":
        with pytest.raises(errors.ArgumentError, match="batch_size"):
            model.predict(value, batch_size=size, verbose=0)


def test_batches_of_size_zero_have_the_default_size_as_in_keras():
    model = recorder()
    model.fit(numbered(KINDS["records"].value), RATINGS, batch_size=0, verbose=0)
    assert len(model.steps) == 1
    model.fit(numbered(KINDS["records"].value), RATINGS, batch_size=np.int64(BATCH), verbose=0)
    assert len(model.steps) == 4


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
@pytest.mark.parametrize("rows", [3, 64])
def test_fields_that_a_functional_model_does_not_read_are_not_cut(method, rows, monkeypatch):
    records = xt.DenseStructuredTensor(
        [COUNT],
        {
            "minutes": tf.ragged.constant([[1.0] * (i % 3) for i in range(COUNT)]),
            "title": tf.constant(["Scones"] * COUNT),
            "taste": np.arange(2.0 * COUNT, dtype="f").reshape(COUNT, 2),
            "tags": tf.ragged.constant([["a"]] * COUNT),
        },
    )
    inputs = xt.keras.Input(tf.type_spec_from_value(records))
    sums = xt.keras.layers.ListPooling("sum")(inputs["minutes"])
    joined = keras.layers.Concatenate()([keras.layers.Reshape((1,))(sums), inputs["taste"]])
    model = xt.keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(joined))
    model.compile(keras.optimizers.SGD(1e-4), "mse")
    targets = () if method == "predict" else (RATINGS,)
    data = records if method == "predict" else (records, RATINGS)
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(rows)
    before = model.get_weights()
    options = {"shuffle": False} if method == "fit" else {}
    expected = getattr(model, method)(dataset, verbose=0, **options)
    after = model.get_weights()
    model.set_weights(before)
    cut, add = [], Rows._add
    monkeypatch.setattr(
        Rows, "_add", lambda self, *given: cut.append(given[1]) or add(self, *given)
    )
    found = getattr(model, method)(records, *targets, batch_size=rows, verbose=0, **options)
    assert cut[0].field_names() == ("minutes", "taste")
    if method == "fit":
        found, expected = found.history["loss"], expected.history["loss"]
        for one, other in zip(model.get_weights(), after, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
        shuffled = model.fit(records, RATINGS, validation_split=0.2, verbose=0).history
        assert "val_loss" in shuffled
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_weights_without_targets_are_no_targets():
    model = recorder()
    with pytest.raises(ValueError, match="None"):  # of Keras: the loss has no target
        model.fit(numbered(KINDS["records"].value), sample_weight=RATINGS, verbose=0)
    [step] = model.steps
    assert len(step) == 1
