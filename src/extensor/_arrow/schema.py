"""Which Arrow types have a counterpart in TensorFlow, and which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._path import Path
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.dense import DenseStructuredTensorSpec
from extensor._struct.ragged import RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor.errors import DTypeError, FormatError, StructureError, UnsupportedTypeError

_NUMBERS: dict[pa.DataType, tf.DType] = {
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
_ARROW = {dtype: arrow for arrow, dtype in _NUMBERS.items()} | {
    tf.bool: pa.bool_(),
    tf.string: pa.string(),
}


def number_dtype(arrow_type: pa.DataType) -> tf.DType | None:
    """Returns the dtype whose tensors have the buffers of an Arrow type, or None."""
    if isinstance(arrow_type, pa.BaseExtensionType):  # whose class may have no hash
        return None
    return _NUMBERS.get(arrow_type)


def arrow_type(dtype: tf.DType, path: Path) -> pa.DataType:
    """Returns the Arrow type of tensors of a dtype; strings are taken for UTF-8 text.

    Raises:
        UnsupportedTypeError: If Arrow has no such type (also a TypeError).
    """
    if dtype in _ARROW:
        return _ARROW[dtype]
    raise UnsupportedTypeError(
        path=path,
        expected="a dtype that Arrow has",
        received=dtype.name,
        mend="Cast the field first, such as bfloat16 to float32.",
    )


def is_string(arrow_type: pa.DataType) -> bool:
    """Returns whether values of the type are strings of characters or bytes of any length."""
    t = pa.types
    return (
        t.is_string(arrow_type)
        or t.is_binary(arrow_type)
        or t.is_large_string(arrow_type)
        or t.is_large_binary(arrow_type)
        or is_string_view(arrow_type)
    )


def is_string_view(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a string or binary view."""
    return pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type)


def is_category(arrow_type: pa.DataType) -> bool:
    """Returns whether values of the type are strings written as places in a dictionary."""
    return pa.types.is_dictionary(arrow_type) and is_string(arrow_type.value_type)


def is_list(arrow_type: pa.DataType) -> bool:
    """Returns whether the type is a list with offsets."""
    return pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)


def holds_records(arrow_type: pa.DataType) -> bool:
    """Returns whether values of the type are records, or lists of them."""
    while is_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        arrow_type = arrow_type.value_type
    return pa.types.is_struct(arrow_type)


def holds(arrow_type: pa.DataType, is_kind: Callable[[pa.DataType], bool]) -> bool:
    """Returns whether there is a type of some kind, such as `is_string`, inside a type."""
    while is_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        arrow_type = arrow_type.value_type
    if pa.types.is_struct(arrow_type):
        return any(holds(field.type, is_kind) for field in arrow_type.fields)
    return is_kind(arrow_type)


def expect_counterpart(arrow_type: pa.DataType, path: Path) -> None:
    """Raises unless a type has a counterpart.

    Raises:
        UnsupportedTypeError: If a type in it has none (also a TypeError).
    """
    if pa.types.is_struct(arrow_type):
        fields = arrow_type.fields
        for name, field in zip(names_of(fields, path), fields, strict=True):
            expect_counterpart(field.type, path / name)
    elif is_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        expect_counterpart(arrow_type.value_type, path)
    elif not (
        number_dtype(arrow_type) is not None
        or pa.types.is_boolean(arrow_type)
        or is_string(arrow_type)
        or is_category(arrow_type)
    ):
        raise unsupported(arrow_type, path)


def unsupported(arrow_type: pa.DataType, path: Path) -> UnsupportedTypeError:
    """Returns the error for an Arrow type without a counterpart."""
    return UnsupportedTypeError(
        path=path,
        expected="integers, floats, booleans, strings, binary, lists or structs of these",
        received=f"Arrow type {arrow_type}",
        mend="Take the storage of the extension type (array.storage), or leave the column out."
        if isinstance(arrow_type, pa.BaseExtensionType)
        else "Cast the column to one of these in Arrow, or leave it out.",
    )


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


