"""Every format to every format, batch by batch: the records stay the same."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
from extensor._streams import read as read_module
from extensor._streams.read import format_of, open_stream
from extensor._streams.sink import write_stream

RECORDS = [
    {"title": "Tea", "minutes": 5, "steps": [{"text": "boil", "temp": 100.0}], "vegan": True},
    {"title": "Bröd", "minutes": None, "steps": [], "vegan": False},
    {"title": None, "minutes": 7, "steps": [{"text": "a", "temp": 1.5}] * 2, "vegan": True},
]
FLAT = [
    {"minutes": 5, "names": ["a", "b"], "title": "Tea"},
    {"minutes": 6, "names": [], "title": "Bröd"},
]
SUFFIXES = [".parquet", ".arrow", ".arrows", ".feather", ".jsonl", ".json.gz", ".ndjson.zst"]
FLAT_SUFFIXES = [*SUFFIXES, ".tfrecord", ".tfrecords.gz"]


def written(path, records, count=1):
    """Writes records in several batches."""
    table = pa.Table.from_pylist(records * count)
    batches = table.to_batches(max_chunksize=max(1, len(records)))
    write_stream(batches, table.schema, path, format_of(str(path)))
    return path


def read(path):
    return [record for batch in open_stream(path).batches() for record in batch.to_pylist()]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_records_are_read_as_they_were_written(suffix, tmp_path):
    path = written(tmp_path / f"recipes{suffix}", RECORDS, 3)
    source = open_stream(path)
    assert read(path) == RECORDS * 3
    assert source.num_records in (9, None)
    assert all(batch.schema.equals(source.schema) for batch in source.batches())
    assert next(open_stream(path, ["steps.temp"]).batches()).to_pylist()[0] == {
        "steps": [{"temp": 100.0}]
    }


@pytest.mark.whole("reads many files")
@pytest.mark.parametrize("target", FLAT_SUFFIXES)
@pytest.mark.parametrize("first", FLAT_SUFFIXES)
def test_every_format_converts_to_every_format(first, target, tmp_path):
    source = open_stream(written(tmp_path / f"one{first}", FLAT, 2))
    path = tmp_path / f"two{target}"
    write_stream(source.batches(), source.schema, path, format_of(str(path)))
    found = read(path)
    assert found == FLAT * 2


def test_files_without_records_are_files_of_the_schema(tmp_path):
    schema = pa.schema({"x": pa.int64(), "y": pa.list_(pa.string())})
    for suffix in (".parquet", ".arrow", ".arrows"):
        path = tmp_path / f"empty{suffix}"
        write_stream([], schema, path, format_of(str(path)))
        assert open_stream(path).schema.equals(schema)
        assert read(path) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"x": 1}\n{"x": 2.5}\n{"x": null, "y": "a"}',
        '[{"x": 1}, {"x": 2.5}, {"x": null, "y": "a"}]',
        '{\n"x": 1}\n{"x": 2.5}\n{"x": null,\n"y": "a"}\n',
        '\ufeff{"x": 1}\n{"x": 2.5}\n{"x": null, "y": "a"}\n\n',
    ],
)
def test_json_of_every_form_is_read(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")
    expected = [{"x": 1.0, "y": None}, {"x": 2.5, "y": None}, {"x": None, "y": "a"}]
    assert read(path) == expected


def test_types_that_differ_between_blocks_are_joined(tmp_path, monkeypatch):
    monkeypatch.setitem(read_module._OPTIONS, "json", {"block": 64})
    records = [{"i": i, "when": "2024-01-01"} for i in range(50)]
    records += [{"i": 0.5, "when": None, "late": [{"z": "é" * i}]} for i in range(20)]
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    source = open_stream(path)
    assert source.num_records == 70
    found = read(path)
    assert found == xt.to_arrow(xt.read_json(path, nulls="mask")).to_pylist()
    assert found[0] == {"i": 0.0, "when": "2024-01-01", "late": None}


def test_errors_of_later_blocks_name_the_line_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setitem(read_module._OPTIONS, "json", {"block": 64})
    path = tmp_path / "x.jsonl"
    path.write_text('{"x": 1}\n' * 40 + '{"x": }\n' + '{"x": 1}\n' * 40)
    with pytest.raises(xt.errors.FormatError, match=r"x\.jsonl, line 41, column 7: "):
        open_stream(path)
    path.write_text('{"x": 1}\n' * 40 + "[1]\n")
    with pytest.raises(xt.errors.StructureError, match=r"line 41 of .*x\.jsonl: expected an obj"):
        open_stream(path)
    path.write_text('{"a": {"x": ["b"]}}\n' * 60)
    text = path.read_text()
    path.write_text('{"a": {"x": [1]}}\n' * 3 + text)  # a block of its own
    with pytest.raises(xt.errors.DTypeError, match=r"a\.x\[\*\]: .*int64.*string.*line \d+ of"):
        open_stream(path)
    path.write_text('{"a": {"x": [1]}}\n' * 40 + '{"a": {"x": ["b"]}}\n' * 4)
    with pytest.raises(
        xt.errors.DTypeError, match=r"a\.x\[\*\], line 41 of .*x\.jsonl: .*as in line 40"
    ):
        open_stream(path)


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize(
    ("source", "target"), [("parquet", "jsonl"), ("jsonl", "arrow"), ("arrow", "parquet")]
)
def test_a_stream_holds_a_part_of_the_records(source, target, tmp_path, run_python):
    path = tmp_path / f"one.{source}"
    table = pa.table({"x": list(range(2_000_000)), "y": ["some words of text"] * 2_000_000})
    write_stream(table.to_batches(max_chunksize=50_000), table.schema, path, format_of(str(path)))
    done = run_python(
        f"""
        import pyarrow as pa
        from extensor._streams.sink import write_stream
        from extensor._streams.read import open_stream
        source = open_stream({str(path)!r})
        format = {format_of(f"x.{target}")!r}
        write_stream(source.batches(), source.schema, {str(tmp_path / f"two.{target}")!r}, format)
        print(pa.default_memory_pool().max_memory() / 2**20)
        """
    )
    assert float(done.stdout) < table.nbytes / 2**20 / 2


def test_bytes_of_tf_examples_are_text_where_all_of_them_are(tmp_path):
    path = tmp_path / "x.tfrecord"
    records = xt.struct.constant([{"a": b"\xff", "b": "é"}, {"a": b"x", "b": "y"}])
    xt.write_tfrecord(records, path)
    assert open_stream(path).schema.types == [pa.binary(), pa.string()]
    assert xt.read_tfrecord(path).to_py()[0] == {"a": b"\xff", "b": "é".encode()}


def test_missing_features_are_nulls(tmp_path):
    path = written(tmp_path / "x.tfrecord", [{"a": 1, "b": "x"}, {"a": None, "b": "y"}])
    assert read(path) == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]


def test_lists_of_lists_become_sequence_examples(tmp_path):
    records = [{"title": "Tea", "words": [["a"], ["b", "c"]]}, {"title": "x", "words": []}]
    assert read(written(tmp_path / "x.tfrecord", records)) == records


def test_dictionaries_that_change_are_written_to_every_format(tmp_path):
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [pa.record_batch({"x": pa.array([word], kind)}) for word in "ab"]
    for suffix in (".arrow", ".arrows", ".parquet", ".jsonl"):
        path = tmp_path / f"x{suffix}"
        write_stream(batches, batches[0].schema, path, format_of(str(path)))
        assert read(path) == [{"x": "a"}, {"x": "b"}]


@pytest.mark.whole("reads many files")
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".arrows", ".jsonl.gz", ".tfrecord"])
def test_a_truncated_file_is_an_error_that_names_it(suffix, tmp_path):
    path = written(tmp_path / f"cut{suffix}", FLAT, 50)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(xt.errors.FormatError, match="cut"):
        read(path)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl", ".tfrecord"])
def test_a_file_of_another_format_is_an_error_that_names_it(suffix, tmp_path):
    path = tmp_path / f"wrong{suffix}"
    path.write_bytes(b"\x00\x01no records" * 20)
    with pytest.raises(xt.errors.FormatError, match="wrong"):
        read(path)


@pytest.mark.whole("reads many files")
def test_files_of_one_schema_are_one_stream_and_others_an_error(tmp_path):
    for suffix in (".parquet", ".arrow", ".jsonl", ".tfrecord"):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        written(folder / f"a{suffix}", FLAT)
        written(folder / f"b{suffix}", FLAT[::-1])
        assert read(folder) == FLAT + FLAT[::-1]
        assert read(f"{folder}/*{suffix}") == FLAT + FLAT[::-1]
    written(tmp_path / "arrow" / "c.arrow", RECORDS)
    with pytest.raises(xt.errors.StructureError, match=r"c\.arrow: expected the columns of"):
        open_stream(tmp_path / "arrow")
    written(tmp_path / "arrow" / "a.jsonl", FLAT)
    with pytest.raises(xt.errors.FormatError, match="expected a file of format"):
        open_stream(tmp_path / "arrow")


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.PARQUET", "parquet"), ("x/a.json.zst", "json"), ("a.tfrecord.gz", "tfrecord"),
     ("a.csv.gz", "csv"), ("a.xml", None), ("parquet", None), ("gs://b/a.feather", "arrow")],
)  # fmt: skip
def test_the_suffix_is_the_format(path, found):
    assert format_of(path) == found


def test_a_suffix_that_is_not_known_needs_a_format(tmp_path):
    path = tmp_path / "records.data"
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(xt.errors.FormatError, match=r"suffix '\.data'"):
        open_stream(path)
    assert next(open_stream(path, format="parquet").batches()).to_pylist() == [{"x": 1}]
    with pytest.raises(xt.errors.FormatError, match="expected one of parquet, arrow, csv, json"):
        open_stream(path, format="xml")


def test_runs_beside_dictionaries_are_written_as_they_are(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([4, 9], pa.int32()), pa.array([7, 8]))
    words = pa.array(list("abcabcabc")).dictionary_encode()
    table = pa.table({"runs": runs, "words": words})
    batches = [batch.slice(at, 2) for batch in table.to_batches() for at in range(0, 9, 2)]
    write_stream(batches, table.schema, tmp_path / "x.arrow", "arrow")
    assert read(tmp_path / "x.arrow") == table.to_pylist()
