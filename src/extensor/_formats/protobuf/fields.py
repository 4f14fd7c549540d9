"""The fields of a message type as the fields of records: what both engines read and write."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import tensorflow as tf
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from extensor._path import Path

MOST_SECONDS = (2**63 + 2**31) // 10**9
"""More seconds, before or after 1970, do not fit into 64 bits as nanoseconds, whatever their
nanoseconds are. Of so many, the sum has the other sign if it does not fit."""

Key = bytes | bool | int
"""A key of a map."""


class Count(enum.Enum):
    """How many values of a field a record has."""

    ONE = "one value; the default value, if the message has none"
    REQUIRED = "one value; an error, if the message has none"
    OPTIONAL = "a list of no value or of one"
    NULLABLE = "one value or a null, with which the argument `nulls` deals"
    MANY = "a list"


@dataclass(frozen=True)
class Scalar:
    """A number, a bool, a text or bytes.

    Attributes:
        wire: The type on the wire, such as TYPE_SINT32.
        default: The value of a field that the message does not have.
    """

    wire: int
    default: Any

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type."""
        return _LEAVES[self.wire][0]

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the tensor."""
        return _LEAVES[self.wire][1]

    @property
    def has_own_default(self) -> bool:
        """Whether the default is another value than zero, False or the empty text."""
        return self.default != type(self.default)() or str(self.default) == "-0.0"


@dataclass(frozen=True)
class Wrapper:
    """A message of one field that stands for its value, such as google.protobuf.Int32Value."""

    value: Scalar

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type."""
        return self.value.arrow


@dataclass(frozen=True)
class Time:
    """google.protobuf.Timestamp or Duration: seconds and nanoseconds.

    Attributes:
        arrow: The Arrow type.
    """

    arrow: pa.DataType


@dataclass(frozen=True)
class Cut:
    """A message below the depth to which a recursive type is read. There must be none."""


@dataclass(frozen=True)
class Record:
    """A message.

    Attributes:
        name: The full name of its type.
        fields: The fields to read, in their order.
        left_out: The paths of required fields that are not among them.
    """

    name: str
    fields: tuple[AnyField, ...]
    left_out: tuple[Path, ...] = ()

    @property
    def shown(self) -> list[AnyField]:
        """The fields that records have."""
        return [f for f in self.fields if isinstance(f, Oneof) or not isinstance(f.type, Cut)]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the records."""
        return pa.schema([field.arrow for field in self.shown])

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type."""
        return pa.struct([field.arrow for field in self.shown])

    def on_wire(self) -> list[MessageField]:
        """Returns the fields as messages have them: the members of a oneof one by one."""
        return [
            member
            for field in self.fields
            for member in (field.members if isinstance(field, Oneof) else [field])
        ]


@dataclass(frozen=True)
class ChosenKeys(Record):
    """A map of which some keys are read: a record with a field for each key.

    Attributes:
        key: The type of the keys.
        value: The type of the values.
        keys: The keys, one for each field.
    """

    key: Scalar = field(kw_only=True)
    value: Type = field(kw_only=True)
    keys: tuple[Key, ...] = field(kw_only=True)


Type = Scalar | Wrapper | Time | Record | Cut


@dataclass(frozen=True)
class MessageField:
    """A field of a message.

    Attributes:
        name: The name of the field of the records.
        path: The path of the field.
        number: The number of the field of the message.
        count: How many values a record has.
        type: The type of a value.
        policy: What to do with nulls, where the field is nullable.
        is_group: Whether values are written as groups.
        is_map: Whether values are the entries of a map.
        is_packed: Whether a writer packs the values.
        oneof: The name of the oneof that the field is in; the empty text if it is in none.
        given: The Arrow type that the schema of the records has for a value; None without a schema.
    """

    name: str
    path: Path
    number: int
    count: Count
    type: Type
    policy: Any = field(default=None, compare=False)
    is_group: bool = False
    is_map: bool = False
    is_packed: bool = False
    oneof: str = ""
    given: pa.DataType | None = field(default=None, compare=False)

    @property
    def arrow(self) -> pa.Field:
        """The Arrow field."""
        arrow = _arrow(self.type)
        if isinstance(self.type, ChosenKeys):
            return pa.field(self.name, arrow, False)
        if self.is_map and arrow.num_fields == 2:
            key, value = arrow.fields
            return pa.field(self.name, pa.map_(key.type, value), False)
        return _arrow_field(self.name, arrow, self.count)


@dataclass(frozen=True)
class Oneof:
    """Fields of which a message has at most one: the variants of a union.

    Attributes:
        name: The name of the oneof, and of the field of the records.
        path: The path of the field.
        count: OPTIONAL or NULLABLE.
        members: The fields.
        policy: What to do with nulls, where the field is nullable.
    """

    name: str
    path: Path
    count: Count
    members: tuple[MessageField, ...]
    policy: Any = field(default=None, compare=False)

    @property
    def arrow(self) -> pa.Field:
        """The Arrow field."""
        variants = [pa.field(m.name, _arrow(m.type), True) for m in self.members]
        return _arrow_field(self.name, pa.dense_union(variants), self.count)


AnyField = MessageField | Oneof


def _arrow(kind: Type) -> pa.DataType:
    assert not isinstance(kind, Cut)  # records have no field for it
    return kind.arrow


def _arrow_field(name: str, arrow: pa.DataType, count: Count) -> pa.Field:
    if count in (Count.OPTIONAL, Count.MANY):
        arrow = pa.list_(pa.field("item", arrow, pa.types.is_union(arrow)))
    return pa.field(name, arrow, count is Count.NULLABLE or pa.types.is_union(arrow))


def records_of(record: Record) -> Iterator[Record]:
    """Yields a record type, and all record types inside it."""
    yield record
    for inner in record.on_wire():
        if isinstance(inner.type, Record):
            yield from records_of(inner.type)


_INT32, _UINT32 = (pa.int32(), tf.int32), (pa.uint32(), tf.uint32)
_INT64, _UINT64 = (pa.int64(), tf.int64), (pa.uint64(), tf.uint64)
_LEAVES: dict[int, tuple[pa.DataType, tf.DType]] = {
    Proto.TYPE_INT32: _INT32,
    Proto.TYPE_SINT32: _INT32,
    Proto.TYPE_SFIXED32: _INT32,
    Proto.TYPE_UINT32: _UINT32,
    Proto.TYPE_FIXED32: _UINT32,
    Proto.TYPE_INT64: _INT64,
    Proto.TYPE_SINT64: _INT64,
    Proto.TYPE_SFIXED64: _INT64,
    Proto.TYPE_UINT64: _UINT64,
    Proto.TYPE_FIXED64: _UINT64,
    Proto.TYPE_FLOAT: (pa.float32(), tf.float32),
    Proto.TYPE_DOUBLE: (pa.float64(), tf.float64),
    Proto.TYPE_BOOL: (pa.bool_(), tf.bool),
    Proto.TYPE_STRING: (pa.string(), tf.string),
    Proto.TYPE_BYTES: (pa.binary(), tf.string),
}
