"""Files of fsspec and pyarrow.fs are those of the disk, by few reads, or a named error."""

import asyncio
import itertools
import time
import types
from concurrent.futures import ThreadPoolExecutor

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._files import files, remote_system
from extensor._files.files import file_at
from extensor._files.remote_system import FsspecSystem, _as_found, _is_same
from extensor.errors import (
    AccessError,
    DirectoryError,
    FormatError,
    MissingFileError,
    StoreError,
)

TABLE = pa.table(
    {f"c{i}": np.random.default_rng(i).random(8_000) for i in range(7)}
    | {"steps": pa.array([[{"m": i % 7}] * (i % 3) for i in range(8_000)])}
)


class Counts:
    """The files of a file system, and what was asked of it.

    Args:
        content: The content of each path.
    """

    def __init__(self, content):
        self.content = content
        self.asked = []
        self.latency = 0.0
        self.tells_etags = True
        self.now = self.most = 0
        self.bad = None
        """What is done instead: an error is raised, or a function changes what is read."""

    def begin(self, what, path):
        self.asked.append((what, path))
        self.now += 1
        self.most = max(self.most, self.now)
        if isinstance(self.bad, Exception):
            self.now -= 1
            raise self.bad

    def end(self):
        self.now -= 1

    def info(self, path):
        path = path.strip("/")
        if path in self.content:
            data = self.content[path]
            etag = {"ETag": f'"{hash(data)}"'} if self.tells_etags else {}
            return {"name": path, "size": len(data), "type": "file", **etag}
        if not path or any(each.startswith(f"{path}/") for each in self.content):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path):
        prefix = f"{path.strip('/')}/".lstrip("/")
        names = {k[len(prefix) :].split("/")[0] for k in self.content if k.startswith(prefix)}
        return [self.info(prefix + name) for name in sorted(names)]

    def read(self, path, start, end):
        data = self.content[path.strip("/")][start:end]
        return self.bad(data) if callable(self.bad) else data

    @property
    def reads(self):
        return [path for what, path in self.asked if what == "read"]


COUNTS = Counts({})


class Counted:
    """Is counted for the test that makes it, also what is still fetched when the test is over."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.counts = COUNTS


class Async(Counted, AsyncFileSystem):
    """A file system as those of object stores are."""

    protocol = "counted"
    cachable = False

    async def _info(self, path, **_):
        self.counts.begin("info", path)
        await asyncio.sleep(self.counts.latency)
        self.counts.end()
        return self.counts.info(self._strip_protocol(path))

    async def _ls(self, path, detail=True, **_):
        self.counts.begin("ls", path)
        await asyncio.sleep(self.counts.latency)
        self.counts.end()
        found = self.counts.ls(self._strip_protocol(path))
        return found if detail else [each["name"] for each in found]

    async def _cat_file(self, path, start=None, end=None, **_):
        self.counts.begin("read", path)
        await asyncio.sleep(self.counts.latency)
        self.counts.end()
        return self.counts.read(path, start, end)


class OneByOne(Counted, AbstractFileSystem):
    """A file system that is used by one thread at a time, such as that of FTP."""

    protocol = "onebyone"
    cachable = False

    def info(self, path, **_):
        self.counts.begin("info", path)
        time.sleep(self.counts.latency)
        self.counts.end()
        return self.counts.info(self._strip_protocol(path))

    def ls(self, path, detail=True, **_):
        found = self.counts.ls(self._strip_protocol(path))
        return found if detail else [each["name"] for each in found]

    def _open(self, path, mode="rb", block_size=None, **_):
        return Opened(self, path, size=len(self.counts.content[path.strip("/")]))


class Opened(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        self.fs.counts.begin("read", self.path)
        time.sleep(self.fs.counts.latency)
        self.fs.counts.end()
        return self.fs.counts.read(self.path, start, end)


class Arrow(Counted, pafs.FileSystemHandler):
    """A file system of pyarrow, which tells sizes when it opens files."""

    def get_type_name(self):
        return "counted"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return [self._info(path) for path in paths]

    def _info(self, path):
        try:
            info = self.counts.info(path)
        except FileNotFoundError:
            return pafs.FileInfo(path, pafs.FileType.NotFound)
        if info["type"] == "directory":
            return pafs.FileInfo(path, pafs.FileType.Directory)
        return pafs.FileInfo(
            path, pafs.FileType.File, size=info["size"], mtime=hash(self.counts.content[path]) % 1e6
        )

    def get_file_info_selector(self, selector):
        prefix = f"{selector.base_dir}/"
        return [self._info(path) for path in self.counts.content if path.startswith(prefix)]

    def open_input_file(self, path):
        self.counts.begin("info", path)
        self.counts.end()
        if path not in self.counts.content:
            raise FileNotFoundError(path)
        return pa.PythonFile(Raw(path, self.counts), mode="r")

    def open_input_stream(self, path):
        return self.open_input_file(path)

    def _refuse(self, *_):
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


class Raw:
    closed = False

    def __init__(self, path, counts):
        self.path, self.counts, self.data, self.at = path, counts, counts.content[path], 0

    def seek(self, offset, whence=0):
        self.at = offset + {0: 0, 1: self.at, 2: len(self.data)}[whence]
        return self.at

    def tell(self):
        return self.at

    def read(self, size):
        self.counts.begin("read", self.path)
        self.counts.end()
        data = self.data[self.at : self.at + size]
        self.at += len(data)
        return self.counts.bad(data) if callable(self.counts.bad) else data

    def seekable(self):
        return True

    def readable(self):
        return True

    def close(self):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of all formats."""
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(TABLE, folder / "it.parquet", row_group_size=2_000)
    small = xt.from_arrow(TABLE.slice(0, 300))
    xt.write_json(small, folder / "it.jsonl")
    xt.write_json(small, folder / "it.jsonl.gz")
    xt.write_arrow(small, folder / "it.arrow")
    xt.write_arrow(small, folder / "it.arrows")
    xt.write_csv(small.without("steps"), folder / "it.csv")
    xt.write_tfrecord(small.with_only("steps"), folder / "it.tfrecord")
    return folder


