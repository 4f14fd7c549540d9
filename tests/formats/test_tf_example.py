"""Serialized tf.Examples and SequenceExamples to records and back, in a graph and eagerly."""

import datetime
import decimal

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from tests.samples import arrow_strategies as arrow

NUMBERS = [t for t in arrow.INTEGERS if t != pa.uint64()] + [pa.float16(), pa.float32()]
LEAVES = st.sampled_from([*NUMBERS, pa.bool_(), pa.string(), pa.large_binary()])
VALUES = LEAVES | st.builds(pa.list_, LEAVES, st.integers(1, 3))


def _fields(types):
    return st.lists(
        st.builds(pa.field, st.text("abé /", min_size=1, max_size=4), types),
        min_size=1,
        max_size=3,
        unique_by=lambda field: field.name,
    )


def _tables(types):
    """A strategy for Arrow tables of a few records."""
    schemas = _fields(types).map(pa.schema)
    return schemas.flatmap(
        lambda schema: st.lists(arrow.values(pa.struct(list(schema))), max_size=5).map(
            lambda rows: pa.Table.from_pylist(rows, schema)
        )
    )


LISTS = VALUES | st.builds(pa.list_, VALUES) | st.builds(pa.large_list, VALUES)
RECORDS = LISTS | _fields(LISTS).map(pa.struct) | _fields(VALUES).map(pa.struct).map(pa.list_)
TWO_LISTS = RECORDS | LISTS.map(pa.list_) | _fields(LISTS).map(pa.struct).map(pa.list_)


def equal(a, b):
    """Whether records are equal, NaN to NaN."""
    return repr(a.to_py()) == repr(b.to_py())


@hypothesis.given(_tables(RECORDS), st.sampled_from([tf.int32, tf.int64]))
def test_records_come_back_equal_through_examples(table, splits):
    records = xt.from_arrow(table, row_splits_dtype=splits)
    spec = xt.spec_of(records)
    serialized = xt.to_tf_example(records)
    again = xt.from_tf_example(serialized, spec)
    assert equal(again, records)
    assert xt.spec_of(again) == spec
    assert again.arrow_types == records.arrow_types
    for one in serialized.numpy():
        tf.train.Example.FromString(one)


@hypothesis.given(_tables(TWO_LISTS))
def test_records_come_back_equal_through_sequence_examples(table):
    records = xt.from_arrow(table)
    spec = xt.spec_of(records)
    serialized = xt.to_tf_sequence_example(records)
    again = xt.from_tf_sequence_example(serialized, spec)
    assert equal(again, records)
    assert xt.spec_of(again) == spec
    for one in serialized.numpy():
        tf.train.SequenceExample.FromString(one)


@hypothesis.given(_tables(LISTS))
def test_examples_are_those_of_tf_train(table):
    records = xt.from_arrow(table)
    rows = records.to_py(text=False)
    for row, one in zip(rows, xt.to_tf_example(records).numpy(), strict=True):
        features = tf.train.Example.FromString(one).features.feature
        assert set(features) == set(row)
        for name, value in row.items():
            found = getattr(features[name], features[name].WhichOneof("kind")).value
            flat = [x for item in np.ravel(np.array([value], object)) for x in _flat(item)]
            assert repr([float(x) if isinstance(x, float) else x for x in flat]) == repr(
                [bool(x) if isinstance(flat[i], bool) else x for i, x in enumerate(found)]
            )


def _flat(value):
    if isinstance(value, list):
        return [x for item in value for x in _flat(item)]
    return [value]


