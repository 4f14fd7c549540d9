"""Slabs are cut op by op at first, and later by functions: both give the same batches."""

import importlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._data import slab
from tests.samples import arrow_records
from tests.samples.tables import tables

# `xt.data.parquet` is the function; the module has the same name.
PLAN = importlib.import_module("extensor._data.plan")


def batches(records, size, spec, *, is_traced):
    slabs = slab._Slabs(spec)
    if is_traced:
        slabs._untraced = 0
    cut = slabs.cut(records, records.shape[0] // size, size)
    return list(tf.data.experimental.from_variant(cut, spec))


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("is_static", [False, True])
def test_records_of_every_kind_are_cut_alike(size, is_static):
    records = arrow_records.records()
    dataset = tf.data.Dataset.from_tensor_slices(records)
    spec = dataset.batch(size, drop_remainder=is_static).element_spec
    found = batches(records, size, spec, is_traced=True)
    for one, other in zip(found, batches(records, size, spec, is_traced=False), strict=True):
        assert tf.type_spec_from_value(one) == tf.type_spec_from_value(other)
        assert one.to_py() == other.to_py()
    assert [row for batch in found for row in batch.to_py()] == records.to_py()


@given(tables(), st.integers(1, 4))
def test_tables_are_cut_alike(table, size):
    table = table.slice(0, len(table) // size * size)
    spec = xt.spec_from_schema(table.schema)
    found = batches(xt.from_arrow(table), size, spec, is_traced=True)
    assert [row for batch in found for row in batch.to_py()] == table.to_pylist()


@pytest.mark.whole("traces many datasets")
@pytest.mark.parametrize("size", [256, 4])
def test_only_a_long_stream_traces_functions(tmp_path, monkeypatch, size):
    made = []
    monkeypatch.setattr(slab, "_slabs", lambda spec: made[0] if made else create(spec))

    def create(spec):
        made.append(slab._Slabs(spec))
        return made[0]

    numbers = list(range(2560))
    table = pa.table({"number": numbers, "text": [f"text {i}" for i in numbers]})
    pq.write_table(table, tmp_path / "it.parquet", row_group_size=size)
    monkeypatch.setattr(PLAN, "PART_ROWS", size)
    dataset = xt.data.parquet(str(tmp_path / "it.parquet"), size)
    found = [n for batch in dataset for n in batch["number"].numpy().tolist()]
    assert found == numbers
    assert ("_functions" in vars(made[0])) == (len(dataset) > 8)


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
    for is_traced in (False, True):
        cut = batches(xt.from_arrow(table.slice(0, 6)), 3, spec, is_traced=is_traced)
        assert [row for batch in cut for row in batch.to_py()] == whole.to_py()[:6]


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