@pytest.fixture(params=["counted", "onebyone", "arrow"])
def root(request, folder, monkeypatch):
    """The URL of a folder with these files."""
    content = {f"d/{path.name}": path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(f"{__name__}.COUNTS", Counts(content))
    if request.param == "arrow":

        def from_uri(url):
            if not url.startswith("counted-arrow://"):
                return pafs.FileSystem.from_uri(url)
            return pafs.PyFileSystem(Arrow()), url.removeprefix("counted-arrow://")

        own = {**vars(pafs), "FileSystem": types.SimpleNamespace(from_uri=from_uri)}
        monkeypatch.setattr(files, "pafs", types.SimpleNamespace(**own))
        return "counted-arrow://d"
    fsspec.register_implementation("counted", Async, clobber=True)
    fsspec.register_implementation("onebyone", OneByOne, clobber=True)
    return f"{request.param}://d"


READ = {
    "parquet": (xt.read_parquet, xt.data.parquet),
    "jsonl": (xt.read_json, xt.data.json),
    "jsonl.gz": (xt.read_json, xt.data.json),
    "arrow": (xt.read_arrow, xt.data.arrow),
    "arrows": (xt.read_arrow, xt.data.arrow),
    "csv": (xt.read_csv, xt.data.csv),
    "tfrecord": (xt.read_tfrecord, xt.data.tfrecord),
}


def together(dataset):
    return pa.Table.from_batches([xt.to_arrow(batch) for batch in dataset])


@pytest.mark.whole("all formats of three file systems")
@pytest.mark.parametrize("kind", READ)
def test_each_format_is_read_as_from_a_disk(kind, root, folder):
    read, stream = READ[kind]
    theirs = xt.to_arrow(read(folder / f"it.{kind}"))
    assert xt.to_arrow(read(f"{root}/it.{kind}")).equals(theirs)
    assert xt.to_arrow(read(f"{root}/*.{kind}")).equals(theirs)
    ours = together(stream(f"{root}/it.{kind}", 100, columns=None))
    assert ours.equals(pa.Table.from_batches([theirs]))


def test_a_folder_is_listed(root, folder):
    theirs = xt.to_arrow(xt.read_parquet(folder / "it.parquet"))
    assert xt.to_arrow(xt.read_parquet(root)).equals(theirs)


@pytest.mark.parametrize("columns", [None, ["c1"], ["c0", "steps"]])
def test_a_parquet_file_takes_six_requests(columns, root, monkeypatch):
    """One for its size, one for the footer, and one for each of four row groups."""
    monkeypatch.setattr(remote_system, "_RECENT", 1e9)
    records = xt.read_parquet(f"{root}/it.parquet", columns=columns)
    expected = xt.to_arrow(xt.from_arrow(TABLE.select(columns or TABLE.column_names)))
    assert xt.to_arrow(records).equals(expected)
    assert (len(COUNTS.reads), len(COUNTS.asked)) == (5, 6)
    COUNTS.asked.clear()
    dataset = xt.data.parquet(f"{root}/it.parquet", 1000, columns=columns)
    assert together(dataset).equals(pa.Table.from_batches([expected]))
    assert (len(COUNTS.reads), len(COUNTS.asked)) == (5, 6)
    COUNTS.asked.clear()
    assert together(dataset).num_rows == 8_000
    assert len(COUNTS.reads) == 4


# How many reads the streams of two files take: to be made, and for each pass.
READS = {
    "parquet": (2, 8),
    "jsonl": (2, 2),
    "jsonl.gz": (2, 2),
    "arrow": (6, 2),
    "arrows": (4, 2),
    "csv": (2, 2),
    "tfrecord": (2, 2),
}


@pytest.mark.whole("streams of all formats, each twice")
@pytest.mark.parametrize("shuffle", [None, xt.data.Shuffle(3, 100)])
@pytest.mark.parametrize("kind", READS)
def test_a_stream_takes_one_read_for_a_part(kind, shuffle, root, folder):
    COUNTS.content |= {f"e/{i}.{kind}": COUNTS.content[f"d/it.{kind}"] for i in range(2)}
    stream, local = READ[kind][1], folder / f"it.{kind}"
    dataset = stream(f"{root[:-1]}e", 100, columns=None, shuffle=shuffle)
    assert len(COUNTS.reads) == READS[kind][0]
    for _ in range(2):
        COUNTS.asked.clear()
        ours = together(dataset)
        assert len(COUNTS.reads) == READS[kind][1]
        assert len(COUNTS.asked) <= len(COUNTS.reads) + 2  # whether they are the same files
    theirs = together(stream([local, local], 100, None, shuffle=shuffle, epochs=2))
    assert ours.equals(theirs.slice(theirs.num_rows // 2))


@pytest.mark.parametrize("root", ["arrow"], indirect=True)
def test_threads_that_ask_at_once_open_a_file_once(root):
    opened = []

    class Slow(Arrow):
        def open_input_file(self, path):
            opened.append(path)
            time.sleep(0.1)
            return super().open_input_file(path)

    slow = remote_system.ArrowSystem(pafs.PyFileSystem(Slow()), "", "")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(slow.fetch, ["d/it.csv"] * 4, [[(0, 5)]] * 4))
    assert {bytes(piece) for (piece,) in found} == {COUNTS.content["d/it.csv"][:5]}
    assert opened == ["d/it.csv"]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_many_footers_are_read_at_once(kind, root):
    COUNTS.content |= {f"d/{i}.{kind}": COUNTS.content[f"d/it.{kind}"] for i in range(20)}
    COUNTS.latency = 0.02
    dataset = READ[kind][1]([f"{root}/{i}.{kind}" for i in range(20)], 100, columns=["c1"])
    assert dataset.cardinality() == 20 * (80 if kind == "parquet" else 3)
    assert (COUNTS.most > 8) == root.startswith("counted://")
    assert COUNTS.most == 1 or not root.startswith("onebyone")


def test_a_stream_hides_the_latency(root, tmp_path):
    pq.write_table(TABLE, tmp_path / "groups.parquet", row_group_size=200)
    COUNTS.content["d/groups.parquet"] = (tmp_path / "groups.parquet").read_bytes()
    dataset = xt.data.parquet(f"{root}/groups.parquet", 200, columns=["c1"], read_ahead=1 << 20)
    COUNTS.latency, COUNTS.most = 0.03, 0
    assert sum(batch.shape[0] for batch in dataset) == 8_000
    assert (COUNTS.most > 4) == root.startswith("counted://")


@pytest.mark.whole("all formats of three file systems")
@pytest.mark.parametrize("tells_etags", [True, False])
@pytest.mark.parametrize("kind", READ)
def test_a_file_that_was_replaced_is_named(kind, tells_etags, root):
    COUNTS.tells_etags = tells_etags
    dataset = READ[kind][1](f"{root}/it.{kind}", 100, columns=None)
    assert together(dataset).num_rows
    name = f"d/it.{kind}"
    # Without an ETag or a time, only another size tells.
    same = tells_etags or "arrow://" in root
    COUNTS.content[name] = COUNTS.content[name][:-1] + (b"#" if same else b"")
    with pytest.raises(FormatError, match=r"d/it\..*expected the file to stay unchanged"):
        together(dataset)


BAD = {
    "no permission": (PermissionError(13, "no"), AccessError, "credentials that may do this"),
    "no connection": (ConnectionError("lost"), StoreError, "an answer of the file system"),
    "an error of its own": (RuntimeError("busy"), StoreError, "an answer of the file system"),
    "short": (lambda data: data[:-1], (StoreError, FormatError), "the bytes that were asked for"),
    "nothing": (lambda _: b"", (StoreError, FormatError), "the bytes that were asked for"),
}


class Answer(Exception):  # noqa: N818 - as aiohttp names it
    """The answer of an HTTP server that is an error."""

    __module__ = "aiohttp.client_exceptions"

    def __init__(self, status):
        super().__init__(f"{status}, of a server")
        self.status = status


@pytest.mark.parametrize("root", ["counted", "onebyone"], indirect=True)
@pytest.mark.parametrize("what", ["info", "read"])
@pytest.mark.parametrize(
    ("status", "error", "times"),
    [(404, MissingFileError, 1), (403, AccessError, 1), (503, StoreError, 4), (503, None, 3)],
)
def test_a_server_that_is_busy_is_asked_again(root, what, status, error, times, monkeypatch):
    """fsspec takes each error of an HTTP server for a missing file where it asks for its size."""
    monkeypatch.setattr(remote_system, "_PAUSES", (0, 0, 0))
    system, asked = file_at(f"{root}/it.csv").store, []
    if what == "read":
        system.meta("d/it.csv")

    def fail(name, path):
        asked.append(name)
        if name == what and (error or len(asked) < times):
            raise FileNotFoundError(path) from Answer(status)

    monkeypatch.setattr(COUNTS, "begin", fail)
    monkeypatch.setattr(COUNTS, "end", lambda: None)

    def read():
        return bytes(system.tail("d/it.csv", 5))

    if error is None:
        assert read() == COUNTS.content["d/it.csv"][-5:]
    else:
        with pytest.raises(error, match=f"{root}/it.csv"):
            read()
    assert asked.count(what) == times


@pytest.mark.whole("all formats of three file systems")
@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "arrow", "tfrecord"])
def test_wrong_answers_are_errors_that_name_the_file(case, kind, root, monkeypatch):
    monkeypatch.setattr(remote_system, "_PAUSES", (0,))
    if root.startswith("onebyone") and case == "short":
        pytest.skip("A file that is open reads on after a short read.")
    read, stream = READ[kind]
    dataset = stream(f"{root}/it.{kind}", 100, columns=None)
    COUNTS.bad, error, match = BAD[case]
    for call in (lambda: read(f"{root}/it.{kind}"), lambda: list(dataset)):
        with pytest.raises(error, match=match) as caught:
            call()
        assert f"{root}/it.{kind}" in str(caught.value)
    COUNTS.bad = None
    assert read(f"{root}/it.{kind}").shape[0] == together(dataset).num_rows


