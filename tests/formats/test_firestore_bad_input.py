"""Firestore: queries that fail, servers that end, credentials that do not work."""

import pyarrow as pa
import pytest

import extensor as xt
from tests.formats import emulators
from tests.formats.test_firestore import client

pytestmark = [
    pytest.mark.whole("needs a server"),
    pytest.mark.together("servers"),
]

firestore = pytest.importorskip(
    "google.cloud.firestore", reason="google-cloud-firestore is not installed"
)

COUNT = 1_000  # about 400 kB


@pytest.fixture(scope="module")
def name():
    table = pa.table(
        {
            "k": range(COUNT),
            "id": [f"{COUNT - i:06}" for i in range(COUNT)],
            "x": ["x" * 300] * COUNT,
        }
    )
    collection = client(emulators.firestore()).collection("many")
    xt.write_firestore(xt.from_arrow(table), collection, id_field="id")
    return "many"


@pytest.fixture
def behind_a_proxy(name):
    """The collection by way of a proxy, and the proxy."""
    proxy = emulators.Proxy(emulators.firestore())
    collection = client(proxy.address).collection(name)
    collection.document("none").get()  # connects
    yield collection, proxy
    proxy.close()


QUERIES = {
    "collection": lambda c: (c, [COUNT - 1 - i for i in range(COUNT)]),
    "order": lambda c: (c.order_by("k"), list(range(COUNT))),
    "descending": lambda c: (c.order_by("k", direction="DESCENDING"), list(range(COUNT))[::-1]),
    "limit": lambda c: (c.order_by("k").limit(800), list(range(800))),
    "offset": lambda c: (c.order_by("k").offset(100).limit(800), list(range(100, 900))),
    "last": lambda c: (c.order_by("k").limit_to_last(800), list(range(200, COUNT))),
    "end": lambda c: (c.order_by("k").end_before({"k": 900}), list(range(900))),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("columns", [None, ["x"]], ids=["whole", "selected"])
def test_an_interrupted_read_gives_each_document_once(behind_a_proxy, query, columns):
    collection, proxy = behind_a_proxy
    source, expected = QUERIES[query](collection)
    proxy.cut_after(100_000 if columns is None else 50_000)
    records = xt.read_firestore(source, columns, id_field="id")
    assert proxy.cuts == 1
    read = [COUNT - int(text) for text in records["id"].numpy()] if columns is None else None
    assert read in (None, expected)
    assert records.shape[0] == len(expected)


@pytest.mark.parametrize("sent", [1, 100_000, 250_000])
def test_a_server_that_ends_in_mid_stream_is_an_error(behind_a_proxy, sent):
    collection, proxy = behind_a_proxy
    proxy.cut_after(sent, for_ever=True)
    with pytest.raises(xt.errors.ServerError, match=r"^read_firestore: .*ServiceUnavailable"):
        xt.read_firestore(collection, timeout=0.5)
    assert proxy.cuts == 1


def test_a_write_to_a_server_that_ends(behind_a_proxy):
    _, proxy = behind_a_proxy
    other = client(proxy.address).collection("other")
    other.document("none").get()
    proxy.cut_after(1, for_ever=True)
    with pytest.raises(xt.errors.ServerError, match=r"^other: "):
        xt.write_firestore(xt.struct.constant([{"x": 1}]), other, timeout=0.5)


def test_documents_added_during_an_interruption_are_not_read(behind_a_proxy):
    collection, proxy = behind_a_proxy
    direct = client(emulators.firestore()).collection(collection.id)
    added = direct.document("999999")

    class Adding:
        """A collection to which a document is added once the first one was read."""

        def __getattr__(self, name):
            return getattr(collection, name)

        def stream(self, **options):
            for document in collection.stream(**options):
                yield document
                added.set({"k": -1, "x": ""})

    try:
        proxy.cut_after(100_000)
        keys = xt.read_firestore(Adding())["k"].numpy().tolist()
    finally:
        added.delete()
    assert proxy.cuts == 1
    assert keys == list(range(COUNT))[::-1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda c: c.where("k", "in", list(range(50))), xt.errors.QueryError, "30"),
        (lambda c: c.limit(-1), xt.errors.QueryError, "limit"),
        (lambda c: c.document("a"), xt.errors.DTypeError, "DocumentReference"),
        (lambda c: [{"a": 1}], xt.errors.DTypeError, "list"),
    ],
    ids=["in", "limit", "document", "list"],
)
@pytest.mark.filterwarnings("ignore:Detected filter using positional arguments:UserWarning")
def test_a_query_that_fails(name, make, error, message):
    collection = client(emulators.firestore()).collection(name)
    with pytest.raises(error, match=f"^read_firestore: .*{message}"):
        xt.read_firestore(make(collection))


