"""What cannot be read from or written to Parquet files says so, where, and what to do."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

RECIPES = pa.table({"title": ["a", "b"], "steps": [[{"minutes": 5}], [{"minutes": None}]]})


@pytest.fixture
def folder(tmp_path):
    """A folder with one whole file and many that are not."""
    pq.write_table(RECIPES, tmp_path / "recipes.parquet")
    whole = (tmp_path / "recipes.parquet").read_bytes()
    pq.write_table(pa.table({"title": ["c"], "steps": [[]]}), tmp_path / "other.parquet")
    pq.write_table(pa.table({"title": [1]}), tmp_path / "numbers.parquet")
    pq.write_table(
        pa.table({"title": ["c"]}, schema=pa.schema([pa.field("title", "string", False)])),
        tmp_path / "filled.parquet",
    )
    pq.write_table(RECIPES.select(["title"]), tmp_path / "titles.parquet")
    pq.write_table(
        pa.table({"x": [1], "s": [[{"at": 1}]]}).cast(
            pa.schema({"x": "int64", "s": pa.list_(pa.struct({"at": pa.timestamp("ms")}))})
        ),
        tmp_path / "times.parquet",
    )
    pq.write_table(pa.table([[1], [2]], names=["x", "x"]), tmp_path / "twice.parquet")
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "table.parquet").write_text("title,steps\na,b\n")
    damaged = bytearray(whole)
    damaged[8:60] = bytes(52)
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.parquet").symlink_to(tmp_path / "nowhere.parquet")
    return tmp_path


def check(raised, error, builtin, parts):
    """Asserts that an error has its class, its builtin base, and all four parts."""
    assert type(raised.value) is error
    assert isinstance(raised.value, builtin)
    path, expected, received, fix = parts
    assert path in raised.value.path
    assert expected in raised.value.expected
    assert received in raised.value.received
    assert fix in raised.value.fix


NOT_WHOLE = (errors.FormatError, ValueError)
READS = {
    "missing": (
        "nowhere.parquet", None, errors.MissingFileError, FileNotFoundError,
        ("nowhere.parquet", "a file, a folder, or a pattern", "does not exist", "Check the path"),
    ),
    "dangling link": (
        "link.parquet", None, errors.MissingFileError, FileNotFoundError,
        ("link.parquet", "a file, a folder, or a pattern", "does not exist", "Check the path"),
    ),
    "no file in a folder": (
        "folder", None, errors.StructureError, ValueError,
        ("folder", "at least one file (.parquet, .parq, .pq)", "none", "Check the folder"),
    ),
    "no match": (
        "*.csv", None, errors.StructureError, ValueError,
        ("*.csv", "at least one file", "none", "pattern"),
    ),
    "no file": ([], None, errors.StructureError, ValueError,
        ("paths", "at least one file", "none", "pattern"),
    ),
    "empty": ("empty.parquet", None, *NOT_WHOLE,
        ("empty.parquet", "a complete Parquet file", "0 bytes", "Write the file again"),
    ),
    "cut off": ("cut.parquet", None, *NOT_WHOLE,
        ("cut.parquet", "a complete Parquet file", "footer", "Write the file again"),
    ),
    "no Parquet": ("table.parquet", None, *NOT_WHOLE,
        ("table.parquet", "a complete Parquet file", "cannot be read", "Write the file again"),
    ),
    "damaged": ("damaged.parquet", None, *NOT_WHOLE,
        ("damaged.parquet", "a complete Parquet file", "cannot be read", "Write the file again"),
    ),
    "one of several": (["other.parquet", "cut.parquet"], None, *NOT_WHOLE,
        ("cut.parquet", "a complete Parquet file", "footer", "Write the file again"),
    ),
    "other type": (["titles.parquet", "numbers.parquet"], None, errors.StructureError, ValueError,
        ("numbers.parquet", "title: string", "title: int64", "columns="),
    ),
    "other columns": (["recipes.parquet", "titles.parquet"], None, errors.StructureError,
        ValueError, ("titles.parquet", "steps: list", "title: string", "columns="),
    ),
    "no such column in the second": (["recipes.parquet", "titles.parquet"], ["steps"],
        errors.StructureError, ValueError,
        ("titles.parquet", "steps: list", "no column steps", "columns="),
    ),
    "missing column": ("recipes.parquet", ["titel"], errors.FieldError, KeyError,
        ("titel", "title, steps.minutes", "titel", "spelling"),
    ),
    "missing field": ("recipes.parquet", ["steps.hours"], errors.FieldError, KeyError,
        ("steps.hours", "title, steps.minutes", "steps.hours", "spelling"),
    ),
    "path through a leaf": ("recipes.parquet", ["title.x"], errors.FieldError, KeyError,
        ("title.x", "title, steps.minutes", "title.x", "spelling"),
    ),
    "Parquet's own path": ("recipes.parquet", ["steps.list.element.minutes"], errors.FieldError,
        KeyError, ("steps.list", "title, steps.minutes", "steps.list", "spelling"),
    ),
    "empty path": ("recipes.parquet", [""], errors.FieldError, KeyError,
        ("columns", "title, steps.minutes", "path of the records themselves", "columns= out"),
    ),
    "bare column": ("recipes.parquet", "title", errors.DTypeError, TypeError,
        ("columns", "a list of paths", "'title'", 'columns=["title"'),
    ),
    "bare path": ("recipes.parquet", xt.Path("title"), errors.DTypeError, TypeError,
        ("columns", "a list of paths", "Path('title')", 'columns=["title"'),
    ),
    "number for columns": ("recipes.parquet", 3, errors.DTypeError, TypeError,
        ("columns", "a list of paths", "3", 'columns=["title"'),
    ),
    "number for a column": ("recipes.parquet", [3], errors.PathError, ValueError,
        ("path", "a string", "int", "field names"),
    ),
    "no column": ("recipes.parquet", [], errors.StructureError, ValueError,
        ("columns", "at least one path", "an empty list", "Leave columns out"),
    ),
    "two columns of one name": ("twice.parquet", ["x"], errors.StructureError, ValueError,
        ("x", "unique field name", "two fields", "Rename"),
    ),
    "null": ("recipes.parquet", None, errors.NullError, ValueError,
        ("steps[*].minutes", "without nulls", "1 null, the first in record 1",
         'nulls={"steps.minutes": "mask"}'),
    ),
    "null in the second file": (["other.parquet", "recipes.parquet"], None, errors.NullError,
        ValueError,
        ("steps[*].minutes", "without nulls", "1 null, the first in record 2",
         'nulls={"steps.minutes": "mask"}'),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", READS)
def test_reading_says_what_is_wrong(folder, case):
    names, columns, error, builtin, parts = READS[case]
    if case.startswith("null"):  # the type of a column is the same in both files
        other = pa.table({"title": ["c"], "steps": [[]]}, schema=RECIPES.schema)
        pq.write_table(other, folder / "other.parquet")
    paths = [folder / n for n in names] if isinstance(names, list) else folder / names
    with pytest.raises(error) as raised:
        xt.read_parquet(paths, columns=columns)
    check(raised, error, builtin, parts)


@pytest.mark.parametrize("paths", [None, 3, [3]])
def test_a_path_is_text_or_a_path(paths):
    with pytest.raises(errors.DTypeError) as raised:
        xt.read_parquet(paths)
    check(raised, errors.DTypeError, TypeError,
          ("path", "a path or a URL", "int" if paths else "None", "pathlib"))  # fmt: skip


def test_row_splits_are_integers(folder):
    with pytest.raises(errors.DTypeError) as raised:
        xt.read_parquet(folder / "titles.parquet", row_splits_dtype=tf.float32)
    check(raised, errors.DTypeError, TypeError, ("row_splits_dtype", "int64", "float32", "Leave"))


def test_errors_of_the_system_stay_what_they_are(folder, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", refused)
    with pytest.raises(PermissionError):
        xt.read_parquet(folder / "titles.parquet")


def records(count=2, **fields):
    return xt.DenseStructuredTensor([count], {"x": tf.zeros([count]), **fields})


RANK = ("write_parquet", "StructuredTensors of rank 1")
WRITES = {
    "single record": (
        lambda: xt.DenseStructuredTensor([], {"x": 1}), errors.DTypeError, TypeError,
        (*RANK, "of shape ()", "a batch"),
    ),
    "rank 2": (
        lambda: xt.DenseStructuredTensor([1, 1], {"x": [[1]]}), errors.DTypeError, TypeError,
        (*RANK, "of shape (1, 1)", "a batch"),
    ),
    "union in a map": (
        lambda: xt.from_arrow(pa.table({"m": pa.MapArray.from_arrays(
            [0, 1], ["k"], xt.to_arrow(records(1, u=xt.types.UnionTensor([0], {"a": [1]})))["u"],
        )})),
        errors.UnsupportedTypeError, TypeError,
        ("m", "unions in records and lists", "map<string, dense_union", "list of records"),
    ),
    "dict": (lambda: {"x": tf.zeros([2])}, errors.DTypeError, TypeError, (*RANK, "str", "a batch")),
    "nothing": (lambda: None, errors.DTypeError, TypeError, (*RANK, "NoneType", "a batch")),
    "dataset of pairs": (
        lambda: tf.data.Dataset.from_tensors((records(), [1, 2])), errors.DTypeError, TypeError,
        (*RANK, "tuple", "a batch"),
    ),
    "no batch": (lambda: [], errors.StructureError, ValueError,
        ("write_parquet", "at least one batch", "0 batches", "an empty file"),
    ),
    "other fields": (lambda: [records(), records(y=[1, 2])], errors.StructureError, ValueError,
        ("write_parquet", "x: float", "y: int32", "schema="),
    ),
    "no field": (lambda: xt.DenseStructuredTensor([2], {}), errors.UnsupportedTypeError, TypeError,
        ("write_parquet", "at least one field", "without fields", "with_updates"),
    ),
    "record without fields": (
        lambda: records(y=records(z=xt.DenseStructuredTensor([2], {}))),
        errors.UnsupportedTypeError, TypeError,
        ("y.z", "at least one field", "without fields", "without"),
    ),
    "lists of size 0": (
        lambda: records(y=tf.zeros([2, 0])), errors.UnsupportedTypeError, TypeError,
        ("y", "at least one value", "size 0", "without"),
    ),
    "dtype": (
        lambda: records(y=tf.zeros([2], tf.complex64)), errors.UnsupportedTypeError, TypeError,
        ("y", "a dtype that Arrow supports", "complex64", "Cast"),
    ),
    "bytes as text": (lambda: records(y=[b"\xff", b"a"]), errors.FormatError, ValueError,
        ("y", "UTF-8", "bytes", "schema="),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRITES)
def test_writing_says_what_is_wrong_and_writes_nothing(tmp_path, case):
    make, error, builtin, parts = WRITES[case]
    with pytest.raises(error) as raised:
        xt.write_parquet(make(), tmp_path / "it.parquet")
    check(raised, error, builtin, parts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "error", "builtin", "parts"),
    [
        ("", errors.DirectoryError, IsADirectoryError,
         ("", "a file", "a directory", "name of a file")),
        ("no/it.parquet", errors.MissingFileError, FileNotFoundError,
         ("it.parquet", "existing folder", "does not exist", "Create the folder")),
        ("titles.parquet/it.parquet", errors.MissingFileError, FileNotFoundError,
         ("it.parquet", "existing folder", "does not exist", "Create the folder")),
    ],
)  # fmt: skip
def test_a_place_to_write_to_is_a_file_in_a_folder(folder, name, error, builtin, parts):
    with pytest.raises(error) as raised:
        xt.write_parquet(records(), folder / name)
    check(raised, error, builtin, parts)


@pytest.mark.parametrize("path", [3, None, ["a.parquet"]])
def test_what_is_no_path_is_not_written_to(path):
    with pytest.raises(errors.DTypeError, match="expected a path") as raised:
        xt.write_parquet(records(), path)
    assert isinstance(raised.value, TypeError)


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(errors.FormatError) as raised:
        xt.write_parquet(records(), tmp_path / "pipe")
    check(raised, errors.FormatError, ValueError, ("pipe", "a file", "a device or pipe", "file"))
    assert (tmp_path / "pipe").is_fifo()


def test_a_footer_whose_column_has_another_name_than_the_schema_is_read_by_the_schema(tmp_path):
    path = tmp_path / "odd.parquet"
    words = ["flour", "sugar"] * 500
    pq.write_table(pa.table({"ingredient": words}), path)
    # The name stands in the schema, in Arrow's own schema, and last in what says of the column.
    before, _, after = path.read_bytes().rpartition(b"ingredient")
    path.write_bytes(before + b"ingredienX" + after)
    assert xt.read_parquet(path).to_py() == [{"ingredient": word} for word in words]
    assert xt.read_parquet(path, ["ingredient"]).to_py() == xt.read_parquet(path).to_py()


@pytest.mark.whole("starts a process")
def test_no_damage_to_a_footer_ends_the_process(tmp_path, run_python):
    # To ask pyarrow for the metadata of a column ends it where that is damaged.
    run_python(
        f"""
        import sys
        import pyarrow as pa
        import pyarrow.parquet as pq
        import extensor as xt

        path = {str(tmp_path / "it.parquet")!r}
        table = pa.table({{"x": [1, 2], "s": ["a", "a"]}})
        pq.write_table(table, path, store_schema=False, write_statistics=False)
        whole = open(path, "rb").read()
        read = refused = 0
        for place in range(len(whole) - int.from_bytes(whole[-8:-4], "little") - 8, len(whole)):
            for bit in range(8):
                damaged = bytearray(whole)
                damaged[place] ^= 1 << bit
                with open(path, "wb") as file:
                    file.write(damaged)
                try:
                    xt.read_parquet(path)
                    xt.data.parquet(path, 2)
                    read += 1
                except xt.errors.ExtensorError:
                    refused += 1
        assert read and refused
        """
    )


def test_names_that_are_not_utf8_are_an_error_of_both_readers(tmp_path):
    path = tmp_path / "it.parquet"
    pq.write_table(pa.table({"name": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    for door in (xt.read_parquet, lambda path: xt.data.parquet(path, 1)):
        with pytest.raises(xt.errors.FormatError) as raised:
            door(path)
        assert str(path) in str(raised.value)