def test_what_is_missing_or_a_folder_is_named(root):
    for path in (f"{root}/nothing.parquet", f"{root}/*.nothing"):
        with pytest.raises((MissingFileError, ValueError)) as caught:
            xt.read_parquet(path)
        assert path in str(caught.value)
    with pytest.raises(DirectoryError):
        file_at(root).open()
    with pytest.raises(MissingFileError):
        file_at(f"{root}/nothing").open()


def test_parts_are_kept_by_etag_on_a_disk(root, tmp_path):
    def read():
        COUNTS.asked.clear()
        stream = xt.data.parquet(f"{root}/it.parquet", 500, cache=tmp_path / "parts")
        return together(stream)

    first = read()
    assert len(COUNTS.reads) == 5
    assert read().equals(first)
    # The file system of pyarrow tells only a time here.
    assert len(COUNTS.reads) == (5 if "arrow://" in root else 0)


# Files of pyarrow have a size.
@pytest.mark.parametrize("root", ["counted", "onebyone"], indirect=True)
def test_a_file_whose_size_is_not_known_is_read_whole(root, folder, monkeypatch):
    whole = COUNTS.info
    monkeypatch.setattr(COUNTS, "info", lambda path: {**whole(path), "size": None})
    theirs = xt.to_arrow(xt.read_json(folder / "it.jsonl"))
    assert xt.to_arrow(xt.read_json(f"{root}/it.jsonl")).equals(theirs)
    assert xt.to_arrow(xt.read_parquet(f"{root}/it.parquet", columns=["c1"])).num_rows == 8_000


