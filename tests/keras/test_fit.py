"""fit, evaluate and predict, from every source, against plain Keras over the same tensors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import kinds
from tests.keras.kinds import BATCH, COUNT, KINDS, RATINGS

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def assert_same_weights(model, bare):
    for weight, twin in zip(model.weights, bare.weights, strict=True):
        np.testing.assert_array_equal(weight, twin)


@pytest.mark.parametrize("form", kinds.FORMS)
@EACH
def test_direct_values_train_as_a_dataset_of_plain_tensors_does(kind, form):
    model, bare = kinds.twins(kind, form)
    history = model.fit(kind.value, RATINGS, BATCH, epochs=2, shuffle=False, verbose=0).history
    plain = bare.fit(kind.bare_dataset(RATINGS), epochs=2, shuffle=False, verbose=0).history
    assert history == plain
    assert_same_weights(model, bare)
    assert model.evaluate(kind.value, RATINGS, BATCH, verbose=0) == bare.evaluate(
        kind.bare_dataset(RATINGS), verbose=0
    )
    predicted = model.predict(kind.value, BATCH, verbose=0)
    np.testing.assert_array_equal(predicted, bare.predict(kind.bare_dataset(), verbose=0))


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


@EACH
def test_weights_of_rows_and_of_classes_count_as_in_plain_keras(kind):
    weights = np.linspace(0, 2, COUNT, dtype=np.float32)
    classes = (RATINGS.numpy() > 0.5).astype(np.int32)
    model, bare = kinds.twins(kind)
    history = model.fit(
        kind.value, RATINGS, BATCH, shuffle=False, sample_weight=weights, verbose=0
    ).history
    plain = bare.fit(kind.bare_dataset(RATINGS, weights), shuffle=False, verbose=0).history
    assert history == plain
    by_class = {0: 1.0, 1: 3.0}
    history = model.fit(
        kind.value, classes, BATCH, shuffle=False, class_weight=by_class, verbose=0
    ).history
    rows = np.where(classes[:, 0] == 1, 3.0, 1.0).astype(np.float32)
    plain = bare.fit(kind.bare_dataset(classes, rows), shuffle=False, verbose=0).history
    assert history == plain
    history = model.fit(kind.dataset(classes), class_weight=by_class, verbose=0).history
    assert history == bare.fit(kind.bare_dataset(classes, rows), shuffle=False, verbose=0).history


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


class Pages(keras.utils.PyDataset):
    def __init__(self, kind, **options):
        super().__init__(**options)
        self.kind, self.epochs = kind, 0

    def __len__(self):
        return 3

    def __getitem__(self, index):
        start = index * BATCH
        stop = min(start + BATCH, COUNT)
        return self.kind.rows(start, stop), RATINGS[start:stop]

    def on_epoch_end(self):
        self.epochs += 1


@EACH
def test_py_datasets_and_generators_train_as_datasets_do(kind):
    model, bare = kinds.twins(kind)
    expected = [bare.fit(kind.bare_dataset(RATINGS), shuffle=False, verbose=0) for _ in range(3)]
    pages = Pages(kind, workers=2)
    first = model.fit(pages, shuffle=False, verbose=0)
    assert pages.epochs

    def endless():
        while True:
            yield from (pages[i] for i in range(3))

    second = model.fit(endless(), steps_per_epoch=3, verbose=0)
    third = model.fit(kind.dataset(RATINGS), verbose=0)
    assert [h.history for h in (first, second, third)] == [h.history for h in expected]
    assert model.evaluate(pages, verbose=0) == bare.evaluate(kind.bare_dataset(RATINGS), verbose=0)
    np.testing.assert_array_equal(
        model.predict(pages, verbose=0), bare.predict(kind.bare_dataset(), verbose=0)
    )


@EACH
def test_single_batches(kind):
    model, bare = kinds.twins(kind)
    x, y = kind.rows(0, 4), RATINGS[:4]
    tensors = kind.bare(x)
    assert model.train_on_batch(x, y) == bare.train_on_batch(tensors, y)
    weights = tf.range(4.0)
    assert model.test_on_batch(x, y, weights) == bare.test_on_batch(tensors, y, weights)
    np.testing.assert_array_equal(model.predict_on_batch(x), bare.predict_on_batch(tensors))


@pytest.mark.parametrize(
    "options", [{"run_eagerly": True}, {"steps_per_execution": 2}, {"jit_compile": "auto"}]
)
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
    assert raised.value.mend


# Custom steps and gradients.


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
    model, bare = OwnSteps(kind.features()), kinds.BareNet(kind.bare_features())
    model(kind.value)
    bare(kind.bare(kind.value))
    bare.set_weights(model.get_weights())
    for one in (model, bare):
        one.compile("sgd", "mse")
    model.fit(kind.value, RATINGS, BATCH, shuffle=False, verbose=0)
    bare.fit(kind.bare_dataset(RATINGS), shuffle=False, verbose=0)
    assert_same_weights(model, bare)
    predicted = model.predict(kind.value, BATCH, verbose=0)
    assert kinds.numbers(predicted["input"]) == kinds.numbers(kind.value)
    plain = bare.predict(kind.bare_dataset(), verbose=0)
    np.testing.assert_array_equal(predicted["twice"], 2 * plain)


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
