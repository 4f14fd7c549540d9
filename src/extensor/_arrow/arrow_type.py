"""Predicates of Arrow types, and access to the types inside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from extensor._path import Path
from extensor.errors import FormatError, StructureError, UnsupportedTypeError


def is_string(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a string or binary type of variable length."""
    t = pa.types
    return (
        t.is_string(arrow_type)
        or t.is_binary(arrow_type)
        or is_large_string(arrow_type)
        or is_string_view(arrow_type)
    )


def is_large_string(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a string or binary type with 64-bit offsets."""
    return pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type)


def is_string_view(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a string or binary view."""
    return pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type)


def is_category(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a dictionary of strings."""
    return pa.types.is_dictionary(arrow_type) and is_string(arrow_type.value_type)


def is_list(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is `list` or `large_list`."""
    return pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)


def inner_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    """Returns the fields of a struct, the value field of a list, or [] for other types."""
    if pa.types.is_struct(arrow_type):
        return arrow_type.fields
    if is_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        return [arrow_type.value_field]
    return []


def with_inner_fields(arrow_type: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """Returns a type with its `inner_fields` replaced.

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
    """Returns whether `is_kind` is true of a type or of a type inside it."""
    fields = inner_fields(arrow_type)
    return is_kind(arrow_type) or any(holds(field.type, is_kind) for field in fields)


def holds_records(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a struct or (nested) lists of structs."""
    while not pa.types.is_struct(arrow_type):
        fields = inner_fields(arrow_type)
        if not fields:
            return False
        arrow_type = fields[0].type
    return True


def names_of(fields: Any, path: Path) -> list[str]:
    """Returns the names of the fields of an Arrow schema or struct.

    Raises:
        StructureError: If two fields have one name (also a ValueError).
        FormatError: If a name is not UTF-8 (also a ValueError).
    """
    try:
        names = [field.name for field in fields]
    except UnicodeDecodeError as error:
        raise FormatError(
            path=path if path else "names of columns",
            expected="names in UTF-8",
            received="bytes that are not UTF-8",
            mend="The data is corrupt, or the program that wrote it has a bug.",
        ) from error
    if len(set(names)) < len(names):
        duplicate = next(name for i, name in enumerate(names) if name in names[:i])
        raise StructureError(
            path=path / duplicate,
            expected="a unique field name",
            received="two fields of this name",
            mend="Rename one of the fields, such as by Table.rename_columns.",
        )
    return names


def unsupported(arrow_type: pa.DataType, path: Path) -> UnsupportedTypeError:
    """Returns the error for an Arrow type that is not in the type table."""
    return UnsupportedTypeError(
        path=path,
        expected="integers, floats, booleans, strings, binary, lists or structs of these",
        received=f"Arrow type {arrow_type}",
        mend="Take the storage of the extension type (array.storage), or leave the column out."
        if isinstance(arrow_type, pa.BaseExtensionType)
        else "Cast the column to one of these in Arrow, or leave it out.",
    )
