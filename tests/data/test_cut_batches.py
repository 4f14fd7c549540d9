"""Records of every kind that are converted at once are cut into their batches."""

import itertools
from types import SimpleNamespace

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._arrow import buffers, strings_by_batch
from extensor._arrow.arrow_type import map_schema, without_dictionaries
from extensor._data import conversion
from tests.samples import arrow_records
from tests.samples.tables import tables


def batches(records, size, spec):
    """Returns the batches of records, of which the last one is in another dataset."""
    if not len(records):
        return []
    size = min(size, len(records))
    count = max(1, (len(records) - 1) // size)
    return list(itertools.chain(*conversion.batches_of(records, size, count, spec)))


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("is_static", [False, True])
def test_records_of_every_kind_are_cut_as_tensorflow_batches_them(size, is_static, monkeypatch):
    monkeypatch.setattr(conversion, "_MANY", 2)  # columns are cut in parallel
    records = arrow_records.records()
    records = records[: 6 // size * size] if is_static else records
    dataset = tf.data.Dataset.from_tensor_slices(records).batch(size, drop_remainder=is_static)
    found = batches(records, size, dataset.element_spec)
    for one, other in zip(found, dataset, strict=True):
        assert tf.type_spec_from_value(one) == tf.type_spec_from_value(other)
        assert one.to_py() == other.to_py()
    assert [row for batch in found for row in batch.to_py()] == records.to_py()


@given(tables(), st.integers(1, 4))
def test_tables_are_cut_into_their_records(table, size):
    spec = xt.spec_from_schema(table.schema)
    found = batches(xt.from_arrow(table), size, spec)
    assert [row for batch in found for row in batch.to_py()] == table.to_pylist()


NUMBER_OR_TEXT = pa.dense_union([pa.field("number", pa.int64()), pa.field("text", pa.string())])
UNIONS = {
    "alone": (NUMBER_OR_TEXT, lambda n: n if n % 3 else f"text {n}"),
    "in lists": (pa.list_(NUMBER_OR_TEXT), lambda n: [n, f"text {n}"] * (n % 3)),
    "in records": (
        pa.struct({"kind": NUMBER_OR_TEXT, "size": pa.int32()}),
        lambda n: {"kind": n if n % 2 else f"text {n}", "size": n},
    ),
    "in lists of records": (
        pa.list_(pa.struct({"kind": NUMBER_OR_TEXT})),
        lambda n: [{"kind": n}, {"kind": f"text {n}"}] * (n % 3),
    ),
    "in lists of lists": (pa.list_(pa.list_(NUMBER_OR_TEXT)), lambda n: [[n], [], ["a"]] * (n % 3)),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("where", UNIONS)
def test_unions_are_cut_into_batches(where):
    arrow_type, value = UNIONS[where]
    rows = [value(n) for n in range(7)]
    table = pa.table({"it": with_unions(rows, arrow_type)})
    stream = xt.data.batches([table], table.schema, 3)
    whole = xt.from_arrow(table)
    found = [row for batch in stream for row in batch.to_py()]
    assert found == whole.to_py()
    spec = stream.element_spec
    cut = batches(whole, 3, spec)
    assert [row for batch in cut for row in batch.to_py()] == whole.to_py()


def with_unions(rows, arrow_type):
    """Returns an array of a type that pyarrow does not make of Python values: with unions in it."""
    if pa.types.is_union(arrow_type):
        is_text = [isinstance(value, str) for value in rows]
        parts = [
            [v for v, text in zip(rows, is_text, strict=True) if text == is_own]
            for is_own in (False, True)
        ]
        places = [sum(t == text for t in is_text[:i]) for i, text in enumerate(is_text)]
        children = [
            pa.array(part, field.type) for part, field in zip(parts, arrow_type, strict=True)
        ]
        codes, offsets = pa.array(is_text, pa.bool_()).cast(pa.int8()), pa.array(places, pa.int32())
        return pa.UnionArray.from_dense(codes, offsets, children, [f.name for f in arrow_type])
    if pa.types.is_list(arrow_type):
        ends = [0]
        for row in rows:
            ends.append(ends[-1] + len(row))
        items = with_unions([item for row in rows for item in row], arrow_type.value_type)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, type=arrow_type)
    if pa.types.is_struct(arrow_type):
        columns = [with_unions([row[f.name] for row in rows], f.type) for f in arrow_type.fields]
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type.fields))
    return pa.array(rows, arrow_type)


def text_in_lists(kind, is_encoded):
    """Returns lists of 12 records, with 24 strings, and whether their batches cut the strings."""
    first = None if kind == "masks in lists" else ""
    words = [first, "tea", "crème", "a word that is longer than those inside of a tensor"]
    words = pa.array(words * 6)
    words = words.dictionary_encode() if is_encoded else words
    offsets = pa.array([0, 0, 3, 4, 4, 9, 12, 15, 16, 20, 20, 23, 24], pa.int32())
    plain = pa.ListArray.from_arrays(offsets, words)
    if kind == "lists of records":
        numbers = pa.array(range(24))
        records = pa.StructArray.from_arrays([numbers, words], ["number", "word"])
        return pa.ListArray.from_arrays(offsets, records), True
    if kind == "lists of lists":
        outer = pa.array(range(13), pa.int64())
        return pa.LargeListArray.from_arrays(outer, plain), True
    if kind == "arrays in lists":
        pairs = pa.FixedSizeListArray.from_arrays(words, 2)
        return pa.ListArray.from_arrays(pa.array(range(13), pa.int32()), pairs), False
    return plain, True


@pytest.mark.parametrize("is_encoded", [False, True])
@pytest.mark.parametrize(
    "kind", ["lists", "lists of records", "lists of lists", "arrays in lists", "masks in lists"]
)
def test_strings_in_lists_are_copied_once_where_nothing_else_needs_them(
    kind, is_encoded, monkeypatch
):
    monkeypatch.setattr(strings_by_batch, "_MANY", 1)
    monkeypatch.setattr(strings_by_batch, "INSIDE", 0)
    monkeypatch.setattr(buffers, "_FEW", 0)
    column, is_cut = text_in_lists(kind, is_encoded)
    table = pa.table({"x": column, "id": [f"record {i:30}" for i in range(12)]})
    schema = map_schema(table.schema, without_dictionaries)
    plan = SimpleNamespace(batch_size=5, drop_remainder=False)
    nulls = {"x[*]": "mask"} if kind == "masks in lists" else "error"
    for splits in (tf.int32, tf.int64):
        way = conversion.Conversion(plan, schema, splits, nulls)
        for _ in range(2):
            found = list(itertools.chain(*way.batches(table, 5, 0, None, 2)))
            assert [row for batch in found for row in batch.to_py()] == table.to_pylist()
            assert [batch.shape[0] for batch in found] == [5, 5, 2]
        assert way._cuts_by_batch is is_cut
