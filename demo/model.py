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
class Runs(xt.keras.Layer):
    """Cuts a list of names into one list of runs of one to three characters, in any script."""

    def call(self, names: tf.RaggedTensor) -> tf.RaggedTensor:
        marked = tf.strings.join(["^", tf.strings.lower(names.flat_values, "utf-8"), "$"])
        letters = tf.strings.unicode_split(marked, "UTF-8")
        runs = tf.strings.ngrams(letters, [1, 2, 3], separator="")
        return names.with_flat_values(runs).merge_dims(1, 2)


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
    runs = Runs()(city["names"])  # a ragged field, read straight off the records
    # Each run has a vector of its own (by hash); a city gets the mean over the runs of all names.
    spelling = xt.keras.layers.EmbeddingBag(_WIDTH, num_bins=_BUCKETS)(runs)
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
