"""Lowered batches: whichever tensors a value has, Keras weighs a batch by its records."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import sample_models as sample

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


@pytest.mark.whole("trains models")
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


@pytest.mark.whole("trains models")
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
    data = Pages() if source == "PyDataset" else (batch for batch in batches)
    history = model.fit(data, steps_per_epoch=2, verbose=0).history
    squares = (model.predict(rows, verbose=0) - targets.numpy()) ** 2
    np.testing.assert_allclose(history["loss"], [squares.mean()], rtol=1e-5)