def test_urls_that_say_more_than_a_path(tmp_path, folder):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(folder / "it.jsonl", "in/it.jsonl")
    url = f"zip://in/it.jsonl::file://{tmp_path}/a.zip"
    theirs = xt.to_arrow(xt.read_json(folder / "it.jsonl"))
    assert xt.to_arrow(xt.read_json(url)).equals(theirs)
    assert file_at(url).store.url_of("in/it.jsonl") == url
    found = together(xt.data.json(url, 100, shuffle=xt.data.Shuffle(1, 100)))
    assert found.num_rows == 300
    url = "gcs://anonymous@bucket/a/b.parquet?scheme=http&endpoint_override=127.0.0.1:1"
    pytest.importorskip("pyarrow._gcsfs", reason="pyarrow is built without Google Cloud Storage")
    assert file_at(url).store.url_of("bucket/c") == url.replace("bucket/a/b.parquet", "bucket/c")


def test_a_file_system_is_a_store_unless_it_is_local():
    memory = fsspec.filesystem("memory")
    system = remote_system.remote_system(
        pafs.PyFileSystem(pafs.FSSpecHandler(memory)), "memory://d/x", "/d/x"
    )
    assert isinstance(system.handler, FsspecSystem)
    assert isinstance(
        remote_system.remote_system(pafs.LocalFileSystem(), "/x", "/x"), pafs.LocalFileSystem
    )
    assert system == pafs.PyFileSystem(FsspecSystem(system.handler._system, "", ""))


