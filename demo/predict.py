"""Writes predictions beside the input fields. Imports TensorFlow and extensor only.

Run as `python -m demo.predict MODEL INPUT OUTPUT`.
"""

from __future__ import annotations

import sys

import tensorflow as tf

import extensor as xt


def predict(model_path: str, input_path: str, output_path: str) -> None:
    """Adds to each city the country that a model takes it for, and how sure it is."""
    model = tf.saved_model.load(model_path)

    def scored(countries: xt.StructuredTensor) -> xt.StructuredTensor:
        cities = countries["cities"]
        guess = model.serve(cities.values.with_only("geonameid", "names"))
        cut = tf.RaggedTensor.from_row_splits
        return countries.with_updates(
            {
                "cities.predicted": cut(guess["country"], cities.row_splits),
                "cities.probability": cut(guess["probability"], cities.row_splits),
            }
        )

    batches = xt.data.parquet(input_path, batch_size=32)
    xt.write_parquet((scored(batch) for batch in batches), output_path)


if __name__ == "__main__":
    predict(*sys.argv[1:])