def test_arguments_that_do_not_fit(name):
    collection = client(emulators.firestore()).collection(name)
    with pytest.raises(xt.errors.FieldError, match="nothing"):
        xt.read_firestore(collection.limit(2), ["nothing"], nulls="mask")
    with pytest.raises(xt.errors.FieldError, match="id_field"):
        xt.read_firestore(collection.limit(2), id_field="k")
    with pytest.raises(xt.errors.DTypeError, match="conflicts"):
        xt.read_firestore(collection, conflicts="ignore")


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        ([{"x": [[1]]}], {}, xt.errors.QueryError, "array value"),
        ([{"x": "a" * 1_500_000}], {}, xt.errors.QueryError, "longer|exceed|size"),
        ([{"__x__": 1}], {}, xt.errors.QueryError, "reserved"),
        ([{"x": 1}], {"id_field": "id"}, xt.errors.FieldError, "id"),
        ([{"id": "a/b"}], {"id_field": "id"}, xt.errors.DTypeError, "id, record 0: .*slash"),
        ([{"id": ""}], {"id_field": "id"}, xt.errors.DTypeError, "id, record 0"),
        (
            [{"id": "a", "x": i} for i in range(2)],
            {"id_field": "id"},
            xt.errors.StructureError,
            "id, record 1: .*'a'",
        ),
        ([{"id": 7}], {"id_field": "id"}, xt.errors.DTypeError, "id, record 0"),
        ([{"id": b"\xff"}], {"id_field": "id"}, xt.errors.DTypeError, "id, record 0: .*UTF-8"),
        ([{"x": 1}], {"mode": "merge"}, xt.errors.DTypeError, "mode"),
        ({"x": 1}, {}, xt.errors.DTypeError, "rank 1"),
    ],
    ids=[
        "lists",
        "large",
        "name",
        "no id",
        "slash",
        "empty",
        "twice",
        "number",
        "bytes",
        "mode",
        "rank",
    ],
)
def test_records_that_are_not_written(rows, options, error, message):
    collection = client(emulators.firestore()).collection("refused")
    with pytest.raises(error, match=message):
        xt.write_firestore(xt.struct.constant(rows), collection, **options)
    assert list(collection.stream()) == []


def test_a_write_that_fails_tells_how_many_documents_were_written():
    collection = client(emulators.firestore()).collection("partly")
    good = xt.struct.constant([{"x": [0]}] * 700)
    bad = xt.struct.constant([{"x": [[0]]}])
    with pytest.raises(xt.errors.QueryError, match=r"^partly, after 700 documents: "):
        xt.write_firestore([good, bad], collection)
    assert len(list(collection.stream())) == 700


class Failing:
    """A query whose server answers with a status, in mid-stream."""

    def __init__(self, error):
        self._error = error

    def stream(self, **options):
        yield from client(emulators.firestore()).collection("many").limit(3).stream(**options)
        raise self._error

    def start_after(self, document):
        return self

    def limit(self, count):
        return self


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("PERMISSION_DENIED", xt.errors.AccessError),
        ("UNAUTHENTICATED", xt.errors.AccessError),
        ("RESOURCE_EXHAUSTED", xt.errors.QueryError),
        ("UNIMPLEMENTED", xt.errors.QueryError),
        ("DATA_LOSS", xt.errors.ServerError),
        ("CANCELLED", xt.errors.ServerError),
    ],
)
def test_each_status_of_a_server_is_a_named_error(name, status, error):
    import grpc
    from google.api_core.exceptions import from_grpc_status

    code = grpc.StatusCode[status]
    with pytest.raises(error, match=r"read_firestore: .*the reason") as raised:
        xt.read_firestore(Failing(from_grpc_status(code, "the reason")))
    assert raised.value.__cause__.grpc_status_code == code


def test_credentials_that_do_not_work():
    """The client asks for a token before it sends anything."""
    import google.auth.credentials
    import google.auth.transport.grpc
    import grpc
    from google.auth.exceptions import RefreshError
    from google.cloud.firestore_v1.services.firestore import FirestoreClient
    from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport

    class Expired(google.auth.credentials.Credentials):
        def refresh(self, request):
            raise RefreshError("the token has expired")

    address = emulators.firestore()
    plugin = google.auth.transport.grpc.AuthMetadataPlugin(Expired(), None)
    channel = grpc.secure_channel(
        address,
        grpc.composite_channel_credentials(
            grpc.local_channel_credentials(), grpc.metadata_call_credentials(plugin)
        ),
    )
    made = client(address)
    made._firestore_api_internal = FirestoreClient(
        transport=FirestoreGrpcTransport(channel=channel)
    )
    collection = made.collection("many")
    with pytest.raises(xt.errors.AccessError, match="the token has expired"):
        xt.read_firestore(collection)
    with pytest.raises(PermissionError):
        xt.write_firestore(xt.struct.constant([{"x": 1}]), collection)


SIZES = {
    # Each point takes four times the memory of its two numbers in Arrow.
    "many small values": [
        {"x": [{"latitude": 1.0, "longitude": float(i)}] * 800} for i in range(300)
    ],
    "a few that are long": [{"x": "a"}] * 900 + [{"x": "a" * 700_000}] * 12,
}


@pytest.mark.parametrize("case", SIZES)
def test_documents_of_any_size_fit_into_the_commits(case):
    collection = client(emulators.firestore()).collection(f"sizes of {case}")
    rows = [{"id": f"{i:06}", **row} for i, row in enumerate(SIZES[case])]
    xt.write_firestore(xt.struct.constant(rows), collection, id_field="id")
    found = xt.read_firestore(collection, id_field="id")
    assert found.to_py() == rows
