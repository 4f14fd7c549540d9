"""Arrow's dense and sparse unions become UnionTensors, and come back."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor._arrow.nulls import nulls_of
from extensor.types import UnionTensor

ROWS = [2, "a", 1, None, {"x": 1, "l": [1, 2]}]
READ = [2, b"a", 1, None, {"x": 1, "l": [1, 2]}]
NAMES = ["number", "text", "null", "record"]
CODES = [5, 1, 0, 7]


def children():
    return [
        pa.array([1, 2]),
        pa.array(["a"]),
        pa.nulls(1),
        pa.array([{"x": 1, "l": [1, 2]}]),
    ]


def dense(codes=(5, 1, 5, 0, 7), offsets=(1, 0, 0, 0, 0)):
    """A union whose rows are not in the order of its children."""
    kind = pa.UnionArray.from_dense(
        pa.array([5, 1, 5, 0, 7], pa.int8()), pa.array([1, 0, 0, 0, 0], pa.int32()),
        children(), NAMES, CODES,
    ).type  # fmt: skip
    buffers = [None, pa.py_buffer(np.array(codes, np.int8)),
               pa.py_buffer(np.array(offsets, np.int32))]  # fmt: skip
    return pa.Array.from_buffers(kind, len(codes), buffers, children=children())


def sparse():
    """A union with nulls where the other variant is."""
    parts = [pa.array([1, None, 3]), pa.array([None, "b", None])]
    return pa.UnionArray.from_sparse(pa.array([4, 2, 4], pa.int8()), parts, ["n", "t"], [4, 2])


def read(array):
    table = pa.table({"u": array})
    records = xt.from_arrow(table)
    assert xt.spec_from_schema(table.schema).is_compatible_with(records)
    return records


def test_a_dense_union_comes_back():
    records = read(dense())
    assert records["u"].to_py() == READ
    assert records["u"].names == tuple(NAMES)
    schema = pa.schema({"u": dense().type})
    written = xt.to_arrow(records, schema)
    written.validate(full=True)
    assert written.schema == schema
    assert written.to_pylist() == [{"u": row} for row in ROWS]
    assert xt.to_arrow(records).to_pylist() == written.to_pylist()


def test_a_sparse_union_comes_back():
    records = read(sparse())
    assert records["u"].to_py() == [1, b"b", 3]
    schema = pa.schema({"u": sparse().type})
    written = xt.to_arrow(records, schema)
    written.validate(full=True)
    assert written.schema == schema
    assert written.to_pylist() == [{"u": 1}, {"u": "b"}, {"u": 3}]


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("part", [slice(1, None), slice(0, 0), slice(2, 3)])
def test_a_slice_is_read_as_its_rows(make, part):
    array = make()
    start, stop, _ = part.indices(len(array))
    whole = read(array)["u"].to_py()
    assert read(array.slice(start, stop - start))["u"].to_py() == whole[part]


@pytest.mark.parametrize("make", [dense, sparse])
def test_chunks_are_joined(make):
    array = make()
    both = read(pa.chunked_array([array, array[1:]]))["u"].to_py()
    assert both == read(array)["u"].to_py() + read(array)["u"].to_py()[1:]


@pytest.mark.parametrize(
    "outer",
    [
        lambda u: pa.ListArray.from_arrays([0, 2, 2, 5], u),
        lambda u: pa.LargeListArray.from_arrays([0, 2, 2, 5], u),
        lambda u: pa.FixedSizeListArray.from_arrays(u[:4], 2),
        lambda u: pa.StructArray.from_arrays([u, pa.array(range(5))], ["u", "i"]),
        lambda u: pa.UnionArray.from_dense(
            pa.array([0, 1], pa.int8()), pa.array([4, 0], pa.int32()), [u, pa.array(["x"])]
        ),
    ],
    ids=["list", "large list", "fixed-size list", "struct", "union"],
)
def test_unions_inside_others_come_back(outer):
    array = outer(dense())
    records = read(array)
    written = xt.to_arrow(records, pa.schema({"u": array.type}))
    written.validate(full=True)
    assert written.column(0).to_pylist() == array.to_pylist()
    assert xt.to_arrow(records).column(0).to_pylist() == array.to_pylist()


def test_a_variant_that_no_row_has_is_written():
    union = UnionTensor.from_values([1, 2])
    kind = pa.dense_union([pa.field("string", pa.string()), pa.field("int", pa.int64())])
    for schema in (kind, pa.sparse_union([kind.field(0), kind.field(1)])):
        written = xt.to_arrow(xt.DenseStructuredTensor([2], {"u": union}), pa.schema({"u": schema}))
        written.validate(full=True)
        assert written.column(0).to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("array", "path", "words"),
    [
        (lambda: dense(codes=(5, 1, 5, 0, 3)), "u", "code 3 in record 4"),
        (lambda: dense(codes=(5, 1, -1, 0, 7)), "u", "code -1 in record 2"),
        (lambda: dense(offsets=(1, 0, 2, 0, 0)), "u.number", "offsets from 1 to 2"),
        (lambda: dense(offsets=(1, 0, -1, 0, 0)), "u.number", "offsets from -1 to 1"),
    ],
)
def test_codes_and_offsets_out_of_range_are_errors(array, path, words):
    with pytest.raises(xt.errors.StructureError, match=words) as caught:
        xt.from_arrow(pa.table({"u": array()}))
    assert caught.value.path == path


def test_a_null_in_a_variant_is_named_by_its_record():
    parts = [pa.array([1, None]), pa.array(["b", "c"])]
    array = pa.UnionArray.from_dense(
        pa.array([0, 1, 1, 0], pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), parts, ["n", "t"]
    )
    with pytest.raises(xt.errors.NullError, match=r"u\.n: .* in record 3"):
        xt.from_arrow(pa.table({"u": array}))


def test_two_variants_of_one_name_are_an_error():
    array = pa.UnionArray.from_sparse(
        pa.array([0], pa.int8()), [pa.array([1]), pa.array(["a"])], ["n", "n"]
    )
    with pytest.raises(xt.errors.StructureError, match="two fields of this name"):
        xt.from_arrow(pa.table({"u": array}))


def test_a_value_that_does_not_fit_the_union_is_an_error():
    schema = pa.schema({"u": sparse().type})
    with pytest.raises(xt.errors.DTypeError, match="fit Arrow type sparse_union"):
        xt.to_arrow(xt.DenseStructuredTensor([1], {"u": [1]}), schema)
    union = UnionTensor([0], {"other": [1]})
    with pytest.raises(xt.errors.FieldError, match="not in the schema"):
        xt.to_arrow(xt.DenseStructuredTensor([1], {"u": union}), schema)


def test_a_table_of_unions_is_batched():
    records = read(dense())
    batches = list(tf.data.Dataset.from_tensor_slices(records).batch(2))
    assert [row for batch in batches for row in batch["u"].to_py()] == READ


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_a_stream_of_unions_is_batched(batch_size, tmp_path):
    lists = pa.ListArray.from_arrays([0, 2, 2, 5, 5, 5], dense())
    table = pa.table({"u": dense(), "lists": lists})
    xt.write_arrow(xt.from_arrow(table), tmp_path / "rows.arrow")
    batches = list(xt.data.arrow(tmp_path / "rows.arrow", batch_size))
    assert [row for batch in batches for row in batch["u"].to_py()] == READ
    assert [row for batch in batches for row in batch["lists"].to_py()] == [
        READ[:2], [], READ[2:], [], [],
    ]  # fmt: skip


# Variants without values, of types with run ends inside.

RUNS = pa.run_end_encoded(pa.int16(), pa.string())
UNION = pa.dense_union([pa.field("r", RUNS), pa.field("n", pa.int8())])
HOLD_RUNS = [
    RUNS, pa.run_end_encoded(pa.int32(), pa.list_(RUNS)), pa.list_(RUNS), pa.large_list(RUNS),
    pa.list_(RUNS, 2), pa.list_view(RUNS), pa.large_list_view(RUNS), pa.map_(pa.string(), RUNS),
    pa.struct([("a", pa.list_(RUNS)), ("b", pa.int8())]), pa.list_(pa.list_(RUNS)),
    pa.list_(pa.struct([("a", RUNS)])), UNION, pa.list_(UNION),
    pa.sparse_union([pa.field("r", pa.list_(RUNS)), pa.field("n", pa.int8())]),
]  # fmt: skip


@pytest.mark.parametrize("arrow", HOLD_RUNS, ids=str)
def test_nulls_of_types_with_runs_are_valid(arrow):
    for count in (0, 1, 9):
        found = nulls_of(arrow, count)
        found.validate(full=True)
        assert found.type == arrow
        assert found.to_pylist() == [None] * count


@pytest.mark.parametrize("arrow", HOLD_RUNS, ids=str)
@pytest.mark.parametrize("make", [pa.dense_union, pa.sparse_union])
def test_a_variant_without_values_that_holds_runs_is_written(arrow, make):
    union = make([pa.field("v", arrow), pa.field("t", pa.string())])
    codes, texts = pa.array([1, 1], pa.int8()), pa.array(["a", "b"])
    for count in (0, 2):
        parts = [nulls_of(arrow, count if union.mode == "sparse" else 0), texts[:count]]
        buffers = [None, codes.buffers()[1]]
        if union.mode == "dense":
            buffers.append(pa.array([0, 1], pa.int32()).buffers()[1])
        column = pa.Array.from_buffers(union, count, buffers, children=parts)
        table = pa.table({"u": column})
        records = xt.from_arrow(table, nulls="mask")
        for schema in (None, table.schema):
            back = pa.table(xt.to_arrow(records, schema))
            back.validate(full=True)
            assert back.schema == table.schema
            assert back["u"].to_pylist() == ["a", "b"][:count]


@pytest.mark.parametrize("arrow", HOLD_RUNS, ids=str)
@pytest.mark.parametrize("make", [pa.dense_union, pa.sparse_union])
def test_a_variant_of_the_schema_that_the_value_lacks_is_written(arrow, make):
    union = xt.types.UnionTensor.from_values(["a", "b"])
    (name,) = union.names
    schema = pa.schema([("u", make([pa.field("v", arrow), pa.field(name, pa.string())]))])
    records = xt.DenseStructuredTensor([2], {"u": union})
    back = xt.to_arrow(records, schema)
    back.validate(full=True)
    assert back.to_pylist() == [{"u": "a"}, {"u": "b"}]


def test_the_variants_that_are_left_keep_their_types():
    codes, offsets = pa.array([0, 1, 2], pa.int8()), pa.array([0, 0, 0], pa.int32())
    variants = [pa.array([5], pa.timestamp("s")), pa.array(["a"]), pa.nulls(1)]
    union = pa.UnionArray.from_dense(codes, offsets, variants, ["when", "text", "null"])
    records = xt.from_arrow(pa.table({"u": union}), nulls="mask")
    for left in (xt.struct.drop_null(records, (), by="u"), xt.struct.fill_null(records, "u", "z")):
        names = left["u"].names
        assert names == ("when", "text")
        assert xt.to_arrow(left).schema.field("u").type.field(0).type == pa.timestamp("s")
        assert xt.to_arrow(left).to_pylist()[:2] == xt.to_arrow(records).to_pylist()[:2]
