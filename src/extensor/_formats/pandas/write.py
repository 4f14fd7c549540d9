"""StructuredTensors as pandas DataFrames."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import holds, is_list
from extensor._arrow.struct_fields import struct_fields
from extensor._arrow.write import to_arrow
from extensor._dependency import needed
from extensor._formats.pandas.known import (
    INDEX,
    decoded_label,
    default_dtype,
    known_of,
)
from extensor._formats.pandas.levels import positions_in, runs_of, splits_of
from extensor._path import Path
from extensor._struct.tensor import StructuredTensor
from extensor.errors import (
    DTypeError,
    StructureError,
)


def to_pandas(records: StructuredTensor, schema: Any = None) -> Any:
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
    pd = needed("pandas", "pandas", "to_pandas")
    data = to_arrow(records, schema)
    if isinstance(data, pa.Scalar):
        raise DTypeError(
            path="to_pandas",
            expected="records of rank 1 or more",
            received="a single record",
            mend="Use to_py, or make a list of it: tf.expand_dims(record, 0).",
        )
    array = data.to_struct_array() if isinstance(data, pa.RecordBatch) else data
    splits: list[Any] = []
    while not pa.types.is_struct(array.type):
        splits.insert(0, splits_of(array))
        array = array.flatten()
    return _Rows(pd, array, splits).frame()


class _Rows:
    """Records on their way to a DataFrame.

    Args:
        pd: The module.
        rows: All records.
        splits: The row splits of the lists around them, the innermost first.
    """

    def __init__(self, pd: Any, rows: pa.StructArray, splits: list[Any]):
        self._pd = pd
        self._rows = rows
        self._splits = splits

    def frame(self) -> Any:
        """Returns the DataFrame."""
        names = [field.name for field in self._rows.type]
        whole = zip(self._rows.type, struct_fields(self._rows), strict=True)
        columns = [(field, array) for field, array in whole if field.name != INDEX]
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

    def _series(self, values: Any, index: Any) -> Any:
        # Of objects pandas would infer another dtype.
        dtype = object if values.dtype == object else None
        return self._pd.Series(values, index, dtype, copy=False)

    def _leaves(
        self, field: pa.Field, array: pa.Array
    ) -> Iterator[tuple[tuple[Any, ...], Any, int]]:
        """Yields the label and the values of each column of a field, and the depth of its label."""
        known = known_of(field)
        label = decoded_label(self._pd, known["label"]) if "label" in known else field.name
        is_record = pa.types.is_struct(array.type) and array.type.num_fields
        # A record that is null is neither in its columns, so that the column is one of dicts.
        if not is_record or array.null_count or "cells" in known:
            yield (label,), self._values(array, known), known.get("levels", 1)
            return
        for inner, values in zip(array.type, struct_fields(array), strict=True):
            for below, column, depth in self._leaves(inner, values):
                yield (label, *below), column, max(depth, 1 + len(below))

    def _labels(self, labels: list[tuple[tuple[Any, ...], int]]) -> Any:
        """Returns the labels of the columns; short ones are padded with empty strings."""
        depth = max((max(len(label), levels) for label, levels in labels), default=1)
        if depth == 1:
            whole = [label[0] for label, _ in labels]
            return self._pd.Index(whole, tupleize_cols=False) if whole else self._pd.RangeIndex(0)
        padded = [(*label, *[""] * (depth - len(label))) for label, _ in labels]
        return self._pd.MultiIndex.from_tuples(padded)

    def _index(self, array: Any, field: Any) -> Any:
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

    def _expect_lists(self, found: list[Any]) -> None:
        """Raises if the lists of the records are not those that their labels give."""
        if self._splits and not (
            len(found) == len(self._splits) and all(map(np.array_equal, found, self._splits))
        ):
            raise StructureError(
                path=Path(INDEX),
                expected="labels that are equal in a list, and differ from one list to the next",
                received="other labels, from which the lists would be lost",
                mend=f'Leave them out, records.without("{INDEX}"), or merge the lists, '
                "records.merge_dims(0, 1).",
            )

    def _values(self, array: pa.Array, known: dict[str, Any]) -> Any:
        """Returns an Arrow array as values for a column: an array of NumPy or pandas."""
        pd, arrow, dtype = self._pd, array.type, known.get("dtype")
        nested = pa.types.is_nested(arrow) and not pa.types.is_dictionary(arrow)
        if known.get("cells") == "arrays":
            flat = arrow
            while pa.types.is_list(flat):
                flat = flat.value_type
            kind = flat.to_pandas_dtype()
            return _of_objects(
                [None if v is None else np.array(v, kind) for v in array.to_pylist()]
            )
        if "cells" in known or holds(arrow, pa.types.is_union):
            return _of_objects(array.to_pylist())
        if dtype is None or (nested and dtype == "object"):
            return self._default_values(array)
        if dtype == "object":
            is_time = pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow)
            if is_time or isinstance(arrow, pa.BaseExtensionType):
                return array.to_pandas().astype(object).to_numpy()
            return _of_objects(array.to_pylist())
        if dtype.endswith("[pyarrow]") and dtype != "string[pyarrow]":
            return pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))
        if dtype in ("Float32", "Float64"):
            return self._nullable_floats(array.cast(dtype.lower()))
        whole = pd.api.types.pandas_dtype(dtype)
        if hasattr(whole, "__from_arrow__"):
            return whole.__from_arrow__(array)
        return array.to_pandas().astype(whole).array

    def _default_values(self, array: pa.Array) -> Any:
        pd, arrow, t = self._pd, array.type, pa.types
        if array.null_count and t.is_boolean(arrow):
            return pd.BooleanDtype().__from_arrow__(array)
        if array.null_count and t.is_integer(arrow):
            return pd.api.types.pandas_dtype(default_dtype(arrow).name.replace(
                "uint", "UInt").replace("int", "Int")).__from_arrow__(array)  # fmt: skip
        if array.null_count and t.is_floating(arrow):
            # pandas has no nullable float16.
            return self._nullable_floats(array.cast("float32") if t.is_float16(arrow) else array)
        if isinstance(arrow, pa.FixedShapeTensorType) and not array.null_count:
            return _of_objects(list(array.to_numpy_ndarray()))
        if t.is_integer(arrow) or t.is_floating(arrow):
            return _numbers(array)
        if t.is_boolean(arrow):
            return array.to_numpy(zero_copy_only=False, writable=True)
        if t.is_dictionary(arrow):
            return self._categories(array)
        if t.is_nested(arrow) and _has_other_nulls(array):
            return _of_objects(list(map(_cell, array.to_pylist())))
        # Without the option, Arrow makes floats of integers beside nulls, which changes them.
        return array.to_pandas(integer_object_nulls=True).array

    def _categories(self, array: pa.DictionaryArray) -> Any:
        """Returns a dictionary as a categorical."""
        index = self._pd.Index(self._series(self._default_values(array.dictionary), None))
        # Categories are neither null nor there twice.
        words = index.unique().dropna()
        codes = np.append(words.get_indexer(index), -1)[array.indices.cast("int64").fill_null(-1)]
        return self._pd.Categorical.from_codes(codes, words, ordered=array.type.ordered)

    def _nullable_floats(self, array: pa.Array) -> Any:
        """Returns floats as a nullable array, in which nan and null stay different."""
        mask = np.asarray(array.is_null())
        return self._pd.arrays.FloatingArray(_numbers(array.fill_null(0.0)), mask)


def _numbers(array: pa.Array) -> Any:
    """Returns a copy of Arrow numbers without nulls, into which users may write."""
    values = array.to_numpy()
    # Faster than NumPy's own memory, because Arrow keeps what was freed.
    copy = np.frombuffer(pa.allocate_buffer(values.nbytes), values.dtype)
    copy[:] = values
    return copy


def _has_other_nulls(array: pa.Array) -> bool:
    """Returns whether a list has floats with nulls, for which NumPy has only nan, or UUIDs."""
    arrow = array.type
    if holds(arrow, lambda each: isinstance(each, pa.BaseExtensionType)):
        return True
    if not holds(arrow, pa.types.is_floating):
        return False
    if pa.types.is_struct(arrow):
        return any(map(_has_other_nulls, array.flatten()))
    if not is_list(arrow):
        return False
    items = array.flatten()
    return (pa.types.is_floating(items.type) and items.null_count > 0) or _has_other_nulls(items)


def _cell(value: Any) -> Any:
    """Returns a Python value with an array of objects in place of each list."""
    if isinstance(value, dict):
        return {name: _cell(each) for name, each in value.items()}
    return _of_objects(list(map(_cell, value))) if isinstance(value, list) else value


def _of_objects(cells: list[Any]) -> Any:
    values = np.empty(len(cells), object)
    for i, cell in enumerate(cells):  # an assignment of all would make a matrix of lists
        values[i] = cell
    return values
