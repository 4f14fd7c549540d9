"""The engine inside of graphs: tf.io.decode_proto, which every TensorFlow server has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._arrow.arrow_type import without_fields
from extensor._arrow.null_policy import Fill
from extensor._arrow.read import read_value
from extensor._formats.protobuf.fields import (
    MOST_SECONDS,
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
from extensor._formats.protobuf.wire import ROOT, flat_type, inner_fields, varint
from extensor._path import Path
from extensor._struct.arrow_types import ArrowType, form_of
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.metadata import Metadata
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import cut
from extensor._struct.tensor import StructuredTensor

_CELLS = 1 << 18

Decoded = tuple[tf.Tensor, tf.Tensor]
"""How many values of a field each message has, and the values."""


class GraphReader:
    """Reads serialized messages by ops.

    Args:
        row_splits_dtype: The dtype of row splits.
    """

    def __init__(self, row_splits_dtype: tf.DType) -> None:
        self._splits = row_splits_dtype

    def records(
        self, record: Record, serialized: tf.Tensor, exists: tf.Tensor | None = None
    ) -> DenseStructuredTensor:
        """Returns messages as records.

        Args:
            record: The fields to read.
            serialized: The messages, a tensor of strings of shape `[n]`.
            exists: Whether each message exists; None if all are. The fields have placeholders
                where it is not.
        """
        decoded = iter(_decode(serialized, record.on_wire()))
        fields: dict[str, Any] = {}
        for field in record.fields:
            if isinstance(field, Oneof):
                fields[field.name] = self._union(field, [next(decoded) for _ in field.members])
            elif isinstance(field.type, Cut):
                next(decoded)
            else:
                fields[field.name] = self._field(field, *next(decoded), exists)
        rows = None if fields else tf.zeros(tf.shape(serialized), tf.bool)
        return _with_types(record, fields, rows)

    def _field(
        self, field: MessageField, counts: tf.Tensor, values: tf.Tensor, exists: tf.Tensor | None
    ) -> Any:
        """Returns the value of a field.

        Args:
            field: The field.
            counts: The number of values of each message.
            values: All values, if the field is a list, else one value of each message.
            exists: Whether each message exists; None if all are.
        """
        kind = field.type
        if isinstance(kind, ChosenKeys):
            return self._of_keys(kind, counts, values)
        if field.count is Count.MANY:
            return self._cut(self._values(field, kind, values), counts, field.path)
        present = tf.greater(counts, 0)
        if field.count is Count.OPTIONAL:
            inner = self._values(field, kind, tf.boolean_mask(values, present))
            return self._cut(inner, tf.cast(present, tf.int32), field.path)
        if field.count is Count.REQUIRED:
            has = present if exists is None else tf.logical_or(present, tf.logical_not(exists))
            _assert(tf.reduce_all(has), f"{field.path}: a message lacks a required field.")
        if field.count in (Count.REQUIRED, Count.ONE):
            if isinstance(kind, Scalar) and kind.has_own_default:
                return tf.where(present, values, tf.constant(kind.default, kind.dtype))
            return self._values(field, kind, values, present)
        return _without_nulls(field, self._values(field, kind, values, present), present)

    def _of_keys(
        self, kind: ChosenKeys, counts: tf.Tensor, entries: tf.Tensor
    ) -> DenseStructuredTensor:
        """Returns some keys of maps as records. The other values are not decoded further."""
        (_, keys), (has_value, values) = _decode(entries, inner_fields(kind))
        value = kind.value
        if isinstance(value, Scalar) and value.has_own_default:
            values = tf.where(has_value > 0, values, tf.constant(value.default, value.dtype))
        count, total = tf.size(counts), tf.size(entries)
        values = tf.concat([values, tf.zeros([1], values.dtype)], 0)
        rows = tf.repeat(tf.range(count), counts)
        fields: dict[str, Any] = {}
        for field, key in zip(kind.on_wire(), kind.keys, strict=True):
            found = tf.where(tf.equal(keys, tf.constant(key, kind.key.dtype)))[:, 0]
            # Of entries with one key, the last counts.
            last = tf.math.unsorted_segment_max(
                tf.cast(found, tf.int32), tf.gather(rows, found), count
            )
            present = last >= 0
            chosen = tf.gather(values, tf.where(present, last, total))
            fields[field.name] = self._field(field, tf.cast(present, tf.int32), chosen, None)
        return _with_types(kind, fields, None)

    def _cut(self, values: Any, counts: tf.Tensor, path: Path) -> Any:
        splits = tf.concat(
            [tf.zeros([1], self._splits), tf.cumsum(tf.cast(counts, self._splits))], 0
        )
        if isinstance(values, StructuredTensor):
            return RaggedStructuredTensor._of_parts(values, splits)
        return cut(values, splits, path)

    def _values(
        self, field: MessageField, kind: Type, values: tf.Tensor, exists: tf.Tensor | None = None
    ) -> Any:
        """Returns values of a type, from numbers, or from serialized messages.

        Args:
            field: The field.
            kind: The type.
            values: The numbers, or the messages.
            exists: Whether each of them exists; None if all are.
        """
        if isinstance(kind, Scalar):
            return values
        if isinstance(kind, Record):
            return self.records(kind, values, exists)
        parts = [part for _, part in _decode(values, inner_fields(kind))]
        if isinstance(kind, Wrapper):
            return parts[0]
        assert isinstance(kind, Time)
        seconds, nanos = parts
        times = seconds * 10**9 + tf.cast(nanos, tf.int64)
        fits = tf.logical_and(seconds >= -MOST_SECONDS, seconds <= MOST_SECONDS)
        same_sign = tf.equal(seconds < 0, times < 0)
        fits = tf.logical_and(fits, tf.logical_or(tf.abs(seconds) <= 3, same_sign))
        _assert(
            tf.reduce_all(fits), f"{field.path}: a time does not fit into 64 bits as nanoseconds."
        )
        return times

    def _union(self, field: Oneof, members: list[Decoded]) -> Any:
        # Imported here, because `import extensor` stays fast without the module.
        from extensor._types.masked.value import MaskedTensor
        from extensor._types.union.value import UnionTensor

        present = [tf.greater(counts, 0) for counts, _ in members]
        number = tf.add_n([tf.cast(p, tf.int32) for p in present])
        _assert(
            tf.reduce_all(number <= 1), f"{field.path}: a message has two fields of this oneof."
        )
        codes = tf.add_n([tf.cast(p, tf.int8) * i for i, p in enumerate(present)])
        is_nullable = field.count is Count.NULLABLE
        is_masked = field.policy in ("mask", "auto")
        if is_nullable and not is_masked:
            has_one = tf.reduce_all(number > 0)
            _assert(has_one, f"{field.path}: a message has no field of this oneof. Give nulls=.")
        if is_nullable:
            present[0] = tf.logical_or(present[0], tf.equal(number, 0))
        variants: dict[str, Any] = {}
        for member, rows, (counts, values) in zip(field.members, present, members, strict=True):
            exists = tf.boolean_mask(tf.greater(counts, 0), rows) if is_nullable else None
            kept = self._values(member, member.type, tf.boolean_mask(values, rows), exists)
            if is_nullable and is_masked:
                kept = MaskedTensor._of_parts(kept, exists)
            variants[member.name] = kept
        if is_nullable:
            return UnionTensor._of_parts(codes, variants, tuple(variants))
        codes = tf.boolean_mask(codes, tf.greater(number, 0))
        union = UnionTensor._of_parts(codes, variants, tuple(variants))
        return self._cut(union, number, field.path)


def _with_types(
    record: Record, fields: dict[str, Any], rows: tf.Tensor | None
) -> DenseStructuredTensor:
    """Returns records of fields, which keep their Arrow types."""
    types = {
        field.name: ArrowType(without_fields(field.arrow), form_of(fields[field.name], 1))
        for field in record.shown
    }
    return DenseStructuredTensor._of_parts(1, fields, rows, None, Metadata(types))


def _without_nulls(field: MessageField, values: Any, valid: tf.Tensor) -> Any:
    """Returns values with what `nulls` says where they are not valid."""
    # Imported here, because `import extensor` stays fast without the module.
    from extensor._types.masked.value import MaskedTensor

    if field.policy == "error":
        _assert(tf.reduce_all(valid), f"{field.path}: a message lacks the field. Give nulls=.")
        return values
    masked = MaskedTensor._of_parts(values, valid)
    if not isinstance(field.policy, Fill):
        return masked
    value = field.policy.value
    return masked.fill(
        read_value(value, field.type.arrow) if isinstance(field.type, Time) else value
    )


def _assert(condition: tf.Tensor, message: str) -> None:
    tf.debugging.Assert(condition, [message])


def _decode(serialized: tf.Tensor, fields: list[MessageField]) -> list[Decoded]:
    """Returns the counts and the values of fields.

    The values are all values of a list, one after another, or one value of each message. The
    several parts of one message are joined, which merges them.
    """
    if not fields:
        return []
    names = [f"f{i}" for i in range(len(fields))]
    dtypes = [f.type.dtype if isinstance(f.type, Scalar) else tf.string for f in fields]
    source = b"bytes://" + flat_type(fields)

    def decode(messages: tf.Tensor) -> list[tf.Tensor]:
        sizes, values = tf.io.decode_proto(messages, ROOT, names, dtypes, source)
        counts = tf.unstack(sizes, axis=1)
        padded = zip(fields, values, counts, strict=True)
        return [sizes, *(_unpad(field, value, count) for field, value, count in padded)]

    lists = [field.count is Count.MANY for field in fields]
    lengths = tf.strings.length(serialized)
    nrows = tf.size(serialized)
    fits = nrows > 0
    if any(lists):
        # The values of a field are padded to the longest list of a message. A message of n bytes
        # has at most n values.
        longest = tf.reduce_max(tf.concat([lengths, [0]], 0))
        cells = tf.cast(nrows, tf.int64) * tf.cast(longest, tf.int64)
        total = tf.reduce_sum(tf.cast(lengths, tf.int64))
        fits = tf.logical_and(fits, cells <= 4 * total + _CELLS)
    outputs = tf.cond(
        fits,
        lambda: decode(serialized),
        lambda: _decoded_by_length(decode, serialized, lengths, lists, dtypes),
    )
    for output in outputs[1:]:
        output.set_shape([None])
    counts, values = outputs[0], outputs[1:]
    counts.set_shape([serialized.shape[0], len(fields)])
    for is_list, value in zip(lists, values, strict=True):
        if not is_list:
            value.set_shape(serialized.shape)
    found = list(zip(tf.unstack(counts, axis=1), values, strict=True))
    for field, (of_field, _) in zip(fields, found, strict=True):
        if isinstance(field.type, Cut):
            _assert(
                tf.reduce_all(tf.equal(of_field, 0)),
                f"{field.path}: a message is nested deeper than max_depth says.",
            )
    return found


def _unpad(field: MessageField, values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns the values of a field without padding."""
    if field.is_group:
        values = _without_tags(field, values)
    if field.count is Count.MANY:
        return tf.boolean_mask(values, tf.sequence_mask(counts, tf.shape(values)[1]))
    if isinstance(field.type, Scalar):
        return values[:, 0]
    return tf.cond(
        tf.shape(values)[1] > 1, lambda: tf.strings.reduce_join(values, 1), lambda: values[:, 0]
    )


