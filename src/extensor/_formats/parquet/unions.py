"""Unions in Parquet, which has none: as records with the variant's number and a field for each.

The fields of the other variants are null. The metadata of the Arrow field, which pyarrow keeps in
the file, says which records are a union; other readers see the records.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import contains_type, inner_fields, is_list, with_inner_fields
from extensor._arrow.struct_fields import inner_arrays, with_inner_arrays
from extensor._path import Path
from extensor.errors import FormatError, UnsupportedTypeError

_KEY = b"extensor.union"
_CODE = "variant"


class _NoVariantError(Exception):
    """A union in a file has a variant that it does not have."""


def without_unions(schema: pa.Schema) -> pa.Schema:
    """Returns the schema of a file for records of a schema.

    Raises:
        UnsupportedTypeError: If a union is in a map, where it is not supported (also a TypeError).
    """
    if not any(_holds_union(field.type) for field in schema):
        return schema
    return pa.schema(
        [_field_without_unions(each, Path(each.name)) for each in schema], schema.metadata
    )


def with_unions(schema: pa.Schema) -> pa.Schema:
    """Returns the schema of the records in a file of a schema."""
    stored = list(schema)
    # Most columns of a file of many columns hold no others.
    fields = [
        _field_with_unions(each) if pa.types.is_nested(each.type) else each for each in stored
    ]
    return schema if fields == stored else pa.schema(fields, schema.metadata)


def batch_without_unions(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch for a file, of the schema that `without_unions` returned."""
    if batch.schema is schema or not any(_holds_union(field.type) for field in batch.schema):
        return batch
    columns = [_array_without_unions(a, f) for a, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def table_with_unions(table: pa.Table, path: str) -> pa.Table:
    """Returns a table of a file with its unions.

    Raises:
        FormatError: If a union has a variant that it does not have (also a ValueError).
    """
    stored_schema = table.schema
    schema = with_unions(stored_schema)
    if schema is stored_schema:
        return table
    columns: list[pa.ChunkedArray] = []
    for column, was, field in zip(table.columns, stored_schema, schema, strict=True):
        if was.type != field.type:
            try:
                chunks = [_array_with_unions(chunk, was, field) for chunk in column.chunks]
            except _NoVariantError as error:
                expected = f"unions of the column {field.name!r} with a known variant"
                fix = "Write the file again with write_parquet."
                raise FormatError(path, expected, str(error), fix) from None
            column = pa.chunked_array(chunks, field.type)
        columns.append(column)
    return pa.table(columns, schema=schema)


def _holds_union(arrow: pa.DataType) -> bool:
    return contains_type(arrow, pa.types.is_union)


def _field_without_unions(field: pa.Field, path: Path) -> pa.Field:
    arrow = field.type
    if not _holds_union(arrow):
        return field
    inner = [
        _field_without_unions(each, path / each.name if not is_list(arrow) else path)
        for each in inner_fields(arrow)
    ]
    if pa.types.is_union(arrow):
        code = _CODE
        while code in {each.name for each in inner}:
            code += "_"
        described = json.dumps({"mode": arrow.mode, "codes": list(arrow.type_codes)}).encode()
        made = pa.struct([pa.field(code, pa.int8()), *(each.with_nullable(True) for each in inner)])
        return field.with_type(made).with_metadata({**(field.metadata or {}), _KEY: described})
    if not (pa.types.is_struct(arrow) or is_list(arrow)):
        fix = "Give schema= with a list of records in place of the map, or write an Arrow file."
        raise UnsupportedTypeError(path, "unions in records and lists", f"Arrow type {arrow}", fix)
    return field.with_type(with_inner_fields(arrow, inner))


def _field_with_unions(field: pa.Field) -> pa.Field:
    arrow = field.type
    inner = [_field_with_unions(each) for each in inner_fields(arrow)]
    described = (field.metadata or {}).get(_KEY)
    if described is None or not pa.types.is_struct(arrow) or not inner:
        same = inner == inner_fields(arrow)
        return field if same else field.with_type(with_inner_fields(arrow, inner))
    known = json.loads(described)
    make = pa.dense_union if known["mode"] == "dense" else pa.sparse_union
    others = {key: value for key, value in field.metadata.items() if key != _KEY}
    return field.with_type(make(inner[1:], known["codes"])).with_metadata(others or None)


def _array_without_unions(array: pa.Array, field: pa.Field) -> pa.Array:
    """Returns an array of the type of a field of a file."""
    if not _holds_union(array.type):
        return array
    inner = inner_fields(field.type)
    if pa.types.is_union(array.type):
        table = np.zeros(256, np.int8)
        table[np.array(array.type.type_codes)] = np.arange(array.type.num_fields)
        codes = table[np.asarray(array.type_codes)]
        rows = np.asarray(array.offsets) if array.type.mode == "dense" else np.arange(len(array))
        children = [
            _array_without_unions(array.field(i), each).take(pa.array(rows, mask=codes != i))
            for i, each in enumerate(inner[1:])
        ]
        return pa.StructArray.from_arrays([pa.array(codes), *children], fields=inner)
    return with_inner_arrays(array, list(map(_array_without_unions, inner_arrays(array), inner)))


def _array_with_unions(array: pa.Array, was: pa.Field, field: pa.Field) -> pa.Array:
    """Returns an array of a file as one of the type of `field`."""
    if was.type == field.type:
        return array
    if not pa.types.is_union(field.type):
        before, after = inner_fields(was.type), inner_fields(field.type)
        inner = map(_array_with_unions, inner_arrays(array), before, after)
        return with_inner_arrays(array, list(inner))
    # A record that is null is below a null: no one reads its value.
    found = array.field(0).fill_null(0)
    numbers = found.to_numpy(zero_copy_only=False)
    count = field.type.num_fields
    if ((numbers < 0) | (numbers >= count)).any():
        raise _NoVariantError(f"the variant {numbers.max()} of {count}")
    codes = pa.array(np.array(field.type.type_codes, np.int8)[numbers])
    before, after = inner_fields(was.type)[1:], inner_fields(field.type)
    children = [_array_with_unions(array.field(i + 1), before[i], after[i]) for i in range(count)]
    buffers = [None, codes.buffers()[1]]
    if field.type.mode == "dense":
        offsets = np.zeros(len(array), np.int32)
        for i, child in enumerate(children):
            rows = np.flatnonzero(numbers == i)
            offsets[rows] = np.arange(len(rows))
            children[i] = child.take(pa.array(rows))
        buffers.append(pa.py_buffer(offsets))
    return pa.Array.from_buffers(field.type, len(array), buffers, children=children)
