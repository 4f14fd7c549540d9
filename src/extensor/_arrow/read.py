"""Arrow records in memory as StructuredTensors, and as tables."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import holds_records, without_dictionaries
from extensor._arrow.buffers import check_start
from extensor._arrow.column_type import ColumnType
from extensor._arrow.found_nulls import FoundNulls, found_nulls, refused_nulls, with_masks_for_auto
from extensor._arrow.location import Location
from extensor._arrow.null_argument import has_auto
from extensor._arrow.nullable_type import array_of_one
from extensor._arrow.nulls import nulls_of
from extensor._arrow.parallel_columns import free_unused
from extensor._arrow.reader import records_reader, rows_reader
from extensor._arrow.strings_by_batch import StringsByBatch
from extensor._arrow.struct_fields import batch_of
from extensor._arrow.struct_type import StructType
from extensor._count_text import count_text
from extensor._path import Path
from extensor._struct.common_shape import checked_splits_dtype
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.tensor import StructuredTensor
from extensor._tf._tf_eager import read_eagerly
from extensor._typing import DTypeLike, NullsLike
from extensor.errors import DTypeError, FormatError, NullError, StructureError, UnsupportedTypeError

_MUCH = 1 << 27  # bytes of a table: for less, to give memory back to the system takes longer


class OwnedTable:
    """A table whose columns nothing else has, so that each can be freed once it is converted.

    Args:
        table: The table. The caller drops it.
    """

    def __init__(self, table: pa.Table) -> None:
        self.schema: pa.Schema = table.schema
        self.num_rows: int = table.num_rows
        self.columns: list[Any] = table.columns
        self.is_large = table.nbytes > _MUCH


@refuse_deep_nesting("from_arrow")
@read_eagerly
def read_records(
    data: object,
    row_splits_dtype: DTypeLike = tf.int64,
    nulls: NullsLike | None = "error",
    schema: pa.Schema | None = None,
    is_part: bool = False,
    by_batch: StringsByBatch | None = None,
) -> StructuredTensor:
    """Returns Arrow records as a StructuredTensor.

    Args:
        data: As in `from_arrow`, or an OwnedTable.
        row_splits_dtype: As in `from_arrow`.
        nulls: As in `from_arrow`, but not None.
        schema: The schema of a table in which columns of strings may be dictionaries. Default: that
            of the data.
        is_part: Whether other parts of the data may have nulls in other fields, for errors.
        by_batch: What cuts strings in lists when the records are cut into batches. The records have
            empty strings in their place.
    """
    return _convert(data, checked_splits_dtype(row_splits_dtype), nulls, schema, is_part, by_batch)


def read_value(value: object, arrow: pa.DataType) -> Any:
    """Returns a value of Python, as in `nulls=`, as the field of one record has it.

    In a graph too, it is an eager tensor.
    """
    table = pa.table([array_of_one(value, arrow)], names=["value"])
    with tf.init_scope():
        return read_records(table)["value"]


def has_capsules(value: object) -> bool:
    """Returns whether a value has the Arrow PyCapsule interface."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def table_of(data: Any, name: str) -> pa.Table:
    """Returns Arrow records as a table, whose columns are not validated.

    Args:
        data: A table, a batch, an array of structs, or an object with the PyCapsule interface.
        name: What the data is called in errors.

    Raises:
        DTypeError: If the data is no records (also a TypeError).
        UnsupportedTypeError, FormatError: As `from_arrow`.
        pa.ArrowInvalid, StructureError: If the structs of an array do not fit their fields.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    rows = data if isinstance(data, (pa.Array, pa.ChunkedArray)) else _import(data, name)
    if not pa.types.is_struct(rows.type):
        expected = "records: a table, or an array of structs"
        fix = (
            'Name the column: pa.table({"x": array}). Lists of records: xt.from_arrow(array) '
            "reads all fields; choose some of the result, records.with_only(...)."
        )
        raise DTypeError(name, expected, f"Arrow type {rows.type}", fix)
    if not rows.type.num_fields:
        return pa.table({"": pa.nulls(len(rows))}).select([])
    chunks = rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]
    for chunk in chunks:  # whose offset and lengths make the batch
        check_start(chunk, Path())
        chunk.validate()
    return pa.Table.from_batches(map(batch_of, chunks), pa.schema(list(rows.type)))


def _import(data: Any, name: str) -> pa.Array | pa.ChunkedArray:
    """Returns what an object exports by the Arrow PyCapsule interface.

    Raises:
        DTypeError, UnsupportedTypeError, FormatError: As `from_arrow`.
    """
    _expect_no_objects(data)
    # As arrays of structs: pyarrow's import as batches mishandles slices.
    if hasattr(data, "__arrow_c_stream__"):
        import_with: Callable[[Any], Any] = pa.chunked_array
    elif hasattr(data, "__arrow_c_array__"):
        import_with = pa.array
    else:
        raise _no_records(type(data).__name__)
    try:
        return import_with(data)
    except Exception as error:  # the exporter raises any error; pyarrow raises for bad data
        expected = "valid Arrow data from its PyCapsule interface"
        fix = "Convert the object to a pyarrow Table first, with its own library."
        raise FormatError(name, expected, f"{type(error).__name__}: {error}", fix) from error


def _convert(
    data: Any,
    splits: tf.DType,
    nulls: NullsLike | None,
    schema: pa.Schema | None = None,
    is_part: bool = False,
    by_batch: StringsByBatch | None = None,
) -> StructuredTensor:
    if isinstance(data, pa.StructScalar):
        # pa.array makes no unions of scalars.
        return _convert(pa.repeat(data, 1), splits, nulls)[0]
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        if not holds_records(data.type):
            raise _no_records(f"Arrow type {data.type}")
        rows = rows_reader(data.type, nulls)
        column = _one_chunk(data, rows, Path())
        found = functools.partial(found_nulls, rows, column, Location(Path(), splits))
        if has_auto(nulls):
            rows = rows_reader(data.type, with_masks_for_auto(nulls, found()))
        with _refusing(nulls, found, is_part):
            return rows.read(column, Location(Path(), splits))
    is_owned = isinstance(data, OwnedTable)
    if not is_owned and not isinstance(data, (pa.Table, pa.RecordBatch)):
        return _convert(_import(data, type(data).__name__), splits, nulls)
    schema = data.schema if schema is None else schema
    records = records_reader(schema, nulls)
    columns = _columns(data, records)
    found = functools.partial(_found_in, records, columns, splits)
    if has_auto(nulls):
        records = records_reader(schema, with_masks_for_auto(nulls, found()))
    with _refusing(nulls, found, is_part):
        owner = None if is_part or is_owned else data
        location = Location(Path(), splits, owner=owner, by_batch=by_batch)
        # The error for nulls lists those of all columns.
        frees = is_owned and data.is_large and not any(e.is_refused and e.number for e in found())
        return records.read_columns(columns, data.num_rows, location, frees)


@contextlib.contextmanager
def _refusing(
    nulls: NullsLike | None, found: Callable[[], Iterator[FoundNulls]], is_part: bool
) -> Generator[None]:
    """Adds all fields with nulls to the error for a null."""
    try:
        yield
    except NullError as error:
        raise refused_nulls(error, nulls, found(), is_part) from None


def _columns(data: pa.Table | pa.RecordBatch | OwnedTable, records: StructType) -> list[pa.Array]:
    """Returns the columns of a table, each as one validated array; an OwnedTable gets them too."""
    columns: list[Any] = data.columns
    for number, (path, field) in enumerate(
        zip(records.paths, records.fields.values(), strict=True)
    ):
        column = columns[number] = _one_chunk(columns[number], field, path)
        if isinstance(data, OwnedTable) and data.is_large:
            free_unused()  # of the chunks
        if len(column) != data.num_rows:
            expected = count_text(data.num_rows, "values, one for each record")
            fix = "The Arrow data is corrupt; validate() gives details."
            raise StructureError(path, expected, count_text(len(column), "values"), fix)
    return columns


def _found_in(
    records: StructType, columns: Sequence[pa.Array], splits: tf.DType
) -> Iterator[FoundNulls]:
    """Yields the nulls of validated columns of records."""
    location = Location(Path(), splits)
    for column, (name, field) in zip(columns, records.fields.items(), strict=True):
        yield from found_nulls(field, column, location.field(name))


def nulls_in_table(table: pa.Table | OwnedTable, nulls: NullsLike | None) -> list[FoundNulls]:
    """Returns the nulls of the fields of a table; see `found_nulls`.

    Args:
        table: The table, not validated yet.
        nulls: The argument `nulls` for its fields.
    """
    records = records_reader(table.schema, nulls)
    return list(_found_in(records, _columns(table, records), tf.int64))


def _expect_no_objects(data: object) -> None:
    """Raises if a DataFrame of polars has a type that Arrow lacks: of objects, it has addresses."""
    if type(data).__module__.partition(".")[0] != "polars":
        return
    if type(data).__name__ == "LazyFrame":
        expected, fix = "a DataFrame of polars", "Collect it: data.collect()."
        raise DTypeError("from_arrow", expected, "a LazyFrame, which has no values yet", fix)
    for name, kind in getattr(data, "schema", {}).items():
        if str(kind) in ("Object", "Int128", "UInt128"):
            what = "Python objects, " if str(kind) == "Object" else ""
            received = f"{what}the type {kind} of polars"
            fix = "Convert the column, or leave it out: data.drop(name)."
            raise UnsupportedTypeError(Path(name), "a type that Arrow has", received, fix)


def _no_records(received: str) -> DTypeError:
    fix = 'Name the column: pa.table({"x": array}); convert dicts with pa.array(dicts).'
    return DTypeError("from_arrow", "a Table, a RecordBatch, or an array of structs", received, fix)


def _one_chunk(array: pa.Array | pa.ChunkedArray, described: ColumnType, path: Path) -> pa.Array:
    """Returns a column as one validated array.

    Validates chunks before joining them, because joining reads by their offsets.
    """
    if not isinstance(array, pa.ChunkedArray):
        return described.validate(array, path)
    if array.num_chunks < 2:
        chunk = array.chunk(0) if array.num_chunks else nulls_of(array.type, 0)
        return described.validate(chunk, path)
    chunks = [described.validate(chunk, path) for chunk in array.chunks]
    # Empty chunks are dropped: their offsets may be anything.
    filled = [chunk for chunk in chunks if len(chunk)] or chunks[:1]
    if len(filled) == 1:
        return filled[0]
    try:
        # `combine_chunks` would make Python objects of all chunks again.
        return pa.concat_arrays(filled)
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        # Too many words for the index type, or a null among the words.
        arrow = without_dictionaries(array.type)
        if arrow != array.type:
            with contextlib.suppress(pa.ArrowNotImplementedError):
                return _one_chunk(array.cast(arrow), described, path)
        received = f"{len(chunks)} chunks that do not fit ({error})"
        fix = "Convert batch by batch, or cast the column to its large type."
        raise StructureError(path, "chunks that fit into one Arrow array", received, fix) from error
