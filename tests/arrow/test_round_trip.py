"""Arrow data comes back the same, whatever its schema, form and way through TensorFlow."""

import re

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st

import extensor as xt
from extensor._arrow.arrow_type import contains_type
from extensor.errors import FormatError
from tests.samples.arrow_strategies import (
    MANY,
    arrays,
    exactly,
    nullable_types,
    plain,
    python_of,
    schemas_and_records,
)

splits_dtypes = st.sampled_from([tf.int64, tf.int32])


def assert_back(records, schema, data):
    back = xt.to_arrow(records, schema)
    assert isinstance(back, pa.RecordBatch)
    back.validate(full=True)
    assert back.schema.equals(schema, check_metadata=True)
    assert back.num_rows == (len(data) if isinstance(data, (pa.Array, pa.ChunkedArray))
                             else data.num_rows)  # fmt: skip
    assert exactly(back) == exactly(data)


@MANY
@given(schemas_and_records(), splits_dtypes)
def test_any_records_come_back_as_they_were(schema_and_data, splits):
    schema, data = schema_and_data
    assert_back(xt.from_arrow(data, row_splits_dtype=splits), schema, data)


@MANY
@given(schemas_and_records() | schemas_and_records(nulls=True, types=nullable_types), splits_dtypes)
def test_records_as_python_are_what_arrow_gives(schema_and_data, splits):
    schema, data = schema_and_data
    # Arrow gives tensors as flat lists.
    assume(
        not contains_type(pa.struct(list(schema)), lambda t: isinstance(t, pa.FixedShapeTensorType))
    )
    records = xt.from_arrow(data, nulls="mask", row_splits_dtype=splits)
    try:
        expected = python_of(data)
    except ValueError:  # Python has no times of day in nanoseconds
        with pytest.raises(FormatError, match="a date or time that Python can hold"):
            records.to_py()
    else:
        # Arrow cuts the nanoseconds of times of day.
        found = re.sub(
            r"\bTime\((.+?), nanosecond=\d+\)", r"datetime.time(\1)", repr(records.to_py())
        )
        assert found == repr(expected)


@MANY
@given(schemas_and_records(), splits_dtypes)
def test_the_spec_is_known_from_the_schema_alone(schema_and_data, splits):
    schema, data = schema_and_data
    records = xt.from_arrow(data, row_splits_dtype=splits)
    of_value = records.__tf_type_spec__()
    for nrows in (None, len(records)):
        spec = xt.spec_from_schema(schema, nrows, row_splits_dtype=splits)
        assert spec.is_compatible_with(records)
        assert spec.field_names() == records.field_names() == tuple(schema.names)
        assert spec.most_specific_compatible_type(of_value) == xt.spec_from_schema(
            schema, nrows, row_splits_dtype=splits
        )
        assert of_value.is_subtype_of(spec)


@given(schemas_and_records(max_rows=3), splits_dtypes)
def test_a_tf_function_returns_records(schema_and_data, splits):
    schema, data = schema_and_data
    records = tf.function(lambda r: r)(xt.from_arrow(data, row_splits_dtype=splits))
    assert_back(records, schema, data)


@given(schemas_and_records(max_rows=3))
def test_slicing_and_batching_in_a_dataset_gives_the_records_back(schema_and_data):
    schema, data = schema_and_data
    records = xt.from_arrow(data)
    dataset = tf.data.Dataset.from_tensor_slices(records).batch(len(records) + 1)
    batches = list(dataset)
    if len(records) == 0:
        assert batches == []
    else:
        assert_back(batches[0], schema, data)


@MANY
@given(schemas_and_records(), splits_dtypes)
def test_records_come_back_as_they_were_without_a_schema(schema_and_data, splits):
    schema, data = schema_and_data
    back = xt.to_arrow(xt.from_arrow(data, row_splits_dtype=splits))
    back.validate(full=True)
    assert back.schema == schema
    for field, original in zip(back.schema, schema, strict=True):
        assert field.equals(original, check_metadata=True)
    assert exactly(back) == exactly(data)


