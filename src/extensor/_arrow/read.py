"""from_arrow: Arrow records become StructuredTensors."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers, schema
from extensor._path import Path
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FormatError, NullError, StructureError


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
        return _converted(data, schema.splits_dtype(row_splits_dtype))


def _converted(data: Any, splits: tf.DType) -> StructuredTensor:
    if isinstance(data, pa.StructScalar):
        return _converted(pa.array([data], data.type), splits)[0]
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        if not schema.holds_records(data.type):
            raise _no_records(f"Arrow type {data.type}")
        return _value(_one_chunk(data, Path()), splits, _Place(Path()))
    if not isinstance(data, (pa.Table, pa.RecordBatch)):
        # As arrays of structs: as batches, pyarrow takes no slices, or takes them for the whole.
        if hasattr(data, "__arrow_c_stream__"):
            return _converted(_exported(data, pa.chunked_array), splits)
        if hasattr(data, "__arrow_c_array__"):
            return _converted(_exported(data, pa.array), splits)
        raise _no_records(type(data).__name__)
    names = schema.names_of(data.schema, Path())
    columns = [_one_chunk(data.column(i), Path(name)) for i, name in enumerate(names)]
    for name, column in zip(names, columns, strict=True):
        if len(column) != data.num_rows:
            raise StructureError(
                path=Path(name),
                expected=f"{data.num_rows} values, one for each record",
                received=f"{len(column)}",
                mend="The Arrow data is corrupt: validate() tells more.",
            )
    return _records(names, columns, data.num_rows, splits, _Place(Path()))


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


class _Place:
    """Where an array stands: its path, and how its elements lead back to records."""

    __slots__ = ("offsets", "parent", "path", "size")

    def __init__(
        self, path: Path, parent: _Place | None = None, offsets: Any = None, size: int = 0
    ) -> None:
        self.path = path
        self.parent = parent
        self.offsets = offsets
        self.size = size

    def field(self, name: str) -> _Place:
        return _Place(self.path / name, self)

    def below(self, offsets: Any = None, size: int = 0) -> _Place:
        """Returns the place of the values of a list, by its offsets or its fixed size."""
        return _Place(self.path, self, offsets, size)

    def record(self, element: int) -> int:
        """Returns the number of the record that an element belongs to."""
        if self.offsets is not None:
            element = int(np.searchsorted(self.offsets, element, side="right")) - 1
        elif self.size:
            element //= self.size
        return element if self.parent is None else self.parent.record(element)


def _one_chunk(array: Any, path: Path) -> pa.Array:
    """Returns a column as one array whose buffers are as long as its type and length ask for.

    Chunks are validated before they are joined, which reads by their offsets.
    """
    if not isinstance(array, pa.ChunkedArray):
        return _validated(array, path)
    schema.expect_counterpart(array.type, path)  # what is not validated is not joined
    chunks = [_validated(chunk, path) for chunk in array.chunks]
    filled = [chunk for chunk in chunks if len(chunk)] or chunks[:1]  # an empty one begins anywhere
    if len(filled) == 1:
        return filled[0]
    try:
        return pa.chunked_array(filled, array.type).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        if schema.is_category(array.type):  # more words in all than the places can count
            return _one_chunk(array.cast(array.type.value_type), path)
        raise StructureError(
            path=path,
            expected="chunks that fit into one Arrow array",
            received=f"{len(chunks)} chunks that do not: {error}",
            mend="Convert batch by batch, or cast the column to its large type.",
        ) from error


def _validated(array: pa.Array, path: Path) -> pa.Array:
    """Returns an array, of which every value that will be looked at is in its memory.

    Offsets of lists and strings are checked where they are read.
    """
    buffers.check_start(array, path)
    try:
        array.validate()
        _check_inside(array, path)
        if schema.holds(array.type, schema.is_string_view):  # nobody else checks where views point
            array.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        raise StructureError(
            path=path,
            expected="a valid Arrow array",
            received=f"one that Arrow rejects: {error}",
            mend="Find out who wrote these buffers; nothing was read from them.",
        ) from error
    return array


def _check_inside(array: pa.Array, path: Path) -> None:
    """Raises for what Arrow's validation passes over, in an array and those inside of it.

    These are arrays that begin before their memory, lists of a fixed size with too few values, and
    dictionaries, which Arrow reads where it joins chunks or decodes, and trusts.
    """
    buffers.check_start(array, path)
    if schema.is_category(array.type):
        words = _validated(array.dictionary, path)
        if not schema.is_string_view(words.type):
            buffers.offsets_of(words, path)
        buffers.check_start(array.indices, path)
        buffers.check_places(array, path)
    elif pa.types.is_struct(array.type):
        for i, name in enumerate(schema.names_of(array.type.fields, path)):
            _check_inside(array.field(i), path / name)
    elif pa.types.is_fixed_size_list(array.type):
        buffers.check_fixed_size(array, path)
        _check_inside(array.values, path)
    elif schema.is_list(array.type):
        _check_inside(array.values, path)


def _check_nulls(array: pa.Array, place: _Place) -> None:
    count = array.null_count
    if count:
        first = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise NullError(
            path=place.path,
            expected="no nulls",
            received=f"{count}, the first in record {place.record(first)}",
            mend="Fill them (pyarrow.compute.fill_null) or drop those records (Table.filter, "
            "Table.drop_null) before the conversion.",
        )


def _value(array: pa.Array, splits: tf.DType, place: _Place) -> Any:
    arrow_type = array.type
    dtype = schema.number_dtype(arrow_type)
    if dtype is not None:
        _check_nulls(array, place)
        return buffers.numbers_in(array, dtype)
    if schema.is_string(arrow_type):
        _check_nulls(array, place)
        return buffers.strings_in(array, place.path)
    if schema.is_category(arrow_type):
        _check_nulls(array, place)
        if array.dictionary.null_count:  # a null that no index may point to: decoding tells
            return _value(array.cast(arrow_type.value_type), splits, place)
        return buffers.categories_in(array, place.path)
    if pa.types.is_boolean(arrow_type):
        _check_nulls(array, place)
        return buffers.booleans_in(array)
    if pa.types.is_struct(arrow_type):
        return _struct(array, splits, place)
    if schema.is_list(arrow_type):
        return _list(array, splits, place)
    if pa.types.is_fixed_size_list(arrow_type):
        return _fixed_size_list(array, splits, place)
    raise schema.unsupported(arrow_type, place.path)


def _struct(array: pa.Array, splits: tf.DType, place: _Place) -> DenseStructuredTensor:
    _check_nulls(array, place)
    names = schema.names_of(array.type.fields, place.path)
    columns = [array.field(i) for i in range(len(names))]
    return _records(names, columns, len(array), splits, place)


def _records(
    names: list[str], columns: list[pa.Array], count: int, splits: tf.DType, place: _Place
) -> DenseStructuredTensor:
    places = [place.field(name) for name in names]

    def convert(i: int) -> Any:
        return _value(columns[i], splits, places[i])

    large = [i for i, column in enumerate(columns) if _copies_much(column)]
    if len(large) > 1 and not hasattr(_thread, "works_for_pool"):
        large.sort(key=lambda i: -columns[i].get_total_buffer_size())
        values = _side_by_side(convert, large)
    else:
        values = {}
    fields = {name: values[i] if i in values else convert(i) for i, name in enumerate(names)}
    return DenseStructuredTensor.of_parts(1, fields, None if fields else tf.zeros([count], tf.bool))


def _side_by_side(convert: Callable[[int], Any], tasks: list[int]) -> dict[int, Any]:
    """Returns what each task gives.

    Threads take the tasks from the front, this thread from the back: it works rather than waits.
    """
    begun = {task: _pool().submit(convert, task) for task in tasks}
    mine = {task: convert(task) for task in reversed(tasks) if begun[task].cancel()}
    return {task: mine[task] if task in mine else begun[task].result() for task in tasks}


# Copying strings takes nearly all of the time, in ops and NumPy loops that release the GIL.
# Columns of more bytes than this are converted side by side.
_LARGE = 1 << 20

_thread = threading.local()


def _copies_much(column: pa.Array) -> bool:
    return schema.holds(column.type, schema.is_string) and column.get_total_buffer_size() > _LARGE


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Returns the threads that convert large columns. They must not wait for one another."""
    buffers.keep_freed_memory()
    return ThreadPoolExecutor(
        max_workers=max(1, min(4, os.cpu_count() or 1) - 1),  # the thread that waits works too
        thread_name_prefix="extensor-arrow",
        initializer=lambda: setattr(_thread, "works_for_pool", True),
    )