def _without_tags(field: MessageField, values: tf.Tensor) -> tf.Tensor:
    """Returns groups without the tags before and after them."""
    size = len(varint(field.number << 3 | 3))
    lengths = tf.maximum(tf.strings.length(values) - 2 * size, 0)
    starts = tf.minimum(tf.fill(tf.shape(values), size), tf.strings.length(values))
    return tf.strings.substr(values, starts, lengths)


def _decoded_by_length(
    decode: Callable[[tf.Tensor], list[tf.Tensor]],
    serialized: tf.Tensor,
    lengths: tf.Tensor,
    lists: list[bool],
    dtypes: list[tf.DType],
) -> list[tf.Tensor]:
    """Returns what `decode` returns, and decodes messages of about the same length together.

    Then the padding is at most about twice the size of the messages.
    """
    order = tf.argsort(lengths)
    bounds = tf.searchsorted(
        tf.gather(lengths, order), tf.constant([0, *(2**i for i in range(1, 31)), 2**31 - 1])
    )
    counts = tf.RaggedTensorSpec([None, len(lists)], tf.int32, 0)
    parts = [counts, *(tf.RaggedTensorSpec([None], dtype, 0) for dtype in dtypes)]

    def nothing() -> list[tf.Tensor]:
        values = [tf.zeros([0], dtype) for dtype in dtypes]
        return [tf.zeros([0, len(lists)], tf.int32), *values]

    def step(i: tf.Tensor) -> list[tf.Tensor]:
        some = tf.gather(serialized, order[bounds[i] : bounds[i + 1]])
        return tf.cond(tf.size(some) > 0, lambda: decode(some), nothing)

    found = tf.map_fn(step, tf.range(31), parallel_iterations=1, fn_output_signature=parts)
    sizes, *values = (each.values for each in found)
    places = tf.math.invert_permutation(order)

    def in_order(i: int, value: tf.Tensor) -> tf.Tensor:
        if not lists[i]:
            return tf.gather(value, places)
        rows = tf.RaggedTensor.from_row_lengths(value, sizes[:, i], validate=False)
        return tf.gather(rows, places).values

    return [tf.gather(sizes, places), *(in_order(i, value) for i, value in enumerate(values))]
