"""A file that is replaced by another one of the same shape is an error that names it."""

import importlib
import os

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import extensor as xt
from extensor import errors

ROWS = 60
SHUFFLE = xt.data.Shuffle(seed=5, window=12)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(importlib.import_module("extensor._data.plan"), "PART_ROWS", 6)
    for name in ("json", "serialized"):
        monkeypatch.setattr(importlib.import_module(f"extensor._streams.{name}"), "BLOCK", 300)


def table(age):
    return pa.table({"n": range(ROWS), "age": [age] * ROWS})


def write_ipc(make, path, age):
    with make(str(path), table(age).schema) as writer:
        writer.write_table(table(age), max_chunksize=6)


FORMATS = {
    "parquet": (xt.data.parquet, lambda p, a: pq.write_table(table(a), p, row_group_size=6)),
    "arrow": (xt.data.arrow, lambda p, a: write_ipc(pa.ipc.new_file, p, a)),
    "arrows": (xt.data.arrow, lambda p, a: write_ipc(pa.ipc.new_stream, p, a)),
    "jsonl": (xt.data.json, lambda p, a: xt.write_json(xt.from_arrow(table(a)), p)),
    "tfrecord": (xt.data.tfrecord, lambda p, a: xt.write_tfrecord(xt.from_arrow(table(a)), p)),
}


def replace(write, path, kind):
    other = path.with_name(f"new.{kind}")
    write(other, 2)
    os.replace(other, path)


def passed(dataset, after=None, change=None):
    """The ages that a pass has, and the error that it ends with."""
    ages = []
    try:
        for number, batch in enumerate(dataset):
            if number == after:
                change()
            ages.extend(batch["age"].numpy().tolist())
    except errors.FormatError as error:
        return ages, str(error)
    return ages, None


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("schema", [None, table(1).schema])
def test_a_file_that_is_replaced_before_a_pass_is_named(tmp_path, kind, shuffle, schema):
    make, write = FORMATS[kind]
    path = tmp_path / f"0.{kind}"
    write(path, 1)
    dataset = make(path, 5, shuffle=shuffle, schema=schema)
    assert passed(dataset) == ([1] * ROWS, None)
    replace(write, path, kind)
    ages, error = passed(dataset)
    assert ages == []
    assert str(path) in error
    assert "replaced or written to" in error
    assert passed(make(path, 5)) == ([2] * ROWS, None)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_pass_has_one_version_of_a_file(tmp_path, kind, shuffle, epochs):
    make, write = FORMATS[kind]
    path = tmp_path / f"0.{kind}"
    write(path, 1)
    dataset = make(path, 5, shuffle=shuffle, epochs=epochs)
    ages, error = passed(dataset, 3, lambda: replace(write, path, kind))
    assert set(ages) == {1}
    assert error is None or str(path) in error
    assert error is not None or len(ages) == epochs * ROWS
    if epochs > 1:
        assert error is not None


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_an_object_that_is_replaced_is_named(kind):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    system = pafs.PyFileSystem(pafs.FSSpecHandler(memory))

    def put(age):
        with system.open_output_stream("/replaced/x") as sink:
            if kind == "parquet":
                pq.write_table(table(age), sink)
            else:
                with pa.ipc.new_file(sink, table(age).schema) as writer:
                    writer.write_table(table(age))

    put(1)
    dataset = FORMATS[kind][0]("memory://replaced/x", 5)
    assert passed(dataset)[0] == [1] * ROWS
    put(2)
    ages, error = passed(dataset)
    assert ages == []
    assert "memory://replaced/x" in error
    memory.rm("/replaced", recursive=True)


def test_a_file_that_only_moved_away_and_back_is_read(tmp_path):
    path = tmp_path / "0.parquet"
    FORMATS["parquet"][1](path, 1)
    dataset = xt.data.parquet(path, 5)
    os.replace(path, tmp_path / "away")
    with pytest.raises(errors.MissingFileError):
        list(dataset)
    os.replace(tmp_path / "away", path)
    assert passed(dataset) == ([1] * ROWS, None)