NAMES = st.sampled_from(["ETag", "etag", "generation", "mtime", "LastModified", "name", "mode"])


@given(st.dictionaries(NAMES, st.integers(1, 3)), st.dictionaries(NAMES, st.integers(1, 3)))
def test_files_are_the_same_if_nothing_tells_that_they_changed(one, other):
    first, second = _as_found(5, one), _as_found(5, other)
    assert _is_same(first, first)
    assert _is_same(first, second) == _is_same(second, first)
    assert not _is_same(first, _as_found(6, one))
    if one.get("ETag") and one.keys() == other.keys() == {"ETag"}:
        assert _is_same(first, second) == (one == other)


@pytest.mark.parametrize("root", ["counted"], indirect=True)
def test_memory_stays_flat(root):
    """Of a file of 40 MB, no more than what is fetched ahead is in memory."""
    line = COUNTS.content["d/it.jsonl"]
    COUNTS.content["d/large.jsonl"] = line * (40_000_000 // len(line))
    schema = xt.to_arrow(xt.read_json(f"{root}/it.jsonl")).schema
    before, most = pa.total_allocated_bytes(), 0
    kept = []
    fetch = FsspecSystem._get

    def counted(self, path, each):
        found = fetch(self, path, each)
        kept.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FsspecSystem, "_get", counted)
        for batch in itertools.islice(
            xt.data.json(f"{root}/large.jsonl", 1000, schema=schema, columns=None), 30
        ):
            most = max(most, pa.total_allocated_bytes() - before)
            assert batch.shape == [1000]
    assert max(kept) <= 1 << 23
    assert most < 64 << 20
