"""Which files, row groups and columns of Parquet are read, against pyarrow.dataset."""

import itertools
import pathlib

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._arrow.wanted_table import WantedTable
from extensor._formats.parquet.plan import ParquetPlan
from extensor._formats.parquet.read import batches_of
from tests.formats.test_parquet import folder

TABLE = pa.table(
    {
        "x": pa.array(range(12), pa.int64()),
        "y": pa.array([float(i % 5) for i in range(12)]),
        "word": [f"word {i}" for i in range(12)],
        "in": [{"a": i, "b": [i] * (i % 3)} for i in range(12)],
    }
)
PARTS = (
    "country=de/month=01",
    "country=de/month=2",
    "country=fr%20x/month=2",
    "country=__HIVE_DEFAULT_PARTITION__/month=3",
)


@pytest.fixture(params=["local", "memory"])
def root(request, tmp_path):
    """A folder with a file of three records and two row groups in each partition."""
    name = str(tmp_path / "data") if request.param == "local" else "memory://plan"
    for i, part in enumerate(PARTS):
        path = f"{name}/{part}/part-{i}.parquet"
        if request.param == "local":
            pathlib.Path(path).parent.mkdir(parents=True)
        with fsspec.open(path, "wb") as file:
            pq.write_table(TABLE.slice(3 * i, 3), file, row_group_size=2)
    for skipped in ("_SUCCESS", "country=de/.part.crc", "_metadata.parquet", "notes.txt"):
        with fsspec.open(f"{name}/{skipped}", "wb") as file:
            file.write(b"")
    yield name
    if request.param == "memory":
        fsspec.filesystem("memory").store.clear()


def dataset_of(root):
    """The data of a folder as pyarrow has it, sorted by path."""
    system, inner = fsspec.core.url_to_fs(root)
    paths = sorted(system.glob(f"{inner}/**/part*.parquet"))
    return ds.dataset(paths, filesystem=system, format="parquet", partitioning="hive")


def test_folders_named_by_keys_become_columns(root):
    expected = dataset_of(root).to_table()
    plan = ParquetPlan(root)
    assert plan.schema == expected.schema
    records = xt.read_parquet(root, nulls={"country": b"none"})
    assert records.field_names() == ("x", "y", "word", "in", "country", "month")
    rows = [{**row, "country": row["country"] or "none"} for row in expected.to_pylist()]
    assert records.to_py() == rows
    with pytest.raises(errors.NullError, match="country: expected a column without nulls, got 3"):
        xt.read_parquet(root)


FILTERS = [
    [("x", "<", 4)],
    [("x", ">=", 10), ("y", "!=", 1.0)],
    [[("x", "=", 1)], [("x", "==", 7), ("word", "in", ["word 7", "z"])]],
    [("word", "not in", ["word 1", "word 9"])],
    [("month", "=", 2)],
    [("month", ">", 1), ("x", "<=", 6)],
    [("country", "=", "fr x")],
    [("country", "in", ["nowhere"])],
    [("in.a", ">", 8)],
    pc.field("country").is_null() | (pc.field("in", "a") == 2),
]


def expression(filters):
    if isinstance(filters, list) and filters == [("in.a", ">", 8)]:
        return pc.field("in", "a") > 8
    return pq.filters_to_expression(filters) if isinstance(filters, list) else filters


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_give_the_records_that_pyarrow_gives(root, filters):
    wanted = ["word", "month"]
    expected = dataset_of(root).to_table(columns=wanted, filter=expression(filters))
    assert xt.read_parquet(root, wanted, filters=filters).to_py() == expected.to_pylist()
    plan = ParquetPlan(root, WantedTable(wanted), filters)
    found = [
        row
        for file in plan.files
        for batch in batches_of(plan, file, file.row_groups, 2)
        for row in batch.to_pylist()
    ]
    assert found == expected.to_pylist()


@pytest.mark.parametrize(
    ("filters", "groups"),
    [
        ([("x", "<", 2)], [[0]]),
        ([("x", "=", 5)], [[1]]),
        ([("month", "=", 2)], [[0, 1], [0, 1]]),
        ([("month", "=", 2), ("x", ">", 6)], [[0, 1]]),
        ([("country", "=", "de"), ("in.a", ">", 3)], [[0, 1]]),
        ([("x", ">", 100)], []),
        ([("country", "=", "nowhere")], []),
    ],
)
def test_what_cannot_fulfil_a_filter_is_not_planned(root, filters, groups):
    plan = ParquetPlan(root, filters=filters)
    assert [[group.number for group in file.row_groups] for file in plan.files] == groups
    count = sum(group.num_rows for file in plan.files for group in file.row_groups)
    assert count >= xt.read_parquet(root, ["x"], filters=filters).shape[0]


def test_files_of_other_partitions_are_not_opened(tmp_path):
    for month in (1, 2):
        (tmp_path / f"month={month}").mkdir()
        pq.write_table(TABLE, tmp_path / f"month={month}" / "it.parquet")
    (tmp_path / "month=3").mkdir()
    (tmp_path / "month=3" / "it.parquet").write_bytes(b"damaged")
    assert xt.read_parquet(tmp_path, filters=[("month", "=", 2)]).shape == [12]
    with pytest.raises(errors.FormatError, match="month=3"):
        xt.read_parquet(tmp_path)


