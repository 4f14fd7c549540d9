"""Lists with nulls, and records with all kinds of fields, for the tests of xt.keras.layers."""

import datetime
import itertools

import numpy as np
import pyarrow as pa
import tensorflow as tf
from hypothesis import strategies as st

import extensor as xt

COUNT = 12
WORDS = ["salt", "oil", "rice", "leek"]


def nullable_lists(item=None, min_size=0):
    """Lists of lists of numbers, in which both lists and numbers may be None."""
    item = st.integers(-9, 9).map(float) if item is None else item
    return st.lists(
        st.one_of(st.none(), st.lists(st.one_of(st.none(), item), max_size=5)), min_size=min_size
    )


def ragged(rows, kind=None):
    """A field of lists: a RaggedTensor without nulls, else a MaskedTensor of one."""
    kind = pa.float32() if kind is None else kind
    table = pa.table({"x": pa.array(rows, pa.list_(kind))})
    has_nulls = any(row is None or None in row for row in rows)
    return xt.from_arrow(table, nulls="mask" if has_nulls else "error")["x"]


def valid(rows):
    """The same lists without nulls."""
    return [[item for item in row or () if item is not None] for row in rows]


def vectors(lengths, size=3, seed=0):
    values = np.random.default_rng(seed).normal(size=(sum(lengths), size)).astype(np.float32)
    return tf.RaggedTensor.from_row_lengths(tf.constant(values), lengths)


def rows_of(value):
    """The rows of a ragged tensor as NumPy arrays."""
    splits = value.row_splits.numpy()
    flat = value.values.numpy()
    return [flat[a:b] for a, b in itertools.pairwise(splits)]


def records_of_numbers(lengths):
    """Lists of records of three numeric fields, and of each list the vectors of all numbers."""
    rows = rows_of(vectors(lengths, size=4))
    rows = [np.concatenate([np.round(row[:, :1]), row[:, 1:]], 1) for row in rows]
    flat = np.concatenate(rows)
    fields = {"day": flat[:, 0].astype(np.int32), "price": flat[:, 1], "place": flat[:, 2:]}
    items = xt.DenseStructuredTensor([len(flat)], fields)
    return xt.RaggedStructuredTensor.from_row_lengths(items, lengths), rows


def table(seed=0):
    """Records with dense, string, time and list fields, lists of records, and nulls in all."""
    random = np.random.default_rng(seed)
    records = []
    for i in range(COUNT):
        steps = [
            {"minutes": None if j == 1 else float(i + j), "verb": WORDS[(i + j) % 4]}
            for j in range(i % 4)
        ]
        records.append(
            {
                "taste": random.random(3).tolist(),
                "title": None if i == 4 else WORDS[i % 3],
                "rating": None if i == 5 else float(random.random()),
                "servings": i % 5,
                "vegan": i % 2 == 0,
                "cooked": None if i == 6 else datetime.datetime(2024, 1, 1 + i, 12),
                "tags": None if i == 7 else [None if j == 2 else WORDS[j] for j in range(i % 4)],
                "ids": [(i * j) % 7 for j in range(i % 3)],
                "steps": None if i == 8 else [*steps, None][: i % 3 + 1],
            }
        )
    schema = pa.schema(
        {
            "taste": pa.list_(pa.float32(), 3),
            "title": pa.string(),
            "rating": pa.float32(),
            "servings": pa.int64(),
            "vegan": pa.bool_(),
            "cooked": pa.timestamp("us"),
            "tags": pa.list_(pa.string()),
            "ids": pa.list_(pa.int32()),
            "steps": pa.list_(pa.struct({"minutes": pa.float32(), "verb": pa.string()})),
        }
    )
    return pa.Table.from_pylist(records, schema)


NULLS = {
    "title": "mask",
    "rating": "mask",
    "cooked": "mask",
    "tags": "mask",
    "tags[*]": "mask",
    "steps": "mask",
    "steps[*]": "mask",
    "steps[*].minutes": "mask",
}


def records(seed=0):
    return xt.from_arrow(table(seed), nulls=NULLS)
