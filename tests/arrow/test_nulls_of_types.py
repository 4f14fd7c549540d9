"""Nulls of every Arrow type: refused, masked, replaced by a value, empty."""

import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import NullError, StructureError
from extensor.types import MaskedTensor
from tests.arrow.test_type_table import FILLED, array_of, values_of


def column(arrow, nulls=(1,)):
    first, second, third = values_of(arrow)
    return array_of(
        [None if i in nulls else v for i, v in enumerate([first, second, third])], arrow
    )


@pytest.mark.parametrize("arrow", FILLED, ids=str)
@pytest.mark.parametrize("nulls", [(), (1,), (0, 1, 2)], ids=["none", "one", "all"])
def test_masked_nulls_come_back(arrow, nulls):
    table = pa.table({"x": column(arrow, nulls)})
    records = xt.from_arrow(table, nulls="mask")
    assert isinstance(records["x"], MaskedTensor)
    assert records["x"].mask.numpy().tolist() == [i not in nulls for i in range(3)]
    assert xt.spec_from_schema(table.schema, nulls="mask").is_compatible_with(records)
    for schema in (None, table.schema):
        back = pa.table(xt.to_arrow(records, schema))
        back.validate(full=True)
        assert back.schema == table.schema
        assert back["x"].to_pylist() == table["x"].to_pylist()


@pytest.mark.parametrize("arrow", FILLED, ids=str)
def test_masked_nulls_come_back_from_parquet(arrow, tmp_path):
    table = pa.table({"x": column(arrow)})
    path = tmp_path / "x.parquet"
    try:
        pq.write_table(table, path)
        stored = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        if "Expected all lists to be of size" in str(error):  # pyarrow before 26 wrote it only
            with pytest.raises(xt.errors.FormatError, match="row group 0: expected no null lists"):
                xt.read_parquet(path, nulls="mask")
            return
        with pytest.raises(xt.errors.ExtensorError, match="x"):  # Parquet does not have the type
            xt.write_parquet(xt.from_arrow(table, nulls="mask"), path)
        return
    xt.write_parquet(xt.from_arrow(table, nulls="mask"), path)
    assert pq.read_table(path).equals(stored)
    records = xt.read_parquet(path, nulls="mask")
    assert pa.table(xt.to_arrow(records))["x"].to_pylist() == stored["x"].to_pylist()


@pytest.mark.parametrize("arrow", FILLED, ids=str)
def test_a_value_takes_the_place_of_nulls(arrow):
    value = values_of(arrow)[2]
    if arrow == pa.bool8():
        value = bool(value)
    if pa.types.is_map(arrow):
        pytest.skip("the items of a map have no Python value that is a policy")
    records = xt.from_arrow(pa.table({"x": column(arrow)}), nulls={"x": xt.fill(value)})
    first, _, third = values_of(arrow)
    filled = pa.table({"x": array_of([first, third, third], arrow)})
    assert pa.table(xt.to_arrow(records))["x"].to_pylist() == filled["x"].to_pylist()
    assert xt.spec_of(records) == xt.spec_of(xt.from_arrow(filled))


def test_times_and_decimals_are_filled_by_their_python_values():
    table = pa.table({
        "t": pa.array([None], pa.timestamp("us", "UTC")), "d": pa.array([None], pa.date32()),
        "n": pa.array([None], pa.decimal128(38, 2)), "h": pa.array([None], pa.duration("s")),
    })  # fmt: skip
    day = datetime.date(1970, 1, 3)
    midday = datetime.datetime(1970, 1, 1, 12, tzinfo=datetime.timezone.utc)
    filled = {"t": midday, "d": day, "n": decimal.Decimal("-1.25"), "h": datetime.timedelta(0, 5)}
    records = xt.from_arrow(table, nulls={name: xt.fill(v) for name, v in filled.items()})
    assert xt.to_arrow(records).to_pylist() == [filled]
    assert records["n"].numpy().tolist() == [[-125, -1]]


