"""A model that tells a city's country from its names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

import extensor as xt

_BUCKETS = 1 << 16
_WIDTH = 32


@keras.saving.register_keras_serializable("demo")
class Spelling(xt.keras.Layer):
    """Turns a ragged list of names into one vector for each city: the mean of their letters' runs.

    Every name is cut into runs of one to three characters, in whatever script it is written; each
    run has a vector of its own (by hash), and a city gets the mean over the runs of all its names.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vectors = keras.layers.Embedding(_BUCKETS, _WIDTH)

    def call(self, names: tf.RaggedTensor) -> tf.Tensor:
        marked = tf.strings.join(["^", tf.strings.lower(names.flat_values, "utf-8"), "$"])
        letters = tf.strings.unicode_split(marked, "UTF-8")
        runs = tf.strings.ngrams(letters, [1, 2, 3], separator="")
        city = tf.gather(names.value_rowids(), runs.value_rowids())
        vectors = self.vectors(tf.strings.to_hash_bucket_fast(runs.flat_values, _BUCKETS))
        return tf.math.unsorted_segment_mean(vectors, city, names.nrows())


@keras.saving.register_keras_serializable("demo")
class MostLikely(xt.keras.Layer):
    """Names the country with the highest probability."""

    def __init__(self, countries: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.countries = list(countries)

    def call(self, probabilities: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "country": tf.gather(self.countries, tf.argmax(probabilities, axis=1)),
            "probability": tf.reduce_max(probabilities, axis=1),
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "countries": self.countries}


def build(spec: tf.TypeSpec, countries: Sequence[str]) -> xt.keras.Model:
    """Returns a model over batches of cities that gives the probability of each country.

    Args:
        spec: The spec of a batch of cities.
        countries: The countries to choose from.
    """
    city = xt.keras.Input(spec)
    spelling = Spelling()(city["names"])  # a ragged field, read straight off the records
    hidden = keras.layers.Dense(128, activation="relu")(spelling)
    model = xt.keras.Model(city, keras.layers.Dense(len(countries), activation="softmax")(hidden))
    model.compile(
        keras.optimizers.Adam(0.01),
        "sparse_categorical_crossentropy",
        metrics=[
            keras.metrics.SparseCategoricalAccuracy(name="top1"),
            keras.metrics.SparseTopKCategoricalAccuracy(5, name="top5"),
        ],
    )
    return model


def served(model: xt.keras.Model, spec: tf.TypeSpec, countries: Sequence[str]) -> xt.keras.Model:
    """Returns a model that names the country, made of one that gives probabilities."""
    city = xt.keras.Input(spec)
    return xt.keras.Model(city, MostLikely(countries)(model(city)))
