"""Files of an HTTP server are those of the disk, by few requests, or an error that says why not."""

import functools
import json
import re
import shutil
import ssl
import subprocess
import sys
import time
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
from extensor._files.ranges import Block, FetchAhead, few_ranges, joined_ranges
from extensor._files.store import StoredFile
from extensor.errors import (
    AccessError,
    FormatError,
    MissingDependencyError,
    MissingFileError,
    StoreError,
    StructureError,
)
from tests.files.range_server import RangeServer

COLUMNS = 8
TABLE = pa.table(
    {f"c{i}": np.random.default_rng(i).random(40_000) for i in range(COLUMNS - 1)}
    | {"steps": pa.array([[{"m": i % 7}] * (i % 3) for i in range(40_000)])}
)

RETRY_TIMEOUT = object_store._RETRIES["retry_timeout"]


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


@pytest.mark.parametrize("latency", [0, 0.05])
@pytest.mark.parametrize("name", READ)
def test_each_format_is_read_as_from_a_disk(name, latency, server, folder):
    server.latency = latency
    ours = xt.to_arrow(READ[name](f"{server.url}/{name}"))
    theirs = xt.to_arrow(READ[name](folder / name))
    assert ours.equals(theirs)
    batches = [xt.to_arrow(b) for b in STREAMS[name](f"{server.url}/{name}", 100, columns=None)]
    assert pa.Table.from_batches(batches).equals(pa.Table.from_batches([theirs]))


def test_a_file_that_is_not_there_is_closed_without_an_error(server):
    store = file_at(f"{server.url}/it.parquet").store
    file = StoredFile.__new__(StoredFile)
    with pytest.raises(MissingFileError):
        file.__init__(store, "missing.parquet")
    file.close()  # as Python does


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
    files=st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=6), min_size=1, max_size=4),
    ahead=st.integers(0, 100),
    steps=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 60)), max_size=20),
)
def test_blocks_of_files_are_fetched_once_in_order_and_within_bounds(files, ahead, steps):
    data = {str(i): np.random.default_rng(i).bytes(sum(sizes)) for i, sizes in enumerate(files)}
    fetched = []
    places = []  # of all bytes, in the order of the blocks

    def block(name, start, end):
        def fetch(ranges):
            fetched.append((name, *ranges[0]))
            return [memoryview(data[name])[a:z] for a, z in ranges]

        places.extend((name, at) for at in range(start, end))
        return Block(name, fetch, [(start, end)])

    blocks = []
    for name, sizes in zip(data, files, strict=True):
        ends = np.cumsum(sizes).tolist()
        blocks += [block(name, z - size, z) for size, z in zip(sizes, ends, strict=True)]
    found = FetchAhead(blocks, ahead)
    reads = sorted((int(at * len(places)), count) for at, count in steps)
    for at, count in reads:
        name, begin = places[at]
        end = min(begin + count, len(data[name]))
        got = found.read(name, begin, end)
        # What is behind the last block that was read, or far from it, is not known.
        assert got is None or bytes(got) == data[name][begin:end]
        held = [each for each, _ in found._fetched]
        assert sum(each.size for each in held[1:]) <= ahead or (ahead and len(held) == 2)
    found.close()
    assert not found._fetched
    assert found.read("0", 0, 1) is None
    for future in list(fetched):
        assert fetched.count(future) == 1
    every = FetchAhead(blocks, ahead)
    whole = [bytes(every.read(b.file, *b.ranges[0])) for b in blocks]
    assert b"".join(whole) == b"".join(data.values())
    every.close()


def test_an_error_of_a_block_is_raised_where_it_is_read():
    def fail(_):
        raise StoreError("b", "an answer", "none", "Read again.")

    blocks = [Block("a", lambda _: [memoryview(b"abc")], [(0, 3)]), Block("b", fail, [(0, 3)])]
    found = FetchAhead(blocks, 100)
    assert bytes(found.read("a", 0, 3)) == b"abc"
    with pytest.raises(StoreError):
        found.read("b", 0, 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1 << 24)), max_size=9))
