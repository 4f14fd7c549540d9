"""Google's store by pyarrow: what is written to its emulator is read again, by few requests."""

import itertools
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
from extensor._files import remote_system
from extensor._files.files import file_at, files_at
from extensor.errors import DirectoryError, FormatError, MissingFileError
from tests.files.store_servers import GoogleBucket, google

pytest.importorskip("pyarrow._gcsfs", reason="pyarrow is built without Google Cloud Storage")

pytestmark = [
    pytest.mark.whole("a server of Google's store"),
    pytest.mark.together("moto"),
]

_names = (f"bucket{i}" for i in itertools.count())

RECORDS = xt.from_arrow(pa.table({"n": np.arange(3000), "s": [f"record {i}" for i in range(3000)]}))

_PROXY = """
import sys, threading
from tests.formats.emulators import Proxy

proxy = Proxy(sys.argv[1])
proxy.latency = float(sys.argv[2])
print(proxy.address, flush=True)
threading.Event().wait()
"""

KINDS = {
    "parquet": (xt.write_parquet, xt.read_parquet, xt.data.parquet),
    "arrow": (xt.write_arrow, xt.read_arrow, xt.data.arrow),
    "jsonl": (xt.write_json, xt.read_json, xt.data.json),
    "jsonl.gz": (xt.write_json, xt.read_json, xt.data.json),
    "csv": (xt.write_csv, xt.read_csv, xt.data.csv),
    "tfrecord": (xt.write_tfrecord, xt.read_tfrecord, xt.data.tfrecord),
}


@pytest.fixture(params=[0])
def address(request):
    """The address of the server, or of a proxy with latency.

    The proxy is another process: pyarrow keeps the interpreter while it waits for its first answer.
    """
    if not request.param:
        yield google().address
        return
    command = [sys.executable, "-c", _PROXY, google().address, str(request.param)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        yield proxy.stdout.readline().strip()
        proxy.kill()


@pytest.fixture
def bucket():
    return GoogleBucket(google(), next(_names))


@pytest.fixture
def at(bucket, address):
    """Returns the URL of a path in the bucket."""
    rest = f"?scheme=http&endpoint_override={address}&retry_limit_seconds=20"
    return lambda path: f"gcs://anonymous@{bucket.name}/{path}{rest}"


def equal(ours, theirs):
    types = pa.schema({"n": pa.int64(), "s": pa.string()})
    tables = [pa.Table.from_batches([xt.to_arrow(each)]) for each in (ours, theirs)]
    one, other = (table.select(types.names).cast(types) for table in tables)
    return one.equals(other)


@pytest.mark.parametrize("address", [0, 0.05], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read(kind, bucket, at):
    write, read, stream = KINDS[kind]
    write(RECORDS, at(f"folder/a.{kind}"))
    assert bucket.keys == [f"folder/a.{kind}"]
    assert equal(read(at(f"folder/a.{kind}")), RECORDS)
    assert equal(read(at("folder")), RECORDS)
    records = list(stream(at("folder"), 1000, columns=None))
    assert [each.shape[0] for each in records] == [1000] * 3
    assert equal(records[1], RECORDS[1000:2000])
    write(RECORDS[:7], at(f"folder/a.{kind}"))  # replaces it
    assert equal(read(at(f"folder/a.{kind}")), RECORDS[:7])


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_takes_one_request_for_a_part(kind, bucket, at, monkeypatch):
    monkeypatch.setattr(remote_system, "_RECENT", 1e9)
    write, _, stream = KINDS[kind]
    write(RECORDS, at(f"a.{kind}"))
    if kind == "parquet":
        groups = pa.BufferOutputStream()
        table = pa.Table.from_batches([xt.to_arrow(RECORDS)])
        pq.write_table(table, groups, row_group_size=1000)
        bucket.put("a.parquet", groups.getvalue().to_pybytes())
    dataset = stream(at(f"a.{kind}"), 500, columns=None)
    reads = []
    get = remote_system.ArrowSystem._get

    def counted(self, path, each):
        reads.append(each)
        return get(self, path, each)

    monkeypatch.setattr(remote_system.ArrowSystem, "_get", counted)
    assert sum(batch.shape[0] for batch in dataset) == 3000
    assert len(reads) == (3 if kind == "parquet" else 1)


def test_an_object_that_was_replaced_is_named(bucket, at):
    for kind in ("parquet", "jsonl"):
        write, _, stream = KINDS[kind]
        write(RECORDS, at(f"a.{kind}"))
        dataset = stream(at(f"a.{kind}"), 500, columns=None)
        assert sum(batch.shape[0] for batch in dataset) == 3000
        data = bucket.get(f"a.{kind}")
        bucket.put(f"a.{kind}", data[:200] + bytes([data[200] ^ 1]) + data[201:])
        with pytest.raises(FormatError, match=r"gcs://.*expected the file to stay unchanged"):
            list(dataset)


def test_what_is_missing_is_named(bucket, at):
    for path in (at("a.parquet"), at("*.parquet")):
        with pytest.raises((MissingFileError, ValueError)) as caught:
            xt.read_parquet(path)
        assert path in str(caught.value)
    bucket.put("folder/a.txt", b"text")
    with pytest.raises(DirectoryError):
        file_at(at("folder")).open()
    with pytest.raises(FormatError, match="complete Parquet file"):
        xt.read_parquet(at("folder/a.txt"))


class Stop(Exception):  # noqa: N818 - it is not an error
    """Whoever gives records stops."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_the_middle_leaves_no_object(kind, bucket, at):
    bucket.put(f"a.{kind}", b"as it was")

    def batches():
        yield RECORDS
        raise Stop

    for name in ("a", "b"):
        with pytest.raises(Stop):
            KINDS[kind][0](batches(), at(f"{name}.{kind}"))
    assert bucket.get(f"a.{kind}") == b"as it was"
    assert bucket.keys == [f"a.{kind}"]


def test_the_urls_of_files_in_a_folder_are_opened_again(at):
    xt.write_json(RECORDS, at("folder/a.jsonl"))
    (found,) = files_at(at("folder"))
    assert found.path == at("folder/a.jsonl")
    assert equal(xt.read_json(found.path), RECORDS)
