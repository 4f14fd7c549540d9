"""Files of an HTTP server are those of the disk, by few requests, or an error that says why not."""

import bisect
import io
import sys
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._files import object_store
from extensor._files.files import file_at
from extensor._files.ranges import ReadAheadFile, few_ranges
from extensor.errors import (
    AccessError,
    FormatError,
    MissingDependencyError,
    MissingFileError,
    StoreError,
)
from tests.files.range_server import RangeServer

COLUMNS = 8
TABLE = pa.table(
    {f"c{i}": np.random.default_rng(i).random(40_000) for i in range(COLUMNS - 1)}
    | {"steps": pa.array([[{"m": i % 7}] * (i % 3) for i in range(40_000)])}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of all formats."""
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(TABLE, folder / "it.parquet", row_group_size=10_000)
    small = xt.from_arrow(TABLE.slice(0, 300))
    xt.write_json(small, folder / "it.jsonl")
    xt.write_json(small, folder / "it.jsonl.gz")
    xt.write_arrow(small, folder / "it.arrow")
    xt.write_csv(small.without("steps"), folder / "it.csv")
    xt.write_tfrecord(small.with_only("steps"), folder / "it.tfrecord")
    return folder


@pytest.fixture
def server(folder, monkeypatch):
    retries = {
        "max_retries": 3,
        "retry_timeout": timedelta(seconds=20),
        "backoff": {
            "init_backoff": timedelta(milliseconds=5),
            "max_backoff": timedelta(milliseconds=20),
            "base": 2,
        },
    }
    monkeypatch.setattr(object_store, "_RETRIES", retries)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with RangeServer(files).running() as server:
        yield server


READ = {
    "it.parquet": xt.read_parquet,
    "it.jsonl": xt.read_json,
    "it.jsonl.gz": xt.read_json,
    "it.arrow": xt.read_arrow,
    "it.csv": xt.read_csv,
    "it.tfrecord": xt.read_tfrecord,
}
STREAMS = {
    "it.parquet": xt.data.parquet,
    "it.jsonl": xt.data.json,
    "it.jsonl.gz": xt.data.json,
    "it.arrow": xt.data.arrow,
    "it.csv": xt.data.csv,
    "it.tfrecord": xt.data.tfrecord,
}


@pytest.mark.parametrize("name", READ)
def test_each_format_is_read_as_from_a_disk(name, server, folder):
    ours = xt.to_arrow(READ[name](f"{server.url}/{name}"))
    theirs = xt.to_arrow(READ[name](folder / name))
    assert ours.equals(theirs)
    batches = [xt.to_arrow(b) for b in STREAMS[name](f"{server.url}/{name}", 100, columns=None)]
    assert pa.Table.from_batches(batches).equals(pa.Table.from_batches([theirs]))


@pytest.mark.parametrize("columns", [None, ["c1"], ["c0", "steps"]])
def test_a_parquet_file_takes_six_requests(columns, server):
    """One HEAD, one for the footer, and one for each of four row groups."""
    records = xt.read_parquet(f"{server.url}/it.parquet", columns=columns)
    assert xt.to_arrow(records).equals(
        xt.to_arrow(xt.from_arrow(TABLE.select(columns or TABLE.column_names)))
    )
    assert len(server.requests) == 6
    server.requests.clear()
    for batch in xt.data.parquet(f"{server.url}/it.parquet", 1000, columns=columns):
        assert batch.shape == [1000]
    assert len(server.requests) == 6


@given(st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(1, 2_000_000)), max_size=6))
def test_few_ranges_contain_all_and_leave_out_the_widest_gap(found):
    ranges = [(start, start + size) for start, size in found]
    few = few_ranges(ranges)
    assert len(few) <= 2
    assert all(any(a <= start and end <= z for a, z in few) for start, end in ranges)
    bytes_read = sum(end - start for start, end in few)
    whole = max((end for _, end in ranges), default=0) - min((s for s, _ in ranges), default=0)
    assert bytes_read <= whole
    if len(few) == 2:
        assert few[1][0] - few[0][1] > 1 << 20


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=8),
    ahead=st.integers(0, 100),
    steps=st.lists(st.floats(0, 1, exclude_max=True), max_size=30),
)
def test_blocks_are_read_ahead_within_bounds(sizes, ahead, steps):
    data = bytes(range(256)) * 4
    ends = np.cumsum(sizes).tolist()
    blocks = [[(end - size, end)] for size, end in zip(sizes, ends, strict=True)]

    def fetch(ranges):
        return [memoryview(data)[start:end] for start, end in ranges]

    file = ReadAheadFile(len(data), fetch, blocks, ahead)
    for at in sorted(int(step * ends[-1]) for step in steps):
        block = bisect.bisect_right(ends, at)
        file.seek(at)
        assert bytes(file.read(1)) == data[at : at + 1]
        held = [blocks[i][0] for i in file._fetched]
        before = sum(sizes[max(0, block - 1) : block + 1])
        assert sum(end - start for start, end in held) <= before + ahead
    file.seek(0, io.SEEK_END)
    assert file.read() == b""
    file.seek(1000)
    assert bytes(file.read(8)) == data[1000:1008]
    file.close()
    assert not file._fetched


def test_a_stream_hides_the_latency_of_a_store(server, folder):
    pq.write_table(TABLE, folder / "groups.parquet", row_group_size=1_000)
    server.files["groups.parquet"] = (folder / "groups.parquet").read_bytes()
    server.latency = 0.03
    dataset = xt.data.parquet(f"{server.url}/groups.parquet", 1000, columns=["c1"])
    server.most = 0
    assert sum(batch.shape[0] for batch in dataset) == 40_000
    assert len([r for r in server.requests if r[0] == "GET"]) == 41
    assert server.most > 4


@pytest.mark.parametrize("bad", ["503", "429", "cut"])
def test_a_request_that_fails_is_repeated(bad, server, folder):
    server.bad = [bad, bad]
    records = xt.read_parquet(f"{server.url}/it.parquet", columns=["c1"])
    assert xt.to_arrow(records).equals(
        xt.to_arrow(xt.read_parquet(folder / "it.parquet", columns=["c1"]))
    )
    assert len(server.requests) == 8


BAD = {
    "always busy": (["503"] * 99, StoreError, "an answer of the store"),
    "no permission": (["403"] * 99, AccessError, "AWS_ACCESS_KEY_ID"),
    "short": (["short"] * 99, StoreError, "an answer of the store"),
    "another range": (["wrong range"] * 99, StoreError, "an answer of the store"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_answers_are_errors_that_name_the_file(case, server):
    server.bad, error, match = BAD[case]
    with pytest.raises(error, match=match) as caught:
        xt.read_parquet(f"{server.url}/it.parquet")
    assert f"{server.url}/it.parquet" in str(caught.value)
    server.bad = []
    plan = xt.data.parquet(f"{server.url}/it.parquet", 100, columns=["c1"])
    server.bad = BAD[case][0][:]
    with pytest.raises(error, match=match):
        list(plan)


def test_a_file_that_was_replaced_is_an_error(server):
    dataset = xt.data.parquet(f"{server.url}/it.parquet", 5000, columns=["c1"])
    first = next(iter(dataset))
    assert first.shape == [5000]
    data = server.files["it.parquet"]
    server.files["it.parquet"] = data[:100] + bytes([data[100] ^ 1]) + data[101:]
    with pytest.raises(FormatError, match=r"it\.parquet: expected the file to stay unchanged"):
        list(dataset)
    assert xt.read_json(f"{server.url}/it.jsonl").shape == [300]


def test_a_missing_file_and_a_missing_library_are_named(server, monkeypatch):
    with pytest.raises(MissingFileError, match=r"nothing\.parquet"):
        xt.read_parquet(f"{server.url}/nothing.parquet")
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDependencyError, match="stores"):
        xt.read_parquet("s3://bucket/it.parquet")


def test_many_footers_are_read_at_once(server):
    for i in range(32):
        server.files[f"{i}.parquet"] = server.files["it.parquet"]
    server.latency = 0.05
    paths = [f"{server.url}/{i}.parquet" for i in range(32)]
    dataset = xt.data.parquet(paths, 100, columns=["c1"])
    assert dataset.cardinality() == 32 * 400
    assert len(server.requests) == 64
    assert server.most > 8


def test_urls_of_object_stores_are_told_from_others():
    for url in ("s3://b/k", "gs://b/k", "az://c/k", "abfss://c@a.dfs.core.windows.net/k"):
        assert object_store.is_in_object_store(url)
    for url in ("memory://b", "hdfs://h/k", "file:///k", "http://h/k?q=1", "/s3/k"):
        assert not object_store.is_in_object_store(url)
    assert file_at("http://127.0.0.1:1/a%20b/c.parquet").inner == "a b/c.parquet"
