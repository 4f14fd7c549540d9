"""Arrow types of JSON: what the parser reads, one type for several, and conversion between them."""

# pyarrow makes most functions of pyarrow.compute when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import base64
import binascii
from typing import Any

import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import (
    contains_type,
    inner_fields,
    is_list,
    is_string,
    is_text,
    map_types,
    with_inner_fields,
)
from extensor._arrow.times_of_text import is_time, time_of_text
from extensor._struct.to_python import Time

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time


class InexactError(Exception):
    """The parser, or Arrow's cast, does not give the exact values. `exact` reads them."""


def with_text(arrow: pa.DataType) -> pa.DataType:
    """Returns a type with strings for timestamps, which the parser guesses from text."""
    return map_types(arrow, lambda t: pa.string() if pa.types.is_timestamp(t) else None)


def only_timestamps(arrow: pa.DataType) -> pa.DataType | None:
    """Returns the part of a type that is timestamps, as strings; None if there are none.

    The parser infers all other types: what a later record has may be more than the first ones.
    """
    if not contains_type(arrow, pa.types.is_timestamp):
        return None
    if pa.types.is_timestamp(arrow):
        return pa.string()
    fields = [(field, only_timestamps(field.type)) for field in inner_fields(arrow)]
    inner = [field.with_type(found) for field, found in fields if found is not None]
    return with_inner_fields(arrow, inner)


def join_types(one: pa.DataType, other: pa.DataType, path: str = "") -> pa.DataType:
    """Returns the type of the values of both types.

    Args:
        one: A type.
        other: Another one.
        path: The path of the values.

    Raises:
        InexactError: If there is none; with the path, and the two types there.
    """
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        found = {field.name: field.type for field in one.fields}
        for field in other.fields:
            inner = f"{path}.{field.name}" if path else field.name
            found[field.name] = join_types(found.get(field.name, pa.null()), field.type, inner)
        return pa.struct(list(found.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(join_types(one.value_type, other.value_type, f"{path}[*]"))
    raise InexactError(path, one, other)


def parsed_type(arrow: pa.DataType) -> pa.DataType:
    """Returns the type that the parser reads, and `convert_array` makes a wanted type of.

    Raises:
        InexactError: If there is none.
    """
    t = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return parsed_type(arrow.storage_type)
    if t.is_struct(arrow):
        return pa.struct([field.with_type(parsed_type(field.type)) for field in arrow.fields])
    if t.is_dictionary(arrow):
        return parsed_type(arrow.value_type)
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow):
        return pa.list_(parsed_type(arrow.value_type))
    if t.is_boolean(arrow) or t.is_integer(arrow) or t.is_decimal128(arrow) or t.is_null(arrow):
        return arrow
    if t.is_floating(arrow):
        return pa.float64()
    if t.is_duration(arrow):
        return pa.int64()
    if is_text(arrow) or is_bytes(arrow) or is_time(arrow):
        return pa.string()
    raise InexactError


def is_bytes(arrow: pa.DataType) -> bool:
    """Returns whether the values are bytes, which are base64 in JSON."""
    is_fixed = pa.types.is_fixed_size_binary(arrow)
    return is_fixed or (is_string(arrow) and not is_text(arrow))


def convert_array(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Returns an array as a type that `join_types` or `parsed_type` relates to its own.

    Raises:
        InexactError: If a value does not convert without loss.
    """
    if array.type.equals(arrow):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow)
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, convert_array(array, arrow.storage_type))
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    if pa.types.is_struct(arrow):
        return _converted_struct(array, arrow)
    if is_list(arrow):
        made = pa.list_(arrow.value_field)
        child = convert_array(array.values, arrow.value_type)
        lists = pa.Array.from_buffers(made, len(array), array.buffers()[:2], children=[child])
        return lists if made.equals(arrow) else _cast(lists, arrow)
    return converted_leaf(array, arrow)


def _converted_struct(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    numbers = {field.name: i for i, field in enumerate(array.type.fields)}
    children = [
        convert_array(array.field(numbers[field.name]), field.type)
        if field.name in numbers
        else pa.nulls(len(array), field.type)
        for field in arrow.fields
    ]
    return pa.Array.from_buffers(arrow, len(array), array.buffers()[:1], children=children)


def converted_leaf(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Returns numbers or text as a type, as `convert_array` does."""
    t = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, converted_leaf(array, arrow.storage_type))
    if t.is_dictionary(arrow):
        return _cast(converted_leaf(array, arrow.value_type), arrow)
    if is_bytes(arrow):
        return _decode(array, arrow)
    made = _cast(array, arrow)
    if t.is_floating(arrow) and t.is_floating(array.type):
        infinite = pc.sum(pc.is_inf(array)).as_py() or 0
        if infinite != (pc.sum(pc.is_inf(made.cast(pa.float64()))).as_py() or 0):
            raise InexactError
    return made


def _cast(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    try:
        return time_of_text(array, arrow) if pa.types.is_time(arrow) else array.cast(arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InexactError from error


def _decode(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    try:
        values = [
            None if each is None else base64.b64decode(each, validate=True)
            for each in array.to_pylist()
        ]
        return pa.array(values, arrow)
    except (binascii.Error, ValueError, pa.ArrowInvalid) as error:
        raise InexactError from error


def value_of(value: str, arrow: pa.DataType) -> object:
    """Returns a text as the value of a type; itself if it does not convert."""
    try:
        made = converted_leaf(pa.array([value], pa.string()), arrow)[0]
    except InexactError:
        return value
    is_fine = pa.types.is_time64(arrow) and arrow.unit == "ns"
    nanosecond = made.value % 1000 if is_fine else 0
    return Time.of(made.as_py(), nanosecond) if nanosecond else made.as_py()
