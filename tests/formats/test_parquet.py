"""Parquet files in and out, against what pyarrow reads and writes."""

import datetime
import pathlib
import tempfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._arrow import column_type, parallel_columns
from extensor._arrow import read as arrow_read
from extensor._formats.parquet import read
from extensor.errors import NullError
from tests.samples.tables import tables

RECIPES = pa.table(
    {
        "title": ["Snickerdoodles", "Flapjacks"],
        "est_time": [55.0, 30.0],
        "ingredients": [
            [
                {"name": "flour", "amount": {"number": 2.5, "unit": "cups"}},
                {"name": "sugar", "amount": {"number": 1.5, "unit": "cups"}},
            ],
            [],
        ],
    }
)


@pytest.fixture
def recipes(tmp_path):
    path = tmp_path / "recipes.parquet"
    pq.write_table(RECIPES, path)
    return path


def folder():
    """A fresh folder for one example of a property, where a fixture would be shared by all."""
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


def test_columns_stored_as_dictionaries_are_read_as_dictionaries(tmp_path, monkeypatch):
    words = ["", "tea", "crème", None, "a word that is longer than those inside of a tensor"] * 200
    lists = [[{"unit": word, "tags": [word, "x"]}] * (i % 3) for i, word in enumerate(words)]
    inner = pa.struct([("unit", pa.string()), ("tags", pa.large_list(pa.large_string()))])
    columns = {
        "title": pa.array(words),
        "raw": pa.array([word and word.encode() + b"\xff" for word in words], pa.binary()),
        "view": pa.array(words, pa.string_view()),
        "parts": pa.array(lists, pa.list_(inner)),
        "id": pa.array([f"number {i}" for i in range(1_000)]),  # distinct: stored plainly
    }
    pq.write_table(pa.table(columns), tmp_path / "x")
    found, plain = [], read.parquet_file
    monkeypatch.setattr(read, "_LARGE", 0)
    monkeypatch.setattr(read, "parquet_file", lambda *a: (found.append(a[-1]), plain(*a))[1])
    records = xt.read_parquet(tmp_path / "x", nulls="mask")
    stored = ["title", "raw", "parts.list.element.unit", "parts.list.element.tags.list.element"]
    assert found == [stored]
    assert xt.to_arrow(records).to_pylist() == pa.table(columns).to_pylist()
    some = xt.read_parquet(tmp_path / "x", ["parts.unit", "title"], nulls="mask")
    assert found[1:] == [[stored[0], stored[2]]]
    units = [[{"unit": part["unit"]} for part in row] for row in lists]
    assert some.to_py() == [{"parts": u, "title": w} for u, w in zip(units, words, strict=True)]


@given(tables(), st.data())
def test_every_file_reads_as_pyarrow_reads_it(table, data):
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=3).map(sorted))
    group = data.draw(st.integers(1, 8))
    with folder() as name:
        paths = []
        for start, stop in zip([0, *cuts], [*cuts, len(table)], strict=True):
            paths.append(f"{name}/{len(paths)}.parquet")
            pq.write_table(table.slice(start, stop - start), paths[-1], row_group_size=group)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arrow_read, "_MUCH", data.draw(st.sampled_from([arrow_read._MUCH, -1])))
            records = xt.read_parquet(paths)
    assert records.field_names() == tuple(table.column_names)
    assert records.shape == [len(table)]
    assert records.to_py() == table.to_pylist()


@pytest.fixture
def frees_columns(monkeypatch):
    """Reads any table as a large one; returns the bytes of Arrow after each column."""
    left, free = [], parallel_columns.free_unused
    for module in (arrow_read, column_type):
        monkeypatch.setattr(
            module, "free_unused", lambda: (free(), left.append(pa.total_allocated_bytes()))
        )
    monkeypatch.setattr(arrow_read, "_MUCH", 0)
    return left


@pytest.mark.parametrize("is_in_lists", [False, True])
def test_the_columns_of_a_large_table_are_freed_one_by_one(tmp_path, frees_columns, is_in_lists):
    path, words = tmp_path / "x", pa.array([f"{i:07}" for i in range(1 << 18)])
    table = pa.table({f"text{i}": words for i in range(6)})
    if is_in_lists:
        offsets = pa.array(range(0, len(words) + 1, 4), pa.int32())
        parts = pa.ListArray.from_arrays(offsets, table.to_struct_array().combine_chunks())
        table = pa.table({"parts": parts})
    pq.write_table(table, path, row_group_size=1 << 14)
    before = pa.total_allocated_bytes()
    assert xt.read_parquet(path).to_py() == table.to_pylist()
    columns = [(each - before) / words.nbytes for each in frees_columns]
    joined, converted = columns[: table.num_columns], columns[table.num_columns :]
    assert is_in_lists or max(joined) < 6.5  # the chunks of a column are freed when it is joined
    assert len(converted) == 6
    # In any order: what one thread measures, the other may have freed, or need for its copies.
    most = sorted(converted, reverse=True)
    assert [i for i, each in enumerate(most) if each > 5 - i + 2] == []
    assert most[-1] < 0.5


