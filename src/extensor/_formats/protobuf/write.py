"""to_proto: records to serialized messages, by tf.io.encode_proto, inside of graphs and outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import tensorflow as tf
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from extensor._arrow.schema import masks_of_spec, schema_from_spec
from extensor._authoring.rows import uncut_rows
from extensor._formats.protobuf.absent import Absent
from extensor._formats.protobuf.descriptors import descriptor_of, record_of
from extensor._formats.protobuf.fields import (
    Count,
    MessageField,
    Oneof,
    Record,
    Scalar,
    Time,
    Type,
    Wrapper,
)
from extensor._formats.protobuf.text import expect_format, print_messages
from extensor._formats.protobuf.wire import ROOT, flat_type, inner_fields, varint
from extensor._path import Path
from extensor._protocol.spec_of import spec_of
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.masked import is_masked
from extensor._struct.meaning import (
    WHOLE,
    Meaning,
    Unit,
    are_decimals,
    different_meanings,
    meaning_of,
)
from extensor._struct.reshape import merge_outer
from extensor._struct.row_splits import outer_sizes
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FormatError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

_CELLS = 1 << 18


@refuse_deep_nesting("to_proto")
def to_proto(
    records: StructuredTensor, message: type[Message] | Descriptor, format: str = "binary"
) -> tf.Tensor:
    """Returns records as serialized messages.

    Works inside of graphs and outside. `tf.io.encode_proto` writes the messages, so a SavedModel
    returns serialized messages in every TensorFlow server.

    The fields have the forms that `from_proto` gives them. A field that a message may lack may
    also be one value for each record, or a MaskedTensor: it is left out where it is not valid. Of
    a proto3 field without presence, zeros are left out. Fields that the records do not have are
    left out.

    Args:
        records: A StructuredTensor of shape `[]` or `[n]`.
        message: The class of the messages, or its descriptor.
        format: "binary"; or "json" or "text", outside of graphs only, as in `from_proto`.

    Returns:
        A string tensor of the shape of the records.

    Raises:
        FieldError: If the message type lacks a field of the records (also a KeyError).
        DTypeError: If a field has another dtype or structure (also a TypeError).
        FormatError: If a value does not fit: two values of a field that is not repeated, two fields
            of a oneof, text that is not UTF-8, or a time or a number of an enum that JSON cannot
            express (also a ValueError). In a graph, an error of TensorFlow.
        StructureError: If the rank is more than 1, or a required field is missing (also a
            ValueError).

    >>> import extensor as xt
    >>> from google.protobuf import descriptor_pb2
    >>> Name = descriptor_pb2.UninterpretedOption.NamePart
    >>> names = xt.struct.constant([{"name_part": "a", "is_extension": True}])
    >>> serialized = xt.to_proto(names, Name)
    >>> Name.FromString(serialized[0].numpy()).name_part
    'a'
    """
    expect_format(format, "to_proto")
    if not isinstance(records, StructuredTensor):
        fix = "Make records with xt.struct.constant."
        raise DTypeError("to_proto: records", "a StructuredTensor", type(records).__name__, fix)
    if records.rank > 1:
        expected, fix = "records of rank 0 or 1", "Give records.values, the records of all rows."
        raise StructureError("to_proto: records", expected, f"rank {records.rank}", fix)
    is_one = records.rank == 0
    rows = records[None] if is_one else records
    spec = spec_of(rows)
    schema = schema_from_spec(spec)
    descriptor = descriptor_of(message)
    absent = Absent(masks_of_spec(spec))
    serialized = _encode(rows, record_of(descriptor, None, schema, absent, None))
    if format != "binary":
        if tf.is_symbolic_tensor(serialized):
            expected = 'format="binary", because no op of TensorFlow writes others'
            received, fix = f"format={format!r} in a graph", "Call to_proto outside of the graph."
            raise UnsupportedTypeError("to_proto: format", expected, received, fix)
        texts = print_messages(serialized.numpy().tolist(), descriptor, format)
        serialized = tf.constant(texts, tf.string, [len(texts)])
    return serialized[0] if is_one else serialized


Column = tuple[Any, tf.Tensor]
"""All values of a field, and the number of values of each message."""


def _encode(records: StructuredTensor, record: Record) -> tf.Tensor:
    for path in record.left_out:
        expected = f"a value in each record, because the field is required in {record.name}"
        raise StructureError(path, expected, "records without the field", "Add the field.")
    if not record.fields:
        return tf.fill(_count_of(records), "")
    columns: list[Column] = []
    for field in record.fields:
        value = records.field_value(field.name)
        columns += _members(field, value) if isinstance(field, Oneof) else [_column(field, value)]
    fields = record.on_wire()
    _expect_one_of_each(fields, columns)
    coded = [
        (_encode_values(field, field.type, values), counts)
        for field, (values, counts) in zip(fields, columns, strict=True)
    ]
    return _messages(fields, coded)


def _expect_one_of_each(fields: list[MessageField], columns: list[Column]) -> None:
    """Raises if a message would have two fields of one oneof, which are fields of the records."""
    for oneof in {field.oneof for field in fields if field.oneof}:
        inside = [i for i, field in enumerate(fields) if field.oneof == oneof]
        if len(inside) > 1:
            number = tf.add_n([tf.cast(columns[i][1], tf.int32) for i in inside])
            expected = f"at most one field of the oneof {oneof} in a message"
            _expect(tf.reduce_all(number <= 1), fields[inside[0]].path, expected, "several")


def _column(field: MessageField, value: Any) -> Column:
    if is_masked(value) and field.count is not Count.NULLABLE:
        raise _mask_error(field.path, value)
    if field.count in (Count.MANY, Count.OPTIONAL):
        values, counts = _lists(field.path, value)
        if field.count is Count.OPTIONAL:
            expected = "at most one value, because the field is not repeated"
            _expect(tf.reduce_all(counts <= 1), field.path, expected, "lists of several values")
        return values, counts
    if is_masked(value):
        present = value.mask
        if present.shape.rank != 1:
            raise _wrong_form(field.path, "one mask element for each record", value)
        return tf.boolean_mask(value.values, present), tf.cast(present, tf.int32)
    _expect_no_lists(field.path, value)
    if field.count is Count.ONE and isinstance(field.type, Scalar):
        return _not_default(value)
    return value, tf.ones(_count_of(value), tf.int32)


def _lists(path: Path, value: Any) -> Column:
    """Returns the values of lists, and the length of each."""
    rows = uncut_rows(value)
    if rows is not None:
        values, splits = rows
        return values, splits[1:] - splits[:-1]
    shape = getattr(value, "shape", None)
    if shape is None or shape.rank is None or shape.rank < 2:
        raise _wrong_form(path, "a list of values for each record", value)
    sizes = tf.cast(outer_sizes(value, 2), tf.int32)
    return merge_outer(value, [sizes[0], sizes[1]]), tf.fill(sizes[:1], sizes[1])


def _not_default(values: tf.Tensor) -> Column:
    """Returns the values that are not the default value; others are left out of messages."""
    plain = values
    if values.dtype.is_floating:  # -0.0 is not the default value
        plain = tf.bitcast(values, {2: tf.int16, 4: tf.int32, 8: tf.int64}[values.dtype.size])
    zero = {tf.string: "", tf.bool: False}.get(plain.dtype, 0)
    present = tf.not_equal(plain, tf.constant(zero, plain.dtype))
    return tf.boolean_mask(values, present), tf.cast(present, tf.int32)


def _count_of(value: Any) -> tf.Tensor:
    return tf.cast(outer_sizes(value, 1), tf.int32)


def _members(field: Oneof, value: Any) -> list[Column]:
    """Returns the columns of the fields of a oneof, from a union."""
    owner = None
    if field.count is Count.OPTIONAL:
        value, lengths = _lists(field.path, value)
        is_one = tf.reduce_all(lengths <= 1)
        _expect(is_one, field.path, "at most one value", "lists of several values")
        owner = tf.cast(lengths, tf.int32)
    codes = value.codes
    columns: list[Column] = []
    for member in field.members:
        values = value.variants[member.name]
        here = tf.cast(tf.equal(codes, value.names.index(member.name)), tf.int32)
        if is_masked(values):
            valid = values.mask
            at = tf.cast(tf.where(tf.equal(here, 1))[:, 0], tf.int32)
            here = tf.tensor_scatter_nd_update(here, at[:, None], tf.cast(valid, tf.int32))
            values = tf.boolean_mask(values.values, valid)
        if owner is not None:
            at = tf.where(tf.equal(owner, 1))
            shape = tf.cast(tf.shape(owner), tf.int64)
            here = tf.scatter_nd(at, here, shape)
        columns.append((values, here))
    return columns


def _encode_values(field: MessageField, kind: Type, values: Any) -> tf.Tensor:
    """Returns values as they are in a message: numbers, text, or serialized messages."""
    _expect_no_lists(field.path, values)
    have = None if field.given is None else meaning_of(field.given)
    if isinstance(kind, Scalar):
        if are_decimals(have) and have != WHOLE:  # a decimal of 1.5 is no 15
            raise different_meanings(None, have, field.path)
        dtype = getattr(values, "dtype", None)
        if dtype != kind.dtype:
            if dtype is None or not _widens(dtype, kind.dtype):
                raise _wrong_form(field.path, f"{kind.dtype.name} values", values)
            values = tf.cast(values, kind.dtype)
        if kind.wire == Proto.TYPE_STRING:
            # Replacing what is not UTF-8 changes it.
            same = tf.equal(tf.strings.unicode_transcode(values, "UTF-8", "UTF-8"), values)
            expected = "UTF-8, because the field is a string"
            _expect(tf.reduce_all(same), field.path, expected, "other bytes")
        return values
    if isinstance(kind, Record):
        if not isinstance(values, StructuredTensor):
            raise _wrong_form(field.path, "records", values)
        return _encode(values, kind)
    inner = inner_fields(kind)
    if isinstance(kind, Wrapper):
        parts = [_encode_values(field, kind.value, values)]
    else:
        assert isinstance(kind, Time)
        parts = _seconds(field, kind, values, have)
    return _messages(inner, [_not_default(part) for part in parts])


def _expect_no_lists(path: Path, values: Any) -> None:
    """Raises DTypeError unless values are a vector of tensors or of records."""
    if is_masked(values):
        raise _mask_error(path, values)
    is_known = isinstance(values, (tf.Tensor, tf.Variable, StructuredTensor))
    if not is_known or values.shape.rank not in (1, None):
        raise _wrong_form(path, "one value in each place, and no list", values)


def _widens(given: tf.DType, wanted: tf.DType) -> bool:
    if given.is_integer and wanted.is_integer:
        return given.min >= wanted.min and given.max <= wanted.max
    return given.is_floating and wanted.is_floating and given.size <= wanted.size


def _seconds(field: MessageField, kind: Time, values: tf.Tensor, have: Meaning) -> list[tf.Tensor]:
    """Returns the seconds and nanoseconds of times, which without a unit are in nanoseconds."""
    is_duration = pa.types.is_duration(kind.arrow)
    size = 1
    if have is not None:
        is_kind = pa.types.is_duration if is_duration else pa.types.is_timestamp
        if not is_kind(field.given) or not isinstance(have, Unit):
            raise different_meanings(meaning_of(kind.arrow), have, field.path)
        size = have.size
    if values.dtype != tf.int64:
        raise _wrong_form(field.path, "int64 nanoseconds", values)
    units = tf.constant(10**9 // size, tf.int64)
    seconds = tf.math.floordiv(values, units)
    rest = values - seconds * units
    if is_duration:
        # The parts of a duration have one sign.
        late = tf.logical_and(seconds < 0, rest > 0)
        seconds = tf.where(late, seconds + 1, seconds)
        rest = tf.where(late, rest - units, rest)
    return [seconds, tf.cast(rest * size, tf.int32)]


def _messages(fields: list[MessageField], columns: list[Column]) -> tf.Tensor:
    """Returns messages of columns."""
    plain = [i for i, field in enumerate(fields) if not field.is_group]
    nrows = tf.shape(columns[0][1])[0]
    parts: list[tf.Tensor] = []
    if plain:
        parts.append(_of_columns([fields[i] for i in plain], [columns[i] for i in plain]))
    for field, (values, counts) in zip(fields, columns, strict=True):
        if field.is_group:
            begin, end = (varint(field.number << 3 | wire) for wire in (3, 4))
            parts.append(_join(tf.strings.join([begin, values, end]), counts, nrows))
    return parts[0] if len(parts) == 1 else tf.strings.join(parts)


def _of_columns(fields: list[MessageField], columns: list[Column]) -> tf.Tensor:
    source = b"bytes://" + flat_type(fields)
    counts = [tf.cast(count, tf.int32) for _, count in columns]
    nrows = tf.shape(counts[0])[0]
    names = [f"f{i}" for i in range(len(fields))]

    def encode(values: list[tf.Tensor], sizes: list[tf.Tensor], some: list[str]) -> tf.Tensor:
        return tf.io.encode_proto(tf.stack(sizes, 1), values, some, ROOT, source)

    def together() -> tf.Tensor:
        padded = [
            tf.RaggedTensor.from_row_lengths(values, count, validate=False).to_tensor()
            for (values, _), count in zip(columns, counts, strict=True)
        ]
        return encode(padded, counts, names)

    def one_by_one() -> tf.Tensor:
        # Each value is a message of its own; messages one after another are one message.
        parts = [
            _join(encode([values[:, None]], [tf.ones_like(values, tf.int32)], [name]), count, nrows)
            for (values, _), count, name in zip(columns, counts, names, strict=True)
        ]
        return tf.strings.join(parts)

    if all(field.count is not Count.MANY for field in fields):
        return together()
    longest = tf.stack([tf.reduce_max(tf.concat([count, [0]], 0)) for count in counts])
    cells = tf.cast(nrows, tf.int64) * tf.reduce_sum(tf.cast(longest, tf.int64))
    total = tf.reduce_sum(tf.stack([tf.size(values, tf.int64) for values, _ in columns]))
    return tf.cond(cells <= 4 * total + _CELLS, together, one_by_one)


def _join(values: tf.Tensor, counts: tf.Tensor, nrows: tf.Tensor) -> tf.Tensor:
    """Returns the strings of each message joined, in their order."""
    # tf.repeat pads to the largest count.
    ends = tf.cumsum(tf.cast(counts, tf.int32))
    rows = tf.searchsorted(ends, tf.range(tf.size(values)), side="right")
    return tf.strings.unsorted_segment_join(values, rows, nrows)


def _expect(condition: tf.Tensor, path: Path, expected: str, received: str) -> None:
    if tf.is_symbolic_tensor(condition):
        tf.debugging.Assert(condition, [f"{path}: expected {expected}, got {received}."])
    elif not bool(condition):
        raise FormatError(path, expected, received, "Correct the values.")


def _mask_error(path: Path, value: Any) -> DTypeError:
    expected = "values without a mask, because a message cannot lack one of them"
    fix = "Fill the values that are not valid: value.fill(0)."
    return DTypeError(path, expected, f"a {type(value).__name__}", fix)


def _wrong_form(path: Path, expected: str, value: Any) -> DTypeError:
    shown = getattr(value, "dtype", None)
    received = type(value).__name__ + (f" of {shown.name}" if shown is not None else "")
    fix = "Convert the field, or choose others with records.with_only."
    return DTypeError(path, expected, received, fix)
