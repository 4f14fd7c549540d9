"""The fields of Arrow arrays of structs, without the calls of pyarrow that abort the process.

`StructArray.flatten`, and `from_struct_array` which calls it, abort where a union is a field of
structs that have a mask, even one without nulls (pyarrow 26).
"""

from __future__ import annotations

import pyarrow as pa

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
