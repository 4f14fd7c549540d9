"""The table of supported Arrow types and their ColumnType classes.

Reading, writing and schemas use this table. `tests/arrow/test_type_table.py` converts every type
in the table from Arrow to a tensor and back.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from extensor._arrow.arrow_type import unsupported_error
from extensor._arrow.column_type import ColumnType
from extensor._arrow.encoded_types import DictionaryType, RunEndEncodedType
from extensor._arrow.extension_types import Bool8Type, ExtensionStorageType, FixedShapeTensorType
from extensor._arrow.flat_types import (
    BooleanType,
    FixedSizeBinaryType,
    NullType,
    NumberType,
    StringType,
    StringViewType,
    UnreadType,
)
from extensor._arrow.integer_types import IntervalType, LargeDecimalType, SmallDecimalType, TimeType
from extensor._arrow.list_types import FixedSizeListType, ListType, ListViewType, MapType
from extensor._arrow.natural_type import NUMBERS
from extensor._arrow.null_policy import Nulls, PlacedNulls
from extensor._arrow.nullable_type import NullableType
from extensor._arrow.struct_type import StructType
from extensor._arrow.union_types import UnionType
from extensor._path import Path
from extensor._typing import NullsLike


def _union(make: Callable[..., pa.DataType]) -> pa.DataType:
    return make([pa.field("number", pa.int8()), pa.field("text", pa.string())])


# For a type with parameters, the table has one example; `_BY_KEY` finds the class.
TABLE: dict[type[ColumnType], tuple[pa.DataType, ...]] = {
    NumberType: tuple(NUMBERS),
    BooleanType: (pa.bool_(),),
    StringType: (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()),
    StringViewType: (pa.string_view(), pa.binary_view()),
    FixedSizeBinaryType: (pa.binary(2),),
    TimeType: (
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time64("us"),
        pa.timestamp("us", "UTC"),
        pa.duration("ns"),
    ),
    SmallDecimalType: (pa.decimal32(5, 2), pa.decimal64(12, 2)),
    LargeDecimalType: (pa.decimal128(38, 2), pa.decimal256(18, 2)),
    IntervalType: (pa.month_day_nano_interval(),),
    NullType: (pa.null(),),
    DictionaryType: (pa.dictionary(pa.int32(), pa.string()),),
    RunEndEncodedType: (pa.run_end_encoded(pa.int32(), pa.string()),),
    StructType: (pa.struct([("x", pa.int8())]),),
    ListType: (pa.list_(pa.int8()), pa.large_list(pa.int8())),
    ListViewType: (pa.list_view(pa.int8()), pa.large_list_view(pa.int8())),
    MapType: (pa.map_(pa.string(), pa.int8()),),
    FixedSizeListType: (pa.list_(pa.int8(), 2),),
    UnionType: (_union(pa.dense_union), _union(pa.sparse_union)),
    Bool8Type: (pa.bool8(),),
    FixedShapeTensorType: (pa.fixed_shape_tensor(pa.int8(), [2, 1]),),
    ExtensionStorageType: (pa.uuid(),),
}


def _key(arrow: pa.DataType) -> str | int:
    """Returns what the table is searched by: the name of an extension type, or the type's id."""
    return arrow.extension_name if isinstance(arrow, pa.BaseExtensionType) else arrow.id


_BY_KEY = {_key(arrow): described for described, examples in TABLE.items() for arrow in examples}


def column_type(arrow: pa.DataType, path: Path, nulls: PlacedNulls | None = None) -> ColumnType:
    """Returns the ColumnType to read columns of an Arrow type.

    Args:
        arrow: The Arrow type.
        path: The path of the column, for errors.
        nulls: What to do with nulls. Default: every null is an error.

    Raises:
        UnsupportedTypeError: If the type, or a type inside it, is not in the table (also a
            TypeError).
        StructureError: If two fields of a struct have the same name (also a ValueError).
    """
    found = _describe(arrow, path, inner_types(arrow, path, nulls))
    if found is None:
        raise unsupported_error(arrow, path)
    policy = "error" if nulls is None else nulls.policy(arrow)
    if isinstance(found, UnionType):  # has no nulls of its own: its variants have them
        return found.with_nulls(policy)
    return found if policy == "error" else NullableType(found, policy)


def inner_types(
    arrow: pa.DataType, path: Path, nulls: PlacedNulls | None
) -> Callable[..., ColumnType]:
    """Returns the function that returns the ColumnTypes of the types inside a type."""
    if nulls is None:
        return column_type
    return lambda inner, at: column_type(inner, at, nulls.inside(arrow, path, at))


def described_nulls(nulls: NullsLike | None) -> PlacedNulls | None:
    """Returns the argument `nulls` of functions that read Arrow data, seen from the root."""
    policies = Nulls(nulls)
    return None if policies.are_errors else PlacedNulls(policies)


def target_type(arrow: pa.DataType, path: Path) -> ColumnType:
    """Returns the ColumnType to write columns of any Arrow type, in the table or not.

    Raises:
        StructureError: If two fields of a struct have the same name (also a ValueError).
    """
    return _describe(arrow, path, target_type) or UnreadType(arrow)


def _describe(
    arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType]
) -> ColumnType | None:
    described = _BY_KEY.get(_key(arrow))
    if described is None and isinstance(arrow, pa.BaseExtensionType):
        described = ExtensionStorageType
    return None if described is None else described.from_arrow_type(arrow, path, inner_type)
