"""StructuredTensors as pandas DataFrames."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import contains_type, is_list, is_view
from extensor._arrow.encoded_types import decode, storage_of
from extensor._arrow.selection import take_places
from extensor._arrow.struct_fields import struct_fields
from extensor._arrow.write import to_arrow
from extensor._dependency import import_extra
from extensor._formats.pandas.known import INDEX, decoded_label, default_dtype, known_of
from extensor._formats.pandas.levels import Splits, positions_in, runs_of, splits_of
from extensor._path import Path
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    import pandas as pd

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

Column = Union["np.ndarray[Any, Any]", "pd.api.extensions.ExtensionArray"]
"""The values of a column: an array of NumPy or pandas."""


def to_pandas(
    records: StructuredTensor, schema: pa.Schema | pa.DataType | None = None
) -> pd.DataFrame:
    """Returns records as a pandas DataFrame.

    The inverse of `from_pandas`: dtypes, labels and the index come back. Other fields become
    NumPy's dtypes, `str`, `datetime64`, `timedelta64` and `category`; with nulls, numbers and bools
    become pandas' nullable dtypes. Nested records become columns of a MultiIndex, and lists become
    cells that are NumPy arrays. The memory is copied.

    Args:
        records: A StructuredTensor of rank 1 or more that holds values. From a higher rank, the
            rows get a MultiIndex: that of the field `_index_`, or the number of each list and row.
        schema: The Arrow schema to convert by, as in `to_arrow`.

    Raises:
        MissingDependencyError: If pandas is not installed (also an ImportError).
        DTypeError: If `records` is not a StructuredTensor, is part of a graph, or is a single
            record (also a TypeError).
        StructureError: If a list of records is empty, because it has no row, or if the labels of
            `_index_` do not fit the lists (also a ValueError).
        FormatError, FieldError: As in `to_arrow`.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "bread", "time": {"rest": 60, "bake": 30}},
    ...                               {"title": "tea", "time": {"rest": 5, "bake": 0}}])
    >>> xt.to_pandas(recipes)
       title time
             rest bake
    0  bread   60   30
    1    tea    5    0
    """
    pd = import_extra("pandas", "pandas", "to_pandas")
    data = to_arrow(records, schema)
    if isinstance(data, pa.Scalar):
        fix = "Use to_py, or make a list of it: tf.expand_dims(record, 0)."
        raise DTypeError("to_pandas", "records of rank 1 or more", "a single record", fix)
    array = data.to_struct_array() if isinstance(data, pa.RecordBatch) else data
    splits: list[Splits] = []
    while not pa.types.is_struct(array.type):
        splits.insert(0, splits_of(array))
        array = array.flatten()
    return _FrameWriter(pd, array, splits).frame()


class _FrameWriter:
    """Records on their way to a DataFrame.

    Args:
        pd: The module.
        rows: All records.
        splits: The row splits of the lists around them, the innermost first.
    """

    def __init__(self, pd: Any, rows: pa.StructArray, splits: list[Splits]) -> None:
        self._pd = pd
        self._rows = rows
        self._splits = splits

    def frame(self) -> pd.DataFrame:
        """Returns the DataFrame."""
        names = [field.name for field in self._rows.type]
        fields = zip(self._rows.type, struct_fields(self._rows), strict=True)
        columns = [(field, array) for field, array in fields if field.name != INDEX]
        found = self._rows.field(INDEX) if INDEX in names else None
        index = self._index(found, self._rows.type.field(INDEX) if INDEX in names else None)
        leaves = [leaf for each in columns for leaf in self._leaves(*each)]
        values = {i: self._series(value, index) for i, (_, value, _) in enumerate(leaves)}
        frame = self._pd.DataFrame(values, index=index, copy=False)
        frame.columns = self._labels([(label, depth) for label, _, depth in leaves])
        axis = next((known_of(f)["columns"] for f, _ in columns if "columns" in known_of(f)), [])
        if len(axis) == frame.columns.nlevels:
            frame.columns.names = [decoded_label(self._pd, name) for name in axis]
        return frame

    def _series(self, values: Column, index: pd.Index | None) -> pd.Series:
        # Of objects pandas would infer another dtype.
        dtype = object if values.dtype == object else None
        return self._pd.Series(values, index, dtype, copy=False)

    def _leaves(
        self, field: pa.Field, array: pa.Array
    ) -> Iterator[tuple[tuple[Any, ...], Column, int]]:
        """Yields the label and the values of each column of a field, and the depth of its label."""
        known = known_of(field)
        label = decoded_label(self._pd, known["label"]) if "label" in known else field.name
        is_record = pa.types.is_struct(array.type) and array.type.num_fields
        # Columns have no place for a record that is null, nor for a name that is padding.
        is_whole = array.null_count or (is_record and array.type.get_field_index("") >= 0)
        if not is_record or is_whole or "cells" in known:
            yield (label,), self._values(array, known), known.get("levels", 1)
            return
        for inner, values in zip(array.type, struct_fields(array), strict=True):
            for below, column, depth in self._leaves(inner, values):
                yield (label, *below), column, max(depth, 1 + len(below))

    def _labels(self, labels: list[tuple[tuple[Any, ...], int]]) -> pd.Index:
        """Returns the labels of the columns; short ones are padded with empty strings."""
        depth = max((max(len(label), levels) for label, levels in labels), default=1)
        if depth == 1:
            names = [label[0] for label, _ in labels]
            return self._pd.Index(names, tupleize_cols=False) if names else self._pd.RangeIndex(0)
        padded = [(*label, *[""] * (depth - len(label))) for label, _ in labels]
        return self._pd.MultiIndex.from_tuples(padded)

    def _index(self, array: pa.Array | None, field: pa.Field | None) -> pd.Index:
        pd, count = self._pd, len(self._rows)
        if array is None and not self._splits:
            return pd.RangeIndex(count)
        if array is None:
            return pd.MultiIndex.from_arrays(positions_in(self._splits, count))
        if not pa.types.is_struct(array.type):
            self._expect_lists([])
            known = known_of(field)
            name = decoded_label(pd, known.get("name"))
            index = pd.Index(self._series(self._values(array, known), None), name=name)
            with contextlib.suppress(ValueError, AttributeError):  # rows are no longer all there
                index.freq = known.get("freq")
            return index
        levels = list(zip(array.type, struct_fields(array), strict=True))
        names = [decoded_label(pd, known_of(level).get("name", level.name)) for level, _ in levels]
        values = [pd.Index(self._series(self._values(v, known_of(f)), None)) for f, v in levels]
        index = pd.MultiIndex.from_arrays(values, names=names)
        self._expect_lists(runs_of(index)[::-1])
        return index

    def _expect_lists(self, found: list[Splits]) -> None:
        """Raises if the lists of the records are not those that their labels give."""
        if self._splits and not (
            len(found) == len(self._splits) and all(map(np.array_equal, found, self._splits))
        ):
            expected = "labels that are equal in a list, and differ from one list to the next"
            received = "other labels, from which the lists would be lost"
            without = f'records.without("{INDEX}")'
            fix = f"Leave them out, {without}, or merge the lists, records.merge_dims(0, 1)."
            raise StructureError(Path(INDEX), expected, received, fix)

    def _values(self, array: pa.Array, known: dict[str, Any]) -> Column:
        """Returns an Arrow array as values for a column: an array of NumPy or pandas."""
        pd, arrow, dtype = self._pd, array.type, known.get("dtype")
        nested = pa.types.is_nested(arrow) and not pa.types.is_dictionary(arrow)
        if known.get("cells") == "arrays":
            flat = arrow
            while pa.types.is_list(flat):
                flat = flat.value_type
            kind = flat.to_pandas_dtype()
            cells = [None if v is None else np.array(v, kind) for v in array.to_pylist()]
            return _of_objects(cells)
        if "cells" in known or contains_type(arrow, pa.types.is_union):
            return _of_objects(array.to_pylist())
        if nested and dtype == "object" and not _is_held(array):
            return _of_objects([v and _of_objects(v) for v in array.to_pylist()])
        if dtype is None or (nested and dtype == "object"):
            return self._default_values(array)
        if dtype == "object":
            is_time = pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow)
            if is_time or isinstance(arrow, pa.BaseExtensionType):
                return array.to_pandas().astype(object).to_numpy()
            return _of_objects(array.to_pylist())
        if dtype.endswith("[pyarrow]"):
            return pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))
        if dtype in ("Float32", "Float64"):
            return self._nullable_floats(array.cast(dtype.lower()))
        wanted = pd.api.types.pandas_dtype(dtype)
        if hasattr(wanted, "__from_arrow__"):
            return wanted.__from_arrow__(array)
        return array.to_pandas().astype(wanted).array

    def _default_values(self, array: pa.Array) -> Column:
        pd, arrow, t = self._pd, array.type, pa.types
        if array.null_count and t.is_boolean(arrow):
            return pd.BooleanDtype().__from_arrow__(array)
        if array.null_count and t.is_integer(arrow):
            name = default_dtype(arrow).name.replace("uint", "UInt").replace("int", "Int")
            return pd.api.types.pandas_dtype(name).__from_arrow__(array)
        if array.null_count and t.is_floating(arrow) and not t.is_float16(arrow):
            return self._nullable_floats(array)
        if isinstance(arrow, pa.BaseExtensionType):
            return self._extension(array)
        if t.is_run_end_encoded(arrow):
            return self._default_values(decode(array))
        if t.is_string_view(arrow) or t.is_binary_view(arrow):
            plain = "string" if t.is_string_view(arrow) else "binary"
            return self._default_values(array.cast(plain))
        if is_view(arrow):
            return self._default_values(_in_offsets(array))
        if not _is_held(array):
            return pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))
        if t.is_integer(arrow) or t.is_floating(arrow):
            return _numbers(array)
        if t.is_boolean(arrow):
            return array.to_numpy(zero_copy_only=False, writable=True)
        if t.is_dictionary(arrow):
            # Lists are no categories, because they have no hash.
            is_nested = t.is_nested(arrow.value_type)
            return self._default_values(decode(array)) if is_nested else self._categories(array)
        return array.to_pandas().array

    def _extension(self, array: pa.Array) -> Column:
        """Returns values of an extension type as its author and pandas have them, or as stored."""
        if isinstance(array.type, pa.Bool8Type):
            return self._default_values(storage_of(array))
        if not isinstance(array.type, pa.FixedShapeTensorType):
            try:
                array.type.to_pandas_dtype()
            except NotImplementedError:
                return self._default_values(array.storage)
            return array.to_pandas().array
        present: Any = array.drop_null()
        cells = iter(present.to_numpy_ndarray())
        return _of_objects([next(cells) if valid else None for valid in array.is_valid()])

    def _categories(self, array: pa.DictionaryArray) -> pd.Categorical:
        """Returns a dictionary as a categorical."""
        index = self._pd.Index(self._series(self._default_values(array.dictionary), None))
        # Categories are neither null nor there twice.
        words = index.unique().dropna()
        codes = np.append(words.get_indexer(index), -1)[array.indices.cast("int64").fill_null(-1)]
        return self._pd.Categorical.from_codes(codes, words, ordered=array.type.ordered)

    def _nullable_floats(self, array: pa.Array) -> Column:
        """Returns floats as a nullable array, in which nan and null stay different."""
        mask = np.asarray(array.is_null())
        return self._pd.arrays.FloatingArray(_numbers(array.fill_null(0.0)), mask)


def _in_offsets(array: pa.Array) -> pa.Array:
    """Returns list views as lists, whose items are in their order."""
    # Arrow's own cast counts the items of some null lists.
    lengths = np.asarray(pc.call_function("list_value_length", [array]).fill_null(0))
    splits = np.append(0, np.cumsum(lengths))
    starts = np.asarray(array.offsets)[: len(array)]
    items = take_places(
        array.values, np.arange(splits[-1]) + np.repeat(starts - splits[:-1], lengths)
    )
    kind = pa.large_list(array.type.value_field)
    offsets = pa.array(splits, pa.int64())
    return pa.LargeListArray.from_arrays(offsets, items, kind, mask=array.is_null())


def _is_held(array: pa.Array) -> bool:
    """Returns whether the dtypes of NumPy and pandas hold values exactly, and show their type."""
    if not is_list(array.type):
        if pa.types.is_interval(array.type):
            return len(array) > 0  # pandas does not print Arrow's
        if any(is_object(array.type) for is_object in _OBJECTS):
            return len(array) > array.null_count  # without an object, no type is known
        has_nulls = array.null_count > 0
        is_half = pa.types.is_float16(array.type)
        return not (has_nulls and is_half) and any(own(array.type) for own in _COLUMNS)
    flat: Any = array.type
    while is_list(flat):
        flat = flat.value_type
    is_object = any(own(flat) for own in _OBJECTS)
    if not is_object and not any(own(flat) for own in _ITEMS):
        return False
    # A list is an object too.
    items, count = array, len(array) - array.null_count
    while is_list(items.type):
        if not count:
            return False
        items = items.flatten()
        if items.null_count:
            return False
        count = len(items)
    return not is_object or count > 0


_OBJECTS = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_date32)
_ITEMS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_duration,
    lambda arrow: pa.types.is_timestamp(arrow) and arrow.tz is None,
)
_COLUMNS = (
    *_ITEMS,
    pa.types.is_timestamp,
    pa.types.is_dictionary,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_null,
)


def _numbers(array: pa.Array) -> np.ndarray[Any, Any]:
    """Returns a copy of Arrow numbers without nulls, into which users may write."""
    values = array.to_numpy()
    # Faster than NumPy's own memory, because Arrow keeps what was freed.
    copy = np.frombuffer(pa.allocate_buffer(values.nbytes), values.dtype)
    copy[:] = values
    return copy


def _of_objects(cells: list[Any]) -> np.ndarray[Any, Any]:
    values = np.empty(len(cells), object)
    for i, cell in enumerate(cells):  # an assignment of all would make a matrix of lists
        values[i] = cell
    return values
