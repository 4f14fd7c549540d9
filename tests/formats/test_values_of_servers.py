"""Values of the protocols of Spanner and Firestore become Arrow data, without a server."""

import datetime
import decimal
import uuid
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import struct_pb2

import extensor as xt
from extensor import errors
from extensor._arrow.wanted_table import WantedTable
from extensor._formats.firestore.types import POINT, kind_of
from extensor._formats.firestore.values import Plain
from extensor._formats.python.documents import records_of_documents
from extensor._formats.spanner import types
from extensor._formats.spanner.read import table_of


def field(name, code, **more):
    kind = SimpleNamespace(code=code, type_annotation=0, **more)
    return SimpleNamespace(name=name, type_=kind)


NUMBERS = field("items", types.ARRAY, array_element_type=SimpleNamespace(code=types.INT64))
TOOL = field(
    "tool",
    types.STRUCT,
    struct_type=SimpleNamespace(fields=[field("name", types.STRING), field("new", types.BOOL)]),
)
ID = uuid.UUID(int=7)
# The field, values as Spanner's protocol has them, and as Python has them.
COLUMNS = {
    "bool": (field("bool", types.BOOL), [True, None], [True, None]),
    "int": (field("int", types.INT64), [str(2**62 + 1), None], [2**62 + 1, None]),
    "float": (field("float", types.FLOAT64), [0.5, "Infinity"], [0.5, float("inf")]),
    "text": (field("text", types.STRING), ["tea", ""], ["tea", ""]),
    "bytes": (field("bytes", types.BYTES), ["AAE=", None], [b"\0\1", None]),
    "date": (field("date", types.DATE), ["2024-02-29", None], [datetime.date(2024, 2, 29), None]),
    "price": (field("price", types.NUMERIC), ["1.5", None], [decimal.Decimal("1.5"), None]),
    "id": (field("id", types.UUID), [str(ID), None], [ID, None]),
    "items": (NUMBERS, [["1", "2"], None], [[1, 2], None]),
    "tool": (TOOL, [["pan", True], None], [{"name": "pan", "new": True}, None]),
}


def message(value):
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=map(message, value)))


@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_spanner(name):
    kind, sent, expected = COLUMNS[name]
    schema = types.schema_of([kind])
    assert table_of([[message(v)] for v in sent], [kind], schema)[name].to_pylist() == expected


def test_a_value_of_spanner_out_of_range_is_named():
    kind = field("at", types.TIMESTAMP)
    rows = [[message("2024-01-01T00:00:00Z")], [message("9999-01-01T00:00:00Z")]]
    with pytest.raises(errors.DTypeError, match=r"at: .*9999-01-01.*schema="):
        table_of(rows, [kind], types.schema_of([kind]))


class Snapshot:
    """A snapshot that encodes parameters as the client does, and answers with no rows."""

    _multi_use = True
    metadata = ()

    def __init__(self):
        self.fields = [field("a", types.INT64)]

    def __iter__(self):
        return iter(())

    def execute_sql(self, params, param_types, **_):
        from google.cloud.spanner_v1._helpers import _make_value_pb

        self.params = {name: _make_value_pb(value) for name, value in params.items()}
        self.types = {name: kind.code for name, kind in param_types.items()}
        return self


def test_parameters_of_spanner_may_be_of_numpy():
    pytest.importorskip("google.cloud.spanner", reason="google-cloud-spanner is missing")
    snapshot = Snapshot()
    params = {"i": np.int64(5), "f": np.float32(0.5), "b": np.True_, "x": np.array([1, 2])}
    xt.read_spanner(snapshot, "select 1", params)
    numpys = snapshot.params, snapshot.types
    xt.read_spanner(snapshot, "select 1", {"i": 5, "f": 0.5, "b": True, "x": [1, 2]})
    assert numpys == (snapshot.params, snapshot.types)
    with pytest.raises(errors.QueryError, match=r"read_spanner: .*params=.* scale 11"):
        xt.read_spanner(snapshot, "select 1", {"p": decimal.Decimal("1.12345678901")})


def test_columns_of_spanner_without_a_name_or_a_type_are_named():
    with pytest.raises(errors.StructureError, match="no name for column 1"):
        types.schema_of([field("", types.INT64)])
    with pytest.raises(errors.UnsupportedTypeError, match="the type with code 99"):
        types.schema_of([field("x", 99)])


