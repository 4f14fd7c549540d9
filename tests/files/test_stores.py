"""Real servers: what is written to a store is read again, whole or not at all."""

import itertools
import json
import pathlib
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import extensor as xt
from extensor._files import object_store
from extensor._files.files import file_at
from extensor.errors import AccessError, FormatError, MissingDependencyError, MissingFileError
from extensor_command.main import main
from tests.files.store_servers import azurite, moto, s3rver
from tests.formats.emulators import Proxy

pytestmark = [
    pytest.mark.whole("servers of object stores"),
    pytest.mark.together("moto"),
    pytest.mark.filterwarnings("ignore:Exception ignored:pytest.PytestUnraisableExceptionWarning"),
]

_names = (f"bucket{i}" for i in itertools.count())

RECORDS = xt.from_arrow(
    pa.table(
        {
            "n": np.arange(3000),
            "x": np.arange(3000, dtype=np.float32) / 4,
            "s": [f"record {i}" for i in range(3000)],
        }
    )
)
# Large enough to be sent in several requests.
LARGE = xt.from_arrow(pa.table({"x": np.random.default_rng(1).random(1_200_000)}))

WRITE = {
    "parquet": (xt.write_parquet, xt.read_parquet, xt.data.parquet),
    "arrow": (xt.write_arrow, xt.read_arrow, xt.data.arrow),
    "arrows": (xt.write_arrow, xt.read_arrow, xt.data.arrow),
    "jsonl": (xt.write_json, xt.read_json, xt.data.json),
    "jsonl.gz": (xt.write_json, xt.read_json, xt.data.json),
    "csv": (xt.write_csv, xt.read_csv, xt.data.csv),
    "tfrecord": (xt.write_tfrecord, xt.read_tfrecord, xt.data.tfrecord),
}


SERVERS = {"moto": moto, "s3rver": s3rver, "azurite": azurite}

of_s3 = pytest.mark.parametrize("server", ["moto", "s3rver"], indirect=True)


@pytest.fixture(params=SERVERS)
def server(request):
    return SERVERS[request.param]()


@pytest.fixture
def bucket(server):
    return server.bucket(next(_names))


@pytest.fixture
def url(server, bucket, monkeypatch):
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return f"{server.kind}://{bucket.name}"


def equal(ours, theirs):
    """Returns whether records are equal, but for the types that a format does not have."""
    types = pa.schema({"n": pa.int64(), "s": pa.string(), "x": pa.float64()})
    tables = [pa.Table.from_batches([xt.to_arrow(each)]) for each in (ours, theirs)]
    one, other = (table.select(types.names).cast(types) for table in tables)
    return one.equals(other)


@pytest.mark.parametrize("latency", [0, 0.05])
@pytest.mark.parametrize("kind", WRITE)
def test_what_is_written_is_read(kind, latency, server, bucket, url, monkeypatch, request):
    proxy = Proxy(server.address)
    request.addfinalizer(proxy.close)
    proxy.latency = latency
    for name, value in server._replace(address=proxy.address).environment.items():
        monkeypatch.setenv(name, value)
    write, read, stream = WRITE[kind]
    write(RECORDS, f"{url}/folder/a.{kind}")
    assert bucket.keys == [f"folder/a.{kind}"]
    assert equal(read(f"{url}/folder/a.{kind}"), RECORDS)
    assert equal(read(f"{url}/folder/*.{kind}"), RECORDS)
    records = list(stream(f"{url}/folder", 1000, columns=None, shuffle=None))
    assert [each.shape[0] for each in records] == [1000] * 3
    assert equal(records[1], RECORDS[1000:2000])
    write(RECORDS[:7], f"{url}/folder/a.{kind}")  # replaces it
    assert equal(read(f"{url}/folder/a.{kind}"), RECORDS[:7])


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_a_large_object_is_sent_in_parts(kind, bucket, url):
    write, read, _ = WRITE[kind]
    write(LARGE, f"{url}/a.{kind}")
    assert len(bucket.get(f"a.{kind}")) > 9_000_000
    assert np.array_equal(read(f"{url}/a.{kind}")["x"], LARGE["x"])
    assert (bucket.keys, bucket.uploads) == ([f"a.{kind}"], 0)


