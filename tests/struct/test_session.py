"""Records in a graph of TensorFlow 1: constants, and what sessions fetch and take."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ExtensorError

DATA = [
    {"x": 1, "tags": [1, 2], "in": {"name": b"a"}, "l": [{"m": 1.0}]},
    {"x": 2, "tags": [], "in": {"name": b"b"}, "l": []},
]
RECORDS = xt.struct.constant(DATA)
BATCH = xt.to_arrow(RECORDS)
MASKED = xt.types.MaskedTensor([1.0, 2.0], [True, False])
NULLS = xt.types.MaskedTensor(
    tf.ragged.constant([[1.0], []]), tf.ragged.constant([[False], []], tf.bool)
)
VALUES = {
    "dense": RECORDS,
    "ragged": RECORDS["l"],
    "one record": RECORDS[0],
    "no fields": xt.DenseStructuredTensor([2], {}),
    "masked in lists": RECORDS.with_updates({"l.m": NULLS}),
    "masked": xt.DenseStructuredTensor([2], {"x": MASKED}),
}


def read_parquet(path):
    xt.write_parquet(RECORDS, path / "x.parquet")
    return lambda: xt.read_parquet(path / "x.parquet")


def read_json(path):
    xt.write_json(RECORDS, path / "x.jsonl")
    return lambda: xt.read_json(path / "x.jsonl")


def read_tfrecord(path):
    xt.write_tfrecord(RECORDS.with_only("x", "tags"), path / "x.tfrecord")
    return lambda: xt.read_tfrecord(path / "x.tfrecord")


def read_arrow(path):
    xt.write_arrow(RECORDS, path / "x.arrow")
    return lambda: xt.read_arrow(path / "x.arrow")


READERS = {
    "constant": lambda path: lambda: xt.struct.constant(DATA),
    "from_arrow": lambda path: lambda: xt.from_arrow(BATCH),
    "from_arrow with columns": lambda path: lambda: xt.from_arrow(BATCH, columns=list(DATA[0])),
    "cast": lambda path: lambda: xt.spec_of(RECORDS).cast(DATA),
    "a value": lambda path: lambda: xt.StructuredTensorValue.from_tensor(RECORDS).to_tensor(),
    "read_parquet": read_parquet,
    "read_json": read_json,
    "read_tfrecord": read_tfrecord,
    "read_arrow": read_arrow,
    "from_pandas": lambda path: lambda: xt.from_pandas(xt.to_pandas(RECORDS)),
    "nulls in lists": lambda path: (
        lambda: xt.from_arrow(xt.to_arrow(VALUES["masked in lists"]), nulls="auto")
    ),
}


def tensors(value):
    return tf.nest.flatten(value, expand_composites=True)


@pytest.mark.parametrize("name", READERS)
def test_data_that_is_read_in_a_graph_becomes_constants_of_it(name, tmp_path):
    read = READERS[name](tmp_path)
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        records = read()
        assert all(tensor.graph is graph for tensor in tensors(records))
        fetched = session.run(records)
        assert session.run(records["x"] * 2).tolist() == [2, 4]
    assert isinstance(fetched, xt.StructuredTensorValue)
    assert fetched.to_py() == read().to_py()  # which is eager again


def test_eager_records_are_written_while_a_graph_is_built():
    with tf.Graph().as_default():
        assert xt.to_arrow(RECORDS).to_pylist() == RECORDS.to_py()


def test_concrete_values_of_nulls_in_lists_come_back():
    rows = [{"l": [{"c": None, "d": 1}]}, {"l": []}, {"l": [{"c": 2, "d": 3}]}]
    value = xt.struct.constant_value(rows, nulls="auto")
    assert value.to_py() == rows
    assert value["l"].to_py() == [row["l"] for row in rows]


def test_concrete_values_are_concrete_in_a_graph():
    with tf.Graph().as_default():
        value = xt.struct.constant_value(DATA)
        assert value.to_py() == DATA
        assert value[0].to_py() == DATA[0]
        assert value == xt.StructuredTensorValue.from_tensor(RECORDS)
        assert xt.from_arrow(pa.table({"x": [1]}))["x"].shape == [1]


def placeholder(value):
    return tf.nest.map_structure(
        lambda tensor: tf.compat.v1.placeholder(tensor.dtype, [None] * tensor.shape.rank),
        value,
        expand_composites=True,
    )


def tables(value):
    return [xt.to_arrow(value)] if value.rank == 1 and value.field_names() else []


@pytest.mark.parametrize("name", VALUES)
def test_a_session_fetches_what_it_is_fed(name):
    value = VALUES[name]
    concrete = xt.StructuredTensorValue.from_tensor(value)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        records = placeholder(value)
        given = [value, concrete, *([value.to_py()] if name != "masked" else []), *tables(value)]
        for each in given:
            fetched = session.run({"all": [records]}, {records: each})["all"][0]
            assert isinstance(fetched, xt.StructuredTensorValue)
            assert fetched.to_py() == value.to_py()
            assert list(fetched.shape) == list(concrete.shape)


def test_a_session_fetches_other_extension_types_and_plain_tensors_as_they_are():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        masked, x = placeholder(MASKED), tf.compat.v1.placeholder(tf.float32, [2])
        found, total = session.run([masked, tf.reduce_sum(x)], {
            masked.values: [1.0, 2.0], masked.mask: [True, False], x: [1.0, 2.0]})  # fmt: skip
        assert found.to_py() == [1.0, None]
        assert isinstance(found.values, tf.Tensor)
        assert total == np.float32(3.0)


def test_a_value_of_another_spec_is_refused():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        records = placeholder(RECORDS)
        with pytest.raises(ExtensorError, match="MaskedTensor"):
            session.run(records["x"], {records: MASKED})
