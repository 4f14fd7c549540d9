"""The Arrow type of a value without a schema: the type that it came with, or the default."""

# This file calls `StructuredTensor._field`, which is faster than `field_value`.

from __future__ import annotations

from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import inner_fields, is_list, with_inner_fields
from extensor._arrow.dim_names import dim_of, with_dim
from extensor._authoring.rows import uncut_rows
from extensor._memory import array_over
from extensor._path import Path
from extensor._protocol.row_splits import MAX_INT32
from extensor._struct.arrow_types import ArrowType, form_of
from extensor._struct.masked import is_masked, is_union
from extensor._struct.row_splits import outer_sizes
from extensor._struct.tensor import StructuredTensor
from extensor._struct.to_python import holds_values
from extensor._typing import FieldValue
from extensor.errors import UnsupportedTypeError

NUMBERS: dict[pa.DataType, tf.DType] = {
    pa.int8(): tf.int8,
    pa.int16(): tf.int16,
    pa.int32(): tf.int32,
    pa.int64(): tf.int64,
    pa.uint8(): tf.uint8,
    pa.uint16(): tf.uint16,
    pa.uint32(): tf.uint32,
    pa.uint64(): tf.uint64,
    pa.float16(): tf.float16,
    pa.float32(): tf.float32,
    pa.float64(): tf.float64,
}
"""The Arrow types whose buffers have the layout of tensors, and the tensors' dtypes."""

NATURAL_NUMBERS = {dtype: arrow for arrow, dtype in NUMBERS.items()}
"""The Arrow type of each dtype of numbers that Arrow has."""

_FLAT = NATURAL_NUMBERS | {tf.bool: pa.bool_(), tf.string: pa.string()}


def natural_type(value: FieldValue, path: Path, rank: int = 1) -> pa.DataType:
    """Returns the Arrow type of the elements of a field's value.

    A field that came from Arrow has the type that it came with, as long as its dtype and structure
    are the same. Otherwise, numbers keep their type. Strings become text. Ragged dimensions become
    `large_list` for int64 row splits and `list` for int32. Further dense dimensions become
    `fixed_size_list`.

    Args:
        value: A tensor, ragged tensor or StructuredTensor that holds values.
        path: The path of the field, for errors.
        rank: The number of outer dimensions, which are not part of an element.

    Raises:
        UnsupportedTypeError: If Arrow has no type for the value (also a TypeError).
    """
    if is_masked(value) and value.mask.shape.rank <= rank:
        return natural_type(value.values, path, rank)
    rows = uncut_rows(value)
    if rows is not None:
        if rank > 1:
            return natural_type(rows[0], path, rank - 1)
        make = pa.large_list if rows[1].dtype == tf.int64 else pa.list_
        return make(_item(natural_type(rows[0], path), value, 1))
    if isinstance(value, tf.Variable):
        value = tf.convert_to_tensor(value)
    expect_writable(value, path)
    if len(value.shape) > rank:
        size = value.shape[rank]
        if size is None and not holds_values(value):  # of a spec
            return pa.large_list(_item(natural_type(value, path, rank + 1), value, rank))
        if size is None:  # all fields are ragged, with rows of one length
            size = int(outer_sizes(value, rank + 1)[rank])
        item = _item(natural_type(value, path, rank + 1), value, rank)
        # Arrow's lists of one length are at most 2**31 - 1 long.
        return pa.list_(item, size) if size <= MAX_INT32 else pa.large_list(item)
    if isinstance(value, StructuredTensor):
        records: Any = value
        fields = [
            natural_field(records, name, records._field(name, path), path, rank)
            for name in value.field_names()
        ]
        return pa.struct(fields)
    if not isinstance(value, tf.Tensor) and is_union(value):
        return _natural_union(value, path)
    return natural_flat_type(value.dtype, path)


def natural_field(
    records: StructuredTensor, name: str, value: FieldValue, path: Path, rank: int = 1
) -> pa.Field:
    """Returns the Arrow field of a field of records, as `natural_type` describes it.

    Args:
        records: The records.
        name: The name of the field.
        value: The value of the field.
        path: The path of the records, for errors.
        rank: The number of outer dimensions of the records.
    """
    kept = records._metadata.types.get(name)
    if isinstance(value, tf.Tensor) and value.shape.rank == rank:  # most fields
        dtype = value.dtype
        arrow = _FLAT.get(dtype) or natural_flat_type(dtype, path / name)
        if kept is None:
            return pa.field(name, arrow)
        if kept.form[0] is dtype and kept.form[1] == 0 and kept.field.type == arrow:
            return kept.field
    natural = pa.field(name, natural_type(value, path / name, rank))
    if kept is not None and kept.form == form_of(value, rank):
        return _kept_field(kept, natural, value)
    return natural


def _item(arrow: pa.DataType, value: FieldValue, axis: int) -> pa.DataType | pa.Field:
    """Returns the type of items, or a field with the name of their dimension."""
    dims = value._dims if isinstance(value, StructuredTensor) else ()
    return with_dim(pa.field("item", arrow), dims[axis]) if dims else arrow


def _kept_field(kept: ArrowType, natural: pa.Field, value: FieldValue) -> pa.Field:
    """Returns the field that a value came with. The fields of its structs are those of the value.

    Args:
        kept: The field that the value came with.
        natural: The field of the value's default type.
        value: A value of the dtype and rank that it came with.
    """
    flat: Any = getattr(value, "flat_values", value)
    is_plain = isinstance(flat, (tf.Tensor, tf.Variable, StructuredTensor))
    arrow = _kept_type(kept.field.type, natural.type, value)
    # A mask or a variant may write nulls.
    return kept.field.with_type(arrow).with_nullable(kept.field.nullable or not is_plain)