def example(**features):
    """A serialized Example of lists of ints, floats or bytes."""
    made = {}
    for name, values in features.items():
        if all(isinstance(x, bytes) for x in values):
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif all(isinstance(x, int) for x in values):
            made[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        else:
            made[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def spec(**fields):
    return xt.DenseStructuredTensorSpec([None], fields)


def ints(*shape):
    return tf.TensorSpec([None, *shape], tf.int64)


ROWS = [
    {"id": 1, "tags": [b"a", b"b"], "box": [0.5, 1.5], "steps": [{"tool": b"pot", "minutes": 5}]},
    {"id": 2, "tags": [], "box": [2.5, 3.5], "steps": []},
]


def records():
    rows = xt.struct.constant(ROWS)
    return rows.with_updates(box=rows["box"].to_tensor(shape=[None, 2]))


def test_a_function_of_serialized_examples_is_saved_and_served(tmp_path):
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def parse(self, serialized):
            parsed = xt.from_tf_example(serialized, xt.spec_of(records()))
            return {"id": parsed["id"], "minutes": parsed["steps.minutes"].to_tensor()}

    module = Module()
    tf.saved_model.save(module, tmp_path / "model")
    served = tf.saved_model.load(tmp_path / "model")
    out = served.parse(xt.to_tf_example(records()))
    assert out["minutes"].numpy().tolist() == [[5], [0]]


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("name", ["example", "sequence_example"])
def test_a_graph_gives_the_same_as_eager_calls(name):
    to, back = getattr(xt, f"to_tf_{name}"), getattr(xt, f"from_tf_{name}")
    serialized = tf.function(to)(records())
    assert serialized.numpy().tolist() == to(records()).numpy().tolist()
    parse = tf.function(
        lambda x: back(x, xt.spec_of(records())), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    assert parse(serialized).to_py() == ROWS
    assert parse(serialized[:0]).to_py() == []
    assert back([], xt.spec_of(records())).to_py() == []


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("name", ["tf_example", "tf_sequence_example"])
def test_values_replace_missing_features_in_a_graph(name):
    to, back = getattr(xt, f"to_{name}"), getattr(xt, f"from_{name}")
    serialized = to(xt.struct.constant([{"x": 1}]))
    schema = pa.schema({"a": pa.int32(), "b": pa.string(), "c": pa.list_(pa.float32(), 2)})
    nulls = {"a": -1, "b": xt.fill("?"), "c": xt.fill([1.0, 2.0])}
    [filled] = tf.data.Dataset.from_tensors(serialized).map(lambda s: back(s, schema, nulls=nulls))
    assert filled.to_py() == [{"a": -1, "b": "?", "c": [1.0, 2.0]}]
    assert tf.function(lambda s: back(s, schema, nulls=nulls))(serialized).to_py() == filled.to_py()


def test_datasets_of_serialized_examples_are_parsed_in_batches():
    dataset = tf.data.Dataset.from_tensor_slices(xt.to_tf_example(records())).batch(1)
    dataset = dataset.map(lambda x: xt.from_tf_example(x, xt.spec_of(records()), ["steps"]))
    assert [batch.to_py() for batch in dataset] == [[{"steps": r["steps"]}] for r in ROWS]


def test_features_have_other_names_by_keys():
    serialized = [example(**{"image/encoded": [b"x"], "image/size": [3]})]
    inner = xt.DenseStructuredTensorSpec(
        [None], {"data": tf.TensorSpec([None], tf.string), "size": ints()}
    )
    keys = {"image.data": "image/encoded", ("image", "size"): "image/size"}
    parsed = xt.from_tf_example(serialized, spec(image=inner), keys=keys)
    assert parsed.to_py() == [{"image": {"data": b"x", "size": 3}}]
    # The order of a map in serialized bytes is not specified, so messages are compared.
    written = tf.train.Example.FromString(xt.to_tf_example(parsed, keys=keys).numpy()[0])
    assert written == tf.train.Example.FromString(serialized[0])
    with pytest.raises(errors.FieldError, match=r"keys, image.x: expected one of .*image.data"):
        xt.from_tf_example(serialized, spec(image=inner), keys={"image.x": "y"})
    with pytest.raises(errors.StructureError, match=r"image.size: .*'y', which"):
        xt.to_tf_example(parsed, keys={"image.data": "y", "image.size": "y"})


def test_missing_features_follow_the_policies():
    serialized = [example(a=[1], b=[b"x"]), example()]
    fields = spec(a=ints(), b=tf.TensorSpec([None], tf.string), c=tf.RaggedTensorSpec([None, None]))
    filled = xt.from_tf_example(serialized, fields, nulls={"a": -1, "b": xt.fill("?")})
    assert filled.to_py() == [{"a": 1, "b": b"x", "c": []}, {"a": -1, "b": b"?", "c": []}]
    schema = pa.schema({"a": pa.int16(), "b": pa.string(), "c": pa.list_(pa.float32())})
    masked = xt.from_tf_example(serialized, schema, nulls="mask")
    assert masked.to_py() == [{"a": 1, "b": "x", "c": []}, {"a": None, "b": None, "c": []}]
    assert xt.spec_of(masked) == xt.spec_from_schema(schema, 2, nulls="mask")
    again = xt.from_tf_example(xt.to_tf_example(masked), xt.spec_of(masked))
    assert again.to_py() == masked.to_py()
    assert (
        "a" not in tf.train.Example.FromString(xt.to_tf_example(masked)[1].numpy()).features.feature
    )
    sequences = xt.to_tf_sequence_example(masked)
    assert xt.from_tf_sequence_example(sequences, schema, nulls="mask").to_py() == masked.to_py()
    filled = xt.from_tf_sequence_example(sequences, fields, nulls={"a": -1, "b": xt.fill("?")})
    assert filled["a"].numpy().tolist() == [1, -1]
    with pytest.raises(errors.NullError, match=r"a: expected the feature 'a' .* none in record 1"):
        xt.from_tf_example(serialized, fields, nulls={"b": xt.fill("")})
    with pytest.raises(errors.NullError, match=r"a: expected the feature 'a' .* none in record 1"):
        xt.from_tf_sequence_example(sequences, fields, nulls={"b": xt.fill("")})
    with pytest.raises(errors.StructureError, match=r"nulls, c: .*is empty"):
        xt.from_tf_example(serialized, fields, nulls={"c": [1.0]})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("us", "UTC"), datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone.utc)),
        (pa.date32(), datetime.date(2024, 2, 29)),
        (pa.decimal128(10, 2), decimal.Decimal("1.5")),
        (pa.decimal128(10, 2), 7),
        (pa.decimal128(38, 9), 7),
        (pa.list_(pa.float32(), 2), [0.5, 1.5]),
    ],
    ids=str,
)
def test_a_value_in_place_of_a_missing_feature_is_that_of_from_arrow(kind, value):
    table = pa.table({"a": pa.array([None], kind), "n": pa.array([1])})
    wanted = xt.from_arrow(table, nulls={"a": xt.fill(value)})
    serialized = xt.to_tf_example(wanted.with_only("n"))
    found = xt.from_tf_example(serialized, table.schema, nulls={"a": xt.fill(value)})
    assert found.to_py() == wanted.to_py()


