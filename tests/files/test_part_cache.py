"""Parts of a store on a local disk: read once, within a bound, never stale or damaged."""

import functools
import os
import pathlib
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._files.part_cache import PartCache
from extensor.errors import AccessError, DTypeError, StructureError
from tests.files.range_server import RangeServer

TABLE = pa.table({f"c{i}": np.random.default_rng(i).random(4000) for i in range(3)})


@pytest.fixture
def server(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=500)
    with RangeServer({"a.parquet": (tmp_path / "a.parquet").read_bytes()}).running() as server:
        yield server


def read(server, cache, **arguments):
    dataset = xt.data.parquet(f"{server.url}/a.parquet", 1000, cache=cache, **arguments)
    return pa.Table.from_batches([xt.to_arrow(batch) for batch in dataset])


def gets(server):
    found = [method for method, _ in server.requests if method == "GET"]
    server.requests.clear()
    return len(found)


def size_of(folder):
    return sum(path.stat().st_size for path in pathlib.Path(folder).iterdir())


parts = st.dictionaries(st.text(max_size=5), st.binary(max_size=300), max_size=20)


@given(parts=parts, most=st.integers(1, 2000))
def test_a_part_is_what_was_added_or_nothing_within_the_bound(parts, most):
    with tempfile.TemporaryDirectory() as folder:
        cache = PartCache(folder, most)
        for key, data in parts.items():
            cache.add(key, memoryview(data))
            assert size_of(folder) <= most
            last = PartCache(folder, most).get(key)
            assert last == data or len(data) + 20 > most
        for key, data in parts.items():
            assert cache.get(key) in (data, None)
        assert cache.get("other key") is None


@given(data=st.binary(min_size=1), change=st.integers(1, 255), at=st.floats(0, 1, exclude_max=True))
@pytest.mark.parametrize("how", ["byte", "cut", "longer", "empty"])
def test_a_damaged_part_is_noticed_and_read_again(how, data, change, at):
    with tempfile.TemporaryDirectory() as folder:
        cache = PartCache(folder, 1 << 20)
        cache.add("key", memoryview(data))
        [path] = pathlib.Path(folder).iterdir()
        whole = path.read_bytes()
        place = int(at * len(whole))
        damaged = {
            "byte": whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :],
            "cut": whole[:place],
            "longer": whole + bytes([change]),
            "empty": b"",
        }[how]
        path.write_bytes(damaged)
        assert cache.get("key") is None
        assert not path.exists()
        cache.add("key", memoryview(data))
        assert cache.get("key") == data


def test_what_was_not_used_for_longest_is_deleted_first(tmp_path):
    cache = PartCache(tmp_path, 1000)
    for i in range(9):
        cache.add(str(i), memoryview(bytes(80)))
        os.utime(cache._path(str(i)), (1000 + i, 1000 + i))
    assert cache.get("0") is not None  # used now
    cache.add("new", memoryview(bytes(180)))
    left = [key for key in [*map(str, range(9)), "new"] if cache.get(key) is not None]
    assert left == ["0", "4", "5", "6", "7", "8", "new"]


def test_files_that_a_killed_process_left_are_deleted_later(tmp_path):
    old, new, other = (tmp_path / f"{name}.unfinished" for name in ("old", "new", "other"))
    for path in (old, new):
        path.write_bytes(bytes(10))
    os.utime(old, (1, 1))
    mine = tmp_path / "notes.txt"
    mine.write_text("mine")
    cache = PartCache(tmp_path, 100)
    for i in range(9):
        cache.add(str(i), memoryview(bytes(30)))
    assert new.exists()
    assert not old.exists()
    assert not other.exists()
    assert mine.read_text() == "mine"


def test_a_part_is_read_once(server, tmp_path):
    folder = tmp_path / "parts"
    assert read(server, folder).equals(TABLE)
    assert gets(server) == 9  # the footer and eight row groups
    assert read(server, folder, shuffle=None).equals(TABLE)
    assert gets(server) == 0
    shuffled = read(server, str(folder), shuffle=xt.data.Shuffle(1, 1000))
    assert shuffled.sort_by("c0").equals(TABLE.sort_by("c0"))
    assert gets(server) == 0
    assert read(server, None).equals(TABLE)
    assert gets(server) == 9


