"""The table of supported Arrow types and their ColumnType classes.

Reading, writing and schemas use this table. `tests/arrow/test_type_table.py` converts every type
in the table from Arrow to a tensor and back.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from extensor._arrow.arrow_type import unsupported
from extensor._arrow.column_type import ColumnType
from extensor._arrow.flat_types import (
    BooleanType,
    DictionaryType,
    FixedSizeBinaryType,
    NumberType,
    StringType,
    StringViewType,
    UnreadType,
)
from extensor._arrow.natural_type import NUMBERS
from extensor._arrow.nested_types import FixedSizeListType, ListType, StructType
from extensor._path import Path

# For a type with parameters, the table has one example; `_BY_ID` finds the class by type id.
TABLE: dict[type[ColumnType], tuple[pa.DataType, ...]] = {
    NumberType: tuple(NUMBERS),
    BooleanType: (pa.bool_(),),
    StringType: (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()),
    StringViewType: (pa.string_view(), pa.binary_view()),
    FixedSizeBinaryType: (pa.binary(2),),
    DictionaryType: (pa.dictionary(pa.int32(), pa.string()),),
    StructType: (pa.struct([("x", pa.int8())]),),
    ListType: (pa.list_(pa.int8()), pa.large_list(pa.int8())),
    FixedSizeListType: (pa.list_(pa.int8(), 2),),
}

_BY_ID = {arrow.id: described for described, examples in TABLE.items() for arrow in examples}


def column_type(arrow: pa.DataType, path: Path) -> ColumnType:
    """Returns the ColumnType to read columns of an Arrow type.

    Args:
        arrow: The Arrow type.
        path: The path of the column, for errors.

    Raises:
        UnsupportedTypeError: If the type, or a type inside it, is not in the table (also a
            TypeError).
        StructureError: If two fields of a struct have the same name (also a ValueError).
    """
    found = _described(arrow, path, column_type)
    if found is None:
        raise unsupported(arrow, path)
    return found


def target_type(arrow: pa.DataType, path: Path) -> ColumnType:
    """Returns the ColumnType to write columns of any Arrow type, in the table or not.

    Raises:
        StructureError: If two fields of a struct have the same name (also a ValueError).
    """
    return _described(arrow, path, target_type) or UnreadType(arrow)


def _described(arrow: pa.DataType, path: Path, inner_type: Any) -> ColumnType | None:
    described = _BY_ID.get(arrow.id)
    return None if described is None else described.of(arrow, path, inner_type)