def test_row_groups_are_counted_through_all_files(root):
    plan = ParquetPlan(root)
    assert [[g.number for g in file.row_groups] for file in plan.files] == [[0, 1]] * 4
    assert [[g.num_rows for g in file.row_groups] for file in plan.files] == [[2, 1]] * 4
    assert all(g.num_bytes > 0 for file in plan.files for g in file.row_groups)
    order = [row["x"] for row in dataset_of(root).to_table(["x"]).to_pylist()]
    for numbers in ([0], [1], [2, 3], [7, 0]):
        expected = [
            x
            for i, x in enumerate(order)
            if (2 * (i // 3) + (i % 3 == 2)) in numbers
        ]  # fmt: skip
        assert xt.read_parquet(root, ["x"], row_groups=numbers)["x"].numpy().tolist() == expected
    # The numbers are those of all files, whatever the filter leaves out.
    first = xt.read_parquet(root, ["x"], row_groups=[0, 7], filters=[("month", "<", 3)])
    assert first.shape == ([2] if order[0] < 9 else [1])
    assert xt.read_parquet(root, ["x"], row_groups=[]).shape == [0]


@pytest.mark.parametrize("wrong", [[8], [-1], [0, 0], ["0"], 3, [1.0]])
def test_row_groups_are_numbers_of_row_groups(root, wrong):
    with pytest.raises(errors.ExtensorError, match="row_groups: expected") as raised:
        xt.read_parquet(root, row_groups=wrong)
    assert isinstance(raised.value, (ValueError, TypeError))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ([("nothing", "=", 1)], errors.FieldError),
        ([("in.b", "=", 1)], errors.DTypeError),
        ([("in.b.c", "=", 1)], errors.FieldError),
        (pc.field("nothing") == 1, errors.FieldError),
        ([("x", "=", "text")], errors.DTypeError),
        ([("x", "~", 1)], errors.DTypeError),
        ([("x", "=")], errors.DTypeError),
        ([("x", "in", 3)], errors.DTypeError),
        ([], errors.DTypeError),
        ([[]], errors.DTypeError),
        ("x > 1", errors.DTypeError),
        (3, errors.DTypeError),
        ({"x": 1}, errors.DTypeError),
    ],
    ids=str,
)
def test_a_filter_that_fits_no_column_is_an_error(root, wrong, error):
    with pytest.raises(error, match="filters: expected"):
        xt.read_parquet(root, filters=wrong)


