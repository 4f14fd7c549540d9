"""Records with each kind of field of Arrow data: nulls, unions, times and maps."""

import datetime

import pyarrow as pa
import tensorflow as tf

import extensor as xt

NULLS = dict.fromkeys(["price", "author", "author.age", "tags", "steps[*].minutes"], "mask")

_AMOUNT = pa.dense_union([pa.field("number", pa.int32()), pa.field("text", pa.string())])
SCHEMA = pa.schema(
    {
        "when": pa.timestamp("us", "UTC"),
        "price": pa.float32(),
        "author": pa.struct({"name": pa.string(), "age": pa.int32()}),
        "words": pa.map_(pa.string(), pa.int32()),
        "tags": pa.list_(pa.float32()),
        "steps": pa.list_(pa.struct({"minutes": pa.float32(), "at": pa.timestamp("s")})),
    }
)
SIZE = 6


def records():
    """Returns six records, with a union in each and in their lists."""
    rows = [
        {
            "when": datetime.datetime(2020, 1, 1 + i, tzinfo=datetime.timezone.utc),
            "price": None if i % 3 == 0 else float(i),
            "author": None if i == 2 else {"name": f"n{i}", "age": None if i == 1 else i},
            "words": [("a", i), ("b", 2)][: i % 3],
            "tags": None if i == 4 else [1.0] * i,
            "steps": [
                {"minutes": None if j else 5.0, "at": datetime.datetime(2021, 1, 1 + j)}
                for j in range(i % 3)
            ],
        }
        for i in range(SIZE)
    ]
    found = xt.from_arrow(pa.Table.from_pylist(rows, SCHEMA), nulls=NULLS)
    steps = found["steps"]
    count = steps.values.shape[0]
    amounts = xt.types.UnionTensor.from_values([i if i % 2 else "pinch" for i in range(count)])
    steps = xt.RaggedStructuredTensor.from_row_splits(
        steps.values.with_updates(amount=amounts), steps.row_splits
    )
    kind = xt.types.UnionTensor.from_values([1, "a", 2, "bcd", 3, "e"])
    return found.with_updates(steps=steps, kind=kind)


def spec():
    """Returns the spec of a batch of any number of them."""
    return tf.data.Dataset.from_tensor_slices(records()).batch(2).element_spec


def features(of):
    """Returns a number of each field for each record."""

    def valid(masked):
        return tf.where(masked.mask, masked.values, tf.zeros_like(masked.values))

    def number(union):
        return union.match(
            {
                "int": lambda n: tf.cast(n, tf.float32),
                "string": lambda s: tf.cast(tf.strings.length(s), tf.float32),
            }
        )

    columns = [
        tf.cast(of["when"] % 7, tf.float32),
        valid(of["price"]),
        tf.cast(valid(of["author.age"]), tf.float32),
        tf.cast(tf.reduce_sum(of["words.value"], axis=1), tf.float32),
        tf.reduce_sum(of["tags"].values, axis=1),
        tf.reduce_sum(valid(of["steps.minutes"]), axis=1),
        tf.reduce_sum(tf.cast(of["steps.amount"].is_variant("int"), tf.float32), axis=1),
        number(of["kind"]),
    ]
    return tf.stack(columns, axis=1)
