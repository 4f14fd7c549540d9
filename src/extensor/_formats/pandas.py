"""Pandas DataFrames to StructuredTensors and back.

What pandas knows of a column and Arrow does not (another dtype for the same Arrow type, a label
that is no string, the name of an index) is in the metadata of the Arrow field, which records keep.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._dependency import needed
from extensor._path import Path, PathLike
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor.errors import (
    DTypeError,
    ExtensorError,
    StructureError,
    UnsupportedTypeError,
)

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

INDEX = "_index_"
"""The field of an index that is not the default one."""

_KEY = b"extensor.pandas"


def from_pandas(
    frame: Any,
    columns: Iterable[PathLike] | None = None,
    schema: Any = None,
    nulls: Any = None,
    conflicts: str = "error",
    row_splits_dtype: Any = None,
    levels: str = "dimensions",
) -> StructuredTensor:
    """Returns the rows of a pandas DataFrame as a StructuredTensor.

    Args:
        frame: A DataFrame. Columns of a MultiIndex become nested records. An index that is not
            the default one becomes the field `_index_`.
        columns: Paths of the fields to convert, `_index_` among them. Default: all.
        schema: The spec of a StructuredTensor, or a pyarrow Schema; by default the dtypes and, in
            columns of objects, the values decide.
        nulls: What to do with nulls, as in `from_arrow`. A null is `None`, `pd.NA`, `pd.NaT`, and
            `nan` in a column of strings or other objects; `nan` in a column of floats is a number.
        conflicts: What to do with a column of objects of several types: `"error"`, or `"union"`
            for a field that is a union.
        row_splits_dtype: As in `from_arrow`.
        levels: What the levels of a MultiIndex of the rows become: `"dimensions"` for a
            StructuredTensor of a higher rank, or `"fields"` of the record `_index_`.

    Returns:
        A StructuredTensor of shape `[number of rows]`. For a MultiIndex of k levels, its rank is
        k: successive rows with the same label are one list. Its labels are the record `_index_`
        with a field for each level, unless they are the default, 0, 1, 2, ... in each list.

    Raises:
        MissingDependencyError: If pandas is not installed (also an ImportError).
        DTypeError: If `frame` is no DataFrame, or a value does not fit the schema (also a
            TypeError).
        StructureError: If two columns have the same name, or objects differ in structure (also a
            ValueError).
        UnsupportedTypeError: If a dtype or a label has no counterpart (also a TypeError).
        NullError, FieldError: As in `from_arrow`.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"title": ["bread", "tea"], "minutes": [90, 5]})
    >>> xt.from_pandas(frame)
    <StructuredTensor shape=(2,) {title: string, minutes: int64}
     [{title: b'bread', minutes: 90},
      {title: b'tea', minutes: 5}]>
    >>> xt.from_pandas(frame.set_index("title")).to_py()
    [{'minutes': 90, '_index_': b'bread'}, {'minutes': 5, '_index_': b'tea'}]
    """
    pd = needed("pandas", "pandas", "from_pandas")
    if not isinstance(frame, pd.DataFrame):
        raise DTypeError(
            path="from_pandas",
            expected="a pandas DataFrame",
            received=type(frame).__name__,
            mend="Convert a Series by its method to_frame; xt.from_arrow takes other libraries' "
            "tables.",
        )
    for argument, value, words in (
        ("conflicts", conflicts, ("error", "union")),
        ("levels", levels, ("dimensions", "fields")),
    ):
        if value not in words:
            raise DTypeError(
                path=f"from_pandas: {argument}",
                expected=" or ".join(f'"{word}"' for word in words),
                received=repr(value)[:60],
                mend="Leave it out for the first of them.",
            )
    schema, row_splits_dtype = _of_rows(schema, row_splits_dtype)
    if columns is not None and not isinstance(columns, (str, bytes, Path)):
        columns = list(columns)
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    table, splits = _Frame(pd, frame, wanted, conflicts, levels).table()
    records = wanted.records(table)
    for each in splits:
        cut = each.astype(wanted.row_splits_dtype.as_numpy_dtype)
        records = RaggedStructuredTensor.from_row_splits(records, cut)
    return records


def _of_rows(schema: Any, row_splits_dtype: Any) -> tuple[Any, Any]:
    """Returns the schema of the rows, where `schema` may be the spec of a higher rank."""
    while isinstance(schema, RaggedStructuredTensorSpec) and schema.rank > 1:
        row_splits_dtype = row_splits_dtype or schema.row_splits_dtype
        schema = schema.values_spec
    return schema, row_splits_dtype


class _Frame:
    """A DataFrame on its way to Arrow."""

    def __init__(self, pd: Any, frame: Any, wanted: WantedTable, conflicts: str, levels: str):
        self._pd = pd
        self._frame = frame
        self._schema = wanted.schema
        self._columns = wanted.columns
        self._unions = conflicts == "union"
        self._levels = levels

    def table(self) -> tuple[pa.Table, list[Any]]:
        """Returns the rows, and the row splits of the dimensions, the innermost first."""
        paths = _paths(self._frame.columns)
        names = [path[0][0] for path in paths]
        if INDEX in names:
            raise StructureError(
                path=Path(INDEX),
                expected="no column of the name that the index gets",
                received=f"a column {INDEX}",
                mend="Rename the column, or make it the index.",
            )
        wanted = self._wanted_names(names)
        leaves: list[tuple[list[tuple[str, Any]], Any, Any]] = []
        for i, path in enumerate(paths):
            if path[0][0] in wanted:
                at = Path(*(name for name, _ in path))
                array, known = self._array(self._frame.iloc[:, i], at)
                leaves.append((path, array, known))
        fields, arrays = _nested(leaves, Path())
        axis = list(self._frame.columns.names)
        if any(name is not None for name in axis) and fields:
            label = [_encoded(name, "the name of the columns") for name in axis]
            fields[0] = _with_known(fields[0], {"columns": label})
        index, splits = self._index()
        if index is not None and INDEX in wanted:
            fields.append(index[0])
            arrays.append(index[1])
        if not fields:
            rows = pa.table({"": pa.nulls(len(self._frame))})
            return rows.select([]), splits
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), splits

    def _wanted_names(self, names: list[str]) -> set[str]:
        """Returns the columns to convert; others may have any type."""
        every = {*names, INDEX}
        if self._schema is not None:
            return every.intersection(self._schema.names)
        if not isinstance(self._columns, list):
            return every
        chosen: set[str] = set()
        for column in self._columns:
            if isinstance(column, str) and column in every:
                chosen.add(column)
            else:
                chosen.update(Path.of(column).names[:1])
        # Without one of the names, the error of the reader lists all columns.
        return chosen if chosen <= every else every

    def _index(self) -> tuple[Any, list[Any]]:
        """Returns the field and the array of the index, if it needs one, and the row splits."""
        index = self._frame.index
        if not isinstance(index, self._pd.MultiIndex):
            default = self._pd.RangeIndex(len(index))
            if type(index) is type(default) and index.name is None and index.equals(default):
                return None, []
            array, known = self._array(index, Path(INDEX))
            if index.name is not None:
                known["name"] = _encoded(index.name, "the name of the index")
            if getattr(index, "freq", None) is not None:
                known["freq"] = index.freqstr
            return (_field(INDEX, array, known), array), []
        splits = _runs(index)[::-1] if self._levels == "dimensions" else []
        if splits and _is_default(index, splits):
            return None, splits
        fields: list[pa.Field] = []
        arrays: list[pa.Array] = []
        for i, name in enumerate(index.names):
            plain = isinstance(name, str) and list(index.names).count(name) == 1
            field_name = name if plain else f"level_{i}"
            array, known = self._array(index.get_level_values(i), Path(INDEX, field_name))
            if not plain:
                known["name"] = _encoded(name, "the name of a level")
            fields.append(_field(field_name, array, known))
            arrays.append(array)
        record = pa.StructArray.from_arrays(arrays, fields=fields)
        return (pa.field(INDEX, record.type, False), record), splits

    def _array(self, values: Any, path: Path) -> tuple[pa.Array, dict[str, Any]]:
        """Returns the values of a Series or Index, and what Arrow does not know of them."""
        dtype, pd = values.dtype, self._pd
        is_object = isinstance(dtype, np.dtype) and dtype.kind == "O"
        try:
            if is_object:
                array = self._objects(values, path)
            elif isinstance(dtype, pd.SparseDtype):
                raise pa.ArrowNotImplementedError("sparse")
            elif isinstance(dtype, np.dtype) and dtype.kind in "iuf":
                array = _copied(np.asarray(values))
            else:
                array = pa.array(values.array, from_pandas=False)
                if hasattr(array, "buffers") and not isinstance(dtype, pd.ArrowDtype):
                    # A DataFrame may change in place, so that no tensor may share its memory.
                    array = pa.concat_arrays([array, array.slice(0, 0)])
        except (pa.ArrowException, OverflowError) as error:
            mend = "Convert it first: df[name].sparse.to_dense()"
            if not isinstance(dtype, pd.SparseDtype):
                mend = "Convert the column first, such as with df[name].astype"
            raise UnsupportedTypeError(
                path=path,
                expected="a dtype that Arrow has",
                received=f"dtype {dtype} ({str(error).splitlines()[0]})",
                mend=f"{mend}, or leave it out by columns=.",
            ) from error
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        known: dict[str, Any] = {}
        if not _is_default_dtype(dtype, array.type):
            known["dtype"] = str(dtype)
        if is_object and pa.types.is_nested(array.type):
            first = next((v for v in values if not _is_missing(v)), None)
            if not isinstance(first, np.ndarray):
                known["cells"] = "python"
            elif first.ndim > 1 and not isinstance(array.type, pa.FixedShapeTensorType):
                known["cells"] = "arrays"
        return array, known

    def _objects(self, values: Any, path: Path) -> pa.Array:
        """Returns a column of Python objects as an Arrow array."""
        plain = values.infer_objects()
        # Of such objects Arrow knows microseconds only, or nothing.
        if plain.dtype.kind in "mM" or isinstance(
            plain.dtype, (self._pd.PeriodDtype, self._pd.IntervalDtype)
        ):
            return pa.array(plain.array, from_pandas=False)
        cells: Any = values.to_numpy()
        kind = self._wanted_type(path)
        try:
            return pa.array(cells, kind, from_pandas=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # Also the missing values of pandas are None to Arrow, and to the functions below.
            cells = [None if _is_missing(v) else v for v in cells]
        if any(isinstance(cell, np.ndarray) and cell.ndim > 1 for cell in cells):
            return _of_tensors(cells, path)
        try:
            return pa.array(cells, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            return self._by_values(cells, path, error)

    def _wanted_type(self, path: Path) -> pa.DataType | None:
        """Returns the type that `schema=` has for a column, by which Arrow reads objects."""
        if self._schema is None:
            return None
        inner: Any = pa.struct(list(self._schema))
        for name in path.names:
            if not pa.types.is_struct(inner) or inner.get_field_index(name) < 0:
                return None
            inner = inner.field(inner.get_field_index(name)).type
        kinds = (pa.types.is_dictionary, pa.types.is_run_end_encoded, pa.types.is_union)
        return None if any(kind(inner) for kind in kinds) else inner

    def _by_values(self, cells: list[Any], path: Path, error: Exception) -> pa.Array:
        """Returns objects of several types as a union, or raises the error that names one."""
        # Its errors name the record and its value, which Arrow's do not.
        from extensor._formats.python.constant import constant

        rows = [{path.names[-1]: _wide(cell)} for cell in cells]
        try:
            records = constant(rows, nulls="mask", conflicts="union" if self._unions else "error")
            if self._unions:
                return to_arrow(records).column(0)
        except ExtensorError as found:
            place, expected, received = found.path, found.expected, found.received
            if len(path.names) > 1:
                place = f"{Path(*path.names[:-1])}.{place}"
            kind = type(found)
        else:
            place, expected, received = path, "values of one type", str(error).splitlines()[0]
            kind = DTypeError
        raise kind(
            path=place,
            expected=expected,
            received=received,
            mend='Convert the column to one type, or give conflicts="union".',
        ) from error


def _paths(columns: Any) -> list[list[tuple[str, dict[str, Any]]]]:
    """Returns the path of each column: the names of the fields on it, each with what is known."""
    nested = columns.nlevels > 1
    labels: list[tuple[Any, ...]] = [label if nested else (label,) for label in columns]
    below = collections.Counter(label[:i] for label in labels for i in range(1, len(label) + 1))
    paths: list[list[tuple[str, dict[str, Any]]]] = []
    for label in labels:
        # ("a", "") is the column "a", unless there is also a column ("a", "b").
        short = _without_padding(label)
        used = short if below[short] == 1 else label
        path = [
            (str(part), {} if isinstance(part, str) else {"label": _encoded(part, "a label")})
            for part in used
        ]
        if len(used) < len(label):
            path[-1][1]["levels"] = len(label)
        paths.append(path)
    _expect_order([tuple(name for name, _ in path) for path in paths])
    return paths


def _without_padding(label: tuple[Any, ...]) -> tuple[Any, ...]:
    while len(label) > 1 and isinstance(label[-1], str) and not label[-1]:
        label = label[:-1]
    return label


def _expect_order(paths: list[tuple[str, ...]]) -> None:
    """Raises if two columns have one path, or the columns of a record are not neighbours."""
    seen: set[tuple[str, ...]] = set()
    last: tuple[str, ...] = ()
    for path in paths:
        if path in seen:
            raise StructureError(
                path=Path(*path),
                expected="columns with different names",
                received="two columns of this name",
                mend="Rename one of them; the name of a field is str(label).",
            )
        for depth in range(1, len(path) + 1):
            if path[:depth] in seen and last[:depth] != path[:depth]:
                raise StructureError(
                    path=Path(*path[:depth]),
                    expected="the columns of this label next to each other",
                    received="other columns between them",
                    mend="Sort the columns: df.sort_index(axis=1).",
                )
            seen.add(path[:depth])
        last = path


def _nested(leaves: list[Any], path: Path) -> tuple[list[pa.Field], list[pa.Array]]:
    """Returns the fields of columns with paths; columns of one name make a record."""
    groups: dict[str, list[Any]] = {}
    for leaf in leaves:
        groups.setdefault(leaf[0][0][0], []).append(leaf)
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for name, group in groups.items():
        outer, array, known = group[0]
        if len(outer) > 1:
            inner = _nested([(path[1:], *rest) for path, *rest in group], path / name)
            array, known = pa.StructArray.from_arrays(inner[1], fields=inner[0]), {}
        fields.append(_field(name, array, {**known, **outer[0][1]}))
        arrays.append(array)
    return fields, arrays


def _copied(numbers: Any) -> pa.Array:
    """Returns a copy of NumPy numbers as an Arrow array; its memory is aligned for tensors."""
    dtype = numbers.dtype.newbyteorder("=")
    buffer = pa.allocate_buffer(len(numbers) * dtype.itemsize)
    np.frombuffer(buffer, dtype)[:] = numbers
    return pa.Array.from_buffers(pa.from_numpy_dtype(dtype), len(numbers), [None, buffer])


def _field(name: str, array: pa.Array, known: dict[str, Any]) -> pa.Field:
    nullable = array.null_count > 0 or pa.types.is_null(array.type)
    return _with_known(pa.field(name, array.type, nullable), known)


def _with_known(field: pa.Field, known: dict[str, Any]) -> pa.Field:
    """Returns a field that also keeps what pandas knows of it."""
    whole = {**_known(field), **known}
    return field.with_metadata({_KEY: json.dumps(whole)}) if whole else field


def _known(field: pa.Field) -> dict[str, Any]:
    """Returns what pandas knew of a field."""
    return json.loads((field.metadata or {}).get(_KEY, b"{}"))


def _encoded(label: Any, what: str) -> Any:
    """Returns a label of pandas as JSON has it."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, (str, int, float)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [_encoded(part, what) for part in label]}
    if isinstance(label, datetime.datetime):  # a Timestamp, among others
        return {"time": str(label)}
    raise UnsupportedTypeError(
        path="from_pandas",
        expected=f"{what} that is a string, a number or a time",
        received=f"{type(label).__name__} {str(label)[:40]}",
        mend="Rename it: df.rename(columns=str).",
    )