@MANY
@given(st.data(), plain, st.integers(0, 4))
def test_a_list_of_records_is_a_higher_rank(data, inner, count):
    record = pa.struct([pa.field("x", inner), pa.field("y", pa.int64())])
    list_type = data.draw(st.sampled_from([
        pa.list_(record), pa.large_list(record), pa.list_(record, 2), pa.list_(record, 0),
        pa.list_(pa.large_list(record)), pa.list_(pa.list_(record, 2), 1),
        pa.list_(pa.list_(record), 2), pa.list_(pa.list_(record, 1)),
    ]))  # fmt: skip
    array = data.draw(arrays(list_type, count))
    records = xt.from_arrow(array)
    depth, below = 1, list_type
    while not pa.types.is_struct(below):
        depth, below = depth + 1, below.value_type
    assert records.rank == depth
    assert repr(records.to_py()) == repr(python_of(array))
    back = xt.to_arrow(records, list_type)
    back.validate(full=True)
    assert back.type == list_type
    assert exactly(back) == exactly(array)


@given(schemas_and_records(max_rows=2, types=plain))
@MANY
def test_a_single_record_is_a_struct_scalar(schema_and_data):
    schema, data = schema_and_data
    record = pa.struct(list(schema))
    for scalar in pa.array(data.to_pylist(), record):
        one = xt.from_arrow(scalar)
        assert one.rank == 0
        assert repr(one.to_py()) == repr(python_of(scalar.as_py()))


def test_a_single_record_goes_out_as_a_struct_scalar():
    recipe = xt.DenseStructuredTensor([], {"title": "Flapjacks", "ratings": [4, 5],
                                           "steps": tf.ragged.constant([[1], []])})  # fmt: skip
    scalar = xt.to_arrow(recipe)
    assert scalar.as_py() == {"title": "Flapjacks", "ratings": [4, 5], "steps": [[1], []]}
    assert xt.from_arrow(scalar).to_py() == scalar.as_py() == recipe.to_py(text=True)
    schema = pa.schema([("title", pa.binary()), ("steps", pa.list_(pa.list_(pa.int8()))),
                        ("ratings", pa.list_(pa.int64()))])  # fmt: skip
    assert xt.to_arrow(recipe, schema).as_py() == {
        "title": b"Flapjacks", "steps": [[1], []], "ratings": [4, 5],
    }  # fmt: skip


class Exported:
    """Data of another library, known by its capsules alone."""

    def __init__(self, data, kind):
        setattr(self, kind, getattr(data, kind))


@pytest.mark.parametrize(("start", "length"), [(0, 10), (0, 3), (3, 4), (2, 8), (4, 0)])
def test_slices_come_in_by_the_capsule_interface(start, length):
    struct = pa.array([{"x": i, "y": [i] * (i % 3)} for i in range(10)]).slice(start, length)
    stream = pa.chunked_array([struct, struct.slice(0, 1)])
    for data in (Exported(struct, "__arrow_c_array__"), Exported(stream, "__arrow_c_stream__")):
        expected = struct if hasattr(data, "__arrow_c_array__") else stream
        assert xt.from_arrow(data).to_py() == expected.to_pylist()
    lists = pa.ListArray.from_arrays([0, length], struct)
    assert xt.from_arrow(Exported(lists, "__arrow_c_array__")).to_py() == lists.to_pylist()


@MANY
@given(schemas_and_records())
def test_other_libraries_take_records_by_the_capsule_interface(schema_and_data):
    schema, data = schema_and_data
    if "\0" in str(schema):  # the interface has names end at a zero
        return
    records = xt.from_arrow(data)
    for taken in (pa.record_batch(records), pa.table(records), xt.to_arrow(records)):
        if len(schema):  # a stream of records without fields has no length
            assert exactly(taken) == exactly(data)
    assert exactly(pa.array(records)) == exactly(data)


