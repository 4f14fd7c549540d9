"""Iceberg tables, written by pyiceberg in a local catalog."""

import json
import pathlib

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from demo import cities
from extensor import errors
from tests.formats.test_delta import TABLE, rows

pytest.importorskip("pyiceberg")
sql = pytest.importorskip("pyiceberg.catalog.sql")


@pytest.fixture
def catalog(tmp_path):
    found = sql.SqlCatalog(
        "local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    found.create_namespace("shop")
    yield found
    found.engine.dispose()


@pytest.fixture
def table(catalog):
    made = catalog.create_table("shop.it", schema=TABLE.schema)
    made.append(TABLE)
    return made


def files(table, suffix):
    return sorted(pathlib.Path(table.location().removeprefix("file://")).rglob(f"*{suffix}"))


def test_records_are_those_of_the_table(table):
    found = xt.read_iceberg(table, nulls={"steps.minutes": "mask"})
    assert rows(found) == TABLE.to_pylist()
    with pytest.raises(errors.NullError, match=r"steps.minutes"):
        xt.read_iceberg(table)
    path = table.metadata_location
    pinned = xt.read_iceberg(path, schema=xt.spec_of(found))
    assert pinned.to_py() == found.to_py()


def test_columns_filters_and_snapshots(table):
    first = table.current_snapshot().snapshot_id
    table.append(TABLE.slice(0, 1))
    few = xt.read_iceberg(table, ["steps.tool", "dotted.name"], filter="i == 3")
    assert few.to_py() == [{"steps": [{"tool": "pan"}], "dotted.name": "z"}]
    one = xt.read_iceberg(table, ["i"], filter="part == 'b'", row_splits_dtype=tf.int32)
    assert one.to_py() == [{"i": 2}]
    assert len(xt.read_iceberg(table, ["i"])) == 4
    assert len(xt.read_iceberg(table, ["i"], snapshot_id=first)) == 3
    table.delete("part == 'a'")
    assert xt.read_iceberg(table, ["i"]).to_py() == [{"i": 2}]


def test_a_column_that_was_renamed_is_read_by_its_new_name(table):
    with table.update_schema() as update:
        update.rename_column("i", "number")
    assert xt.read_iceberg(table, ["number"])["number"].numpy().tolist() == [1, 2, 3]


def test_bad_tables_are_named(table, tmp_path):
    with pytest.raises(errors.MissingFileError, match="none"):
        xt.read_iceberg(tmp_path / "none.metadata.json")
    with pytest.raises(errors.FormatError, match="Snapshot not found: 5"):
        xt.read_iceberg(table, snapshot_id=5)
    with pytest.raises(errors.FieldError, match="nope"):
        xt.read_iceberg(table, ["nope"])
    with pytest.raises(errors.FormatError, match="nope"):
        xt.read_iceberg(table, ["i"], filter="nope > 1")
    with pytest.raises(errors.DTypeError, match="table: expected a table of a pyiceberg catalog"):
        xt.read_iceberg(3)
    data = files(table, ".parquet")[0]
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(errors.FormatError, match="a complete Iceberg table"):
        xt.read_iceberg(table, nulls="mask")
    data.unlink()
    with pytest.raises(errors.MissingFileError, match=r"parquet"):
        xt.read_iceberg(table, nulls="mask")
    metadata = files(table, ".metadata.json")[-1]
    metadata.write_text("{no json")
    with pytest.raises(errors.FormatError, match=r"metadata.json: expected a complete Iceberg"):
        xt.read_iceberg(metadata)


def test_cities_come_back_equal(catalog):
    data = list(json.loads(cities.source().read_bytes()).values())[:3000]
    table = pa.Table.from_pylist(data)
    made = catalog.create_table("shop.cities", schema=table.schema)
    made.append(table)
    assert xt.read_iceberg(made).to_py() == xt.from_arrow(table).to_py()


def as_varint(number):
    """Returns a length as Avro stores it."""
    number, found = 2 * number, bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(found + bytes([number]))


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("kind", ["list", "manifest"])
@pytest.mark.parametrize("length", [1 << 30, 1 << 62, 3], ids=["long", "longest", "short"])
def test_a_damaged_length_in_a_manifest_is_refused(table, kind, length, run_python):
    # The compiled decoder of pyiceberg believes every length, and ends the process.
    is_list = kind == "list"
    path = next(p for p in files(table, ".avro") if p.name.startswith("snap-") == is_list)
    whole = path.read_bytes()
    name = b"avro.schema"
    start, size = whole.index(name) + len(name), len(whole)
    end = start + 1
    while whole[end - 1] & 0x80:
        end += 1
    path.write_bytes(whole[:start] + as_varint(length) + whole[end:size])
    run_python(f"""
        import extensor as xt

        try:
            xt.read_iceberg({table.metadata_location!r}, nulls="mask")
        except xt.errors.FormatError as error:
            assert "{path.name}" in str(error), error
        else:
            raise AssertionError("The table was read.")
    """)


def test_a_truncated_manifest_is_refused(table):
    found = xt.read_iceberg(table, ["i"])
    for path in files(table, ".avro"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(errors.FormatError, match=r"\.avro"):
        xt.read_iceberg(table, ["i"])
    assert found["i"].numpy().tolist() == [1, 2, 3]
