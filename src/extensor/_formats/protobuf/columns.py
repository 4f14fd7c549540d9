"""The engine outside of graphs: ptars reads messages as Arrow columns."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from extensor._arrow.struct_fields import struct_fields
from extensor._dependency import import_extra
from extensor._formats.protobuf.fields import (
    MOST_SECONDS,
    AnyField,
    ChosenKeys,
    Count,
    Cut,
    MessageField,
    Oneof,
    Record,
    Scalar,
    Time,
    Type,
    Wrapper,
)
from extensor._formats.protobuf.wire import ROOT, file_of, inner_fields
from extensor.errors import FormatError

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

_LARGE = 2**31 - 1
_FIXED = {
    Proto.TYPE_FLOAT,
    Proto.TYPE_DOUBLE,
    Proto.TYPE_FIXED32,
    Proto.TYPE_FIXED64,
    Proto.TYPE_SFIXED32,
    Proto.TYPE_SFIXED64,
}


class SplitError(Exception):
    """A message has two fields of one oneof, as no serializer writes it."""


class BadMessageError(FormatError):
    """A message is not a message of its type. The caller adds which one it is."""


def read_table(record: Record, serialized: Sequence[bytes], function: str) -> pa.Table:
    """Returns serialized messages as a table.

    Args:
        record: The fields to read.
        serialized: The messages.
        function: The function that needs ptars, for the error.

    Raises:
        SplitError: If a message has two fields of one oneof.
        BadMessageError: If bytes are not a message of the type.
        MissingDependencyError: If ptars is not installed (also an ImportError).
    """
    import_extra("ptars", "protobuf", function)
    # Offsets of 32 bits count the values of all messages; a value has a byte or more.
    is_large = sum(map(len, serialized)) > _LARGE
    messages = _messages(record, serialized, is_large)
    packed = _with_packed(record)
    if packed.fields:
        _expect_whole(packed, _messages(packed, serialized, is_large))
    columns = _columns(record, _children(messages), len(serialized))
    return pa.Table.from_arrays(columns, schema=pa.schema(_arrow_fields(record, columns)))


def _messages(record: Record, serialized: Sequence[bytes], is_large: bool) -> pa.StructArray:
    """Returns messages as ptars reads them, with offsets of 64 bits if they are large."""
    handler = _handler(file_of(record).SerializeToString(deterministic=True), is_large)
    try:
        return handler.list_to_record_batch(serialized).to_struct_array()
    except ValueError as error:
        expected = f"a message of type {record.name}"
        fix = "The bytes are damaged, cut, or of another message type."
        raise BadMessageError(None, expected, str(error).rpartition("message: ")[2], fix) from error


def _with_packed(kind: Record) -> Record:
    """Returns the fields of a message that are lists of numbers of 4 or 8 bytes, as bytes.

    ptars skips what remains where packed numbers are cut. Their bytes tell it.
    """
    fields: list[AnyField] = []
    for field in inner_fields(kind):
        if isinstance(field.type, Record):
            inner = _with_packed(field.type)
            if inner.fields:
                fields.append(dataclasses.replace(field, type=inner))
            continue
        leaf = field.type
        if field.count is Count.MANY and isinstance(leaf, Scalar) and leaf.wire in _FIXED:
            zero = bytes(leaf.arrow.bit_width // 8)
            fields.append(dataclasses.replace(field, type=Scalar(Proto.TYPE_BYTES, zero)))
    return Record(kind.name, tuple(fields))


def _expect_whole(packed: Record, messages: pa.StructArray) -> None:
    for field, array in zip(packed.on_wire(), _children(messages), strict=True):
        values = array.values if field.count is Count.MANY else array
        if isinstance(field.type, Record):
            _expect_whole(field.type, values)
            continue
        assert isinstance(field.type, Scalar)
        width = len(field.type.default)
        if (np.asarray(pc.binary_length(values)) % width).any():
            expected = f"packed values of {width} bytes each"
            fix = "The bytes are damaged, cut, or of another message type."
            raise BadMessageError(field.path, expected, "packed values that are cut", fix)


@functools.lru_cache(64)
def _handler(file: bytes, is_large: bool) -> Any:
    from ptars import PtarsConfig
    from ptars._lib import ProtoRegistry

    config = PtarsConfig(
        use_large_string=is_large, use_large_binary=is_large, use_large_list=is_large
    )
    return ProtoRegistry([file]).create_for_message(ROOT, config)


def _children(messages: pa.StructArray) -> list[pa.Array]:
    """Returns the fields of messages in the order of our fields; ptars orders them by number."""
    return [messages.field(f"f{i}") for i in range(messages.type.num_fields)]


def _arrow_fields(record: Record, columns: Sequence[pa.Array]) -> list[pa.Field]:
    """Returns the fields of records for columns, whose types may be the large ones."""
    return [f.arrow.with_type(c.type) for f, c in zip(record.shown, columns, strict=True)]


def _columns(
    record: Record, arrays: Sequence[pa.Array], count: int, rows: pa.Array | None = None
) -> list[pa.Array]:
    """Returns the columns of the fields of a record, from those of the fields on the wire.

    Args:
        record: The fields.
        arrays: The fields on the wire, as ptars reads them.
        count: The number of messages.
        rows: Whether each message is there; None if all are. The columns have placeholders where
            it is not.
    """
    rest = iter(arrays)
    columns: list[pa.Array] = []
    for field in record.fields:
        if isinstance(field, Oneof):
            columns.append(_union(field, [next(rest) for _ in field.members], count))
        elif isinstance(field.type, Cut):
            _expect_none(field, next(rest))
        else:
            columns.append(_column(field, field.type, next(rest), rows))
    return columns


def _column(field: MessageField, kind: Type, array: pa.Array, rows: pa.Array | None) -> pa.Array:
    if field.count is Count.NULLABLE:
        return _values(field, kind, array, True)
    if field.count is Count.REQUIRED and array.null_count:
        missing = array.is_null() if rows is None else pc.and_(array.is_null(), rows)
        if pc.any(missing).as_py():
            expected = "a value, because the field is required"
            fix = "The program that wrote the message left it out."
            raise BadMessageError(field.path, expected, "a message without the field", fix)
    if field.count in (Count.ONE, Count.REQUIRED):
        if isinstance(kind, Scalar):
            return array.fill_null(pa.scalar(kind.default, array.type))
        return _values(field, kind, array, False)
    if field.count is Count.OPTIONAL:
        # A list of one value where there is one, and of none where there is a null.
        values = _values(field, kind, array.drop_null() if array.null_count else array, False)
        return _lists(field, values, np.asarray(array.is_valid()))
    if isinstance(kind, ChosenKeys):
        return _of_keys(kind, array)
    values = _values(field, kind, array.values, False)
    if field.is_map and isinstance(kind, Record) and len(kind.shown) == 2:
        key, value = struct_fields(values)
        if pa.types.is_large_list(array.type):
            return type(array).from_arrays(array.offsets, values)
        return pa.MapArray.from_arrays(array.offsets, key, value, field.arrow.type)
    item = field.arrow.type.value_field.with_type(values.type)
    make = pa.large_list if pa.types.is_large_list(array.type) else pa.list_
    return type(array).from_arrays(array.offsets, values, make(item))


def _lists(field: AnyField, values: pa.Array, lengths: np.ndarray[Any, Any]) -> pa.Array:
    """Returns the values of a field as lists of some lengths."""
    is_large = len(values) > _LARGE
    offsets = np.zeros([len(lengths) + 1], np.int64 if is_large else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    make, item = pa.large_list if is_large else pa.list_, field.arrow.type.value_field
    arrow = make(item.with_type(values.type))
    buffers = [None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(arrow, len(lengths), buffers, children=[values])


def _of_keys(kind: ChosenKeys, array: pa.Array) -> pa.Array:
    """Returns some keys of maps as records."""
    keys, values = _children(array.values)
    value = kind.value
    if isinstance(value, Scalar):  # an entry without a value has the default value
        values = values.fill_null(pa.scalar(value.default, values.type))
    else:
        children = _children(values)
        values = pa.Array.from_buffers(values.type, len(values), [None], children=children)
    rows = np.repeat(np.arange(len(array)), np.diff(array.offsets))
    columns: list[pa.Array] = []
    for field, key in zip(kind.on_wire(), kind.keys, strict=True):
        found = np.flatnonzero(pc.equal(keys, pa.scalar(key, keys.type)))
        places = np.full([len(array)], -1)
        places[rows[found]] = found  # of entries with one key, the last counts
        chosen = values.take(pa.array(places, mask=places < 0))
        columns.append(_column(field, value, chosen, None))
    return pa.StructArray.from_arrays(columns, fields=_arrow_fields(kind, columns))


def _values(field: MessageField, kind: Type, array: pa.Array, has_nulls: bool) -> pa.Array:
    """Returns the values of a field.

    Args:
        field: The field.
        kind: The type of the values.
        array: The values as ptars reads them.
        has_nulls: Whether nulls of the array are nulls of the values; else they are messages
            without fields.
    """
    if isinstance(kind, Scalar):
        return array
    children = _children(array)
    bitmap = array.buffers()[0] if has_nulls and array.null_count else None
    if isinstance(kind, Record):
        rows = array.is_valid() if array.null_count else None
        columns = _columns(kind, children, len(array), rows)
        arrow = pa.struct(_arrow_fields(kind, columns))
        return pa.Array.from_buffers(arrow, len(array), [bitmap], children=columns)
    if isinstance(kind, Wrapper):
        values = children[0]
    else:
        assert isinstance(kind, Time)
        values = _nanoseconds(field, kind, *children)
    if bitmap is None:
        return values
    return pc.if_else(array.is_valid(), values, pa.scalar(None, values.type))


def _nanoseconds(field: MessageField, kind: Time, seconds: pa.Array, nanos: pa.Array) -> pa.Array:
    numbers, rest = np.asarray(seconds), np.asarray(nanos)
    times = numbers * 10**9 + rest
    outside = (numbers < -MOST_SECONDS) | (numbers > MOST_SECONDS)
    outside |= (np.abs(numbers) > 3) & ((numbers < 0) != (times < 0))
    if outside.any():
        expected = "a time that fits into 64 bits as nanoseconds, between the years 1677 and 2262"
        fix = "Choose other columns with columns=."
        raise BadMessageError(field.path, expected, f"{numbers[np.argmax(outside)]} seconds", fix)
    return pa.array(times).view(kind.arrow)


def _union(field: Oneof, members: list[pa.Array], count: int) -> pa.Array:
    valid = [np.asarray(member.is_valid()) for member in members]
    present = np.logical_or.reduce(valid) if valid else np.zeros([count], bool)
    if sum(v.sum() for v in valid) > present.sum():
        raise SplitError
    if field.count is Count.NULLABLE:
        valid[0] = valid[0] | ~present  # a null is a null of the first variant
        rows = np.ones([count], bool)
    else:
        rows = present
    codes = np.zeros([count], np.int8)
    positions = np.zeros([count], np.int32)
    variants: list[pa.Array] = []
    for i, (member, of_member) in enumerate(zip(field.members, members, strict=True)):
        codes[valid[i]] = i
        positions[valid[i]] = np.arange(valid[i].sum())
        chosen = of_member.filter(pa.array(valid[i]))
        variants.append(_values(member, member.type, chosen, True))
    names = [member.name for member in field.members]
    union = pa.UnionArray.from_dense(
        pa.array(codes[rows]), pa.array(positions[rows]), variants, names
    )
    return union if field.count is Count.NULLABLE else _lists(field, union, present)


def _expect_none(field: MessageField, array: pa.Array) -> None:
    if len(array.values):
        expected, fix = "messages nested at most as deep as max_depth says", "Increase max_depth."
        raise BadMessageError(field.path, expected, "a message that is nested deeper", fix)


def first_bad(serialized: list[bytes], read: Callable[[list[bytes]], object]) -> int:
    """Returns the number of the first message that a function refuses.

    Args:
        serialized: Messages, one or more of which the function refuses.
        read: Raises BadMessageError for messages that it refuses.
    """
    start, end = 0, len(serialized)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            read(serialized[start:middle])
        except BadMessageError:
            end = middle
        else:
            start = middle
    return start
