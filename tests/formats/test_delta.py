"""Delta tables, written by deltalake."""

import datetime
import json
import pathlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from demo import cities
from extensor import errors

deltalake = pytest.importorskip("deltalake")

TABLE = pa.table(
    {
        "i": pa.array([1, 2, 3], pa.int32()),
        "part": ["a", "b", "a"],
        "dotted.name": ["x", "y", "z"],
        "steps": pa.array(
            [[{"minutes": 5, "tool": "pot"}], [], [{"minutes": None, "tool": "pan"}]],
            pa.list_(pa.struct({"minutes": pa.int64(), "tool": pa.string()})),
        ),
    }
)


@pytest.fixture
def folder(tmp_path):
    deltalake.write_deltalake(tmp_path / "it", TABLE, partition_by=["part"])
    return tmp_path / "it"


def rows(records):
    return sorted(records.to_py(), key=lambda row: row["i"])


def test_records_are_those_of_the_table(folder):
    found = xt.read_delta(folder, nulls={"steps.minutes": "mask"})
    assert rows(found) == TABLE.to_pylist()
    with pytest.raises(errors.NullError, match=r"steps.minutes"):
        xt.read_delta(str(folder))
    pinned = xt.read_delta(deltalake.DeltaTable(folder), schema=xt.spec_of(found))
    assert pinned.to_py() == found.to_py()


def test_columns_filters_and_versions(folder):
    deltalake.write_deltalake(folder, TABLE.slice(0, 1), mode="append", partition_by=["part"])
    few = xt.read_delta(folder, ["steps.tool", "dotted.name"], filter=pc.field("i") == 3)
    assert few.to_py() == [{"steps": [{"tool": "pan"}], "dotted.name": "z"}]
    part = xt.read_delta(folder, ["i"], filter=pc.field("part") == "b", row_splits_dtype=tf.int32)
    assert part.to_py() == [{"i": 2}]
    assert len(xt.read_delta(folder, ["i"])) == 4
    assert len(xt.read_delta(folder, ["i"], version=0)) == 3
    assert len(xt.read_delta(deltalake.DeltaTable(folder), ["i"], version=0)) == 3
    deltalake.DeltaTable(folder).delete("part = 'a'")
    assert xt.read_delta(folder, ["i"]).to_py() == [{"i": 2}]


def test_bad_tables_are_named(folder, tmp_path):
    with pytest.raises(errors.MissingFileError, match="none: expected a Delta table"):
        xt.read_delta(tmp_path / "none")
    with pytest.raises(errors.FormatError, match=r"it: .*DeltaError: .*7"):
        xt.read_delta(folder, version=7)
    with pytest.raises(errors.FormatError, match=r"it: .*negative"):
        xt.read_delta(folder, version=-1)
    with pytest.raises(errors.FieldError, match="nope"):
        xt.read_delta(folder, ["nope"])
    with pytest.raises(errors.FieldError, match=r"version 0, filter: .*nope"):
        xt.read_delta(folder, ["i"], filter=pc.field("nope") == 1)
    for wrong in (pc.field("i") == "x", [("i", "==", 1)], "i == 1"):
        with pytest.raises(errors.DTypeError, match=r"version 0, filter: .*pc\.field"):
            xt.read_delta(folder, ["i"], filter=wrong)
    with pytest.raises(errors.FieldError, match=r"more: .*the columns i, .*dotted\.name"):
        xt.read_delta(folder, schema=pa.schema({"i": pa.int32(), "more": pa.int64()}))
    with pytest.raises(errors.DTypeError, match="table: expected the path"):
        xt.read_delta(3)
    data = sorted(folder.rglob("*.parquet"))[0]
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(errors.FormatError, match="version 0: expected a complete Delta table"):
        xt.read_delta(folder, nulls="mask")
    data.unlink()
    with pytest.raises(errors.MissingFileError, match=r"version 0: .*not found|No such file"):
        xt.read_delta(folder, nulls="mask")
    for log in folder.glob("_delta_log/*.json"):
        pathlib.Path(log).write_text("{no json")
    with pytest.raises(errors.FormatError, match="it: expected a complete Delta table"):
        xt.read_delta(folder)


def test_deletion_vectors_are_not_ignored(folder):
    log = folder / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    protocol = next(line["protocol"] for line in lines if "protocol" in line)
    protocol |= {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(errors.FormatError, match=r"DeltaProtocolError: .*deletionVectors"):
        xt.read_delta(folder, nulls="mask")


def test_columns_of_other_names_in_the_files_are_not_taken_for_nulls(tmp_path):
    folder = tmp_path / "it"
    deltalake.write_deltalake(folder, TABLE.select(["i", "part"]))
    log = folder / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    parts = {name: part for line in lines for name, part in line.items()}
    parts["protocol"].update(minReaderVersion=2, minWriterVersion=5)
    data = parts["metaData"]
    data["configuration"] = {"delta.columnMapping.mode": "name"}
    fields = json.loads(data["schemaString"])
    for number, field in enumerate(fields["fields"], 1):
        names = {"physicalName": field["name"], "id": number}
        field["metadata"] = {f"delta.columnMapping.{key}": each for key, each in names.items()}
    fields["fields"][0]["name"] = "number"
    data["schemaString"] = json.dumps(fields)
    log.write_text("\n".join(map(json.dumps, lines)))
    table = deltalake.DeltaTable(folder)
    with pytest.raises(errors.FormatError, match=r"columnMapping: .*scan\(\)"):
        xt.read_delta(table, nulls="mask")
    found = xt.from_arrow(table.scan(["number"]))
    assert sorted(found["number"].numpy()) == TABLE["i"].to_pylist()


def test_times_of_spark_are_of_any_year(tmp_path):
    years = [datetime.datetime(year, 12, 31, tzinfo=datetime.timezone.utc) for year in (1, 9999)]
    table = pa.table({"t": pa.array(years, pa.timestamp("us", "UTC"))})
    deltalake.write_deltalake(tmp_path / "it", table)
    [data] = (tmp_path / "it").glob("*.parquet")
    size = data.stat().st_size
    pq.write_table(table, data, use_deprecated_int96_timestamps=True)
    [log] = (tmp_path / "it" / "_delta_log").glob("*.json")
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{data.stat().st_size}'))
    assert [row["t"] for row in xt.read_delta(tmp_path / "it").to_py()] == years


def test_cities_come_back_equal(tmp_path):
    data = list(json.loads(cities.source().read_bytes()).values())[:3000]
    table = pa.Table.from_pylist(data)
    deltalake.write_deltalake(tmp_path / "it", table)
    found = xt.read_delta(tmp_path / "it")
    assert found.to_py() == xt.from_arrow(table).to_py()
