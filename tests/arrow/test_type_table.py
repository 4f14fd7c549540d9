"""The table of Arrow types: what each of its types is in TensorFlow, and its way there and back."""

import decimal
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import tensorflow as tf

import extensor as xt
from extensor._arrow.column_type import ColumnType, SameRowsType, WrapperType
from extensor._arrow.encoded_types import EncodedType
from extensor._arrow.flat_types import UnreadType
from extensor._arrow.nullable_type import NullableType
from extensor._arrow.type_table import TABLE
from extensor.errors import DTypeError, NullError

# pa.array makes no unions: they are in test_unions.py.
TYPES = [arrow for examples in TABLE.values() for arrow in examples if not pa.types.is_union(arrow)]
FILLED = [arrow for arrow in TYPES if arrow != pa.null()]  # null has no values that are not null


def values_of(arrow):
    """Returns three Python values of an Arrow type."""
    t = pa.types
    if arrow in OTHERS:
        return OTHERS[arrow]
    if t.is_boolean(arrow):
        return [True, False, True]
    if t.is_floating(arrow):
        return [np.dtype(arrow.to_pandas_dtype()).type(x) for x in (0.5, 0, -2)]
    if t.is_integer(arrow):
        return [1, 0, 127]
    if t.is_dictionary(arrow):
        return ["a", "b", "a"]
    if t.is_struct(arrow):
        return [{"x": 1}, {"x": 2}, {"x": 3}]
    if t.is_fixed_size_list(arrow):
        return [[1, 2], [3, 4], [5, 6]]
    if t.is_map(arrow):
        return [[("a", 1)], [], [("c", 2), ("b", 3)]]
    if t.is_temporal(arrow):
        return [86_400_000, 0, 172_800_000] if t.is_date64(arrow) else [1, 0, 2]
    if t.is_decimal(arrow):
        return [decimal.Decimal("1.25"), decimal.Decimal(0), decimal.Decimal("-3")]
    if t.is_nested(arrow):
        return [[1], [], [2, 3]]
    return ["ab", "cd", "ef"]


OTHERS = {
    pa.month_day_nano_interval(): [(1, -2, 3), (0, 0, 0), (-4, 5, -6)],
    pa.bool8(): [1, 0, 1],
    pa.uuid(): [b"a" * 16, b"b" * 16, b"c" * 16],
    pa.fixed_shape_tensor(pa.int8(), [2, 1]): [[1, 2], [3, 4], [5, 6]],
    pa.run_end_encoded(pa.int32(), pa.string()): ["a", "a", "b"],
}


def array_of(values, arrow):
    """Returns an array of any type; `pa.array` does not make some of them."""
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, pa.array(values, arrow.storage_type))
    if pa.types.is_run_end_encoded(arrow):
        return pc.run_end_encode(pa.array(values, arrow.value_type), run_end_type=pa.int32())
    return pa.array(values, arrow)


def subclasses(cls):
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


def test_every_description_of_a_type_is_in_the_table():
    bases = {ColumnType, WrapperType, SameRowsType, EncodedType}
    others = {UnreadType, NullableType}
    assert subclasses(ColumnType) - bases - others == set(TABLE)
    assert len({str(arrow) for arrow in TYPES}) == len(TYPES), "two rows for one Arrow type"


@pytest.mark.parametrize("arrow", FILLED, ids=str)
@pytest.mark.parametrize("rows", [slice(0, 3), slice(1, 3), slice(0, 0)], ids=["all", "slice", "0"])
def test_each_type_comes_back_as_it_was(arrow, rows):
    table = pa.table({"x": array_of(values_of(arrow), arrow)[rows]})
    records = xt.from_arrow(table)
    spec = xt.spec_from_schema(table.schema, table.num_rows)
    assert spec.is_compatible_with(records)
    assert spec.arrow_types == records.arrow_types == xt.spec_of(records).arrow_types
    for schema in (None, table.schema):
        back = pa.table(xt.to_arrow(records, schema))
        back.validate(full=True)
        assert back.schema == table.schema
        assert back["x"].to_pylist() == table["x"].to_pylist()


@pytest.mark.parametrize("arrow", FILLED, ids=str)
def test_each_type_in_lists_and_records_is_read_as_alone(arrow):
    column = array_of(values_of(arrow), arrow)
    struct = pa.StructArray.from_arrays([column], ["y"])
    nested = pa.table({"x": pa.LargeListArray.from_arrays([0, 2, 3], struct)})
    records = xt.from_arrow(nested)
    assert xt.spec_from_schema(nested.schema).is_compatible_with(records)
    alone = xt.from_arrow(pa.table({"y": column}))
    flat = tf.nest.flatten(records["x"].values, expand_composites=True)
    for mine, same in zip(flat, tf.nest.flatten(alone, expand_composites=True), strict=True):
        assert np.array_equal(mine, same)


@pytest.mark.parametrize("arrow", FILLED, ids=str)
def test_nulls_of_each_type_are_refused_with_path_and_record(arrow):
    first, second, _ = values_of(arrow)
    with pytest.raises(NullError) as caught:
        xt.from_arrow(pa.table({"x": array_of([first, None, second], arrow)}))
    assert caught.value.path == "x"
    assert caught.value.received == "1 null, the first in record 1"


def test_the_table_in_the_docs_has_every_type():
    page = Path(__file__).parents[2] / "docs" / "arrow.md"
    rows = [line.split("|")[1:-1] for line in page.read_text("utf-8").splitlines() if "|" in line]
    head = rows[0]
    assert [cell.strip() for cell in head] == [
        "Arrow type", "StructuredTensor field", "shared or copied on import", "on export",
        "comes back as",
    ]  # fmt: skip
    said = set(re.findall(r"\w+", " ".join(row[0] for row in rows[2:])))
    for arrow in (arrow for examples in TABLE.values() for arrow in examples):
        if isinstance(arrow, pa.BaseExtensionType):
            name = arrow.extension_name.removeprefix("arrow.")
        else:
            name = re.match(r"\w+", str(arrow))[0]
        in_a_range = pa.types.is_integer(arrow) or pa.types.is_floating(arrow)
        kind_of_text = re.fullmatch(r"large_(string|binary)|(string|binary)_view", name)
        assert in_a_range or kind_of_text or name in said, name


def test_bytes_of_one_length_are_strings():
    records = xt.from_arrow(pa.table({"id": pa.array([b"\x00a", b"b\xff"], pa.binary(2))}))
    assert records["id"].numpy().tolist() == [b"\x00a", b"b\xff"]
    with pytest.raises(DTypeError) as caught:
        xt.to_arrow(records, pa.schema({"id": pa.binary(3)}))
    assert caught.value.path == "id"
    assert "fixed_size_binary[3]" in caught.value.expected