@given(st.data())
def test_random_filters_and_row_groups(data):
    numbers = st.integers(-2, 14)
    value = {"x": numbers, "y": st.floats(0, 5), "word": st.sampled_from(TABLE["word"].to_pylist())}
    condition = st.sampled_from(["x", "y", "word"]).flatmap(
        lambda name: st.one_of(
            st.tuples(st.just(name), st.sampled_from("= == != < <= > >=".split()), value[name]),
            st.tuples(
                st.just(name), st.sampled_from(["in", "not in"]),
                st.lists(value[name], min_size=1, max_size=4),
            ),
        )
    )  # fmt: skip
    filters = data.draw(
        st.lists(st.lists(condition, min_size=1, max_size=3), min_size=1, max_size=3)
    )
    size = data.draw(st.integers(1, 5))
    with folder() as name:
        pq.write_table(TABLE, f"{name}/it.parquet", row_group_size=size)
        chosen = data.draw(st.none() | st.sets(st.integers(0, (12 - 1) // size)))
        kept = [i for i in range(12) if chosen is None or i // size in chosen]
        expected = TABLE.take(pa.array(kept, pa.int64())).filter(pq.filters_to_expression(filters))
        records = xt.read_parquet(name, ["word"], filters=filters, row_groups=chosen)
    assert records.to_py() == expected.select(["word"]).to_pylist()


@pytest.mark.parametrize("arrow", [pa.string_view(), pa.binary_view(), pa.list_(pa.string_view())])
@pytest.mark.parametrize("above", [-1, 0, 3, 20])
def test_filters_of_types_that_pyarrow_does_not_filter(tmp_path, arrow, above):
    words = [f"a word of some length {i}" for i in range(10)]
    made = pa.array([[w] for w in words] if pa.types.is_list(arrow) else words, arrow)
    table = pa.table({"x": [i % 7 for i in range(10)], "w": made})
    pq.write_table(table, tmp_path / "it.parquet")
    records = xt.read_parquet(tmp_path / "it.parquet", filters=[("x", ">", above)])
    assert records.to_py() == [r for r in table.to_pylist() if r["x"] > above]


def test_where_folders_count(root):
    wanted = {"nulls": {"country": b""}}
    everywhere = (f"{root}/**/part*.parquet", [f"{root}/{PARTS[0]}/part-0.parquet"])
    for paths in everywhere:
        assert "country" in xt.read_parquet(paths, **wanted).field_names()
    below = xt.read_parquet(f"{root}/country=de")
    assert below.field_names() == ("x", "y", "word", "in", "month")
    one = xt.read_parquet(f"{root}/{PARTS[0]}/part-0.parquet")
    assert one.field_names() == ("x", "y", "word", "in")


def test_a_schema_decides_the_types_of_keys(root):
    schema = pa.schema({"month": pa.string(), "x": pa.int32(), "country": pa.string()})
    records = xt.read_parquet(root, schema=schema, nulls="mask")
    months = {row["month"] for row in records.to_py()}
    assert months == {"01", "2", "3"}
    assert records["x"].dtype == tf.int32
    with pytest.raises(errors.DTypeError, match=r"country: .*'de' in the name of a folder"):
        xt.read_parquet(root, schema=pa.schema({"country": pa.int64()}))


def test_columns_may_be_those_of_folders_alone(root):
    assert xt.read_parquet(root, ["month"])["month"].shape == [12]
    assert xt.read_parquet(root, ["month"], filters=[("x", "=", 4)])["month"].numpy().tolist() == [
        2
    ]


def test_a_column_of_a_file_counts_more_than_the_name_of_a_folder(tmp_path):
    (tmp_path / "x=7").mkdir()
    pq.write_table(TABLE, tmp_path / "x=7" / "it.parquet")
    assert xt.read_parquet(tmp_path)["x"].numpy().tolist() == list(range(12))
    assert xt.read_parquet(tmp_path, filters=[("x", "=", 3)])["x"].numpy().tolist() == [3]


OTHER = {
    "in another order": TABLE.select(["in", "word", "y", "x"]),
    "without a column": TABLE.drop(["y"]),
    "with one more": TABLE.append_column("z", TABLE["x"]),
    "of another type": TABLE.set_column(1, "y", TABLE["word"]),
    "not nullable": TABLE.cast(
        pa.schema([pa.field("x", pa.int64(), nullable=False), *list(TABLE.schema)[1:]])
    ),
    "of other inner fields": TABLE.set_column(
        3, "in", pa.array([{"b": [1], "c": "d", "a": i} for i in range(12)])
    ),
}


@pytest.mark.parametrize("first", ["one", "other"])
@pytest.mark.parametrize("case", OTHER)
def test_files_need_to_agree_in_the_columns_that_are_asked_for(tmp_path, case, first):
    pq.write_table(TABLE, tmp_path / "one.parquet")
    pq.write_table(OTHER[case], tmp_path / "other.parquet")
    paths = [tmp_path / "one.parquet", tmp_path / "other.parquet"][:: 1 if first == "one" else -1]
    wanted = ["word", "in.a", "x"]
    expected = [{"word": r["word"], "in": {"a": r["in"]["a"]}, "x": r["x"]}
                for r in TABLE.to_pylist()]  # fmt: skip
    assert xt.read_parquet(paths, wanted).to_py() == 2 * expected
    batches = list(xt.data.parquet(paths, 24, wanted))
    assert batches[0].to_py() == 2 * expected
    if case in ("in another order", "not nullable"):
        assert xt.read_parquet(paths).shape == [24]
    else:
        with pytest.raises(errors.StructureError, match="expected the columns of"):
            xt.read_parquet(paths)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_nullable_column_that_some_files_lack_is_null_there(tmp_path, reverse):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(OTHER["without a column"], tmp_path / "b.parquet")
    paths = sorted(tmp_path.iterdir(), reverse=reverse)
    records = xt.read_parquet(paths, schema=TABLE.schema, nulls={"y": -1.0})
    ys = [TABLE["y"].to_pylist(), [-1.0] * 12]
    assert records["y"].numpy().tolist() == list(itertools.chain(*(ys[::-1] if reverse else ys)))
    with pytest.raises(errors.FieldError, match="z: expected one column of this name"):
        xt.read_parquet(paths, schema=TABLE.schema.append(pa.field("z", "int8")))
    full = pa.schema([TABLE.schema.field("x"), pa.field("y", "float64", nullable=False)])
    with pytest.raises(errors.StructureError, match=r"y: expected a column in every .*b\.parquet"):
        xt.read_parquet(paths, schema=full)


def test_a_spec_reads_what_it_describes(tmp_path):
    pq.write_table(TABLE, tmp_path / "it.parquet")
    spec = xt.spec_of(xt.read_parquet(tmp_path / "it.parquet", ["x", "in"]))
    records = xt.read_parquet(tmp_path / "it.parquet", schema=spec)
    assert records.field_names() == ("x", "in")
    assert spec.is_compatible_with(records)


def test_a_column_of_no_wanted_inner_field_is_cast_as_a_whole(tmp_path):
    pq.write_table(pa.table({"s": [1, 2], "t": [3, 4]}), tmp_path / "it.parquet")
    with pytest.raises(errors.DTypeError, match="s: expected values of Arrow type struct"):
        xt.read_parquet(
            tmp_path / "it.parquet", schema=pa.schema({"s": pa.struct({"a": pa.int64()})})
        )