def _decoded(pd: Any, label: Any) -> Any:
    """Returns the label that `_encoded` got."""
    if not isinstance(label, dict):
        return label
    kind, value = next(iter(label.items()))
    return pd.Timestamp(value) if kind == "time" else tuple(_decoded(pd, part) for part in value)


def _is_missing(value: Any) -> bool:
    """Returns whether pandas takes a value of a column of objects for a null."""
    # Of the values that differ from themselves, or do not say so, all are missing values.
    if value is None:
        return True
    if isinstance(value, (str, bytes, list, tuple, dict, np.ndarray)):
        return False
    same: Any = value == value
    return same is not True and type(value).__name__ in ("float", "float64", "NAType", "NaTType")


def _is_default_dtype(dtype: Any, arrow: pa.DataType) -> bool:
    """Returns whether Arrow converts a type to a dtype by itself."""
    if pa.types.is_dictionary(arrow):
        return str(dtype) == "category"
    return _default_dtype(arrow) == dtype


@functools.lru_cache(256)
def _default_dtype(arrow: pa.DataType) -> Any:
    try:
        return pa.array([], arrow).to_pandas().dtype
    except NotImplementedError:  # unions, and tensors of one shape
        return np.dtype(object)


def _wide(value: Any) -> Any:
    """Returns Python values with their numbers as those of NumPy, whose width is kept."""
    if isinstance(value, list):
        return [_wide(item) for item in value]
    if isinstance(value, dict):
        return {name: _wide(item) for name, item in value.items()}
    if isinstance(value, float):
        return np.float64(value)
    if type(value) is int and -(2**63) <= value < 2**63:
        return np.int64(value)
    return value