def test_the_error_for_nulls_of_a_large_table_lists_all_of_its_columns(tmp_path, monkeypatch):
    columns = {"x": [1, 2], "text": ["a", None], "parts": [[{"n": None}], []]}
    pq.write_table(pa.table(columns), tmp_path / "x")
    texts = []
    for much in (arrow_read._MUCH, 0):
        monkeypatch.setattr(arrow_read, "_MUCH", much)
        with pytest.raises(NullError, match=r"text \(1\), parts.n \(1\)") as caught:
            xt.read_parquet(tmp_path / "x")
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@given(tables())
def test_what_is_written_with_a_schema_is_the_table_that_it_was_made_of(table):
    with folder() as name:
        xt.write_parquet(xt.from_arrow(table), f"{name}/it.parquet", schema=table.schema)
        assert pq.read_table(f"{name}/it.parquet").equals(table)


@given(tables(), st.data())
def test_batches_are_written_one_after_another(table, data):
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=3).map(sorted))
    pieces = [
        xt.from_arrow(table.slice(start, stop - start))
        for start, stop in zip([0, *cuts], [*cuts, len(table)], strict=True)
    ]
    with folder() as name:
        xt.write_parquet(iter(pieces), f"{name}/it.parquet", schema=table.schema)
        assert pq.read_table(f"{name}/it.parquet").equals(table)


def picked(value, wanted):
    """What is left of nested Python values when only some paths of them are read."""
    if () in wanted:
        return value
    if isinstance(value, list):
        return [picked(item, wanted) for item in value]
    below = {n: [path[1:] for path in wanted if path[0] == n] for n in value}
    return {n: picked(value[n], paths) for n, paths in below.items() if paths}


def paths_in(arrow_type, outer=()):
    if pa.types.is_struct(arrow_type):
        for field in arrow_type.fields:
            yield (*outer, field.name)
            yield from paths_in(field.type, (*outer, field.name))
    elif pa.types.is_nested(arrow_type):
        yield from paths_in(arrow_type.value_type, outer)


@given(tables(), st.data())
def test_columns_are_read_as_if_all_were_read_and_some_picked(table, data):
    every = list(paths_in(pa.struct(list(table.schema))))
    columns = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4))
    with folder() as name:
        pq.write_table(table, f"{name}/it.parquet")
        # As text where the text means that path: a column's own name comes first.
        asked = [
            str(xt.Path(*path)) if str(xt.Path(*path)) not in table.column_names else path
            for path in columns
        ]
        records = xt.read_parquet(f"{name}/it.parquet", columns=asked)
    assert records.field_names() == tuple(dict.fromkeys(path[0] for path in columns))
    assert records.to_py() == [picked(r, columns) for r in table.to_pylist()]


@pytest.mark.parametrize(
    ("columns", "names", "first"),
    [
        (["a.b"], ("a.b",), {"a.b": 1}),
        ([("a", "b")], ("a",), {"a": {"b": 2}}),
        (['"a.b"'], ("a.b",), {"a.b": 1}),
        (["c.d.e"], ("c",), {"c": {"d": {"e": 3}}}),
        ([("c", "d.e")], ("c",), {"c": {"d.e": 4}}),
        ([("c", "d")], ("c",), {"c": {"d": {"e": 3}}}),
    ],
)
def test_a_name_with_a_dot_and_a_path_are_distinct(tmp_path, columns, names, first):
    record = {"a.b": 1, "a": {"b": 2}, "c": {"d": {"e": 3}, "d.e": 4}}
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "it.parquet")
    records = xt.read_parquet(tmp_path / "it.parquet", columns=columns)
    assert records.field_names() == names
    assert records.to_py() == [first]


@pytest.mark.parametrize("name", ['a"', "", " ", "a.b", ".", "[*]", "a/b", "ä", "\n"])
def test_a_column_is_chosen_by_its_own_name_whatever_that_is(tmp_path, name):
    pq.write_table(pa.table({name: [1], "z": [2]}), tmp_path / "it.parquet")
    assert xt.read_parquet(tmp_path / "it.parquet", columns=[name]).to_py() == [{name: 1}]


def test_what_is_left_out_may_be_of_any_type_and_hold_nulls(tmp_path):
    when = pa.array([None, 1], pa.timestamp("s"))
    table = pa.table({"x": [1, 2], "when": when, "in": pa.array([{"x": 3, "when": None}, None])})
    pq.write_table(table, tmp_path / "it.parquet")
    assert xt.read_parquet(tmp_path / "it.parquet", columns=["x"]).to_py() == [{"x": 1}, {"x": 2}]