def test_a_column_of_nulls_alone():
    table = pa.table({"x": pa.nulls(2)})
    with pytest.raises(NullError, match=r"x: .* 2 nulls, the first in record 0"):
        xt.from_arrow(table)
    assert xt.from_arrow(table.slice(2)).to_py() == []
    records = xt.from_arrow(table, nulls="mask")
    assert records.to_py() == [{"x": None}] * 2
    assert xt.to_arrow(records).schema == table.schema
    filled = xt.from_arrow(table, nulls={"x": 2.5})
    assert filled.to_py() == [{"x": 2.5}] * 2
    lists = pa.table({"x": pa.array([[None], None, []])})
    masked = xt.from_arrow(lists, nulls="mask")
    assert masked.to_py() == lists.to_pylist()
    assert xt.to_arrow(masked).schema == lists.schema


@pytest.mark.parametrize("make", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_null_lists_over_values_are_empty(make):
    bits = pa.py_buffer(b"\x05")
    arrow = make(pa.int64())
    width = tf.int64 if "large" in str(arrow) else tf.int32
    offsets = pa.py_buffer(tf.constant([0, 2, 3, 4], width).numpy())
    sizes = [pa.py_buffer(tf.constant([2, 1, 1], width).numpy())] if "view" in str(arrow) else []
    values = pa.array([1, 2, None, 4])
    array = pa.Array.from_buffers(arrow, 3, [bits, offsets, *sizes], children=[values])
    assert array.to_pylist() == [[1, 2], None, [4]]
    table = pa.table({"x": array})
    masked = xt.from_arrow(table, nulls={"x": "mask"})
    assert masked["x"].values.flat_values.numpy().tolist() == [1, 2, 4]
    assert xt.to_arrow(masked).to_pylist() == table.to_pylist()
    assert xt.from_arrow(table, nulls="empty")["x"].to_list() == [[1, 2], [], [4]]


def test_null_maps_and_null_items():
    arrow = pa.map_(pa.string(), pa.int8())
    table = pa.table({"m": pa.array([[("a", 1), ("b", None)], None, []], arrow)})
    with pytest.raises(NullError, match=r'^m: [^"]*m \(1\), m\.value \(1\)\..*"empty"'):
        xt.from_arrow(table)
    with pytest.raises(NullError, match=r'(?s)m\[\*\]\.value: .*"m\.value": "mask"'):
        xt.from_arrow(table, nulls={"m": "empty"})
    records = xt.from_arrow(table, nulls={"m": "empty", "m.value": 0})
    assert records["m", "value"].to_list() == [[1, 0], [], []]
    masked = xt.from_arrow(table, nulls={"m": "mask", "m.value": "mask"})
    assert xt.to_arrow(masked).to_pylist() == table.to_pylist()
    assert xt.to_arrow(masked).schema == table.schema


def test_items_of_tensors_of_one_shape_may_be_masked():
    arrow = pa.fixed_shape_tensor(pa.int8(), [2, 2], permutation=[1, 0])
    stored = pa.array([[1, None, 3, 4], None], arrow.storage_type)
    table = pa.table({"x": pa.ExtensionArray.from_storage(arrow, stored)})
    with pytest.raises(NullError, match=r"x\[\*\]: .* 1 null"):
        xt.from_arrow(table, nulls={"x": "mask"})
    records = xt.from_arrow(table, nulls="mask")
    assert records["x"].to_py() == [[[1, 3], [None, 4]], None]
    assert xt.spec_from_schema(table.schema, nulls="mask").is_compatible_with(records)
    back = xt.to_arrow(records).column(0)
    assert back.type == arrow
    assert back.storage.to_pylist() == stored.to_pylist()


# Unions.


def union():
    parts = [pa.array([1, None]), pa.array(["a"]), pa.nulls(1)]
    codes, offsets = pa.array([0, 1, 2, 0], pa.int8()), pa.array([0, 0, 0, 1], pa.int32())
    return pa.UnionArray.from_dense(codes, offsets, parts, ["n", "t", "z"])


def sparse_union():
    """The same values, with the variants in full length."""
    parts = [pa.array([1, 5, 5, None]), pa.array(["", "a", "", ""]), pa.nulls(4)]
    return pa.UnionArray.from_sparse(pa.array([0, 1, 2, 0], pa.int8()), parts, ["n", "t", "z"])


def test_a_null_inside_a_variant():
    table = pa.table({"u": union()})
    in_variant = xt.from_arrow(table, nulls={"u.n": "mask"})
    assert in_variant["u"].to_py() == [1, b"a", None, None]
    for nulls in (None, {"u": "error"}, {"*": "mask", "u": "error"}):
        with pytest.raises(NullError, match=r"^u\.n: .* record 3"):
            xt.from_arrow(table, nulls=nulls)
    filled = xt.from_arrow(table, nulls={"u.n": -1})
    assert filled["u"].to_py() == [1, b"a", None, -1]
    back = pa.table(xt.to_arrow(in_variant))
    assert back.schema == table.schema
    assert back["u"].to_pylist() == table["u"].to_pylist()


@pytest.mark.parametrize("nulls", ["mask", {"u": "mask"}, {"*": "error", "u": "mask"}])
@pytest.mark.parametrize("array", [union(), sparse_union()], ids=["dense", "sparse"])
def test_masked_nulls_of_a_union_are_in_its_variant_of_nulls(array, nulls):
    table = pa.table({"u": array})
    records = xt.from_arrow(table, nulls=nulls)
    assert records["u"].to_py() == [1, b"a", None, None]
    # So the other variants are plain tensors, as for nulls of Python data.
    assert records["u"].variants["n"].numpy().tolist() == [1]
    assert records["u"].is_variant("z").numpy().tolist() == [False, False, True, True]
    matched = records["u"].match({"n": lambda n: n, "t": lambda t: 0, "z": lambda z: -1})
    assert matched.numpy().tolist() == [1, 0, -1, -1]
    spec = xt.spec_from_schema(table.schema, nulls=nulls)
    assert spec.is_compatible_with(records)
    assert spec.is_compatible_with(xt.from_arrow(table[:1], nulls=nulls))
    back = pa.table(xt.to_arrow(records))
    assert back.schema == table.schema
    assert back["u"].to_pylist() == table["u"].to_pylist()


def test_without_a_variant_of_nulls_each_variant_is_masked():
    array = pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, None]), pa.array(["a"] * 3)], ["n", "t"]
    )
    for part in (array, array[:2]):
        records = xt.from_arrow(pa.table({"u": part}), nulls="mask")
        assert all(isinstance(v, MaskedTensor) for v in records["u"].variants.values())
        assert records["u"].to_py() == [1, b"a", None][: len(part)]


