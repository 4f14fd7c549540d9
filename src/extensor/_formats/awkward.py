"""Awkward Arrays to StructuredTensors and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import (
    contains_type,
    decoded_type,
    inner_fields,
    is_list,
    with_inner_fields,
)
from extensor._arrow.read import table_of
from extensor._arrow.schema import masked_places, masks_of_spec
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_plain_arrow
from extensor._dependency import import_extra
from extensor._path import Path, PathLike
from extensor._raised import first_line
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.ragged_spec import ListSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, NullError, UnsupportedTypeError

if TYPE_CHECKING:
    import awkward as ak


def from_awkward(
    array: ak.Array,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
) -> StructuredTensor:
    """Returns an Awkward Array of records as a StructuredTensor.

    Args:
        array: An `ak.Array` of records, or of lists of records.
        columns: Paths of the fields to convert. Default: all.
        schema: The spec of a StructuredTensor, or the pyarrow Schema of the records.
        nulls: What becomes of None: `"error"` (the default), `"mask"` for a MaskedTensor, `"empty"`
            for lists, or `xt.fill(value)`; one for all fields, or a dict by path.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.

    Returns:
        A StructuredTensor of shape `[number of records]`; of a higher rank for lists of records.

    Raises:
        MissingDependencyError: If awkward is not installed (also an ImportError).
        DTypeError: If it is no array of records, or does not fit the schema (also a TypeError).
        NullError: If there is None, and no policy for it (also a ValueError).
        FieldError, UnsupportedTypeError: As in `from_arrow`.

    >>> import extensor as xt
    >>> import awkward as ak
    >>> xt.from_awkward(ak.Array([{"x": 1, "y": [1.5]}, {"x": 2, "y": []}]))
    <StructuredTensor shape=(2,) {x: int64, y: float64[*]}
     [{x: 1, y: [1.5]},
      {x: 2, y: []}]>
    """
    ak = import_extra("awkward", "awkward", "from_awkward")
    if not isinstance(array, ak.Array):
        raise _no_records(type(array).__name__)
    while isinstance(schema, ListSpec) and schema.rank > 1:
        row_splits_dtype = row_splits_dtype or schema.row_splits_dtype
        schema = schema.values_spec
    grid = None
    if isinstance(schema, StructuredTensorSpec) and schema.rank > 1:
        # No table has rows of such a spec, so the records are cast when they are complete.
        grid, schema = schema._any_length(), None
        columns = [(name,) for name in grid.field_names()] if columns is None else columns
        nulls = masks_of_spec(grid) if nulls is None else nulls
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    wanted.has_times_of_numpy = True
    try:
        rows = ak.to_arrow(array, extensionarray=False, categorical_as_dictionary=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        expected = "an array in memory, of types that Arrow has"
        received = f"type {array.type} ({first_line(error)})"
        fix = "Convert the values, such as complex ones to records of two numbers."
        raise UnsupportedTypeError("from_awkward", expected, received, fix) from error
    levels: list[int | np.ndarray[Any, Any]] = []
    while is_list(rows.type):
        if rows.null_count:
            raise _null("lists", rows)
        if pa.types.is_fixed_size_list(rows.type):
            levels.append(rows.type.list_size)
        else:
            offsets = np.asarray(rows.offsets)
            levels.append(offsets - offsets[0])
        rows = rows.flatten()
    if not pa.types.is_struct(rows.type):
        raise _no_records(f"an array of type {array.type}")
    if rows.null_count:
        raise _null("records", rows)
    records: Any = wanted.records(table_of(rows, "from_awkward"))
    dtype = wanted.row_splits_dtype
    for level in reversed(levels):
        if isinstance(level, int):
            records = RaggedStructuredTensor.from_uniform_row_length(records, level)
        else:
            splits = level.astype(dtype.as_numpy_dtype)
            records = RaggedStructuredTensor.from_row_splits(records, splits)
    if levels and all(isinstance(level, int) for level in levels):
        records = records._as_dense(tf.TensorShape([len(array), *levels]))
    return records if grid is None else grid.cast(records)


def _no_records(received: str) -> DTypeError:
    fix = 'Name the values: ak.zip({"x": array}, depth_limit=1).'
    return DTypeError("from_awkward", "an ak.Array of records", received, fix)


def _null(what: str, rows: pa.Array) -> NullError:
    expected = f"{what} without None"
    fix = "Remove them with ak.drop_none; None in fields is allowed by nulls=."
    return NullError("from_awkward", expected, f"{rows.null_count} that are None", fix)


def to_awkward(
    records: StructuredTensor, schema: pa.Schema | pa.DataType | None = None
) -> ak.Array:
    """Returns records as an Awkward Array.

    A field has an option type (`?int64`) if it is masked. Numbers share the memory of the tensors.
    A map becomes a list of records with the fields `key` and `value`.

    Args:
        records: A StructuredTensor of rank 1 or more that holds values.
        schema: The Arrow schema to convert by, as in `to_arrow`.

    Raises:
        MissingDependencyError: If awkward is not installed (also an ImportError).
        UnsupportedTypeError: If awkward has no type for a field (also a TypeError).
        DTypeError, FieldError, StructureError, FormatError: As in `to_arrow`.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"minutes": [5, 2]}, {"minutes": []}])
    >>> xt.to_awkward(recipes)["minutes"]
    <Array [[5, 2], []] type='2 * var * int32'>
    """
    ak = import_extra("awkward", "awkward", "to_awkward")
    data = to_plain_arrow(records, schema)
    if isinstance(data, pa.Scalar):
        fix = "Use to_py, or make a list of it: tf.expand_dims(record, 0)."
        raise DTypeError("to_awkward", "records of rank 1 or more", "a single record", fix)
    array = data.to_struct_array() if isinstance(data, pa.RecordBatch) else data
    masked = set(masked_places(records.__tf_type_spec__())) if schema is None else None
    known = _known_field(pa.field("", array.type), Path(), 0, masked).type
    if known != array.type:
        data = to_plain_arrow(records, known)
    try:
        if contains_type(known, _is_small_decimal):  # awkward makes bytes of these
            raise NotImplementedError("decimals of 32 and 64 bits")
        return ak.from_arrow(data)
    except (AssertionError, NotImplementedError, ValueError) as error:
        expected = "types that awkward has"
        fix = "Leave the field out, or write another type with schema=, such as pa.int64()."
        raise UnsupportedTypeError("to_awkward", expected, str(error)[:200], fix) from error


def _is_small_decimal(arrow: pa.DataType) -> bool:
    arrow = decoded_type(arrow)
    return pa.types.is_decimal32(arrow) or pa.types.is_decimal64(arrow)


def _known_field(field: pa.Field, at: Path, lists: int, masked: set[str] | None) -> pa.Field:
    """Returns a field of a type that awkward reads: without maps, runs and unsigned indices.

    A map becomes lists of records of key and value.

    Args:
        field: The field.
        at: Its path.
        lists: The number of lists around its values at this path.
        masked: The masked places, as `nulls=` names them: no other field is nullable. None to leave
            fields as they are.
    """
    arrow = field.type
    if pa.types.is_run_end_encoded(arrow):
        return _known_field(field.with_type(arrow.value_type), at, lists, masked)
    if pa.types.is_dictionary(arrow) and pa.types.is_unsigned_integer(arrow.index_type):
        arrow = pa.dictionary(pa.int64(), arrow.value_type, arrow.ordered)
    if pa.types.is_map(arrow):
        arrow = pa.list_(pa.struct(inner_fields(arrow)))
    if pa.types.is_struct(arrow):
        inner = [_known_field(each, at / each.name, 0, masked) for each in inner_fields(arrow)]
        arrow = with_inner_fields(arrow, inner)
    elif is_list(arrow):
        # The lists around the records are not part of a path.
        depth = lists + bool(at)
        inner = [_known_field(each, at, depth, masked) for each in inner_fields(arrow)]
        arrow = with_inner_fields(arrow, inner)
    if masked is None or pa.types.is_null(arrow):
        return field.with_type(arrow)
    return field.with_type(arrow).with_nullable(str(at) + "[*]" * lists in masked)