def test_a_column_behind_one_of_an_extension_type_is_found(tmp_path):
    point = pa.struct({"x": pa.int64(), "y": pa.int64()})

    class Point(pa.ExtensionType):
        def __init__(self):
            super().__init__(point, "tests.point")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type, serialized):
            return cls()

    pa.register_extension_type(Point())
    try:
        points = pa.ExtensionArray.from_storage(Point(), pa.array([{"x": 1, "y": 2}], point))
        pq.write_table(pa.table({"at": points, "z": [3]}), tmp_path / "it.parquet")
        assert xt.read_parquet(tmp_path / "it.parquet", columns=["z"]).to_py() == [{"z": 3}]
    finally:
        pa.unregister_extension_type("tests.point")


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_row_splits_have_the_dtype_asked_for(recipes, dtype):
    records = xt.read_parquet(recipes, row_splits_dtype=dtype)
    assert records["ingredients"].row_splits.dtype == dtype


def test_a_dataset_of_batches_is_written_as_the_records_are(recipes, tmp_path):
    records = xt.read_parquet(recipes)
    dataset = tf.data.Dataset.from_tensor_slices(records).batch(1)
    xt.write_parquet(dataset, tmp_path / "again.parquet")
    xt.write_parquet(records, tmp_path / "whole.parquet")
    assert pq.read_table(tmp_path / "again.parquet").equals(
        pq.read_table(tmp_path / "whole.parquet")
    )
    assert xt.read_parquet(tmp_path / "again.parquet").to_py() == records.to_py()


def test_small_batches_share_row_groups_and_large_ones_do_not(tmp_path):
    small = xt.DenseStructuredTensor([100], {"x": tf.range(100)})
    xt.write_parquet((small for _ in range(200)), tmp_path / "small.parquet")
    assert pq.read_metadata(tmp_path / "small.parquet").num_row_groups == 1
    large = xt.DenseStructuredTensor([1 << 16], {"x": tf.range(1 << 16)})
    xt.write_parquet([large, large], tmp_path / "large.parquet")
    assert pq.read_metadata(tmp_path / "large.parquet").num_row_groups == 2


def broken_off(records):
    yield records
    raise RuntimeError("the source broke off")


def of_another_schema(records):
    yield records
    yield records.without("title")


@pytest.mark.parametrize(
    ("batches", "error"),
    [(broken_off, RuntimeError), (of_another_schema, xt.errors.StructureError)],
)
@pytest.mark.parametrize("existed", [True, False])
def test_an_error_in_the_middle_leaves_everything_as_it_was(recipes, existed, batches, error):
    records = xt.read_parquet(recipes)
    target = recipes if existed else recipes.with_name("new.parquet")
    before = recipes.read_bytes()
    with pytest.raises(error):
        xt.write_parquet(batches(records), target)
    assert [path.name for path in recipes.parent.iterdir()] == [recipes.name]
    assert recipes.read_bytes() == before


def test_a_file_may_be_replaced_by_what_is_read_from_it(recipes):
    dataset = xt.data.parquet(recipes, batch_size=1, columns=["title"])
    xt.write_parquet(dataset, recipes)
    assert pq.read_table(recipes).equals(RECIPES.select(["title"]))


def test_a_link_stays_a_link_to_the_new_file(recipes, tmp_path):
    link = tmp_path / "latest.parquet"
    link.symlink_to(recipes)
    xt.write_parquet(xt.DenseStructuredTensor([1], {"x": [1]}), link)
    assert link.is_symlink()
    assert pq.read_table(recipes).to_pylist() == [{"x": 1}]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    xt.write_parquet(xt.DenseStructuredTensor([1], {"x": [1]}), tmp_path / "it.parquet")
    (tmp_path / "plain").touch()
    assert (tmp_path / "it.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("as_path", [str, pathlib.Path, lambda path: str(path).encode()])
def test_a_path_may_be_written_as_python_has_it(recipes, as_path):
    assert xt.read_parquet(as_path(recipes)).shape == [2]
    assert xt.read_parquet(as_path(path) for path in [recipes, recipes]).shape == [4]


def test_times_of_spark_are_of_any_year(tmp_path):
    years = [datetime.datetime(year, 12, 31) for year in (1, 2020, 9999)]
    table = pa.table({"t": pa.array(years, pa.timestamp("us"))})
    path = tmp_path / "it.parquet"
    options = {"use_deprecated_int96_timestamps": True, "store_schema": False}
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        writer.add_key_value_metadata({"org.apache.spark.version": "3.5.0"})
        writer.write_table(table)
    assert [row["t"] for row in xt.read_parquet(path).to_py()] == years
    late = {"filters": pc.field("t") > years[1]}
    assert xt.read_parquet(path, **late).to_py() == [{"t": years[2]}]
    assert [each.to_py() for each in xt.data.parquet(path, 9, **late)] == [[{"t": years[2]}]]
