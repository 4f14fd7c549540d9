"""from_arrow: converts Arrow records to StructuredTensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import holds_records, without_dictionaries
from extensor._arrow.column_type import ColumnType
from extensor._arrow.location import Location, splits_dtype
from extensor._arrow.reader import records_reader, rows_reader
from extensor._counted import counted
from extensor._path import Path
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FormatError, StructureError, UnsupportedTypeError


@refuse_deep_nesting("from_arrow")
def from_arrow(
    data: Any, row_splits_dtype: Any = tf.int64, nulls: Any = "error"
) -> StructuredTensor:
    """Returns Arrow records as a StructuredTensor.

    Numbers share Arrow's memory if it is 64-byte aligned. The memory that Arrow's own readers and
    compute functions allocate is aligned; that of IPC files mostly is not, and is copied. Strings,
    booleans, and offsets that change their width are copied.

    Args:
        data: A pyarrow Table, RecordBatch, StructArray or ChunkedArray of structs, or an object
            with the Arrow PyCapsule interface, such as a polars DataFrame. Also an array of lists
            of structs, or a StructScalar.
        row_splits_dtype: The dtype of the row splits of lists. tf.int32 shares the offsets of
            Arrow's `list` type instead of widening them.
        nulls: What to do with nulls: a policy for all fields, or a dict of policies by path. The
            key `"steps"` is a list, `"steps[*]"` its items; `"*"` is all other fields. A policy is

            - `"error"` (the default): a null raises.
            - `"mask"`: the field is a MaskedTensor, whether the data has nulls or not. Under
              `nulls="mask"` all fields, items and records are.
            - `xt.fill(value)`, or a value that is not a string: the value takes the place of nulls.
            - `"empty"`: null lists are empty lists.

            A value or `"empty"` that is not for one path applies to the fields that it fits.

    Returns:
        A StructuredTensor of shape `[number of records]` with a field for each column: numbers,
        booleans and strings as tensors, lists as ragged tensors, fixed-size lists as dense ones,
        structs as StructuredTensors, lists of structs as ragged ones. An array of lists of
        structs gives a higher rank, a StructScalar a single record.

    Raises:
        DTypeError: If `data` is not records (also a TypeError).
        UnsupportedTypeError: If a type has no counterpart; the error names path and type (also a
            TypeError).
        NullError: If there is a null, and its policy is "error"; the error names the path and the
            first record with a null (also a ValueError).
        FieldError: If there is a policy for a path that does not exist (also a KeyError).
        StructureError: If two fields of one record have the same name, the data is corrupt, or its
            nesting exceeds Python's recursion limit (also a ValueError).
        FormatError: If an object with the PyCapsule interface fails to export (also a ValueError).

    >>> import pyarrow as pa
    >>> import extensor as xt
    >>> table = pa.table({"title": ["Snickerdoodles", "Flapjacks"],
    ...                   "steps": [[{"minutes": 5}, {"minutes": 20}], [{"minutes": 8}]]})
    >>> recipes = xt.from_arrow(table)
    >>> recipes
    <StructuredTensor shape=(2,) {title: string, steps: [*] {minutes: int64}}
     [{title: b'Snickerdoodles', steps: [{minutes: 5}, {minutes: 20}]},
      {title: b'Flapjacks', steps: [{minutes: 8}]}]>
    >>> recipes["steps.minutes"]
    <tf.RaggedTensor [[5, 20], [8]]>
    """
    with tf.init_scope():  # converts eagerly, also while a graph is being traced
        return _converted(data, splits_dtype(row_splits_dtype), nulls)


def read_table(
    table: pa.Table, row_splits_dtype: Any, nulls: Any, schema: pa.Schema
) -> StructuredTensor:
    """Returns a table that was read from files as a StructuredTensor.

    Args:
        table: A table in which columns of strings may be dictionaries.
        row_splits_dtype: As in `from_arrow`.
        nulls: As in `from_arrow`.
        schema: The schema of the files.
    """
    with refuse_deep_nesting("from_arrow"), tf.init_scope():
        return _converted(table, splits_dtype(row_splits_dtype), nulls, schema)


def _expect_no_objects(data: Any) -> None:
    """Raises if a DataFrame of polars has Python objects: it exports their addresses."""
    if type(data).__module__.partition(".")[0] != "polars":
        return
    for name, kind in getattr(data, "schema", {}).items():
        if str(kind) == "Object":
            raise UnsupportedTypeError(
                path=Path(name),
                expected="a type that Arrow has",
                received="Python objects, the type Object of polars",
                mend="Convert the column, or leave it out: data.drop(name).",
            )


def _converted(
    data: Any, splits: tf.DType, nulls: Any, schema: pa.Schema | None = None
) -> StructuredTensor:
    if isinstance(data, pa.StructScalar):
        # pa.array makes no unions of scalars.
        return _converted(pa.repeat(data, 1), splits, nulls)[0]
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        if not holds_records(data.type):
            raise _no_records(f"Arrow type {data.type}")
        rows = rows_reader(data.type, nulls)
        return rows.read(_one_chunk(data, rows, Path()), Location(Path(), splits))
    if not isinstance(data, (pa.Table, pa.RecordBatch)):
        _expect_no_objects(data)
        # Imported as arrays of structs: pyarrow's import as batches mishandles slices.
        if hasattr(data, "__arrow_c_stream__"):
            return _converted(_exported(data, pa.chunked_array), splits, nulls)
        if hasattr(data, "__arrow_c_array__"):
            return _converted(_exported(data, pa.array), splits, nulls)
        raise _no_records(type(data).__name__)
    records = records_reader(data.schema if schema is None else schema, nulls)
    count = data.num_rows
    columns: list[pa.Array] = []
    for array, path, field in zip(
        data.columns, records.paths, records.fields.values(), strict=True
    ):
        column = _one_chunk(array, field, path)
        columns.append(column)
        if len(column) != count:
            raise StructureError(
                path=path,
                expected=counted(count, "values, one for each record"),
                received=counted(len(column), "values"),
                mend="The Arrow data is corrupt; validate() gives details.",
            )
    return records.read_columns(columns, count, Location(Path(), splits))


def _exported(data: Any, import_with: Callable[[Any], Any]) -> Any:
    """Returns what an object exports by the Arrow PyCapsule interface."""
    try:
        return import_with(data)
    except Exception as error:  # the exporter raises any error; pyarrow raises for bad data
        raise FormatError(
            path=type(data).__name__,
            expected="valid Arrow data from its PyCapsule interface",
            received=f"{type(error).__name__}: {error}",
            mend="Convert the object to a pyarrow Table first, with its own library.",
        ) from error


def _no_records(received: str) -> DTypeError:
    return DTypeError(
        path="from_arrow",
        expected="a Table, a RecordBatch, or an array of structs",
        received=received,
        mend='Name the column of a plain array, pa.table({"x": array}); convert dicts with '
        "pa.array(dicts).",
    )


def _one_chunk(array: Any, described: ColumnType, path: Path) -> pa.Array:
    """Returns a column as one validated array.

    Validates chunks before joining them, because joining reads by their offsets.
    """
    if not isinstance(array, pa.ChunkedArray):
        return described.validate(array, path)
    if array.num_chunks == 1:
        return described.validate(array.chunk(0), path)
    chunks = [described.validate(chunk, path) for chunk in array.chunks]
    # Empty chunks are dropped: their offsets may be anything.
    filled = [chunk for chunk in chunks if len(chunk)] or chunks[:1]
    if len(filled) == 1:
        return filled[0]
    try:
        return pa.chunked_array(filled, array.type).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        # Too many words for the index type, or a null among the words.
        arrow = without_dictionaries(array.type)
        if arrow != array.type:
            with contextlib.suppress(pa.ArrowNotImplementedError):
                return _one_chunk(array.cast(arrow), described, path)
        raise StructureError(
            path=path,
            expected="chunks that fit into one Arrow array",
            received=f"{len(chunks)} chunks that do not fit ({error})",
            mend="Convert batch by batch, or cast the column to its large type.",
        ) from error
