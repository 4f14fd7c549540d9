"""Batch scoring: nested Parquet in, the same records with a score for each item out, part by part.

$ python examples/batch_scoring.py
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt


def orders(count, seed=0):
    """Orders with a list of items; an item comes back if it is dear and bought in numbers."""
    random = np.random.default_rng(seed)
    records = []
    for number in range(count):
        items = [
            {"price": float(random.uniform(1, 100)), "count": float(random.integers(1, 6))}
            for _ in range(random.integers(0, 6))
        ]
        for item in items:
            item["returned"] = float(item["price"] * item["count"] > 150)
        records.append({"number": number, "items": items})
    return xt.struct.constant(records)


def trained(records):
    """Returns a model that gives each item the probability that it comes back."""
    keras.utils.set_random_seed(1)
    items = records["items"].values  # all items of all orders, one a row
    item = xt.keras.Input(xt.spec_of(items[:0]))
    both = keras.layers.Reshape([1])(item["price"]), keras.layers.Reshape([1])(item["count"])
    scaled = keras.layers.Rescaling(0.01)(both[0]), keras.layers.Rescaling(0.2)(both[1])
    hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(scaled))
    model = xt.keras.Model(item, keras.layers.Dense(1, "sigmoid")(hidden))
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy")
    model.fit(items, items["returned"][:, tf.newaxis], batch_size=100, epochs=15, verbose=0)
    return model


def score_file(model, source, target):
    """Writes the records of a file with a score for each item. One part is in memory at a time."""

    def scored(batch):
        items = batch["items"]
        scores = tf.squeeze(model(items.values), axis=1)
        rows = tf.RaggedTensor.from_row_splits(scores, items.row_splits)
        return batch.with_updates({"items.score": rows})

    batches = xt.data.parquet(source, batch_size=256)
    xt.write_parquet(batches.map(scored), target)


def main():
    folder = Path(tempfile.mkdtemp())
    source, target = folder / "orders.parquet", folder / "scored.parquet"
    xt.write_parquet(orders(2000, seed=1), source)
    score_file(trained(orders(2000)), source, target)

    print(xt.struct.tree(xt.spec_from_schema(pq.read_schema(target))))
    result = xt.read_parquet(target)
    items = result["items"].values
    accuracy = float(np.mean((items["score"].numpy() > 0.5) == items["returned"].numpy()))
    baseline = float(1 - items["returned"].numpy().mean())
    print("records:", result.shape[0], "items:", items.shape[0])
    print("accuracy if no item comes back:", round(baseline, 2))
    print("accuracy of the scores:", round(accuracy, 2))
    return baseline, accuracy


if __name__ == "__main__":
    main()
