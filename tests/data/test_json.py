"""xt.data.json reads the records that Python's parser finds in a text, in any layout."""

import importlib
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt

SCHEMA = pa.schema({"n": pa.int64(), "l": pa.list_(pa.int64())})
WIDE = pa.schema({"n": pa.int64(), "m": pa.map_(pa.string(), pa.int64())})

numbers = st.integers(-9, 9)
records = st.fixed_dictionaries(
    {}, optional={"n": st.none() | numbers, "l": st.none() | st.lists(st.none() | numbers)}
)
# What may come between two records, and whether a record spans lines.
layouts = st.tuples(st.sampled_from(["\n", "\n", "", " ", "\n\n", " \r\n "]), st.booleans())


@st.composite
def texts(draw):
    """JSON records, one after another, and the text of them."""
    found = draw(st.lists(st.tuples(records, layouts), min_size=1, max_size=12))
    parts = [json.dumps(r, indent=1 if spans else None) + gap for r, (gap, spans) in found]
    return [record for record, _ in found], "".join(parts)


def rows(dataset):
    return [row for batch in dataset for row in batch.to_py()]


@pytest.mark.whole("each example makes a dataset")
@given(texts(), st.sampled_from([None, SCHEMA, pa.schema([])]), st.sampled_from([20, 70, 1 << 18]))
def test_each_record_is_read_once(tmp_path_factory, found, schema, size):
    wanted, text = found
    path = tmp_path_factory.mktemp("json") / "x.jsonl"
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("extensor._streams.json"), "BLOCK", size)
        dataset = xt.data.json(path, 5, schema=schema, nulls="mask")
        read = rows(dataset)
    names = {name for row in wanted for name in row} if schema is None else schema.names
    assert read == [{name: row.get(name) for name in names} for row in wanted]
    assert len(dataset) == -(-len(wanted) // 5)


@pytest.mark.parametrize("shuffle", [None, xt.data.Shuffle(0, window=10)])
@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("schema", [None, pa.schema([])])
def test_records_without_fields_are_counted(tmp_path, schema, drop_remainder, shuffle):
    path = tmp_path / "x.jsonl"
    path.write_text("{}\n" * 100)
    dataset = xt.data.json(path, 32, schema=schema, shuffle=shuffle, drop_remainder=drop_remainder)
    sizes = [32, 32, 32] if drop_remainder else [32, 32, 32, 4]
    assert [len(batch.to_py()) for batch in dataset] == sizes


TEXTS = {
    "files joined without a newline": '{"n": 0}\n{"n": 1}' + '{"n": 2}\n{"n": 3}\n',
    "a record that spans lines": '{"n": 0}\n{\n"n":\n1\n}\n{"n": 2}{"n": 3}\n',
    "a record in a record": '{"n": 0}\n{"x": [\n{}\n,\n{}\n],"n": 1}\n{"n": 2}\n\n{"n": 3}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("size", [12, 1 << 18])
def test_records_are_those_of_the_text(tmp_path, monkeypatch, text, size):
    monkeypatch.setattr(importlib.import_module("extensor._streams.json"), "BLOCK", size)
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    dataset = xt.data.json(path, 2, schema=pa.schema({"n": pa.int64()}))
    assert [batch["n"].numpy().tolist() for batch in dataset] == [[0, 1], [2, 3]]


def test_what_is_no_record_is_an_error_at_once(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"n": 0}\n' * 3 + "null\n")
    with pytest.raises(xt.errors.StructureError, match=r"line 4 of .*x\.jsonl"):
        xt.data.json(path, 2, schema=SCHEMA)


POLICIES = {
    "mask": [[None, 1], [2, 3]],
    "auto": [[None, 1], [2, 3]],
    "fill": [[0, 1], [2, 3]],
    "path": [[None, 1], [2, 3]],
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("schema", [None, pa.schema({"l": pa.list_(pa.int64())})])
def test_nulls_get_the_policy_in_each_text(tmp_path, schema, policy):
    # Arrow's parser refuses a list that begins with a null. Python's parser reads it then.
    path = tmp_path / "x.jsonl"
    path.write_text('{"l": [null, 1]}\n{"l": [2, 3]}\n')
    nulls = {"fill": xt.fill(0), "path": {"l[*]": "mask"}}.get(policy, policy)
    found = rows(xt.data.json(path, 2, schema=schema, nulls=nulls))
    assert [row["l"] for row in found] == POLICIES[policy]
    assert found == xt.read_json(path, schema=schema, nulls=nulls).to_py()


@pytest.mark.parametrize("nulls", ["mask", {"*": "mask", "n": xt.fill(7)}], ids=str)
def test_maps_of_a_schema_are_read_as_read_json_reads_them(tmp_path, nulls):
    path = tmp_path / "x.jsonl"
    path.write_text('{"m": {"a": 1}, "n": 1}\n{"m": {}}\n{"m": {"b": null}, "n": null}\n')
    found = rows(xt.data.json(path, 2, schema=WIDE, nulls=nulls))
    assert found == xt.read_json(path, schema=WIDE, nulls=nulls).to_py()
    assert next(row["m"] for row in found) == [{"key": "a", "value": 1}]


def test_a_null_without_a_policy_is_an_error(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"l": [null, 1]}\n{"l": [2, 3]}\n')
    with pytest.raises(xt.errors.NullError, match=r"l\[\*\].*x\.jsonl"):
        rows(xt.data.json(path, 2))