@pytest.mark.parametrize("splits", [tf.int64, tf.int32], ids=["int64", "int32"])
def test_natural_types(splits):
    records = xt.DenseStructuredTensor([2], {
        "number": tf.constant([1, 2], tf.uint16),
        "half": tf.constant([1, 2], tf.float16),
        "flag": [True, False],
        "text": ["a", "b"],
        "vector": tf.zeros([2, 3], tf.float64),
        "ragged": tf.ragged.constant([[1], []], dtype=tf.int8, row_splits_dtype=splits),
        "record": xt.DenseStructuredTensor([2], {}),
    })  # fmt: skip
    ragged = pa.large_list(pa.int8()) if splits == tf.int64 else pa.list_(pa.int8())
    assert xt.to_arrow(records).schema == pa.schema([
        ("number", pa.uint16()), ("half", pa.float16()), ("flag", pa.bool_()),
        ("text", pa.string()), ("vector", pa.list_(pa.float64(), 3)), ("ragged", ragged),
        ("record", pa.struct([])),
    ])  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 5000])
@pytest.mark.parametrize("width", [0, 1, 15, 24, 700, 2000])
@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_binary()], ids=str)
def test_strings_of_every_size_come_back(count, width, arrow_type):
    # Sizes on either side of the marks at which buffers.py takes another way.
    if count * width > 5_000_000:
        count = 5_000_000 // width
    rng = np.random.default_rng(count + width)
    lengths = rng.integers(0, 2 * width + 1, count) if width else np.zeros(count, int)
    letters = ["a", "é", "\0", "𝄞"] if arrow_type == pa.string() else ["x", "\0"]
    texts = [letters[i % len(letters)] * n for i, n in enumerate(lengths.tolist())]
    array = pa.array(texts if arrow_type == pa.string() else [t.encode() for t in texts],
                     arrow_type)  # fmt: skip
    for piece in (array, array.slice(count // 3, count // 2)):
        table = pa.table({"s": piece})
        tensor = xt.from_arrow(table)["s"]
        assert tensor.numpy().tolist() == [v.encode() if isinstance(v, str) else v
                                           for v in piece.to_pylist()]  # fmt: skip
        assert xt.to_arrow(xt.from_arrow(table), table.schema).column(0).equals(piece)


@pytest.mark.parametrize("total", [9 << 20, (1 << 23) + 100])
def test_many_strings_are_cut_from_many_blobs(total):
    # More than 8 MB of strings goes through blobs of 256 KB each.
    lengths = np.random.default_rng(total).integers(0, 60, total // 30 + 1)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    blob = np.random.default_rng(1).integers(0, 256, int(offsets[-1]), np.uint8).tobytes()
    array = pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(blob)]
    )
    tensor = xt.from_arrow(pa.table({"s": array.slice(1)}))["s"]
    assert tensor.numpy().tolist() == array.slice(1).to_pylist()


def test_a_schema_puts_fields_in_its_order_and_casts_numbers_safely():
    records = xt.DenseStructuredTensor([2], {"a": [1, 2], "b": [[0.5], [1.5]]})
    schema = pa.schema([("b", pa.large_list(pa.float64())), ("a", pa.uint8())])
    batch = xt.to_arrow(records, schema)
    assert batch.schema == schema
    assert batch.to_pylist() == [{"b": [0.5], "a": 1}, {"b": [1.5], "a": 2}]


def test_a_variable_goes_out_with_its_value_of_that_moment():
    variable = tf.Variable([1.0, 2.0])
    batch = xt.to_arrow(xt.DenseStructuredTensor([2], {"v": variable}))
    variable.assign([8.0, 9.0])
    variable.scatter_nd_update([[0]], [7.0])
    assert batch.to_pydict() == {"v": [1.0, 2.0]}
