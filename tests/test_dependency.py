"""A package that is not installed is an error that names the extra."""

import sys

import pytest
from google.protobuf import descriptor_pb2

import extensor as xt
from extensor import errors
from extensor._dependency import import_extra


def test_a_module_that_is_installed_is_returned():
    assert import_extra("json.decoder", "json", "read_json").JSONDecoder


def test_a_missing_module_names_the_function_and_the_extra():
    message = "read_spanner: expected the module no_such_cloud.spanner, got No module named .*"
    with pytest.raises(ImportError, match=message + r"\[spanner\]") as caught:
        import_extra("no_such_cloud.spanner", "spanner", "read_spanner")
    assert isinstance(caught.value, errors.MissingDependencyError)


@pytest.mark.parametrize(
    ("module", "extra", "read", "write"),
    [
        ("google.cloud.spanner", "spanner",
         lambda: xt.read_spanner(None, ""), lambda: xt.write_spanner(None, "", None)),
        ("google.cloud.firestore", "firestore",
         lambda: xt.read_firestore(None), lambda: xt.write_firestore(None, None)),
        ("firebase_admin.db", "firebase",
         lambda: xt.read_realtime_database(None), lambda: xt.write_realtime_database(None, None)),
    ],
)  # fmt: skip
def test_a_database_whose_client_is_not_installed(monkeypatch, module, extra, read, write):
    monkeypatch.setitem(sys.modules, module, None)
    for call in (read, write):
        with pytest.raises(xt.errors.MissingDependencyError, match=rf"\[{extra}\]"):
            call()


ROWS = xt.struct.constant([{"x": 1}])


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("pandas", "pandas", lambda: xt.from_pandas(None)),
        ("pandas", "pandas", lambda: xt.to_pandas(ROWS)),
        ("awkward", "awkward", lambda: xt.from_awkward(None)),
        ("awkward", "awkward", lambda: xt.to_awkward(ROWS)),
        ("datasets", "huggingface", lambda: xt.from_huggingface(None)),
        ("datasets", "huggingface", lambda: xt.to_huggingface(ROWS)),
        ("deltalake", "delta", lambda: xt.read_delta("table")),
        ("pyiceberg", "iceberg", lambda: xt.read_iceberg("table")),
        ("duckdb", "sql", lambda: xt.read_database("select 1", "duckdb:it.db")),
        ("duckdb", "sql", lambda: xt.write_database(ROWS, "it", "duckdb:it.db")),
        ("adbc_driver_postgresql", "sql", lambda: xt.read_database("", "postgresql://host/it")),
        ("ptars", "protobuf", lambda: xt.from_proto([b""], descriptor_pb2.DescriptorProto,
                                                    columns=["name"])),
    ],
)  # fmt: skip
def test_a_format_whose_library_is_not_installed(monkeypatch, module, extra, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"\[{extra}\]") as caught:
        call()
    assert isinstance(caught.value, errors.MissingDependencyError)
