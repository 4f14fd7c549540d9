"""to_arrow: converts StructuredTensors to Arrow records; and the Arrow PyCapsule interface."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.arrow_type import without_views
from extensor._arrow.column_type import ColumnType
from extensor._arrow.dim_names import with_dim
from extensor._arrow.natural_type import NATURAL_NUMBERS, natural_field, natural_type
from extensor._arrow.struct_type import expect_same_size, write_fields
from extensor._arrow.type_table import target_type
from extensor._path import Path
from extensor._protocol.box import box
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.tensor import StructuredTensor
from extensor._struct.to_python import expect_values
from extensor.errors import DTypeError

# This file calls `StructuredTensor._field`, which is faster than `field_value`.


@refuse_deep_nesting("to_arrow")
def to_arrow(
    records: StructuredTensor, schema: pa.Schema | pa.DataType | None = None
) -> pa.RecordBatch | pa.Array | pa.StructScalar:
    """Returns a StructuredTensor as Arrow data.

    Numbers and row splits share the tensors' memory; strings and booleans are copied.

    Args:
        records: A StructuredTensor that holds values (not part of a graph).
        schema: The Arrow schema or struct type of the result; for records of higher rank, the
            type of the lists of structs. Fields come in the schema's order. Numbers are cast by
            Arrow's safe cast: floats may lose precision, but neither overflow nor change an
            integer. Without a schema, a field that came from Arrow is written as the type that it
            came with, as long as its dtype and structure are the same. Other numbers keep their
            type; strings become `string` (text in UTF-8); ragged dimensions
            become `large_list` for int64 row splits and `list` for int32; further dense dimensions
            become `fixed_size_list`.

    Returns:
        A RecordBatch for records of rank 1, a StructScalar for a single record, or an array of
        lists for higher ranks.

    Raises:
        DTypeError: If `records` is not a StructuredTensor, is part of a graph, or has a field that
            does not convert to the schema's type (also a TypeError).
        FieldError: If the schema's fields are not those of the records (also a KeyError).
        StructureError: If a list does not have the fixed size of the schema, or the parts of the
            records were not validated and do not fit (also a ValueError).
        FormatError: If a string that becomes text is not UTF-8 (also a ValueError).

    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([2], {"title": ["Snickerdoodles", "Flapjacks"]})
    >>> xt.to_arrow(recipes).to_pylist()
    [{'title': 'Snickerdoodles'}, {'title': 'Flapjacks'}]
    """
    if not isinstance(records, StructuredTensor):
        fix = 'Name the column of a plain tensor: xt.DenseStructuredTensor([n], {"x": tensor}).'
        raise DTypeError("to_arrow", "a StructuredTensor", type(records).__name__, fix)
    if schema is None or isinstance(schema, pa.DataType):
        target = schema
    elif isinstance(schema, pa.Schema) and records.rank <= 1:
        target = pa.struct(list(schema))
    else:
        expected = f"the Arrow type of {records.rank - 1} list(s) of structs"
        if records.rank <= 1:
            expected = "a Schema or struct type"
        fix = "Leave it out for the default types."
        raise DTypeError("to_arrow: schema", expected, type(schema).__name__, fix)
    expect_values(records, "to_arrow")
    if records.rank == 0:
        spec = records.__tf_type_spec__()
        one_record = spec.stacked(1).from_boxed_tensor(
            [tf.stack([part]) for part in box(spec, records)]
        )
        return _array(one_record, target)[0]
    if target is None and records.rank == 1 and records.field_names():
        return _natural_batch(records)
    array = _array(records, target)
    if records.rank > 1:
        return array
    full: Any = schema
    if not isinstance(schema, pa.Schema):
        full = with_dim(pa.schema(array.type.fields), records.dims[0])
    if not array.type.num_fields:
        return pa.RecordBatch.from_struct_array(array).replace_schema_metadata(full.metadata)
    return pa.RecordBatch.from_arrays(
        [array.field(i) for i in range(array.type.num_fields)], schema=full
    )


def to_plain_arrow(
    records: StructuredTensor,
    schema: pa.Schema | pa.DataType | None = None,
    only_encoded: bool = False,
) -> pa.RecordBatch | pa.Array | pa.StructScalar:
    """Returns records as `to_arrow` does, of types that most functions of Arrow take.

    Text has offsets: polars, for example, exports views of text, and dictionaries of them.

    Args:
        records: As in `to_arrow`.
        schema: As in `to_arrow`.
        only_encoded: Whether views stay that are not in a dictionary or in runs.

    Raises:
        The errors of `to_arrow`.
    """
    data: Any = to_arrow(records, schema)
    is_batch = isinstance(data, pa.RecordBatch)
    own = pa.struct(list(data.schema)) if is_batch else data.type
    plain = without_views(own, only_encoded)
    if plain is own:
        return data
    return to_arrow(records, pa.schema(plain.fields, data.schema.metadata) if is_batch else plain)


def _natural_batch(records: StructuredTensor) -> pa.RecordBatch:
    """Returns records of rank 1 as a batch of their natural types.

    Finds the type of each field and writes it in one pass, because of records with many fields.
    """
    root = Path()
    fields: list[pa.Field] = []
    columns: dict[str, pa.Array] = {}
    others: list[tuple[str, ColumnType]] = []
    for name in records.field_names():
        value = records._field(name, root)
        field = natural_field(records, name, value, root)
        arrow = NATURAL_NUMBERS.get(value.dtype) if isinstance(value, tf.Tensor) else None
        if arrow is not None and field.type == arrow:
            columns[name] = buffers.numbers_out(value, arrow)
        else:
            others.append((name, target_type(field.type, root / name)))
        fields.append(field)
    names = records.field_names()
    written = write_fields(records, others, root)
    columns |= zip((name for name, _ in others), written, strict=True)
    arrays = [columns[name] for name in names]
    expect_same_size(names, arrays, root)
    schema = with_dim(pa.schema(fields), records.dims[0])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(records: StructuredTensor, target: pa.DataType | None) -> pa.Array:
    if target is None:
        target = natural_type(records, Path())
    return target_type(target, Path()).write(records, Path())


def array_capsules(records: StructuredTensor, requested_schema: object = None) -> tuple[Any, Any]:
    """Returns records as the capsules of `__arrow_c_array__`.

    Raises:
        DTypeError: If `records` is a single record (also a TypeError).
        The errors of `to_arrow`.
    """
    return _export(records).__arrow_c_array__(requested_schema)


def stream_capsule(records: StructuredTensor, requested_schema: object = None) -> object:
    """Returns records as the capsule of `__arrow_c_stream__`: a stream of one batch.

    Raises:
        The errors of `array_capsules`.
    """
    array = _export(records)
    if isinstance(array, pa.RecordBatch):
        return pa.Table.from_batches([array]).__arrow_c_stream__(requested_schema)
    return pa.chunked_array([array]).__arrow_c_stream__(requested_schema)


def _export(records: StructuredTensor) -> pa.RecordBatch | pa.Array:
    if records.rank == 0:
        expected = "records of rank 1 or more"
        fix = "Use xt.to_arrow, which returns a StructScalar."
        raise DTypeError("Arrow PyCapsule export", expected, "a single record", fix)
    return to_arrow(records)