@pytest.mark.parametrize("array", [union(), sparse_union()], ids=["dense", "sparse"])
def test_a_value_in_place_of_nulls_is_in_the_first_variant_that_it_fits(array):
    table = pa.table({"u": array})
    for nulls in (7, {"u": 7}, {"*": "mask", "u": 7}):
        records = xt.from_arrow(table, nulls=nulls)
        assert records["u"].to_py() == [1, b"a", 7, 7]
        assert records["u"].variants["n"].numpy().tolist() == [1, 7, 7]
        assert xt.spec_from_schema(table.schema, nulls=nulls).is_compatible_with(records)
    words = xt.from_arrow(table, nulls={"u": xt.fill("?")})
    assert words["u"].variants["t"].numpy().tolist() == [b"a", b"?", b"?"]
    own = xt.from_arrow(table, nulls={"u": xt.fill("?"), "u.n": -1})
    assert own["u"].to_py() == [1, b"a", b"?", -1]
    with pytest.raises(xt.errors.DTypeError, match=r"^nulls, u: "):
        xt.from_arrow(table, nulls={"u": [1]})


def test_the_nulls_of_unions_in_lists_and_of_parts_of_a_table_are_found():
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 4], pa.int32()), union())
    table = pa.table({"x": pa.chunked_array([lists, lists[1:]])})
    for nulls, null in (("mask", None), ({"x[*]": "mask"}, None), ({"x[*]": 0}, 0)):
        records = xt.from_arrow(table, nulls=nulls)
        assert records["x"].to_py() == [[1], [], [b"a", null, null], [], [b"a", null, null]]