@pytest.mark.parametrize("back", [xt.from_tf_example, xt.from_tf_sequence_example])
@pytest.mark.parametrize(
    ("serialized", "fields", "error", "message"),
    [
        ([b"", b"garbage"], dict(x=tf.RaggedTensorSpec([None, None])), errors.FormatError,
         "record 1: expected a serialized tf"),
        ([b"", b"\x81garbage\xff"], dict(x=tf.RaggedTensorSpec([None, None])), errors.FormatError,
         "record 1: expected a serialized tf"),
        ([example(x=[1]), example(x=[b"a"])], dict(x=ints()), errors.DTypeError,
         "x: expected int64 values in the feature 'x', got .* in record 1"),
        ([example(x=[1]), example(x=[1, 2])], dict(x=ints()), errors.StructureError,
         "x: expected 1 value in the feature 'x', got 2 in record 1"),
        ([example(x=[1])], dict(x=ints(2)), errors.StructureError,
         "x: expected 2 values in the feature 'x', got 1 in record 0"),
        ([example(x=[128])], dict(x=tf.TensorSpec([None], tf.int8)), errors.StructureError,
         "x: expected numbers that fit into int8"),
        ([example(x=[2])], dict(x=tf.TensorSpec([None], tf.bool)), errors.StructureError,
         "x: expected the numbers 0 and 1"),
        ([example(x=[1e30])], dict(x=tf.TensorSpec([None], tf.float16)), errors.StructureError,
         "x: expected numbers that fit into float16"),
    ],
)  # fmt: skip
def test_bad_records_are_named(back, serialized, fields, error, message):
    with pytest.raises(error, match=message):
        back(serialized, spec(**fields), **_in_context(back, fields))
    parse = tf.function(lambda x: back(x, spec(**fields), **_in_context(back, fields)))
    # TensorFlow's message holds the record, which may not be UTF-8.
    theirs = (tf.errors.InvalidArgumentError, tf.errors.DataLossError, UnicodeDecodeError)
    with pytest.raises(theirs):
        parse(tf.constant(serialized))


def _in_context(back, fields):
    if back is xt.from_tf_example:
        return {}
    return {"context": [n for n, f in fields.items() if isinstance(f, tf.RaggedTensorSpec)]}


def test_lists_of_different_lengths_are_no_list_of_records():
    inner = xt.DenseStructuredTensorSpec([None], {"a": ints(), "b": ints()})
    steps = spec(s=xt.RaggedStructuredTensorSpec([None, None], inner))
    with pytest.raises(errors.StructureError, match=r"s.b: expected as many values .* as s.a"):
        xt.from_tf_example([example(**{"s.a": [1, 2], "s.b": [1]})], steps)