def _kept_type(kept: pa.DataType, natural: pa.DataType, value: FieldValue) -> pa.DataType:
    """Returns the type that a value came with, or its default type where it does not fit.

    Args:
        kept: The type that the value came with.
        natural: The value's default type.
        value: The value, which may be cut into more rows than the types.
    """
    t = pa.types
    if isinstance(kept, pa.BaseExtensionType):
        if isinstance(kept, pa.FixedShapeTensorType):  # others may have a shape of their own
            shape: Any = kept.shape
            order: Any = kept.permutation or range(len(shape))
            is_same = _sizes(natural) == [shape[i] for i in order]
        else:
            is_same = _kept_type(kept.storage_type, natural, value) == kept.storage_type
        return kept if is_same else natural
    if t.is_dictionary(kept):
        words = _kept_type(kept.value_type, natural, value)
        return pa.dictionary(kept.index_type, words, kept.ordered)
    if t.is_run_end_encoded(kept):
        values = _kept_type(kept.value_type, natural, value)
        return pa.run_end_encoded(kept.run_end_type, values)
    if t.is_null(kept):
        return kept if holds_no_values(value) else natural
    if t.is_decimal(kept) or t.is_interval(kept):
        is_same = _sizes(natural) in ([], [kept.bit_width // 64 if t.is_decimal(kept) else 3])
        return kept if is_same else natural
    if t.is_map(kept):
        entries = natural.value_type if is_list(natural) else natural
        pairs = inner_fields(entries) if t.is_struct(entries) else []
        if [pair.name for pair in pairs] != ["key", "value"]:
            return natural
        # The records of key and value have kept their own types.
        given = zip(inner_fields(kept), pairs, strict=True)
        return with_inner_fields(kept, [k.with_type(n.type) for k, n in given])
    if is_list(kept) and is_list(natural):
        if t.is_fixed_size_list(kept) and t.is_fixed_size_list(natural):
            kept = pa.list_(kept.value_field, natural.list_size)
        return with_inner_fields(kept, [_merge(kept.value_field, natural.value_field, value)])
    if t.is_union(kept) and t.is_union(natural):
        ours, theirs = ({field.name: field for field in inner_fields(t)} for t in (kept, natural))
        variants = _union_in(value).variants
        fields = [_merge(ours.get(n, theirs[n]), theirs[n], variants[n]) for n in theirs]
        make = pa.dense_union if kept.mode == "dense" else pa.sparse_union
        return make(fields, kept.type_codes if list(ours) == list(theirs) else None)
    return natural if t.is_nested(natural) or t.is_nested(kept) else kept


def _union_in(value: FieldValue) -> FieldValue:
    """Returns the union below masks and ragged dimensions."""
    while not is_union(value):
        rows = uncut_rows(value)
        value = value.values if rows is None else rows[0]
    return value


def _merge(kept: pa.Field, natural: pa.Field, value: FieldValue) -> pa.Field:
    """Returns the field inside a list or map that a value came with."""
    field = kept.with_type(_kept_type(kept.type, natural.type, value))
    return with_dim(field, dim_of(natural))


def _sizes(natural: pa.DataType) -> list[int]:
    """Returns the sizes of nested lists of fixed size, from the outermost inwards."""
    if not pa.types.is_fixed_size_list(natural):
        return []
    return [natural.list_size, *_sizes(natural.value_type)]


def _natural_union(value: FieldValue, path: Path) -> pa.DataType:
    """Returns the type of the rows of a union: dense."""
    # Imported here, because `import extensor` stays fast without the module.
    from extensor._types.union.conversion import NULL, is_null_rows

    fields: list[pa.Field] = []
    for name in value.names:
        part = value.variants[name]
        is_null = name == NULL and is_null_rows(part)
        arrow = pa.null() if is_null else natural_type(part, path / name)
        fields.append(pa.field(name, arrow))
    return pa.dense_union(fields)


def is_all_null(value: FieldValue) -> bool:
    """Returns whether each row of a masked value is null; an empty list is not."""
    while is_masked(value):
        if value.mask.shape.rank == 1 and not array_over(value.mask).any():
            return True
        value = value.values
    return False


def holds_no_values(value: FieldValue) -> bool:
    """Returns whether all values are masked, or there are none."""
    while True:
        if is_masked(value):
            flat: Any = value.mask
            while isinstance(flat, tf.RaggedTensor):
                flat = flat.values
            if holds_values(flat) and not array_over(flat).any():
                return True
            value = value.values
        elif isinstance(value, tf.RaggedTensor):
            value = value.values
        else:
            return isinstance(value, tf.Tensor) and 0 in value.shape


def natural_flat_type(dtype: tf.DType, path: Path) -> pa.DataType:
    """Returns the Arrow type of tensors of a dtype; strings become text.

    Raises:
        UnsupportedTypeError: If Arrow has no type for the dtype (also a TypeError).
    """
    if dtype in _FLAT:
        return _FLAT[dtype]
    fix = "Cast the field first, such as bfloat16 to float32."
    raise UnsupportedTypeError(path, "a dtype that Arrow supports", dtype.name, fix)


def expect_writable(value: FieldValue, path: Path) -> None:
    """Raises unless a value is a tensor, a ragged value or records.

    Raises:
        UnsupportedTypeError: If the value has another type (also a TypeError).
    """
    if isinstance(value, (tf.Tensor, StructuredTensor)) or hasattr(value, "row_splits"):
        return
    if not is_masked(value) and not is_union(value):
        expected = "a tensor, a ragged tensor or records"
        fix = "Replace the field with its components (with_updates), or remove it (without)."
        raise UnsupportedTypeError(path, expected, type(value).__name__, fix)
