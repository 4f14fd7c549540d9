"""A Parquet file of baskets, its batches as arrays, and a model of keras.ops that rates them."""

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import extensor as xt

ITEMS = 8


def write_baskets(path, rows):
    """Writes a Parquet file: numbers, ids, and lists of items."""
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, ITEMS + 1, rows)
    splits = pa.array(np.r_[0, np.cumsum(lengths)], pa.int32())
    total = int(lengths.sum())
    price = rng.exponential(size=total).astype(np.float32)
    items = pa.StructArray.from_arrays(
        [pa.array(price), pa.array(rng.integers(0, 100, total), pa.int32())], ["price", "brand"]
    )
    columns = {f"x{i}": rng.normal(size=rows).astype(np.float32) for i in range(4)}
    columns["shop"] = rng.integers(0, 50, rows).astype(np.int32)
    columns["items"] = pa.ListArray.from_arrays(splits, items)
    spent = np.add.reduceat(np.append(price, 0), splits.to_numpy()[:-1]) * (lengths > 0)
    columns["spent"] = (spent / ITEMS + columns["x0"]).astype(np.float32)
    pq.write_table(pa.table(columns), path, row_group_size=4096)


def padded(baskets):
    """Returns baskets with lists of one size, and what is spent."""
    baskets = baskets.to_static({"items": ITEMS})
    return baskets.without("spent"), baskets["spent"]


def batches(path, size, **arguments):
    """Returns the batches of a file as arrays."""
    dataset = xt.data.parquet(path, size, drop_remainder=True, **arguments)
    return xt.data.arrays(dataset.map(padded))


def model(width=32, layers=1):
    """Returns a compiled model whose first weights are the same with each backend."""
    spec = {f"x{i}": ((), "float32") for i in range(4)} | {"shop": ((), "int32")}
    spec |= {"items.price": ((ITEMS,), "float32"), "items.brand": ((ITEMS,), "int32")}
    spec |= {"items__mask": ((ITEMS,), "bool")}
    inputs = {
        key: keras.Input(shape, dtype=dtype, name=key) for key, (shape, dtype) in spec.items()
    }
    brand = keras.layers.Embedding(100, 8)(inputs["items.brand"])
    price = keras.ops.expand_dims(inputs["items.price"], -1)
    each = keras.layers.Dense(8, "tanh")(keras.ops.concatenate([brand, price], axis=-1))
    kept = keras.ops.expand_dims(inputs["items__mask"], -1)
    total = keras.ops.sum(keras.ops.where(kept, each, 0.0), axis=1)
    dense = keras.ops.stack([inputs[f"x{i}"] for i in range(4)], axis=1)
    shop = keras.layers.Embedding(50, 8)(inputs["shop"])
    hidden = keras.ops.concatenate([total, dense, shop], axis=-1)
    for _ in range(layers):
        hidden = keras.layers.Dense(width, "relu")(hidden)
    made = keras.Model(inputs, keras.layers.Dense(1)(hidden)[:, 0])
    rng = np.random.default_rng(3)
    made.set_weights(
        [
            rng.normal(scale=0.3 / max(w.shape[0], 1) ** 0.5, size=w.shape)
            for w in made.get_weights()
        ]
    )
    if keras.backend.backend() != "numpy":
        made.compile(keras.optimizers.SGD(0.05), "mse")
    return made