def test_ranges_that_lie_together_are_joined_up_to_a_bound(found):
    ranges, at = [], 0
    for gap, size in found:
        ranges.append((at + gap, at + gap + size))
        at += gap + size
    joined = list(joined_ranges(ranges))
    assert sum(z - a for a, z in joined) == sum(z - a for a, z in ranges)
    assert {a for a, _ in joined} <= {a for a, _ in ranges}
    assert all((a, z) in ranges or z - a <= 1 << 23 for a, z in joined)


# How many requests the streams of two files take: to be made, and for each pass.
REQUESTS = {
    "parquet": (4, 8),
    "jsonl": (4, 2),
    "jsonl.gz": (4, 2),
    "arrow": (8, 2),
    "arrows": (6, 2),
    "csv": (4, 2),
    "tfrecord": (4, 2),
}


@pytest.mark.whole("streams of all formats, each twice")
@pytest.mark.parametrize("shuffle", [None, xt.data.Shuffle(3, 100)])
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_stream_takes_one_request_for_a_part(kind, shuffle, server, folder):
    xt.write_arrow(xt.from_arrow(TABLE.slice(0, 300)), folder / "it.arrows")
    local = folder / f"it.{kind}"
    server.files |= {f"{i}.{kind}": local.read_bytes() for i in range(2)}
    urls = [f"{server.url}/{i}.{kind}" for i in range(2)]
    stream = STREAMS.get(f"it.{kind}", xt.data.arrow)
    dataset = stream(urls, 100, columns=None, shuffle=shuffle)
    assert len(server.requests) == REQUESTS[kind][0]
    server.requests.clear()
    batches = [xt.to_arrow(batch) for batch in dataset]
    assert len(server.requests) == REQUESTS[kind][1]
    same = [xt.to_arrow(batch) for batch in stream([local, local], 100, None, shuffle=shuffle)]
    assert pa.Table.from_batches(batches).equals(pa.Table.from_batches(same))


@pytest.mark.whole("six streams, and time for requests that should not come")
@pytest.mark.parametrize("shuffle", [None, xt.data.Shuffle(3, 1000)])
@pytest.mark.parametrize("read_ahead", [0, 30_000, 1 << 23])
def test_so_many_bytes_are_fetched_before_they_are_read(read_ahead, shuffle, server, folder):
    small = TABLE.slice(0, 8000).select(["c0"])
    pq.write_table(small, folder / "s.parquet", row_group_size=1000, use_dictionary=False)
    server.files |= {f"{i}.parquet": (folder / "s.parquet").read_bytes() for i in range(4)}
    urls = [f"{server.url}/{i}.parquet" for i in range(4)]
    dataset = xt.data.parquet(urls, 1000, shuffle=shuffle, read_ahead=read_ahead)
    server.requests.clear()
    iterator = iter(dataset)
    next(iterator)
    # A part is 8 MB without shuffling, so that all files are in one.
    if shuffle is not None:
        least, most = {0: (1, 3), 30_000: (3, 7), 1 << 23: (32, 32)}[read_ahead]
        until = time.monotonic() + 60
        while len(server.requests) < least and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)  # for those that should not come
        assert least <= len(server.requests) <= most
    for _ in iterator:
        pass
    assert len(server.requests) == 32


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "8 MB", None])
@pytest.mark.parametrize(
    "read", [functools.partial(xt.data.parquet, batch_size=10), *READ.values()]
)
def test_a_wrong_read_ahead_is_named(read, wrong, folder):
    with pytest.raises(StructureError, match="read_ahead: expected a number of bytes"):
        read(folder / "it.parquet", read_ahead=wrong)


