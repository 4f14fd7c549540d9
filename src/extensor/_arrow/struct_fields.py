"""The arrays inside Arrow arrays of structs and lists, without the calls of pyarrow that abort.

`StructArray.flatten`, and `from_struct_array` which calls it, abort where a union is a field of
structs that have a mask, even one without nulls (pyarrow 26).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from extensor._arrow.arrow_type import inner_fields, with_inner_fields
from extensor._path import Path
from extensor.errors import UnsupportedTypeError


def struct_fields(array: pa.StructArray) -> list[pa.Array]:
    """Returns the fields of an array of structs, null where the struct is null.

    Raises:
        UnsupportedTypeError: If a null struct has a union, which has no nulls (also a TypeError).
    """
    unions = [pa.types.is_union(field.type) for field in array.type]
    if not any(unions):
        return array.flatten()
    if array.null_count:
        name = array.type[unions.index(True)].name
        expected = "records without nulls, because an Arrow union has no nulls"
        received = f"{array.null_count} null records with a union"
        fix = "Fill the records in, or give the union a variant of type null."
        raise UnsupportedTypeError(Path(name), expected, received, fix)
    return [array.field(i) for i in range(array.type.num_fields)]


def batch_of(array: pa.StructArray) -> pa.RecordBatch:
    """Returns an array of structs as a record batch.

    Raises:
        UnsupportedTypeError: As `struct_fields`.
    """
    if not any(pa.types.is_union(field.type) for field in array.type):
        return pa.RecordBatch.from_struct_array(array)
    return pa.RecordBatch.from_arrays(struct_fields(array), schema=pa.schema(list(array.type)))


def inner_arrays(array: pa.Array) -> list[pa.Array]:
    """Returns the fields of structs, or the items of all lists, also of those outside of a slice.

    They have values below nulls too.
    """
    if pa.types.is_struct(array.type):
        return [array.field(i) for i in range(array.type.num_fields)]
    return [array.values]


def with_inner_arrays(array: pa.Array, inner: Sequence[pa.Array]) -> pa.Array:
    """Returns structs or lists with their `inner_arrays` replaced, which may have other types."""
    pairs = zip(inner_fields(array.type), inner, strict=True)
    arrow = with_inner_fields(array.type, [field.with_type(each.type) for field, each in pairs])
    if pa.types.is_struct(arrow):
        mask = array.is_null() if array.null_count else None
        made = pa.StructArray.from_arrays(inner, fields=arrow.fields, mask=mask)
        return made if inner else array
    own = array.buffers()[: arrow.num_buffers]
    return pa.Array.from_buffers(arrow, len(array), own, offset=array.offset, children=inner)
