"""from_arrow: Arrow records in memory as StructuredTensors."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.read import read_records, table_of
from extensor._arrow.wanted_table import WantedTable
from extensor._path import PathLike
from extensor._raised import first_line
from extensor._struct.tensor import StructuredTensor
from extensor._typing import ArrowData, DTypeLike, NullsLike, SchemaLike
from extensor.errors import StructureError


def from_arrow(
    data: ArrowData,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
) -> StructuredTensor:
    """Returns Arrow records as a StructuredTensor.

    Numbers share Arrow's memory if it is 64-byte aligned. The memory that Arrow's own readers and
    compute functions allocate is aligned; that of IPC files mostly is not, and is copied. Strings,
    booleans, and offsets that change their width are copied.

    Args:
        data: A pyarrow Table, RecordBatch, StructArray or ChunkedArray of structs, or an object
            with the Arrow PyCapsule interface, such as a polars DataFrame. Also an array of lists
            of structs, or a StructScalar.
        columns: Paths of the fields to convert, such as `["title", "steps.minutes"]`. Default: all.
        schema: The spec of a StructuredTensor, or a pyarrow Schema, to which the columns are cast
            without loss. Default: the schema of the data.
        nulls: What to do with nulls: a policy for all fields, or a dict of policies by path. The
            key `"steps"` is a list, `"steps[*]"` its items; `"*"` is all other fields. A policy is

            - `"error"` (the default): a null raises.
            - `"mask"`: the field is a MaskedTensor, whether the data has nulls or not. Under
              `nulls="mask"` all fields, items and records are.
            - `"auto"`: as `"mask"`, for the fields that have nulls. The others have no mask.
            - `xt.fill(value)`, or a value that is not a string: the value takes the place of nulls.
            - `"empty"`: null lists are empty lists.

            A value or `"empty"` that is not for one path applies to the fields that it fits.
            With a spec, the default is the masks of the spec; "auto" is the same then.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of the
            spec. tf.int32 shares the offsets of Arrow's `list` type instead of widening them.

    Returns:
        A StructuredTensor of shape `[number of records]` with a field for each column: numbers,
        booleans and strings as tensors, lists as ragged tensors, fixed-size lists as dense ones,
        structs as StructuredTensors, lists of structs as ragged ones. An array of lists of
        structs gives a higher rank, a StructScalar a single record.

    Raises:
        DTypeError: If `data` is not records, or does not fit the schema (also a TypeError).
        UnsupportedTypeError: If a type has no counterpart; the error names path and type (also a
            TypeError).
        NullError: If there is a null, and its policy is "error"; the error names all fields with
            such nulls, and ends in an argument `nulls` to paste (also a ValueError).
        FieldError: If there is a policy for a path, or a column, that does not exist (also a
            KeyError).
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
     [{title: 'Snickerdoodles', steps: [{minutes: 5}, {minutes: 20}]},
      {title: 'Flapjacks', steps: [{minutes: 8}]}]>
    >>> recipes["steps.minutes"]
    <tf.RaggedTensor [[5, 20], [8]]>
    """
    if columns is None and schema is None:
        splits = tf.int64 if row_splits_dtype is None else row_splits_dtype
        return read_records(data, splits, "error" if nulls is None else nulls)
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    with tf.init_scope():  # eagerly, also while a graph is being traced
        try:
            table = wanted.table(table_of(data, type(data).__name__), validate=True)
        except pa.ArrowInvalid as error:
            expected, fix = "valid Arrow data", "The Arrow data is corrupt."
            raise StructureError("from_arrow", expected, first_line(error), fix) from error
        return wanted.records(table)