def test_unions_in_null_lists_and_in_null_records():
    mask = pa.array([False, True])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), union(), mask=mask)
    struct = pa.StructArray.from_arrays(
        [union()], ["u"], mask=pa.array([False, False, False, True])
    )
    for array, path in ((lists, "x"), (struct, "x")):
        table = pa.table({"x": array})
        records = xt.from_arrow(table, nulls={path: "mask"})
        back = pa.table(xt.to_arrow(records))
        assert back.schema == table.schema
        assert back["x"].to_pylist() == table["x"].to_pylist()


def test_a_union_in_masked_records_is_written_with_nulls():
    records = xt.DenseStructuredTensor([2], {
        "m": MaskedTensor(
            xt.DenseStructuredTensor([2], {"u": xt.types.UnionTensor.from_values([1, "a"])}),
            [True, False],
        )
    })  # fmt: skip
    field = xt.DenseStructuredTensor([2], {"u": records["m.u"]})
    written = xt.to_arrow(field)
    written.validate(full=True)
    assert written.to_pylist() == [{"u": 1}, {"u": None}]


# Dictionaries.


def test_chunks_of_dictionaries_with_nulls_are_joined():
    words = pa.array(["a", None])
    chunk = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), words)
    other = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["b"]))
    for wrap in (
        lambda array: array,
        lambda array: pa.ListArray.from_arrays([0, len(array)], array),
        lambda array: pa.StructArray.from_arrays([array], ["d"]),
    ):
        column = pa.chunked_array([wrap(chunk), wrap(other)])
        records = xt.from_arrow(pa.table({"x": column}), nulls="mask")
        assert pa.table(xt.to_arrow(records))["x"].to_pylist() == column.to_pylist()
    zero, two = (pa.array([number], pa.int32()).buffers()[1] for number in (0, 2))
    views = [
        pa.Array.from_buffers(pa.list_view(part.type), 1, [None, zero, two], children=[part])
        for part in (chunk, other)
    ]
    with pytest.raises(StructureError, match="x: expected chunks that fit into one Arrow array"):
        xt.from_arrow(pa.table({"x": pa.chunked_array(views)}), nulls="mask")


HIDING = {  # types in which a null hides nulls of Arrow's null type
    "list": pa.list_(pa.null(), 1),
    "long list": pa.list_(pa.null(), 3),
    "list of lists": pa.list_(pa.list_(pa.null(), 2), 2),
    "records": pa.struct({"a": pa.null(), "b": pa.list_(pa.null(), 1)}),
    "records in a list": pa.list_(pa.struct({"a": pa.null(), "n": pa.int64()}), 2),
    "large list": pa.large_list(pa.null()),
    "null": pa.null(),
}


@pytest.mark.parametrize("arrow", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_nulls_that_are_hidden_by_nulls_come_back(arrow, count):
    table = pa.table({"x": pa.nulls(count, arrow)})
    records = xt.from_arrow(table, nulls={"x": "mask"})
    assert records.to_py() == [{"x": None}] * count
    inner = xt.from_arrow(
        pa.table({"l": pa.array([[None] * count, []], pa.list_(arrow))}), nulls={"l[*]": "mask"}
    )
    for value, kept in ((records, table.schema), (inner, pa.schema({"l": pa.list_(arrow)}))):
        for schema in (None, kept):
            back = pa.table(xt.to_arrow(value, schema))
            back.validate(full=True)
            assert back.to_pylist() == value.to_py()
            assert schema is None or back.schema == schema
