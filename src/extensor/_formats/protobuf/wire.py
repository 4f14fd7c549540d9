"""Message types that have the same bytes as those of the caller, and only the fields to read.

Both engines get such types. Each message of a recursive type becomes a type of its own, an enum
becomes an int32, an extension becomes a field, and the fields of google.protobuf.Timestamp are
read as they are. Fields that nobody asked for are unknown to these types, so they are skipped.
"""

from __future__ import annotations

import array
import mmap
from typing import Any

import numpy as np
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from extensor._formats.protobuf.fields import (
    ChosenKeys,
    Count,
    Cut,
    MessageField,
    Record,
    Scalar,
    Time,
    Type,
    Wrapper,
)
from extensor._path import Path
from extensor.errors import FormatError

ROOT = "extensor.M"
"""The full name of the type of the records."""

_NEVER_PACKED = (Proto.TYPE_STRING, Proto.TYPE_BYTES)


def file_of(record: Record) -> FileDescriptorProto:
    """Returns a file with the message type of a record and all inside it, for ptars.

    A field that the message may lack is optional here: then it is known whether it is there. No
    other field is repeated than in the message: packed values belong to repeated fields alone.
    protobuf itself reads groups and oneofs by this type, which ptars does not.
    """
    file = FileDescriptorProto(name="extensor.proto", package="extensor", syntax="proto3")
    _add_message(file.message_type.add(name="M"), f".{ROOT}", inner_fields(record))
    return file


def inner_fields(kind: Type) -> list[MessageField]:
    """Returns the fields of a message that the wire has for a value."""
    if isinstance(kind, ChosenKeys):
        return [_field("key", 1, kind.key), _field("value", 2, kind.value)]
    if isinstance(kind, Record):
        return kind.on_wire()
    if isinstance(kind, Wrapper):
        return [_field("value", 1, kind.value)]
    assert isinstance(kind, Time)
    return [
        _field("seconds", 1, Scalar(Proto.TYPE_INT64, 0)),
        _field("nanos", 2, Scalar(Proto.TYPE_INT32, 0)),
    ]


def _field(name: str, number: int, kind: Type) -> MessageField:
    return MessageField(name, Path(name), number, Count.ONE, kind)


def _add_message(message: DescriptorProto, name: str, fields: list[MessageField]) -> None:
    """Adds fields to a message type, which has the full name `name`."""
    optional: list[Proto] = []
    oneofs = list(dict.fromkeys(field.oneof for field in fields if field.oneof))
    for i in range(len(oneofs)):
        message.oneof_decl.add(name=f"o{i}")
    for i, field in enumerate(fields):
        is_list = field.count is Count.MANY
        proto = _add_field(message, i, field, is_list)
        if field.oneof and not isinstance(field.type, Cut):
            proto.oneof_index = oneofs.index(field.oneof)
        if isinstance(field.type, Scalar):
            is_zero = field.count is Count.ONE and not field.type.has_own_default
            if not is_list and not is_zero and not field.oneof:
                proto.proto3_optional = True
                optional.append(proto)
        elif not isinstance(field.type, Cut):
            proto.type = Proto.TYPE_GROUP if field.is_group else Proto.TYPE_MESSAGE
            proto.type_name = f"{name}.M{i}"
            inner = message.nested_type.add(name=f"M{i}")
            _add_message(inner, proto.type_name, inner_fields(field.type))
    for proto in optional:  # a oneof of one field marks it as optional
        proto.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{proto.name}")


def _add_field(message: DescriptorProto, i: int, field: MessageField, is_list: bool) -> Proto:
    """Adds a field to a message type; a message inside is bytes."""
    proto = message.field.add(name=f"f{i}", json_name=f"f{i}", number=field.number)
    proto.label = Proto.LABEL_REPEATED if is_list else Proto.LABEL_OPTIONAL
    proto.type = Proto.TYPE_BYTES
    if isinstance(field.type, Scalar):
        wire: Any = field.type.wire  # an int at run time, and a type of its own for type checkers
        proto.type = wire
        if is_list and wire not in _NEVER_PACKED:
            proto.options.packed = field.is_packed
    return proto


def flat_type(fields: list[MessageField]) -> bytes:
    """Returns a serialized set of files with one message type, for tf.io.decode_proto.

    A message inside is a repeated field of bytes. A group has an empty type.
    """
    file = FileDescriptorProto(name="extensor.proto", package="extensor", syntax="proto2")
    message = file.message_type.add(name="M")
    for i, field in enumerate(fields):
        is_list = field.count is Count.MANY or not isinstance(field.type, Scalar)
        proto = _add_field(message, i, field, is_list)
        if field.is_group:
            proto.type = Proto.TYPE_GROUP
            proto.type_name = f".{ROOT}.F{i}"
            message.nested_type.add(name=f"F{i}")
    return FileDescriptorSet(file=[file]).SerializeToString(deterministic=True)


def varint(number: int) -> bytes:
    """Returns a number as the wire has it."""
    parts: list[int] = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def ends_of_messages(data: bytes | mmap.mmap, path: str) -> np.ndarray[Any, Any]:
    """Returns where each message of a file ends.

    Args:
        data: The content of the file.
        path: The path of the file, for errors.

    Raises:
        FormatError: If the last message is not complete (also a ValueError).
    """
    ends, at, size = array.array("q"), 0, len(data)
    while at < size:
        start, length = _after_length(data, at)
        at = size + 1 if length is None else start + length
        if at > size:
            received = "a file that ends before the message does"
            fix = "Write the file again, or check that it has messages after their lengths."
            record = f"record {len(ends)} of {path}"
            raise FormatError(record, "a message after its length", received, fix)
        ends.append(at)
    return np.array(ends, np.int64)


def messages_in(data: bytes) -> list[bytes]:
    """Returns the messages of a part of a file that begins and ends with a message."""
    messages: list[bytes] = []
    at = 0
    while at < len(data):
        start, length = _after_length(data, at)
        if length is None or start + length > len(data):
            break
        at = start + length
        messages.append(data[start:at])
    return messages


def _after_length(data: bytes | mmap.mmap, at: int) -> tuple[int, int | None]:
    """Returns where the message at a place begins, and its length; None if that is not complete."""
    length = shift = 0
    for number, byte in enumerate(data[at : at + 10], at + 1):
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, length
        shift += 7
    return at, None
