"""THE table of Arrow types: which there are, and the class that describes each.

Reading, writing and schemas all go by it. `tests/arrow/test_type_table.py` takes every type in it
from Arrow to a tensor and back.
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

# Of a type with parameters one example, which stands for all.
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
    """Returns how columns of an Arrow type are read.

    Args:
        arrow: The Arrow type.
        path: The path of the column, for errors.

    Raises:
        UnsupportedTypeError: If it, or a type in it, is not in the table (also a TypeError).
        StructureError: If two fields of a struct have one name (also a ValueError).
    """
    found = _described(arrow, path, column_type)
    if found is None:
        raise unsupported(arrow, path)
    return found


def target_type(arrow: pa.DataType, path: Path) -> ColumnType:
    """Returns how columns of an Arrow type are written, which may be one that is not read.

    Raises:
        StructureError: If two fields of a struct have one name (also a ValueError).
    """
    return _described(arrow, path, target_type) or UnreadType(arrow)


def _described(arrow: pa.DataType, path: Path, inner_type: Any) -> ColumnType | None:
    described = _BY_ID.get(arrow.id)
    return None if described is None else described.of(arrow, path, inner_type)