def _of_tensors(cells: list[Any], path: Path) -> pa.Array:
    """Returns NumPy arrays of two or more dimensions as an Arrow array."""
    present = [np.asarray(cell) for cell in cells if cell is not None]
    first = present[0]
    if len({(cell.shape, cell.dtype) for cell in present}) == 1 and len(present) == len(cells):
        return pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack(present))
    if len({(cell.ndim, cell.dtype) for cell in present}) > 1:
        raise DTypeError(
            path=path,
            expected="arrays of one rank and dtype",
            received=", ".join(sorted({f"{c.dtype} of rank {c.ndim}" for c in present})),
            mend="Convert them with astype and reshape.",
        )
    kind = pa.from_numpy_dtype(first.dtype)
    for _ in range(first.ndim):
        kind = pa.list_(kind)
    return pa.array([None if cell is None else cell.tolist() for cell in cells], kind)


def _runs(index: Any) -> list[Any]:
    """Returns the row splits of the lists of rows with equal outer labels, the outermost first."""
    starts: list[Any] = []
    changed = np.zeros(max(len(index) - 1, 0), bool)
    for codes in index.codes[:-1]:
        changed = changed | (np.diff(codes) != 0)
        starts.append(np.append(np.flatnonzero(np.append([True] * bool(len(index)), changed)),
                                len(index)).astype(np.int64))  # fmt: skip
    # Each counts rows; a list of lists counts the lists of the next level.
    return [
        np.searchsorted(starts[i + 1], splits) if i + 1 < len(starts) else splits
        for i, splits in enumerate(starts)
    ]


