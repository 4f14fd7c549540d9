"""Models over recipes, for the tests of xt.keras: each beside its twin in plain Keras.

The twin takes the component tensors themselves, in a dict, and does the same arithmetic in the
same order, so that both must agree to the last bit.
"""

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

import extensor as xt

COUNT = 10
BATCH = 4  # so that the last batch is not full
WORDS = ["flour", "sugar", "butter"]


def table():
    """Ten recipes with dense, string and ragged fields and a list of records, and their rating."""
    random = np.random.default_rng(7)
    lengths = [i % 3 + 1 for i in range(COUNT)]
    ingredients = [
        [{"name": [*WORDS, "salt"][(i + j) % 4], "amount": i + j / 4} for j in range(n)]
        for i, n in enumerate(lengths)
    ]
    ingredient = pa.struct({"name": pa.string(), "amount": pa.float32()})
    taste = pa.array(random.random(3 * COUNT), pa.float32())
    minutes = [random.random(4 - n).tolist() for n in lengths]
    return pa.table(
        {
            "taste": pa.FixedSizeListArray.from_arrays(taste, 3),
            "title": pa.array([WORDS[i % 3] for i in range(COUNT)]),
            "minutes": pa.array(minutes, pa.list_(pa.float32())),
            "ingredients": pa.array(ingredients, pa.list_(ingredient)),
            "rating": pa.array(random.random(COUNT), pa.float32()),
        }
    )


def recipes():
    return xt.from_arrow(table()).without("rating")


def ratings():
    return xt.from_arrow(table())["rating"][:, tf.newaxis]


def batches(records=None, targets=None):
    """A dataset of pairs, in batches of which the last is not full."""
    pair = (recipes() if records is None else records, ratings() if targets is None else targets)
    return tf.data.Dataset.from_tensor_slices(pair).batch(BATCH)


def bare(records):
    """The component tensors of recipes, by names of which the first has the batch in front."""
    names = records["ingredients.name"]
    return {
        "a_taste": records["taste"],
        "amounts": records["ingredients.amount"].flat_values,
        "minutes": records["minutes"].flat_values,
        "minutes_splits": records["minutes"].row_splits,
        "names": names.flat_values,
        "names_splits": names.row_splits,
        "title": records["title"],
    }


def bare_batches():
    return batches().map(lambda records, targets: (bare(records), targets))


def bare_inputs():
    """Placeholders of plain Keras for what `bare` returns."""
    return {
        name: keras.Input(tensor.shape[1:], dtype=tensor.dtype.name, name=name)
        for name, tensor in bare(recipes()).items()
    }


def row_sums(values, row_splits):
    return tf.reduce_sum(tf.RaggedTensor.from_row_splits(values, row_splits), axis=1)


@keras.saving.register_keras_serializable("tests")
class Totals(xt.keras.Layer):
    """The sum of the minutes and of the amounts of each recipe."""

    def call(self, records):
        minutes = tf.reduce_sum(records["minutes"], axis=1)
        amounts = tf.reduce_sum(records["ingredients.amount"], axis=1)
        return tf.stack([minutes, amounts], axis=1)


class BareTotals(keras.layers.Layer):
    def call(self, minutes, minutes_splits, amounts, amounts_splits):
        minutes = row_sums(minutes, minutes_splits)
        return tf.stack([minutes, row_sums(amounts, amounts_splits)], axis=1)


@keras.saving.register_keras_serializable("tests")
class RowMean(xt.keras.Layer):
    """The mean of the vectors in each row of a ragged tensor."""

    def call(self, vectors):
        return tf.reduce_mean(vectors, axis=1)


class BareRowMean(keras.layers.Layer):
    def call(self, vectors, row_splits):
        ragged = tf.RaggedTensor.from_row_splits(vectors, row_splits)
        return tf.reduce_mean(ragged, axis=1)


def _layers():
    words = keras.layers.StringLookup(vocabulary=WORDS)
    vectors = keras.layers.Embedding(4, 2)
    normal = keras.layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0])
    return words, vectors, normal, keras.layers.Concatenate(), keras.layers.Dense(1)


def functional(spec=None):
    """A functional model with stock layers on dense, string, ragged and nested fields."""
    words, vectors, normal, joined, dense = _layers()
    recipe = xt.keras.Input(batches().element_spec[0] if spec is None else spec)
    names = recipe["ingredients", "name"]
    name = RowMean()(names.with_flat_values(vectors(words(names.flat_values))))
    title = vectors(words(recipe["title"]))
    parts = [normal(recipe["taste"]), title, name, Totals()(recipe)]
    return xt.keras.Model(recipe, dense(joined(parts)))


def bare_functional():
    words, vectors, normal, joined, dense = _layers()
    x = bare_inputs()
    name = BareRowMean()(vectors(words(x["names"])), x["names_splits"])
    title = vectors(words(x["title"]))
    totals = BareTotals()(x["minutes"], x["minutes_splits"], x["amounts"], x["names_splits"])
    parts = [normal(x["a_taste"]), title, name, totals]
    return keras.Model(x, dense(joined(parts)))


@keras.saving.register_keras_serializable("tests")
class Rating(xt.keras.Model):
    """A subclassed model, with dropout so that training and inference differ."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # Keras itself fails on a Normalization of given mean inside a subclassed model.
        self.words, self.vectors, _, self.joined, self.dense = _layers()
        self.totals = Totals()
        self.drop = keras.layers.Dropout(0.5, seed=3)

    def call(self, records, training=False):
        title = self.vectors(self.words(records["title"]))
        parts = [records["taste"], title, self.totals(records)]
        return self.dense(self.drop(self.joined(parts), training=training))


class BareRating(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.words, self.vectors, _, self.joined, self.dense = _layers()
        self.totals = BareTotals()
        self.drop = keras.layers.Dropout(0.5, seed=3)

    def call(self, x, training=False):
        title = self.vectors(self.words(x["title"]))
        totals = self.totals(x["minutes"], x["minutes_splits"], x["amounts"], x["names_splits"])
        parts = [x["a_taste"], title, totals]
        return self.dense(self.drop(self.joined(parts), training=training))