class Stop(Exception):  # noqa: N818 - it is not an error
    """Whoever gives records stops."""


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("kind", WRITE)
def test_an_error_in_the_middle_leaves_no_object(kind, before, bucket, url):
    write = WRITE[kind][0]
    bucket.put(f"a.{kind}", b"as it was")

    def batches():
        part = LARGE if kind in ("parquet", "arrow") else RECORDS
        for _ in range(before):
            yield part
        raise Stop

    with pytest.raises(Stop):
        write(batches(), f"{url}/a.{kind}")
    with pytest.raises(Stop):
        write(batches(), f"{url}/b.{kind}")
    assert bucket.get(f"a.{kind}") == b"as it was"
    assert (bucket.keys, bucket.uploads) == ([f"a.{kind}"], 0)


def test_a_partitioned_folder_is_complete_or_not_there(bucket, url):
    few = xt.from_arrow(pa.table({"k": [1, 1, 2], "x": [1.0, 2.0, 3.0]}))

    def batches():
        yield few
        raise Stop

    with pytest.raises(Stop):
        xt.write_parquet(batches(), f"{url}/folder", partition_by=["k"])
    assert (bucket.keys, bucket.uploads) == ([], 0)
    xt.write_parquet(few, f"{url}/folder", partition_by=["k"])
    assert len(bucket.keys) == 2
    assert xt.read_parquet(f"{url}/folder")["x"].numpy().tolist() == [1, 2, 3]


def test_a_writer_that_is_killed_leaves_no_object(bucket, url, run_python):
    bucket.put("a.parquet", b"as it was")
    code = f"""
        import os, signal
        import numpy as np, pyarrow as pa
        import extensor as xt
        part = xt.from_arrow(pa.table({{"x": np.random.default_rng(1).random(1_200_000)}}))
        def batches():
            for _ in range(4):
                yield part
            os.kill(os.getpid(), signal.SIGKILL)
        for name in ("a", "b"):
            if os.fork() == 0:
                xt.write_parquet(batches(), f"{url}/{{name}}.parquet")
            os.wait()
    """
    run_python(code)
    assert bucket.keys == ["a.parquet"]
    assert bucket.get("a.parquet") == b"as it was"
    xt.write_parquet(LARGE, f"{url}/a.parquet")
    assert xt.read_parquet(f"{url}/a.parquet").shape == [1_200_000]


def test_the_command_converts_to_a_store_completely_or_not_at_all(bucket, url, tmp_path):
    xt.write_parquet(RECORDS, tmp_path / "a.parquet")
    assert main(["convert", str(tmp_path / "a.parquet"), f"{url}/a.arrow"]) == 0
    assert equal(xt.read_arrow(f"{url}/a.arrow"), RECORDS)
    assert main(["convert", f"{url}/a.arrow", str(tmp_path / "b.jsonl")]) == 0
    assert equal(xt.read_json(tmp_path / "b.jsonl"), RECORDS)
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:200] + bytes(200) + data[400:])
    assert main(["convert", str(tmp_path / "a.parquet"), f"{url}/c.arrow"]) != 0
    assert (bucket.keys, bucket.uploads) == (["a.arrow"], 0)


def test_what_is_missing_is_named(bucket, url):
    other = url.replace(bucket.name, "no-such-bucket")
    for path in (f"{url}/a.parquet", f"{other}/a.parquet", f"{other}/*.parquet"):
        with pytest.raises(MissingFileError) as caught:
            xt.read_parquet(path)
        assert caught.value.path == path
        with pytest.raises(MissingFileError):
            xt.data.parquet(path, 10)
    with pytest.raises(MissingFileError, match="no-such-bucket"):
        xt.write_parquet(RECORDS, f"{other}/a.parquet")
    bucket.put("folder/a.txt", b"text")
    with pytest.raises(FormatError, match="complete Parquet file"):
        xt.read_parquet(f"{url}/folder/a.txt")


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl", "tfrecord", "csv"])
def test_an_object_that_was_replaced_is_named(kind, url):
    write, _, stream = WRITE[kind]
    path = f"{url}/a.{kind}"
    write([RECORDS[i : i + 500] for i in range(0, 3000, 500)], path)
    dataset = stream(path, 100, columns=None, shuffle=xt.data.Shuffle(0, 500), read_ahead=0)
    assert sum(batch.shape[0] for batch in dataset) == 3000
    write(RECORDS[1:], path)
    with pytest.raises(FormatError, match="expected the file to stay unchanged"):
        list(dataset)