@pytest.mark.parametrize(
    ("field", "error", "message"),
    [
        (tf.constant([1], tf.uint64), errors.DTypeError, "x: .*got dtype uint64"),
        (tf.constant([1], tf.float64), errors.DTypeError, "x: .*float64"),
        (tf.constant([1j]), errors.DTypeError, "x: .*complex"),
        (tf.ragged.constant([[[1], []]]), errors.StructureError, "x: expected at most one list"),
        (xt.DenseStructuredTensor([1], {}), errors.StructureError, "x: expected records with at"),
        (xt.struct.constant([{"x": [[{"a": 1}]]}])["x"], errors.StructureError, "x: .*lists of"),
        (tf.zeros([1, 0]), errors.StructureError, "x: .*at least one number"),
        (xt.struct.constant([{"x": [1, None]}], nulls="mask")["x"], errors.NullError, "x: .*null"),
        (xt.struct.constant([{"x": 1}, {"x": "a"}], conflicts="union")["x"][:1],
         errors.UnsupportedTypeError, "x: .*got UnionTensor"),
        (xt.struct.constant([{"x": {"a": 1}}], nulls="mask")["x"],
         errors.UnsupportedTypeError, "x: .*got records that may be null"),
    ],
)  # fmt: skip
def test_fields_that_examples_do_not_hold_are_named(field, error, message):
    with pytest.raises(error, match=message):
        xt.to_tf_example(xt.DenseStructuredTensor([1], {"x": field}))


NUMBERS = {"x": tf.float64, "s.y": tf.int32}


@pytest.mark.parametrize("is_spec", [False, True])
@pytest.mark.parametrize("nulls", [None, "mask"])
@pytest.mark.parametrize("write", [xt.to_tf_example, xt.to_tf_sequence_example])
def test_numbers_are_written_as_the_schema_says(is_spec, nulls, write):
    step = pa.list_(pa.struct({"y": pa.int64()}))
    schema = pa.schema({"x": pa.float32(), "s": step})
    rows = [{"x": 0.5, "s": [{"y": 7}]}, {"x": None if nulls else 2.0, "s": []}]
    wide = xt.struct.constant(rows, dtype=NUMBERS, nulls={"x": "mask"} if nulls else None)
    wanted = xt.struct.constant(rows, dtype={"x": tf.float32, "s.y": tf.int64},
                                nulls={"x": "mask"} if nulls else None)  # fmt: skip
    if is_spec:
        schema = xt.spec_of(wanted)
    assert write(wide, schema).numpy().tolist() == write(wanted).numpy().tolist()


def test_numbers_that_a_schema_does_not_hold_are_named():
    large = xt.DenseStructuredTensor([2], {"x": tf.constant([1, 2**40], tf.int64)})
    with pytest.raises(errors.DTypeError, match=r"^x: .*int32"):
        xt.to_tf_example(large, pa.schema({"x": pa.int32()}))
    with pytest.raises(errors.DTypeError, match=r"^x: "):  # a graph has no values to look at
        tf.function(lambda: xt.to_tf_example(large, pa.schema({"x": pa.int32()})))()


def test_float64_is_read_under_its_schema():
    rows = xt.DenseStructuredTensor([1], {"x": tf.constant([0.5], tf.float64)})
    narrow = xt.DenseStructuredTensor([1], {"x": [0.5]})
    assert xt.to_tf_example(narrow, xt.spec_of(narrow)) == xt.to_tf_example(narrow)
    wide = xt.from_tf_example(xt.to_tf_example(narrow), xt.spec_of(rows))
    assert wide.to_py() == rows.to_py()


def test_one_long_list_does_not_pad_the_others():
    lengths = np.ones(20_000, np.int64)
    lengths[7] = 200_000
    values = tf.RaggedTensor.from_row_lengths(np.arange(lengths.sum()), lengths)
    rows = xt.DenseStructuredTensor([20_000], {"x": values})
    # Padded, it would be 32 GB.
    again = xt.from_tf_example(xt.to_tf_example(rows), xt.spec_of(rows))
    assert tf.reduce_all(again["x"].flat_values == values.flat_values)
    assert tf.reduce_all(again["x"].row_splits == values.row_splits)


@pytest.mark.parametrize("source", [3, ["text", 1], [[b"a"]]])
def test_what_is_no_vector_of_strings_is_refused(source):
    with pytest.raises((errors.DTypeError, errors.StructureError), match="a vector of strings"):
        xt.from_tf_example(source, spec(x=ints()))


def test_what_is_no_spec_or_no_records_is_refused():
    with pytest.raises(errors.DTypeError, match="schema: expected the spec"):
        xt.from_tf_example([b""], {"x": tf.io.FixedLenFeature([], tf.int64)})
    with pytest.raises(errors.DTypeError, match="records: expected a StructuredTensor"):
        xt.to_tf_example({"x": [1]})
    with pytest.raises(errors.StructureError, match="shape"):
        xt.to_tf_example(records()[0])
