"""from_arrow: Arrow records become StructuredTensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import holds_records
from extensor._arrow.column_type import ColumnType
from extensor._arrow.flat_types import DictionaryType
from extensor._arrow.location import Location, splits_dtype
from extensor._arrow.nested_types import StructType
from extensor._arrow.type_table import column_type
from extensor._path import Path
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FormatError, StructureError


@refuse_deep_nesting("from_arrow")
def from_arrow(data: Any, row_splits_dtype: Any = tf.int64) -> StructuredTensor:
    """Returns Arrow records as a StructuredTensor.

    Numbers share Arrow's memory where it is 64-byte aligned (what Arrow's own readers and
    compute functions allocate is; IPC files mostly are not, and are copied). Strings, booleans
    and offsets that change their width are copied.

    Args:
        data: A pyarrow Table, RecordBatch, StructArray or ChunkedArray of structs, or anything
            that exports itself by the Arrow PyCapsule interface, such as a polars DataFrame. Also
            an array of lists of structs, or a StructScalar.
        row_splits_dtype: The dtype of the row splits of lists. tf.int32 shares the offsets of
            Arrow's `list` type instead of widening them.

    Returns:
        A StructuredTensor of shape `[number of records]` with a field for each column: numbers,
        booleans and strings as tensors, lists as ragged tensors, fixed-size lists as dense ones,
        structs as StructuredTensors, lists of structs as ragged ones. An array of lists of
        structs gives a higher rank, a StructScalar a single record.

    Raises:
        DTypeError: If `data` holds no records (also a TypeError).
        UnsupportedTypeError: If a type has no counterpart; the error names path and type (also a
            TypeError).
        NullError: If there is a null; the error names the path and the first record that has one
            (also a ValueError).
        StructureError: If two fields of one record have one name, the data is corrupt, or it is
            nested too deeply for Python's recursion limit (also a ValueError).
        FormatError: If an object says that it exports Arrow data, and does not (also a ValueError).

    >>> table = pa.table({"title": ["Snickerdoodles", "Flapjacks"],
    ...                   "steps": [[{"minutes": 5}, {"minutes": 20}], [{"minutes": 8}]]})
    >>> recipes = xt.from_arrow(table)
    >>> recipes
    <StructuredTensor shape=(2,) {title: string, steps: [*] {minutes: int64}}>
    >>> recipes["steps.minutes"]
    <tf.RaggedTensor [[5, 20], [8]]>
    """
    with tf.init_scope():  # the data is there now, also while a graph is being traced
        return _converted(data, splits_dtype(row_splits_dtype))


def _converted(data: Any, splits: tf.DType) -> StructuredTensor:
    if isinstance(data, pa.StructScalar):
        return _converted(pa.array([data], data.type), splits)[0]
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        if not holds_records(data.type):
            raise _no_records(f"Arrow type {data.type}")
        rows = column_type(data.type, Path())
        return rows.read(_one_chunk(data, rows, Path()), Location(Path(), splits))
    if not isinstance(data, (pa.Table, pa.RecordBatch)):
        # As arrays of structs: as batches, pyarrow takes no slices, or takes them for the whole.
        if hasattr(data, "__arrow_c_stream__"):
            return _converted(_exported(data, pa.chunked_array), splits)
        if hasattr(data, "__arrow_c_array__"):
            return _converted(_exported(data, pa.array), splits)
        raise _no_records(type(data).__name__)
    records = StructType.of(pa.struct(list(data.schema)), Path(), column_type)
    fields = enumerate(records.fields.items())
    columns = [_one_chunk(data.column(i), field, Path(name)) for i, (name, field) in fields]
    for name, column in zip(records.fields, columns, strict=True):
        if len(column) != data.num_rows:
            raise StructureError(
                path=Path(name),
                expected=f"{data.num_rows} values, one for each record",
                received=f"{len(column)}",
                mend="The Arrow data is corrupt: validate() tells more.",
            )
    return records.read_columns(columns, data.num_rows, Location(Path(), splits))


def _exported(data: Any, import_with: Callable[[Any], Any]) -> Any:
    """Returns what an object exports by the Arrow PyCapsule interface."""
    try:
        return import_with(data)
    except Exception as error:  # the exporter's own, or what pyarrow raises of what it gave
        raise FormatError(
            path=type(data).__name__,
            expected="an object that exports Arrow data, as it says",
            received=f"{type(error).__name__}: {error}",
            mend="Convert it to a pyarrow Table first, by the library that it is from.",
        ) from error


def _no_records(received: str) -> DTypeError:
    return DTypeError(
        path="from_arrow",
        expected="a Table, a RecordBatch, or an array of structs",
        received=received,
        mend='Name the column of a bare array, pa.table({"x": array}), and make Arrow records of '
        "dicts, pa.array(dicts).",
    )


def _one_chunk(array: Any, described: ColumnType, path: Path) -> pa.Array:
    """Returns a column as one array whose buffers are as long as its type and length ask for.

    Chunks are validated before they are joined, which reads by their offsets.
    """
    if not isinstance(array, pa.ChunkedArray):
        return described.validate(array, path)
    chunks = [described.validate(chunk, path) for chunk in array.chunks]
    filled = [chunk for chunk in chunks if len(chunk)] or chunks[:1]  # an empty one begins anywhere
    if len(filled) == 1:
        return filled[0]
    try:
        return pa.chunked_array(filled, array.type).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        if isinstance(described, DictionaryType):  # more words than the places can count
            words = array.cast(array.type.value_type)
            return _one_chunk(words, described.words, path)
        raise StructureError(
            path=path,
            expected="chunks that fit into one Arrow array",
            received=f"{len(chunks)} chunks that do not: {error}",
            mend="Convert batch by batch, or cast the column to its large type.",
        ) from error