def test_objects_are_listed_sorted(bucket, url):
    for name in ("b/2.jsonl", "b/1.jsonl", "a.jsonl", "b/_hidden.jsonl", "b/c/3.jsonl"):
        bucket.put(name, json.dumps({"name": name}).encode() + b"\n")
    found = xt.read_json(f"{url}/b")["name"].numpy().tolist()
    assert found == [b"b/1.jsonl", b"b/2.jsonl", b"b/c/3.jsonl"]
    found = xt.read_json(f"{url}/**/*.jsonl")["name"].numpy().tolist()
    assert found == [b"a.jsonl", b"b/1.jsonl", b"b/2.jsonl", b"b/_hidden.jsonl", b"b/c/3.jsonl"]
    system = file_at(f"{url}/b").system
    kinds = [info.type for info in system.get_file_info(["b", "b/1.jsonl", "b/none"])]
    assert kinds == [pafs.FileType.Directory, pafs.FileType.File, pafs.FileType.NotFound]


@pytest.mark.parametrize(("server", "key"), [("s3rver", "other"), ("azurite", "b3RoZXI=")])
def test_wrong_credentials_are_named(server, key, monkeypatch):
    server = SERVERS[server]()
    bucket = server.bucket(next(_names))
    bucket.put("a.parquet", b"text")
    for name, value in server._replace(key=key).environment.items():
        monkeypatch.setenv(name, value)
    url = f"{server.kind}://{bucket.name}"
    for call in (
        lambda: xt.read_parquet(f"{url}/a.parquet"),
        lambda: xt.read_parquet(f"{url}/"),
        lambda: xt.read_parquet(f"{url}/*.parquet"),
        lambda: xt.data.json(f"{url}/a.parquet", 10),
        lambda: xt.write_parquet(RECORDS, f"{url}/b.parquet"),
    ):
        with pytest.raises(AccessError, match=r"bucket\d+/.*credentials that may do this"):
            call()


def test_the_schemes_of_azure_are_one(monkeypatch):
    server = azurite()
    bucket = server.bucket(next(_names))
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    xt.write_parquet(RECORDS, f"abfs://{bucket.name}/a.parquet")
    for scheme in ("az", "azure", "adl", "abfs"):
        assert equal(xt.read_parquet(f"{scheme}://{bucket.name}/*.parquet"), RECORDS)
    url = f"abfss://{bucket.name}@devstoreaccount1.dfs.core.windows.net/"
    assert equal(xt.read_parquet(url), RECORDS)
    with pytest.raises(AccessError, match=r"abfss://.*credentials that may do this"):
        xt.read_parquet(url.replace("devstoreaccount1", "other"))


@of_s3
def test_credentials_of_a_profile(server, bucket, url, monkeypatch, tmp_path):
    pytest.importorskip("boto3", reason="boto3, which reads profiles, is not installed")
    path = tmp_path / "credentials"
    key = server.key
    path.write_text(f"[work]\naws_access_key_id = {key}\naws_secret_access_key = {key}\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_PROFILE", "work")
    given = object_store._of_profile(url)()
    assert (given["access_key_id"], given["secret_access_key"]) == (key, key)
    xt.write_parquet(RECORDS, f"{url}/a.parquet")
    assert equal(xt.read_parquet(f"{url}/a.parquet"), RECORDS)


@of_s3
def test_without_boto3_a_profile_is_an_error_that_names_it(url, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.delitem(sys.modules, "obstore.auth.boto3", raising=False)
    with pytest.raises(MissingDependencyError, match="pip install boto3"):
        xt.read_parquet(f"{url}/a.parquet")


def test_the_examples_of_the_page_run(url, bucket, tmp_path, monkeypatch):
    page = pathlib.Path(xt.__file__).parents[2] / "docs/formats/object-stores.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(examples) > 2
    monkeypatch.chdir(tmp_path)
    names = {}
    for each in examples:
        exec(each.replace("s3://bucket", url), names)
        if "batches" in names:
            assert [batch["title"].numpy().tolist() for batch in names["batches"]] == [
                [b"Tea", b"Bread"]
            ]
    assert names["titles"].to_py() == [{"title": "Tea"}, {"title": "Bread"}]
    assert list((tmp_path / "parts").iterdir())
    assert len(bucket.keys) == 4