@refuse_deep_nesting("spec_from_schema")
def spec_from_schema(
    schema: pa.Schema, nrows: int | None = None, row_splits_dtype: tf.DType = tf.int64
) -> DenseStructuredTensorSpec:
    """Returns the spec of the StructuredTensors that Arrow data of a schema becomes.

    Args:
        schema: The Arrow schema.
        nrows: The number of records, or None if it varies.
        row_splits_dtype: As in `from_arrow`.

    Raises:
        UnsupportedTypeError: If a type has no counterpart (also a TypeError).
        StructureError: If two fields have one name (also a ValueError).

    >>> schema = pa.schema({"title": pa.string(), "steps": pa.list_(pa.string())})
    >>> print(xt.struct.tree(xt.spec_from_schema(schema)))
    records (None,)
    ├── title: string
    └── steps: string[*]
    """
    splits = splits_dtype(row_splits_dtype)
    names = names_of(schema, Path())
    fields = {
        name: _spec(schema.field(i).type, [nrows], splits, Path(name))
        for i, name in enumerate(names)
    }
    return DenseStructuredTensorSpec([nrows], fields)


def _spec(arrow: pa.DataType, outer: list[int | None], splits: tf.DType, path: Path) -> tf.TypeSpec:
    dtype = tf.bool if pa.types.is_boolean(arrow) else number_dtype(arrow)
    if is_string(arrow) or is_category(arrow):
        dtype = tf.string
    if dtype is not None:
        return tf.TensorSpec(outer, dtype)
    if pa.types.is_struct(arrow):
        names = names_of(arrow.fields, path)
        types = [f.type for f in arrow.fields]
        inner = {n: _spec(t, outer, splits, path / n) for n, t in zip(names, types, strict=True)}
        return DenseStructuredTensorSpec(outer, inner)
    if pa.types.is_fixed_size_list(arrow):
        if outer[0] is None:
            values = _spec(arrow.value_type, [None], splits, path)
        else:
            values = _spec(arrow.value_type, [outer[0] * arrow.list_size], splits, path)
        return folded_spec(values, outer[0], arrow.list_size, splits)
    if is_list(arrow):
        values = _spec(arrow.value_type, [None], splits, path)
        return _cut_spec(values, outer[0], splits)
    raise unsupported(arrow, path)


def _cut_spec(values: Any, nrows: int | None, splits: tf.DType) -> tf.TypeSpec:
    shape = tf.TensorShape([nrows, None]).concatenate(values.shape[1:])
    if isinstance(values, StructuredTensorSpec):
        return RaggedStructuredTensorSpec(shape, values, splits)
    ragged_rank = values.ragged_rank + 1 if isinstance(values, tf.RaggedTensorSpec) else 1
    return tf.RaggedTensorSpec(shape, values.dtype, ragged_rank, splits)


def folded_spec(values: Any, nrows: int | None, size: int, splits: tf.DType) -> tf.TypeSpec:
    """Returns the spec of values whose first dimension is cut into `nrows` rows of one size."""
    shape = tf.TensorShape([nrows, size]).concatenate(values.shape[1:])
    if isinstance(values, RaggedStructuredTensorSpec):
        return RaggedStructuredTensorSpec(
            tf.TensorShape([nrows, None]).concatenate(values.shape[1:]), values, splits
        )
    if isinstance(values, DenseStructuredTensorSpec):
        fields = {n: folded_spec(s, nrows, size, splits) for n, s in values.field_specs.items()}
        return DenseStructuredTensorSpec(shape, fields)
    if isinstance(values, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(shape, values.dtype, values.ragged_rank + 1, splits)
    return tf.TensorSpec(shape, values.dtype)


def splits_dtype(dtype: Any) -> tf.DType:
    """Returns the dtype asked for row splits.

    Raises:
        DTypeError: If it is neither int64 nor int32 (also a TypeError).
    """
    dtype = tf.dtypes.as_dtype(dtype)
    if dtype not in (tf.int64, tf.int32):
        raise DTypeError(
            path="row_splits_dtype",
            expected="tf.int64 or tf.int32",
            received=dtype.name,
            mend="Leave it out for int64.",
        )
    return dtype