@pytest.mark.parametrize("name", READ)
def test_the_next_files_of_a_read_are_fetched_while_one_is_read(name, server, folder):
    urls = [f"{server.url}/{i}-{name}" for i in range(12)]
    server.files |= {f"{i}-{name}": (folder / name).read_bytes() for i in range(12)}
    parts = 12 * (4 if name == "it.parquet" else 1)  # after the sizes and the footers
    tables = []
    for ahead in (0, 1 << 23):
        server.latency = 0.2 if ahead else 0.02  # long enough for others to come, on a busy machine
        server.requests.clear()
        tables.append(xt.to_arrow(READ[name](urls, read_ahead=ahead)))
        assert len(server.requests) == parts + 12 * (2 if name == "it.parquet" else 1)
        most = max(server.at_once[-parts:])
        assert most > 4 if ahead else most == 1
    one = pa.Table.from_batches([xt.to_arrow(READ[name](folder / name))])
    assert pa.Table.from_batches(tables[:1]).equals(pa.concat_tables([one] * 12))
    assert tables[1].equals(tables[0])


def test_of_a_large_arrow_file_only_the_chosen_columns_are_fetched(server, folder):
    large = pa.table({f"c{i}": np.random.default_rng(i).random(500_000) for i in range(8)})
    xt.write_arrow(xt.from_arrow(large), folder / "large.arrow")
    server.files["large.arrow"] = (folder / "large.arrow").read_bytes()
    for columns in (["c5"], None):
        server.requests.clear()
        records = xt.read_arrow(f"{server.url}/large.arrow", columns=columns)
        assert np.array_equal(records["c5"], large["c5"])
        ranges = [asked[6:].split("-") for method, asked in server.requests if method == "GET"]
        share = sum(int(end) - int(start) for start, end in ranges) / 32_000_000
        assert share < 0.3 if columns else share < 1.1


def test_a_stream_hides_the_latency_of_a_store(server, folder):
    pq.write_table(TABLE, folder / "groups.parquet", row_group_size=1_000)
    server.files["groups.parquet"] = (folder / "groups.parquet").read_bytes()
    server.latency = 0.03
    dataset = xt.data.parquet(f"{server.url}/groups.parquet", 1000, columns=["c1"])
    server.most = 0
    assert sum(batch.shape[0] for batch in dataset) == 40_000
    assert len([r for r in server.requests if r[0] == "GET"]) == 41
    assert server.most > 4


@pytest.fixture
def quick_times(server, monkeypatch):
    """Lets a store have a hundredth of the times that it has otherwise."""
    times = object_store._CLIENT.items()
    few = {key: each / 100 if isinstance(each, timedelta) else each for key, each in times}
    monkeypatch.setattr(object_store, "_CLIENT", few)
    monkeypatch.setitem(object_store._RETRIES, "retry_timeout", RETRY_TIMEOUT / 100)


