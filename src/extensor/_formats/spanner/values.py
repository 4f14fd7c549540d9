"""Values of Spanner's protocol to Arrow arrays, a column at a time."""

from __future__ import annotations

import binascii
import itertools
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from extensor._formats.spanner import types
from extensor._path import Path
from extensor.errors import DTypeError

_INT32 = 2**31 - 1


def table_of(rows: Sequence[Any], fields: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """Returns rows of a result as a table.

    Args:
        rows: A list of `google.protobuf.Value` for each row.
        fields: The fields of the metadata of the result.
        schema: The columns to convert, with their types.

    Raises:
        DTypeError: If a value is out of the range of a type (also a TypeError).
    """
    indices = {field.name: index for index, field in enumerate(fields)}
    columns: list[pa.Array] = []
    for field in schema:
        index = indices[field.name]
        values = [row[index] for row in rows]
        columns.append(_array(values, fields[index].type_, field.type, Path(field.name)))
    return pa.Table.from_arrays(columns, schema=schema)


def _array(values: list[Any], kind: Any, arrow: pa.DataType, path: Path) -> pa.Array:
    if kind.code == types.ARRAY:
        return _lists(values, kind, arrow, path)
    if kind.code == types.STRUCT:
        return _records(values, kind, arrow, path)
    if kind.code == types.BOOL:
        return pa.array([v.bool_value or _or_null(v, False) for v in values], arrow)
    if kind.code in (types.FLOAT64, types.FLOAT32):
        return pa.array([v.number_value or _float(v) for v in values], arrow)
    texts = [v.string_value or _or_null(v, "") for v in values]
    convert = _CONVERSIONS.get(kind.code, _cast)
    try:
        return convert(texts, arrow)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _out_of_range(texts, arrow, convert, path) from error


def _lists(values: list[Any], kind: Any, arrow: pa.DataType, path: Path) -> pa.Array:
    lists = [v.list_value.values for v in values]
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    items = list(itertools.chain.from_iterable(lists))
    inner = _array(items, kind.array_element_type, arrow.value_type, path)
    if offsets[-1] > _INT32:
        expected = f"at most {_INT32:,} items in the lists of a part of the result"
        raise DTypeError(path, expected, f"{offsets[-1]:,} items", "Read the result in parts.")
    buffers = [_validity(values), pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(arrow, len(values), buffers, children=[inner])


def _records(values: list[Any], kind: Any, arrow: pa.DataType, path: Path) -> pa.Array:
    records = [v.list_value.values for v in values]
    validity = _validity(values)
    if validity is not None:
        nothing = _null(len(kind.struct_type.fields))
        records = [record if len(record) else nothing for record in records]
    indices = {field.name: index for index, field in enumerate(kind.struct_type.fields)}
    children: list[pa.Array] = []
    for field in arrow:
        index = indices[field.name]
        column = [record[index] for record in records]
        inner = kind.struct_type.fields[index].type_
        children.append(_array(column, inner, field.type, path / field.name))
    return pa.Array.from_buffers(arrow, len(values), [validity], children=children)


def _null(count: int) -> list[Any]:
    """Returns the values of the fields of a null record."""
    from google.protobuf import struct_pb2

    return [struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)] * count


def _validity(values: list[Any]) -> pa.Buffer | None:
    """Returns which lists or records are not null; None if all are."""
    # The value of a null has no lists, so only empty ones can be null.
    valid = [len(v.list_value.values) > 0 or not v.HasField("null_value") for v in values]
    return None if all(valid) else pa.array(valid, pa.bool_()).buffers()[1]


def _or_null(value: Any, default: Any) -> Any:
    """Returns the default of protocol buffers, or None if the value is null."""
    return None if value.HasField("null_value") else default


def _float(value: Any) -> float | None:
    """Returns a float that may be 0, null, or one that JSON does not have, such as NaN."""
    if value.HasField("string_value"):
        return float(value.string_value)
    return _or_null(value, value.number_value)


def _cast(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    return pa.array(texts, pa.string()).cast(arrow)


def _bytes(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    return pa.array([t if t is None else binascii.a2b_base64(t) for t in texts], arrow)


def _json(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(arrow, pa.array(texts, arrow.storage_type))


def _uuids(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    storage = [t if t is None else uuid.UUID(t).bytes for t in texts]
    return pa.ExtensionArray.from_storage(arrow, pa.array(storage, arrow.storage_type))


def _intervals(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    from google.cloud.spanner_v1.data_types import Interval

    parsed: list[Any] = [t if t is None else Interval.from_str(t) for t in texts]
    rows = [each if each is None else (each.months, each.days, each.nanos) for each in parsed]
    return pa.array(rows, arrow)


_CONVERSIONS: dict[int, Callable[[list[Any], pa.DataType], pa.Array]] = {
    types.BYTES: _bytes,
    types.PROTO: _bytes,
    types.JSON: _json,
    types.UUID: _uuids,
    types.INTERVAL: _intervals,
}


def _out_of_range(
    texts: list[Any], arrow: pa.DataType, convert: Callable[..., Any], path: Path
) -> DTypeError:
    """Returns the error for the first value that does not convert."""
    wrong = texts[0] if texts else ""
    for wrong in texts:
        try:
            convert([wrong], arrow)
        except (pa.ArrowException, ValueError, OverflowError):
            break
    fix = "Give schema= with a type that holds all values."
    if pa.types.is_timestamp(arrow):
        fix = (
            'Nanoseconds reach from 1677 to 2262. Give schema= with pa.timestamp("us", "UTC") for '
            'other years, and with pa.timestamp("ns", "UTC") for more digits.'
        )
    return DTypeError(path, f"values that Arrow type {arrow} holds", str(wrong)[:60], fix)
