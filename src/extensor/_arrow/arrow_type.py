"""Predicates of Arrow types, and access to the types inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def is_text(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is text of any layout."""
    t = pa.types
    return t.is_string(arrow_type) or t.is_large_string(arrow_type) or t.is_string_view(arrow_type)


def is_large_list(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a list with 64-bit offsets, or a view of lists with them."""
    return pa.types.is_large_list(arrow_type) or pa.types.is_large_list_view(arrow_type)


def is_view(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a view of lists."""
    return pa.types.is_list_view(arrow_type) or pa.types.is_large_list_view(arrow_type)


def is_list(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a list of any kind; a map is not."""
    t = pa.types
    return (
        is_large_list(arrow_type)
        or t.is_list(arrow_type)
        or t.is_fixed_size_list(arrow_type)
        or t.is_list_view(arrow_type)
    )


def may_be_empty(arrow_type: pa.DataType) -> bool:
    """Returns whether the type, decoded, is a map or a list of any length."""
    arrow_type = decoded_type(arrow_type)
    is_fixed = pa.types.is_fixed_size_list(arrow_type)
    return pa.types.is_map(arrow_type) or (is_list(arrow_type) and not is_fixed)


def decoded_type(arrow_type: pa.DataType) -> pa.DataType:
    """Returns the type of the values of an extension type, of a dictionary or of runs.

    >>> from extensor._arrow.arrow_type import decoded_type
    >>> import pyarrow as pa
    >>> decoded_type(pa.dictionary(pa.int8(), pa.string()))
    DataType(string)
    """
    while True:
        if isinstance(arrow_type, pa.BaseExtensionType):
            arrow_type = arrow_type.storage_type
        elif is_encoded(arrow_type):
            arrow_type = arrow_type.value_type
        else:
            return arrow_type


def is_encoded(arrow_type: pa.DataType) -> bool:
    """Returns whether the type stores repeated values once: a dictionary, or runs."""
    return pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type)


def inner_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    """Returns the fields of a struct, list or map, or [] for other types."""
    if pa.types.is_struct(arrow_type):
        return arrow_type.fields
    if pa.types.is_union(arrow_type):
        return [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    return [arrow_type.value_field] if is_list(arrow_type) else []


def with_inner_fields(arrow_type: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """Returns a type with its `inner_fields` replaced.

    >>> from extensor._arrow.arrow_type import with_inner_fields
    >>> import pyarrow as pa
    >>> with_inner_fields(pa.list_(pa.int8(), 2), [pa.field("item", pa.string())])
    FixedSizeListType(fixed_size_list<item: string>[2])
    """
    if pa.types.is_struct(arrow_type):
        return pa.struct(fields)
    if pa.types.is_map(arrow_type):
        return pa.map_(*fields, keys_sorted=arrow_type.keys_sorted)
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(fields[0], arrow_type.list_size)
    for is_kind, make in _LISTS:
        if is_kind(arrow_type):
            return make(fields[0])
    return arrow_type


_LISTS: tuple[tuple[Callable[[Any], bool], Callable[[Any], pa.DataType]], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def map_types(
    arrow_type: pa.DataType, change: Callable[[pa.DataType], pa.DataType | None]
) -> pa.DataType:
    """Returns a type with what `change` returns in place of it, or of types inside it.

    The names, nullability and metadata of fields stay. So do unions, with all that is inside them.

    Args:
        arrow_type: The type.
        change: Returns a type, or None to go on inside the type that it gets.

    Returns:
        The type itself if nothing changes.

    >>> from extensor._arrow.arrow_type import map_types
    >>> import pyarrow as pa
    >>> map_types(pa.list_(pa.int64()), {pa.int64(): pa.int32()}.get)
    ListType(list<item: int32>)
    """
    found = change(arrow_type)
    if found is not None or not pa.types.is_nested(arrow_type):
        return arrow_type if found is None else found
    fields = inner_fields(arrow_type)
    types = [map_types(field.type, change) for field in fields]
    pairs = list(zip(fields, types, strict=True))
    if all(field.type is inner for field, inner in pairs):
        return arrow_type
    return with_inner_fields(arrow_type, [field.with_type(inner) for field, inner in pairs])


def map_schema(schema: pa.Schema, change: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    """Returns a schema with a function applied to the type of each column."""
    return pa.schema([field.with_type(change(field.type)) for field in schema], schema.metadata)


def without_fields(field: pa.Field) -> pa.Field:
    """Returns a field with all structs in its type empty. Keeps nullability and metadata.

    >>> from extensor._arrow.arrow_type import without_fields
    >>> import pyarrow as pa
    >>> without_fields(pa.field("x", pa.list_(pa.struct([("y", pa.int8())])))).type
    ListType(list<item: struct<>>)
    """
    made = map_types(field.type, lambda t: pa.struct([]) if pa.types.is_struct(t) else None)
    return field if made is field.type else field.with_type(made)


def item_type(arrow_type: pa.DataType | None) -> pa.DataType | None:
    """Returns the type of the items of nested lists, without dictionaries and runs; None of None.

    >>> from extensor._arrow.arrow_type import item_type
    >>> import pyarrow as pa
    >>> item_type(pa.list_(pa.dictionary(pa.int8(), pa.date32())))
    DataType(date32[day])
    """
    while arrow_type is not None and (is_list(arrow_type) or is_encoded(arrow_type)):
        arrow_type = arrow_type.value_type
    return arrow_type


def variant_types(arrow_type: pa.DataType | None) -> dict[str, pa.DataType]:
    """Returns the types of the variants of a union, or of lists of one, by name, if known."""
    union = item_type(arrow_type)
    if union is None or not pa.types.is_union(union):
        return {}
    return {field.name: field.type for field in inner_fields(union)}


def without_dictionaries(arrow_type: pa.DataType) -> pa.DataType:
    """Returns a type with the types of the words instead of dictionaries, also in inner fields.

    >>> from extensor._arrow.arrow_type import without_dictionaries
    >>> import pyarrow as pa
    >>> without_dictionaries(pa.list_(pa.dictionary(pa.int8(), pa.string())))
    ListType(list<item: string>)
    """
    return map_types(arrow_type, lambda t: t.value_type if pa.types.is_dictionary(t) else None)


def without_views(arrow_type: pa.DataType, only_encoded: bool = False) -> pa.DataType:
    """Returns a type with offsets in place of views of strings, also in inner fields.

    Most functions of Arrow take no views.

    Args:
        arrow_type: The type.
        only_encoded: Whether views stay that are not in a dictionary or in runs.

    >>> from extensor._arrow.arrow_type import without_views
    >>> import pyarrow as pa
    >>> without_views(pa.dictionary(pa.int8(), pa.string_view()))
    DictionaryType(dictionary<values=large_string, indices=int8, ordered=0>)
    """

    def change(found: pa.DataType) -> pa.DataType | None:
        if is_string_view(found) and not only_encoded:
            return pa.large_binary() if pa.types.is_binary_view(found) else pa.large_string()
        if not is_encoded(found):
            return None
        values = without_views(found.value_type)
        if values is found.value_type:
            return None
        if pa.types.is_dictionary(found):
            return pa.dictionary(found.index_type, values, found.ordered)
        return pa.run_end_encoded(found.run_end_type, values)

    return map_types(arrow_type, change)


def contains_type(arrow_type: pa.DataType, is_kind: Callable[[pa.DataType], bool]) -> bool:
    """Returns whether `is_kind` is true of a type or of a type inside it."""
    fields = inner_fields(arrow_type)
    return is_kind(arrow_type) or any(contains_type(field.type, is_kind) for field in fields)


def holds_records(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a struct or (nested) lists of structs."""
    while not pa.types.is_struct(arrow_type):
        if isinstance(arrow_type, pa.BaseExtensionType):
            arrow_type = arrow_type.storage_type
        elif is_list(arrow_type):
            arrow_type = arrow_type.value_type
        else:
            return False
    return True


def names_of(fields: Iterable[pa.Field], path: Path) -> list[str]:
    """Returns the names of the fields of an Arrow schema or struct.

    Raises:
        StructureError: If two fields have one name (also a ValueError).
        FormatError: If a name is not UTF-8 (also a ValueError).
    """
    try:
        names = [field.name for field in fields]
    except UnicodeDecodeError as error:
        fix = "The data is corrupt, or the program that wrote it has a bug."
        raise FormatError(
            path if path else "names of columns", "names in UTF-8", "bytes that are not UTF-8", fix
        ) from error
    if len(set(names)) < len(names):
        duplicate = next(name for i, name in enumerate(names) if name in names[:i])
        expected = "a unique field name"
        fix = "Rename one of the fields, such as by Table.rename_columns."
        raise StructureError(path / duplicate, expected, "two fields of this name", fix)
    return names


def invalid(path: object, expected: str, received: str) -> StructureError:
    """Returns the error for buffers that Arrow does not allow."""
    fix = "Fix the program that wrote these buffers; extensor read nothing from them."
    return StructureError(path, expected, received, fix)


def rejection(path: object, error: Exception) -> StructureError:
    """Returns the error for an array that Arrow's own validation rejects."""
    return invalid(path, "a valid Arrow array", f"an array that Arrow rejects ({error})")


def unsupported_error(arrow_type: pa.DataType, path: Path) -> UnsupportedTypeError:
    """Returns the error for an Arrow type that is not in the type table."""
    expected = "an Arrow type that has a tensor (docs/arrow.md lists them)"
    fix = "Cast the column to one of these in Arrow, or leave it out."
    return UnsupportedTypeError(path, expected, f"Arrow type {arrow_type}", fix)
