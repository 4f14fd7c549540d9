"""Files are found by path, folder, pattern and URL, and written completely or not at all."""

import glob
import gzip
import os
import pathlib
import sys

import fsspec
import obstore.store
import pytest

from extensor import errors
from extensor._files.files import (
    file_at,
    files_at,
    local_path,
)
from extensor._files.output import atomic_folder, atomic_output, atomic_path


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.fixture
def bucket(monkeypatch):
    """An object store in memory in the place of s3://data."""
    store = obstore.store.MemoryStore()
    monkeypatch.setattr(obstore.store, "from_url", lambda url, **_: store)
    return store


@pytest.fixture(params=["local", "memory", "store"])
def folder(request, tmp_path, memory, bucket):
    """The text of a folder, with files in it."""
    root = {"local": str(tmp_path), "memory": "memory://data", "store": "s3://data"}[request.param]
    for name in ("b.json", "a.json", "deep/c.json", "deep/d.txt", "_temporary/e.json", ".f.json"):
        inner = f"{root}/{name}"
        os.makedirs(os.path.dirname(inner), exist_ok=True) if request.param == "local" else None
        if request.param == "store":
            obstore.put(bucket, name, name.encode())
            continue
        with fsspec.open(inner, "wb") as file:
            file.write(name.encode())
    return root


def names(files, folder):
    return [file.path.removeprefix(folder + "/") for file in files]


def test_a_folder_means_the_files_below_it_that_are_not_hidden(folder):
    assert names(files_at(folder, (".json",)), folder) == ["a.json", "b.json", "deep/c.json"]
    assert names(files_at(folder), folder) == ["a.json", "b.json", "deep/c.json", "deep/d.txt"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.json", ["a.json", "b.json"]),
        ("deep/?.json", ["deep/c.json"]),
        ("deep/[!c].*", ["deep/d.txt"]),
        ("**/*.json", ["a.json", "b.json", "deep/c.json"]),
    ],
)
def test_a_pattern_means_the_files_that_it_matches(folder, pattern, expected):
    found = names(files_at(f"{folder}/{pattern}"), folder)
    assert [name for name in found if name[0] not in "._"] == expected


def test_several_paths_keep_their_order(folder):
    paths = [f"{folder}/b.json", f"{folder}/a.json"]
    assert names(files_at(paths), folder) == ["b.json", "a.json"]


def test_a_file_is_read(folder):
    with file_at(f"{folder}/a.json").open() as file:
        assert file.read() == b"a.json"
    with file_at(f"{folder}/a.json").stream() as stream:
        assert stream.read() == b"a.json"


def test_a_compressed_file_is_read(tmp_path):
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b"text"))
    with file_at(path).stream("gzip") as stream:
        assert stream.read() == b"text"


def test_a_relative_path_and_a_pathlib_path_are_local(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("x").write_bytes(b"1")
    assert [file_at(path).open().read() for path in ("x", pathlib.Path("x"), b"x")] == [b"1"] * 3
    assert [file.path for file in files_at("*")] == ["x"]


def test_output_appears_when_it_is_complete(folder):
    path = f"{folder}/new"
    with atomic_output(path) as stream:
        stream.write(b"some")
        assert "new" not in names(files_at(folder), folder)
        stream.write(b" text")
    assert file_at(path).open().read() == b"some text"
    with pytest.raises(TypeError), atomic_output(path) as stream:
        stream.writelines([b"other", 3])
    assert file_at(path).open().read() == b"some text"
    assert names(files_at(folder), folder)[-1] == "new"


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("{}/nothing", FileNotFoundError, "expected a file, a folder, or a pattern, got a path"),
        ("{}/*.csv", ValueError, "expected at least one file, got none"),
        ([], ValueError, "expected at least one file, got none"),
        (3, TypeError, "expected a path, or a list of paths, got int"),
        ([3], TypeError, "expected a path or a URL, got int"),
        ("nosuch://x", ValueError, "nosuch://x: expected a URL of a file system"),
    ],
)
def test_what_is_no_file_is_an_error(folder, path, error, message):
    path = path.format(folder) if isinstance(path, str) else path
    with pytest.raises(error, match=message) as caught:
        files_at(path)
    assert isinstance(caught.value, errors.ExtensorError)


def test_a_folder_is_not_opened(folder):
    for opened in (file_at(f"{folder}/deep").open, file_at(f"{folder}/deep").stream):
        with pytest.raises(errors.DirectoryError):
            opened()
    with pytest.raises(errors.MissingFileError):
        file_at(f"{folder}/nothing").open()
    with pytest.raises(errors.DirectoryError), atomic_output(f"{folder}/deep"):
        pass


def test_fsspec_is_needed_for_urls_that_pyarrow_does_not_know(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(errors.MissingDependencyError, match=r"\[fsspec\]"):
        file_at("memory://x")


@pytest.mark.parametrize("root", ["local", "memory"])
def test_paths_for_libraries_without_streams(root, tmp_path, memory):
    folder = str(tmp_path) if root == "local" else "memory://atomic_path"
    with atomic_output(f"{folder}/it") as stream:
        stream.write(b"old")
    with pytest.raises(RuntimeError), atomic_path(f"{folder}/it") as path:  # noqa: PT012
        pathlib.Path(path).write_bytes(b"half")
        raise RuntimeError
    with local_path(file_at(f"{folder}/it")) as path:
        assert pathlib.Path(path).read_bytes() == b"old"
    with atomic_path(f"{folder}/it") as path:
        pathlib.Path(path).write_bytes(b"new")
    with local_path(file_at(f"{folder}/it")) as path:
        assert pathlib.Path(path).read_bytes() == b"new"
    with pytest.raises(errors.MissingFileError), local_path(file_at(f"{folder}/none")):
        pass


def test_a_new_folder_appears_when_it_is_complete(tmp_path, memory):
    with atomic_folder(tmp_path / "it") as (system, inner):
        with system.open_output_stream(f"{inner}/a") as stream:
            stream.write(b"text")
        assert not (tmp_path / "it").exists()
    assert (tmp_path / "it" / "a").read_bytes() == b"text"
    for root in (str(tmp_path), "memory://folders"):
        with pytest.raises(RuntimeError), atomic_folder(f"{root}/no") as (system, inner):  # noqa: PT012
            with system.open_output_stream(f"{inner}/a") as stream:
                stream.write(b"text")
            raise RuntimeError
        with pytest.raises(errors.StructureError, match="expected at least one file"):
            files_at(f"{root}/no*")
    (tmp_path / "file").touch()
    for name in ("it", "file"):
        with (
            pytest.raises(errors.StructureError, match="Delete it"),
            atomic_folder(tmp_path / name),
        ):
            pass
    assert sorted(os.listdir(tmp_path)) == ["file", "it"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("./*.json", ["a.json", "b.json"]),
        (".//deep//./*", ["deep/c.json", "deep/d.txt"]),
        ("**/*.json", ["_temporary/e.json", "a.json", "b.json", "deep/c.json"]),
        (".*.json", [".f.json"]),
        ("*/*.json", ["_temporary/e.json", "deep/c.json"]),
    ],
)
def test_a_local_pattern_means_what_it_means_in_a_shell(tmp_path, monkeypatch, pattern, expected):
    for name in ("b.json", "a.json", "deep/c.json", "deep/d.txt", "_temporary/e.json", ".f.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    assert [file.open().read().decode() for file in files_at(pattern)] == expected
    found = glob.glob(pattern, recursive=True)
    assert sorted(map(os.path.normpath, found)) == expected