def _is_default(index: Any, splits: list[Any]) -> bool:
    """Returns whether the labels of a MultiIndex are 0, 1, 2, ... in each list."""
    if any(name is not None for name in index.names):
        return False
    numbers = _positions(splits, len(index))
    return all(
        index.levels[i].dtype == np.int64
        and np.array_equal(index.get_level_values(i).to_numpy(), numbers[i])
        for i in range(index.nlevels)
    )


def _positions(splits: list[Any], count: int) -> list[Any]:
    """Returns the number of each row in its list, and of each list around it, outermost first.

    Args:
        splits: The row splits of the lists, the innermost first.
        count: The number of rows.
    """
    numbers: list[Any] = []
    at = np.arange(count)
    for each in splits:
        outer = np.searchsorted(each, at, side="right") - 1
        numbers.append(at - np.asarray(each)[outer])
        at = outer
    return [at, *numbers[::-1]]


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
        splits.insert(0, _splits(array))
        array = array.flatten()
    return _Rows(pd, array, splits).frame()


def _splits(lists: pa.Array) -> Any:
    """Returns the row splits of an array of lists of records.

    Raises:
        StructureError: If a list is empty.
    """
    if pa.types.is_fixed_size_list(lists.type):
        lengths = np.full(len(lists), lists.type.list_size)
    else:
        lengths = np.asarray(pc.call_function("list_value_length", [lists]))
    if len(lengths) and not lengths.all():
        raise StructureError(
            path="to_pandas",
            expected="lists of at least one record, because each record is a row",
            received=f"an empty list, the first is {int(np.argmin(lengths))}",
            mend="Leave them out, or convert records of rank 1 that have the lists as a field.",
        )
    return np.append(0, np.cumsum(lengths))


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
        whole = zip(self._rows.type, self._rows.flatten(), strict=True)
        columns = [(field, array) for field, array in whole if field.name != INDEX]
        found = self._rows.field(INDEX) if INDEX in names else None
        index = self._index(found, self._rows.type.field(INDEX) if INDEX in names else None)
        leaves = [leaf for each in columns for leaf in self._leaves(*each)]
        values = {i: self._series(value, index) for i, (_, value, _) in enumerate(leaves)}
        frame = self._pd.DataFrame(values, index=index, copy=False)
        frame.columns = self._labels([(label, depth) for label, _, depth in leaves])
        axis = next((_known(f)["columns"] for f, _ in columns if "columns" in _known(f)), [])
        if len(axis) == frame.columns.nlevels:
            frame.columns.names = [_decoded(self._pd, name) for name in axis]
        return frame

    def _series(self, values: Any, index: Any) -> Any:
        # Of objects pandas would infer another dtype.
        dtype = object if values.dtype == object else None
        return self._pd.Series(values, index, dtype, copy=False)

    def _leaves(
        self, field: pa.Field, array: pa.Array
    ) -> Iterator[tuple[tuple[Any, ...], Any, int]]:
        """Yields the label and the values of each column of a field, and the depth of its label."""
        known = _known(field)
        label = _decoded(self._pd, known["label"]) if "label" in known else field.name
        is_record = pa.types.is_struct(array.type) and array.type.num_fields
        # A record that is null is neither in its columns, so that the column is one of dicts.
        if not is_record or array.null_count or "cells" in known:
            yield (label,), self._values(array, known), known.get("levels", 1)
            return
        for inner, values in zip(array.type, array.flatten(), strict=True):
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
            return pd.MultiIndex.from_arrays(_positions(self._splits, count))
        if not pa.types.is_struct(array.type):
            self._expect_lists([])
            known = _known(field)
            name = _decoded(pd, known.get("name"))
            index = pd.Index(self._series(self._values(array, known), None), name=name)
            with contextlib.suppress(ValueError, AttributeError):  # rows are no longer all there
                index.freq = known.get("freq")
            return index
        levels = list(zip(array.type, array.flatten(), strict=True))
        names = [_decoded(pd, _known(level).get("name", level.name)) for level, _ in levels]
        values = [pd.Index(self._series(self._values(v, _known(f)), None)) for f, v in levels]
        index = pd.MultiIndex.from_arrays(values, names=names)
        self._expect_lists(_runs(index)[::-1])
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
        if "cells" in known or pa.types.is_union(arrow):
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
            return pd.api.types.pandas_dtype(_default_dtype(arrow).name.replace(
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
        return array.to_pandas().array

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


def _of_objects(cells: list[Any]) -> Any:
    values = np.empty(len(cells), object)
    for i, cell in enumerate(cells):  # an assignment of all would make a matrix of lists
        values[i] = cell
    return values
