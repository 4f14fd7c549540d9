"""Questions about Arrow types, and the one description of how they nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from extensor._path import Path
from extensor.errors import FormatError, StructureError, UnsupportedTypeError


def is_string(arrow_type: pa.DataType) -> bool:
    """Returns whether values of the type are strings of characters or bytes of any length."""
    t = pa.types
    return (
        t.is_string(arrow_type)
        or t.is_binary(arrow_type)
        or is_large_string(arrow_type)
        or is_string_view(arrow_type)
    )


def is_large_string(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a string or binary type with offsets of 64 bits."""
    return pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type)


def is_string_view(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a string or binary view."""
    return pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type)


def is_category(arrow_type: pa.DataType) -> bool:
    """Returns whether values of the type are strings written as places in a dictionary."""
    return pa.types.is_dictionary(arrow_type) and is_string(arrow_type.value_type)


def is_list(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a list with offsets."""
    return pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)


def inner_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    """Returns the fields of a struct, the field of a list's values; none of other types."""
    if pa.types.is_struct(arrow_type):
        return arrow_type.fields
    if is_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        return [arrow_type.value_field]
    return []


def with_inner_fields(arrow_type: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """Returns a type with other fields in the place of its `inner_fields`.

    >>> with_inner_fields(pa.list_(pa.int8(), 2), [pa.field("item", pa.string())])
    FixedSizeListType(fixed_size_list<item: string>[2])
    """
    if pa.types.is_struct(arrow_type):
        return pa.struct(fields)
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(fields[0], arrow_type.list_size)
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(fields[0])
    return pa.list_(fields[0]) if pa.types.is_list(arrow_type) else arrow_type


def holds(arrow_type: pa.DataType, is_kind: Callable[[pa.DataType], bool]) -> bool:
    """Returns whether a type, or one inside it, is of some kind, such as `is_category`."""
    fields = inner_fields(arrow_type)
    return is_kind(arrow_type) or any(holds(field.type, is_kind) for field in fields)


def holds_records(arrow_type: pa.DataType) -> bool:
    """Returns whether values of the type are records, or lists of them."""
    while not pa.types.is_struct(arrow_type):
        fields = inner_fields(arrow_type)
        if not fields:
            return False
        arrow_type = fields[0].type
    return True


def names_of(fields: Any, path: Path) -> list[str]:
    """Returns the names of an Arrow schema's or struct's fields, which must differ.

    Raises:
        StructureError: If two fields have one name (also a ValueError).
        FormatError: If a name is not UTF-8 (also a ValueError).
    """
    try:
        names = [field.name for field in fields]
    except UnicodeDecodeError as error:
        raise FormatError(
            path=path if path else "names of columns",
            expected="names in UTF-8, as Arrow has them",
            received="bytes that are not UTF-8",
            mend="The data is corrupt, or was written by a program that has to be mended.",
        ) from error
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise StructureError(
            path=path / twice,
            expected="fields of different names",
            received="two fields of this name",
            mend="Rename one, such as by Table.rename_columns.",
        )
    return names


def unsupported(arrow_type: pa.DataType, path: Path) -> UnsupportedTypeError:
    """Returns the error for an Arrow type that the type table does not have."""
    return UnsupportedTypeError(
        path=path,
        expected="integers, floats, booleans, strings, binary, lists or structs of these",
        received=f"Arrow type {arrow_type}",
        mend="Take the storage of the extension type (array.storage), or leave the column out."
        if isinstance(arrow_type, pa.BaseExtensionType)
        else "Cast the column to one of these in Arrow, or leave it out.",
    )