def _list(array: pa.Array, splits: tf.DType, place: _Place) -> Any:
    _check_nulls(array, place)
    offsets = buffers.offsets_of(array, place.path)
    first, last = int(offsets[0]), int(offsets[-1])
    values = array.values.slice(first, last - first)
    row_splits = buffers.row_splits_in(array, offsets, splits, place.path)
    inner = _value(values, splits, place.below(offsets - offsets[0]))
    if isinstance(inner, StructuredTensor):
        return RaggedStructuredTensor.of_parts(inner, row_splits)
    return tf.RaggedTensor.from_row_splits(inner, row_splits, validate=False)


def _fixed_size_list(array: pa.Array, splits: tf.DType, place: _Place) -> Any:
    _check_nulls(array, place)
    size = array.type.list_size
    values = array.values.slice(array.offset * size, len(array) * size)
    inner = _value(values, splits, place.below(size=size))
    return _fold(inner, len(array), size, splits)


def _fold(value: Any, nrows: int, size: int, splits: tf.DType) -> Any:
    """Cuts the first dimension of a value into rows of one size."""
    if isinstance(value, tf.Tensor):
        return tf.reshape(value, [nrows, size, *value.shape[1:]])
    if isinstance(value, tf.RaggedTensor):
        partition = tf.convert_to_tensor(np.arange(nrows + 1) * size, splits)
        folded = tf.RaggedTensor.from_row_splits(value, partition, validate=False)
        spec = schema.folded_spec(tf.type_spec_from_value(value), nrows, size, splits)
        return spec._from_components([folded.flat_values, *folded.nested_row_splits])
    if isinstance(value, RaggedStructuredTensor):
        partition = tf.convert_to_tensor(np.arange(nrows + 1) * size, splits)
        return RaggedStructuredTensor.of_parts(value, partition)
    return value.map_parts(lambda part, _: _fold(part, nrows, size, splits), value.rank + 1)
