"""Nested Parquet files, a model that scores them, and a check of the scores."""

import pathlib

import keras
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

import extensor as xt

ROWS = 10_000
FILES = 8

STEP = pa.struct({"minutes": pa.float32(), "text": pa.string()})
SCHEMA = pa.schema({"id": pa.int64(), "title": pa.string(), "steps": pa.list_(STEP)})


def _recipe(number):
    steps = [{"minutes": float(number % 7 + j), "text": f"step {j}"} for j in range(number % 4)]
    return {"id": number, "title": f"recipe {number}", "steps": steps}


def write_files(folder):
    """Writes the recipes to Parquet files in a folder."""
    pathlib.Path(folder).mkdir()
    for file in range(FILES):
        table = pa.Table.from_pylist([_recipe(i) for i in range(file, ROWS, FILES)], SCHEMA)
        pq.write_table(table, f"{folder}/{file}.parquet", row_group_size=500)


def model():
    """Returns a functional model whose results are nested."""
    recipes = xt.keras.Input(xt.spec_from_schema(SCHEMA))
    minutes = xt.keras.layers.ListPooling("sum")(recipes["steps.minutes"])
    score = keras.layers.Dense(1, kernel_initializer="ones")(keras.ops.expand_dims(minutes, 1))
    return xt.keras.Model(recipes, {"score": score[:, 0], "scored": recipes["steps"]})


def check_scores(folder):
    """Checks the results in Parquet files: each recipe once, with its own score and its steps.

    Returns:
        The number of processes in the column `process`, if there is one, else 0.
    """
    table = pyarrow.dataset.dataset(folder, format="parquet").to_table().sort_by("id")
    found = table.to_pylist()
    assert [row["id"] for row in found] == list(range(ROWS))
    for row in found:
        steps = _recipe(row["id"])["steps"]
        assert row["scored"] == steps
        assert np.isclose(row["score"], sum(step["minutes"] for step in steps))
    return len({row.get("process") for row in found} - {None})