def test_documents_of_firestore_are_plain_data_with_the_types_that_it_loses():
    firestore = pytest.importorskip("google.cloud.firestore_v1", reason="it is not installed")
    document = {"b": [1, 2], "a": {"where": firestore.GeoPoint(1.0, 2.0)}}
    found = Plain()
    plain = found.plain(document)
    assert plain == {"a": {"where": {"latitude": 1.0, "longitude": 2.0}}, "b": [1, 2]}
    assert list(plain) == ["a", "b"]
    array = found.typed(pa.array([plain]))
    assert array.type.field("a").type.field("where").type == POINT
    assert kind_of(POINT) == "geopoint"
    assert kind_of(pa.int64()) is None
    wanted = WantedTable(schema=pa.schema({"b": pa.list_(pa.int64())}))
    assert records_of_documents([("d", plain)], wanted).to_py() == [{"b": [1, 2]}]


class Stored:
    """A query of the documents that were written, as the client decodes them."""

    def __init__(self, writes, client):
        self.writes, self.client = writes, client

    def stream(self, **_):
        from google.cloud.firestore_v1 import _helpers

        for write in self.writes:
            fields = _helpers.decode_dict(write.update.fields, self.client)
            reference = self.client.document(write.update.name.split("/documents/")[1])
            yield SimpleNamespace(reference=reference, read_time=None, to_dict=lambda f=fields: f)


@pytest.fixture
def firestore(monkeypatch):
    """A collection whose writes are kept, and the query of its documents."""
    module = pytest.importorskip("google.cloud.firestore", reason="it is not installed")
    credentials = pytest.importorskip("google.auth.credentials")
    client = module.Client(project="p", credentials=credentials.AnonymousCredentials())
    writes = []
    commit = lambda self, **_: writes.extend(self._write_pbs)  # noqa: E731
    monkeypatch.setattr(module.WriteBatch, "commit", commit)
    return client.collection("c"), Stored(writes, client)


def test_times_of_firestore_are_microseconds_of_any_year(firestore):
    collection, query = firestore
    utc = datetime.timezone.utc
    times = [
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, utc),
        datetime.datetime(2024, 1, 1, 0, 0, 0, 123456, utc),
    ]
    column = pa.array(times, pa.timestamp("us", "UTC"))
    xt.write_firestore(xt.from_arrow(pa.table({"at": column})), collection)
    assert xt.to_arrow(xt.read_firestore(query))["at"].equals(column)


def test_times_of_googles_clients_keep_their_nanoseconds():
    helpers = pytest.importorskip("google.api_core.datetime_helpers")
    for text in ("1969-12-31T23:59:59.123456789Z", "2024-01-01T00:00:00.000000001Z"):
        value = helpers.DatetimeWithNanoseconds.from_rfc3339(text)
        made = xt.to_arrow(xt.struct.constant([{"at": value}]))["at"]
        assert made.equals(pa.array([text]).cast(pa.timestamp("ns", "UTC")))


def test_bools_of_one_byte_are_bools_in_firestore(firestore):
    collection, query = firestore
    bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    xt.write_firestore(xt.from_arrow(pa.table({"x": bools})), collection)
    assert xt.to_arrow(xt.read_firestore(query))["x"].equals(pa.array([True, False]))


@pytest.mark.parametrize(
    ("name", "array", "error", "message"),
    [
        ("at", pa.array([2**62], pa.timestamp("us")), errors.DTypeError, "at: .*years 1 to 9999"),
        ("", pa.array([1]), errors.FieldError, "names of fields that are not empty"),
    ],
)
def test_what_firestore_does_not_take_is_named(firestore, name, array, error, message):
    with pytest.raises(error, match=message):
        xt.write_firestore(xt.from_arrow(pa.table({name: array})), firestore[0])


def test_streams_of_servers_check_their_arguments_before_they_connect():
    pytest.importorskip("google.cloud.spanner", reason="google-cloud-spanner is missing")
    with pytest.raises(errors.StructureError, match="batch_size"):
        xt.data.firestore(None, 0)
    with pytest.raises(errors.DTypeError, match=r"xt\.data\.firestore"):
        xt.data.firestore("recipes", 2)
    with pytest.raises(errors.StructureError, match="batch_size"):
        xt.data.spanner(None, "select 1", 0)