WRITERS = {
    "parquet": (xt.write_parquet, xt.read_parquet),
    "jsonl": (xt.write_json, xt.read_json),
    "jsonl.gz": (xt.write_json, xt.read_json),
    "arrow": (xt.write_arrow, xt.read_arrow),
    "arrows": (xt.write_arrow, xt.read_arrow),
    "csv": (xt.write_csv, xt.read_csv),
    "tfrecord": (xt.write_tfrecord, xt.read_tfrecord),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_the_next_read_takes_the_kept_parts(kind, server, tmp_path):
    write, read_all = WRITERS[kind]
    table = pa.table([column.cast(pa.float32()) for column in TABLE], TABLE.column_names)
    write(xt.from_arrow(table), tmp_path / f"b.{kind}")  # TFRecord has no float64
    # Of one file that is given twice, one request may serve both.
    names = [f"b.{kind}", f"c.{kind}"]
    server.files |= dict.fromkeys(names, (tmp_path / f"b.{kind}").read_bytes())
    urls = [f"{server.url}/{name}" for name in names]
    expected = xt.to_arrow(read_all([tmp_path / f"b.{kind}"] * 2))
    counts = []
    for cache in (tmp_path / "parts", xt.data.Cache(tmp_path / "parts"), None):
        assert xt.to_arrow(read_all(urls, cache=cache)).equals(expected)
        counts.append(gets(server))
    assert counts[1] == 0
    assert 0 < counts[0] <= counts[2]


def test_a_stream_takes_the_parts_of_a_read(server, tmp_path):
    whole = xt.read_parquet(f"{server.url}/a.parquet", cache=tmp_path / "parts")
    assert gets(server) == 9
    assert pa.Table.from_batches([xt.to_arrow(whole)]).equals(TABLE)
    assert read(server, tmp_path / "parts").equals(TABLE)
    assert gets(server) == 0


def test_an_object_that_was_replaced_is_read_again(server, tmp_path):
    assert read(server, tmp_path / "parts").equals(TABLE)
    other = TABLE.slice(0, 4000).set_column(0, "c0", pa.array(np.arange(4000.0)))
    pq.write_table(other, tmp_path / "a.parquet", row_group_size=500)
    server.files["a.parquet"] = (tmp_path / "a.parquet").read_bytes()
    gets(server)
    assert read(server, tmp_path / "parts").equals(other)
    assert gets(server) == 9


def test_damage_in_the_folder_costs_requests_only(server, tmp_path):
    folder = tmp_path / "parts"
    assert read(server, folder).equals(TABLE)
    for i, path in enumerate(folder.iterdir()):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if i % 2 else data[:-1] + bytes([data[-1] ^ 1]))
    gets(server)
    assert read(server, folder).equals(TABLE)
    assert gets(server) == 9
    assert read(server, folder).equals(TABLE)
    assert gets(server) == 0


def test_the_folder_keeps_its_bound(server, tmp_path):
    folder = tmp_path / "parts"
    cache = xt.data.Cache(folder, max_bytes=40_000)
    for _ in range(2):
        assert read(server, cache).equals(TABLE)
        assert 0 < size_of(folder) <= 40_000


def test_without_space_nothing_is_kept_and_nothing_fails(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr("extensor._files.part_cache.os.replace", full)
        assert read(server, tmp_path / "parts").equals(TABLE)
    assert not list((tmp_path / "parts").iterdir())


def test_without_an_etag_nothing_is_kept(server, tmp_path):
    server.has_etags = False
    assert read(server, tmp_path / "parts").equals(TABLE)
    assert not list((tmp_path / "parts").iterdir())


BAD = {
    "a file": (lambda folder: folder / "a.parquet", StructureError, "a folder for parts"),
    "below a file": (lambda folder: folder / "a.parquet" / "b", AccessError, "written to"),
    "a number": (lambda _: 3, DTypeError, "cache: expected a folder, or an xt.data.Cache"),
    "no bytes": (lambda f: xt.data.Cache(f / "p", 0), StructureError, "max_bytes"),
    "text": (lambda f: xt.data.Cache(f / "p", "1 GB"), StructureError, "max_bytes"),
}


READS = [functools.partial(xt.data.parquet, batch_size=10), *{r: None for _, r in WRITERS.values()}]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("case", BAD)
def test_a_wrong_cache_is_named(case, read, tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    make, error, match = BAD[case]
    with pytest.raises(error, match=match):
        read(tmp_path / "a.parquet", cache=make(tmp_path))


@pytest.mark.whole("three processes, one of which is killed")
def test_processes_share_a_folder(server, tmp_path, run_python):
    folder = tmp_path / "parts"
    code = f"""
        import extensor as xt
        import os, signal
        children = []
        for i in range(3):  # before TensorFlow has threads
            if (child := os.fork()) == 0:
                break
            children.append(child)
        else:
            codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            assert codes == [-signal.SIGKILL, 0, 0], codes
            os._exit(0)
        cache = xt.data.Cache({str(folder)!r}, max_bytes=60_000)
        for _ in range(4):
            d = xt.data.parquet("{server.url}/a.parquet", 1000, cache=cache)
            total = sum(float(batch["c0"].numpy().sum()) for batch in d)
            with open(f"{tmp_path}/sums{{i}}", "a") as file:
                print(total, file=file)
            if i == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    run_python(code)
    expected = sum(TABLE["c0"].to_pylist())
    for i in (1, 2):
        sums = (tmp_path / f"sums{i}").read_text().split()
        assert len(sums) == 4
        assert all(float(each) == pytest.approx(expected) for each in sums)
    assert size_of(folder) <= 60_000 + 60_000 // 8
    assert read(server, folder).equals(TABLE)