@pytest.mark.parametrize("bad", ["503", "429", "cut", "stall"])
def test_a_request_that_fails_is_repeated(quick_times, bad, server, folder):
    # After two of them, a busy machine has no time left to repeat.
    server.bad = ["stall"] if bad == "stall" else [bad, bad]
    records = xt.read_parquet(f"{server.url}/it.parquet", columns=["c1"])
    assert xt.to_arrow(records).equals(
        xt.to_arrow(xt.read_parquet(folder / "it.parquet", columns=["c1"]))
    )
    assert len(server.requests) == (7 if bad == "stall" else 8)
    ranges = [tuple(map(int, asked[6:].split("-"))) for _, asked in server.requests[1:-4]]
    (begin, end), *again = ranges
    left = (end + 1 - begin) // 2  # a cut answer has half of what was asked for
    half = [(begin + left, end), (begin + left + (end + 1 - begin - left) // 2, end)]
    assert again == (half if bad == "cut" else [(begin, end)] * len(again))


@pytest.mark.whole("waits for slow answers")
def test_an_answer_may_take_longer_than_a_store_may_say_nothing(quick_times, server, folder):
    """Two seconds in place of 1.2; in each of its tenths some bytes come."""
    server.bad = ["slow"] * 2
    records = xt.read_csv(f"{server.url}/it.csv")
    assert xt.to_arrow(records).equals(xt.to_arrow(xt.read_csv(folder / "it.csv")))
    assert len(server.requests) == 2


@pytest.mark.parametrize("shuffle", [None, xt.data.Shuffle(1, 3000)])
def test_a_stream_goes_on_at_its_state_after_its_store_has_died(shuffle, server, monkeypatch):
    monkeypatch.setattr("extensor._data.plan.PART_ROWS", 2000)

    def stream(state=None):
        url, words = f"{server.url}/it.parquet", {"columns": ["c1"], "read_ahead": 0}
        return xt.data.parquet(url, 1000, shuffle=shuffle, state=state, **words)

    dataset, seen = stream(), []

    def read_until_the_end():
        for batch in dataset:
            seen.append(batch["c1"].numpy())
            server.bad = ["cut"] * 99

    with pytest.raises(StoreError, match=r"it\.parquet"):
        read_until_the_end()
    server.bad = []
    assert 0 < len(seen) < 40
    seen += [batch["c1"].numpy() for batch in stream(xt.data.state(dataset, len(seen)))]
    assert np.array_equal(np.sort(np.concatenate(seen)), np.sort(TABLE["c1"]))


def test_a_footer_of_more_than_64_kb_takes_a_request_more(server, tmp_path):
    wide = pa.table({f"column {i}": [i] for i in range(1000)})
    pq.write_table(wide, tmp_path / "it.parquet")
    assert pq.read_metadata(tmp_path / "it.parquet").serialized_size > 1 << 16
    server.files["wide.parquet"] = (tmp_path / "it.parquet").read_bytes()
    records = xt.read_parquet(f"{server.url}/wide.parquet", columns=["column 7"])
    assert records.to_py() == [{"column 7": 7}]
    assert len(server.requests) == 1 + 2 + 1


def test_columns_that_lie_apart_take_two_requests_for_a_row_group(server, folder):
    random = np.random.default_rng(0)
    wide = pa.table({name: random.random(600_000) for name in "abc"})
    pq.write_table(wide, folder / "wide.parquet", row_group_size=200_000, use_dictionary=False)
    server.files["wide.parquet"] = (folder / "wide.parquet").read_bytes()
    records = xt.read_parquet(f"{server.url}/wide.parquet", columns=["a", "c"])
    assert xt.to_arrow(records).equals(wide.select(["a", "c"]).to_batches()[0])
    assert len(server.requests) == 2 + 2 * 3


BAD = {
    "always busy": (["503"] * 99, StoreError, "an answer of the store"),
    "no permission": (["403"] * 99, AccessError, "AWS_ACCESS_KEY_ID"),
    "short": (["short"] * 99, StoreError, "an answer of the store"),
    "another range": (["wrong range"] * 99, StoreError, "an answer of the store"),
    "the whole file": (["all"] * 99, StoreError, "an answer of the store"),
    "always cut": (["cut"] * 99, StoreError, "an answer of the store"),
    "too slow": (["stall"] * 99, StoreError, "an answer of the store"),
}


@pytest.mark.parametrize(
    "case",
    [*list(BAD)[:-1], pytest.param("too slow", marks=pytest.mark.whole("waits for an answer"))],
)
def test_wrong_answers_are_errors_that_name_the_file(quick_times, case, server):
    server.bad, error, match = BAD[case]
    with pytest.raises(error, match=match) as caught:
        xt.read_parquet(f"{server.url}/it.parquet")
    assert f"{server.url}/it.parquet" in str(caught.value)
    server.bad = []
    plan = xt.data.parquet(f"{server.url}/it.parquet", 100, columns=["c1"])
    server.bad = BAD[case][0][:]
    with pytest.raises(error, match=match):
        list(plan)


@pytest.mark.parametrize("knows_if_match", [True, False])
def test_a_file_that_was_replaced_is_an_error(knows_if_match, server):
    server.knows_if_match = knows_if_match
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


@pytest.mark.parametrize(("kind", "batches", "requests"), [("parquet", 400, 2), ("arrow", 3, 4)])
def test_many_footers_are_read_at_once(kind, batches, requests, server):
    for i in range(32):
        server.files[f"{i}.{kind}"] = server.files[f"it.{kind}"]
    server.latency = 0.05
    paths = [f"{server.url}/{i}.{kind}" for i in range(32)]
    dataset = STREAMS[f"it.{kind}"](paths, 100, columns=["c1"])
    assert dataset.cardinality() == 32 * batches
    assert len(server.requests) == 32 * requests
    assert server.most > 8


@pytest.mark.whole("a file of 64 MB in four processes")
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_stream_of_a_store_takes_64_mb_more_than_that_of_a_disk(kind, tmp_path, run_python):
    random = np.random.default_rng(0)
    if kind == "parquet":
        large = pa.table({f"c{i}": random.random(1 << 20) for i in range(8)})
        pq.write_table(large, tmp_path / "a.parquet", row_group_size=1 << 17)
    else:
        xt.write_json(
            xt.from_arrow(pa.table({"x": random.random(1 << 18)})), tmp_path / "part.jsonl"
        )
        text = (tmp_path / "part.jsonl").read_bytes()
        (tmp_path / "a.jsonl").write_bytes(text * ((1 << 26) // len(text) + 1))
    assert (tmp_path / f"a.{kind}").stat().st_size >= 1 << 26
    with RangeServer({f"a.{kind}": (tmp_path / f"a.{kind}").read_bytes()}).running() as server:
        peaks = []
        # Each twice: a busy machine reads less ahead, and frees the last batches late.
        for path, peak_of in ((str(tmp_path / f"a.{kind}"), max), (f"{server.url}/a.{kind}", min)):
            stream = {"parquet": "parquet", "jsonl": "json"}[kind]
            code = f"""
                import pathlib, re
                import extensor as xt
                for batch in xt.data.{stream}({path!r}, 8192, columns=None):
                    pass
                status = pathlib.Path("/proc/self/status").read_text()
                print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
            """
            peak = peak_of(int(run_python(code, timeout=400).stdout) for _ in range(2))
            peaks.append(peak / 1024)
    assert peaks[1] < peaks[0] + 64, peaks


def test_a_file_of_google_takes_six_requests(server, folder, monkeypatch):
    """Of its XML interface, which `gs://` has, to read is as to read of an HTTP server."""
    key = {"gcs_base_url": server.url, "disable_oauth": True}
    key |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(key))
    server.files["bucket/a b/it.parquet"] = server.files["it.parquet"]
    records = xt.read_parquet("gs://bucket/a b/it.parquet", columns=["c0", "steps"])
    assert xt.to_arrow(records).equals(
        xt.to_arrow(xt.read_parquet(folder / "it.parquet", columns=["c0", "steps"]))
    )
    assert len(server.requests) == 6
    server.bad = ["403"]
    with pytest.raises(AccessError, match=r"gs://bucket/a b/it\.parquet"):
        xt.read_parquet("gs://bucket/a b/it.parquet")


def test_https_needs_a_certificate_that_is_known(folder, tmp_path, monkeypatch):
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=it", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = RangeServer({"it.csv": (folder / "it.csv").read_bytes()})
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    monkeypatch.setattr(object_store, "_RETRIES", {"max_retries": 0})
    url = f"{server.url.replace('http', 'https')}/it.csv"
    with server.running():
        with pytest.raises(StoreError, match=re.escape(f"{url}: expected an answer of the store")):
            xt.read_csv(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert xt.read_csv(url).to_py() == xt.read_csv(folder / "it.csv").to_py()


def test_urls_of_object_stores_are_told_from_others():
    for url in ("s3://b/k", "gs://b/k", "az://c/k", "abfss://c@a.dfs.core.windows.net/k"):
        assert object_store.is_in_object_store(url)
    for url in ("memory://b", "hdfs://h/k", "file:///k", "http://h/k?q=1", "/s3/k"):
        assert not object_store.is_in_object_store(url)
    assert file_at("http://127.0.0.1:1/a%20b/c.parquet").inner == "a b/c.parquet"
