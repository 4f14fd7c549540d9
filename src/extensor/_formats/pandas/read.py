"""Pandas DataFrames as StructuredTensors."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import contains_type
from extensor._arrow.cast import cast_column
from extensor._arrow.schema import spec_from_schema
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._choice import expect_one_of
from extensor._dependency import import_extra
from extensor._formats.pandas.known import (
    INDEX,
    encoded_label,
    field_of,
    is_default_dtype,
    with_known,
)
from extensor._formats.pandas.levels import Splits, is_default_index, runs_of
from extensor._path import Path, PathLike
from extensor._raised import first_line
from extensor._struct.cast_request import CastRequest
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.ragged_spec import ListSpec
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, ExtensorError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    import pandas as pd


def from_pandas(
    frame: pd.DataFrame,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    conflicts: str = "error",
    row_splits_dtype: DTypeLike | None = None,
    levels: str = "dimensions",
) -> StructuredTensor:
    """Returns the rows of a pandas DataFrame as a StructuredTensor.

    Args:
        frame: A DataFrame. Columns of a MultiIndex become nested records. An index that is not
            the default one becomes the field `_index_`.
        columns: Paths of the fields to convert, `_index_` among them. Default: all.
        schema: The spec of a StructuredTensor, or a pyarrow Schema; by default the dtypes and, in
            columns of objects, the values decide.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. A null
            is `None`, `pd.NA`, `pd.NaT`, and `nan` in a column of strings or other objects; `nan`
            in a column of floats is a number.
        conflicts: What becomes of a column of objects that have different types: `"error"` (the
            default), or `"union"` for a UnionTensor.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
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

    >>> import extensor as xt
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"title": ["bread", "tea"], "minutes": [90, 5]})
    >>> xt.from_pandas(frame)
    <StructuredTensor shape=(2,) {title: string, minutes: int64}
     [{title: 'bread', minutes: 90},
      {title: 'tea', minutes: 5}]>
    >>> xt.from_pandas(frame.set_index("title")).to_py()
    [{'minutes': 90, '_index_': 'bread'}, {'minutes': 5, '_index_': 'tea'}]
    """
    pd = import_extra("pandas", "pandas", "from_pandas")
    if not isinstance(frame, pd.DataFrame):
        to_frame = "Convert a Series by its method to_frame"
        fix = f"{to_frame}; xt.from_arrow takes other libraries' tables."
        raise DTypeError("from_pandas", "a pandas DataFrame", type(frame).__name__, fix)
    expect_one_of(("error", "union"), conflicts, "from_pandas: conflicts")
    expect_one_of(("dimensions", "fields"), levels, "from_pandas: levels")
    schema, row_splits_dtype = _of_rows(schema, row_splits_dtype)
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    table, splits = _FrameReader(pd, frame, wanted, conflicts, levels).table()
    records = wanted.records(table)
    for each in splits:
        cut = each.astype(wanted.row_splits_dtype.as_numpy_dtype)
        records = RaggedStructuredTensor.from_row_splits(records, cut)
    return records


def _of_rows(
    schema: SchemaLike | None, row_splits_dtype: DTypeLike | None
) -> tuple[SchemaLike | None, DTypeLike | None]:
    """Returns the schema of the rows, where `schema` may be the spec of a higher rank."""
    while isinstance(schema, ListSpec) and schema.rank > 1:
        row_splits_dtype = row_splits_dtype or schema.row_splits_dtype
        schema = schema.values_spec
    return schema, row_splits_dtype


Known = dict[str, Any]
"""What pandas knows of a column, and Arrow does not, as JSON has it."""

_Step = tuple[str, Known]
"""The name of a field on the path of a column, and what is known of its label."""

_Leaf = tuple[list[_Step], pa.Array, Known]
"""A column: its path, its values and what is known of them."""


class _FrameReader:
    """A DataFrame on its way to Arrow."""

    def __init__(
        self, pd: Any, frame: pd.DataFrame, wanted: WantedTable, conflicts: str, levels: str
    ) -> None:
        self._pd = pd
        self._frame = frame
        self._wanted = wanted
        self._unions = conflicts == "union"
        self._levels = levels

    def table(self) -> tuple[pa.Table, list[Splits]]:
        """Returns the rows, and the row splits of the dimensions, the innermost first."""
        paths = _paths(self._frame.columns)
        names = [path[0][0] for path in paths]
        if INDEX in names:
            expected = "no column of the name that the index gets"
            fix = "Rename the column, or make it the index."
            raise StructureError(Path(INDEX), expected, f"a column {INDEX}", fix)
        wanted = self._wanted.names_in([*names, INDEX])
        leaves: list[_Leaf] = []
        for i, path in enumerate(paths):
            if path[0][0] in wanted:
                at = Path(*(name for name, _ in path))
                leaves.append((path, *self._array(self._frame.iloc[:, i], at)))
        fields, arrays = _nest_fields(leaves, Path())
        axis = list(self._frame.columns.names)
        if any(name is not None for name in axis) and fields:
            label = [encoded_label(name, "the name of the columns") for name in axis]
            fields[0] = with_known(fields[0], {"columns": label})
        index, splits = self._index()
        if index is not None and INDEX in wanted:
            fields.append(index[0])
            arrays.append(index[1])
        if not fields:
            rows = pa.table({"": pa.nulls(len(self._frame))})
            return rows.select([]), splits
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), splits

    def _index(self) -> tuple[tuple[pa.Field, pa.Array] | None, list[Splits]]:
        """Returns the field and the array of the index, if it needs one, and the row splits."""
        index: Any = self._frame.index
        if not isinstance(index, self._pd.MultiIndex):
            default = self._pd.RangeIndex(len(index))
            if type(index) is type(default) and index.name is None and index.equals(default):
                return None, []
            array, known = self._array(index, Path(INDEX))
            if index.name is not None:
                known["name"] = encoded_label(index.name, "the name of the index")
            if getattr(index, "freq", None) is not None:
                known["freq"] = index.freqstr
            return (field_of(INDEX, array, known), array), []
        splits = runs_of(index)[::-1] if self._levels == "dimensions" else []
        if splits and is_default_index(index, splits):
            return None, splits
        fields: list[pa.Field] = []
        arrays: list[pa.Array] = []
        for i, name in enumerate(index.names):
            plain = isinstance(name, str) and list(index.names).count(name) == 1
            field_name = name if plain else f"level_{i}"
            array, known = self._array(index.get_level_values(i), Path(INDEX, field_name))
            if not plain:
                known["name"] = encoded_label(name, "the name of a level")
            fields.append(field_of(field_name, array, known))
            arrays.append(array)
        record = pa.StructArray.from_arrays(arrays, fields=fields)
        return (pa.field(INDEX, record.type, False), record), splits

    def _array(self, values: pd.Series | pd.Index, path: Path) -> tuple[pa.Array, Known]:
        """Returns the values of a Series or Index, and what Arrow does not know of them."""
        dtype, pd = values.dtype, self._pd
        is_object = isinstance(dtype, np.dtype) and dtype.kind == "O"
        try:
            if is_object:
                array = self._objects(values, path)
            elif isinstance(dtype, pd.SparseDtype):
                raise pa.ArrowNotImplementedError("sparse")
            elif isinstance(dtype, np.dtype) and dtype.kind in "iuf":
                array = _copy(np.asarray(values))
            else:
                array = pa.array(values.array, from_pandas=False)
                if hasattr(array, "buffers") and not isinstance(dtype, pd.ArrowDtype):
                    # A DataFrame may change in place, so that no tensor may share its memory.
                    array = pa.concat_arrays([array, array.slice(0, 0)])
            is_own = is_object and not isinstance(array.type, pa.BaseExtensionType)
            is_own = is_own or not is_default_dtype(dtype, array.type)
        except (pa.ArrowException, OverflowError) as error:
            fix = "Convert it first: df[name].sparse.to_dense()"
            if not isinstance(dtype, pd.SparseDtype):
                fix = "Convert the column first, such as with df[name].astype"
            received = f"dtype {dtype} ({first_line(error)})"
            raise UnsupportedTypeError(
                path, "a dtype that Arrow has", received, f"{fix}, or leave it out by columns=."
            ) from error
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        known: Known = {"dtype": str(dtype)} if is_own else {}
        if is_object and pa.types.is_nested(array.type):
            first = next((v for v in values if not _is_missing(v)), None)
            if not isinstance(first, np.ndarray):
                known["cells"] = "python"
            elif first.ndim > 1 and not isinstance(array.type, pa.FixedShapeTensorType):
                known["cells"] = "arrays"
        return array, known

    def _objects(self, values: pd.Series | pd.Index, path: Path) -> pa.Array:
        """Returns a column of Python objects as an Arrow array."""
        try:
            plain = values.infer_objects()
        except UnicodeEncodeError:  # an error below names the record
            plain = values
        # Of such objects Arrow knows microseconds only, or nothing.
        if plain.dtype.kind in "mM" or isinstance(
            plain.dtype, (self._pd.PeriodDtype, self._pd.IntervalDtype)
        ):
            return pa.array(plain.array, from_pandas=False)
        cells: Any = values.to_numpy()
        wanted = self._wanted_type(path)

        def by_arrow(cells: Sequence[Any]) -> pa.Array:
            array = _convert(cells)
            return array if wanted is None else cast_column(array, wanted, path, "")

        refused: Any = (pa.ArrowException, TypeError, ValueError, OverflowError)
        with contextlib.suppress(*refused):
            return by_arrow(cells)
        # Also the missing values of pandas are None to Arrow, and to the functions below.
        cells = [None if _is_missing(v) else v for v in cells]
        if any(isinstance(cell, np.ndarray) and cell.ndim > 1 for cell in cells):
            return _of_tensors(cells, path)
        try:
            return by_arrow(cells)
        except refused as error:
            return self._by_values(cells, path, error)

    def _wanted_type(self, path: Path) -> pa.DataType | None:
        """Returns the type that `schema=` has for a column."""
        if self._wanted.schema is None:
            return None
        inner: Any = pa.struct(list(self._wanted.schema))
        for name in path.names:
            if not pa.types.is_struct(inner) or inner.get_field_index(name) < 0:
                return None
            inner = inner.field(inner.get_field_index(name)).type
        kinds = (pa.types.is_dictionary, pa.types.is_run_end_encoded, pa.types.is_union)
        return None if any(kind(inner) for kind in kinds) else inner

    def _by_values(self, cells: list[Any], path: Path, error: Exception) -> pa.Array:
        """Returns objects as Python data is converted: exactly, or with an error that names one.

        Args:
            cells: The objects.
            path: Their path.
            error: Why Arrow did not convert them.
        """
        from extensor._formats.python.constant import arrow_of, of_spec

        name, wanted = path.names[-1], self._wanted_type(path)
        rows = [{name: cell} for cell in cells]
        conflicts = "union" if self._unions else "error"
        try:
            if wanted is None:
                array = arrow_of(rows, "mask", conflicts, "record {}".format).field(0)
                kinds = {type(v): f"{type(v).__name__} in record {i}" for i, v in enumerate(cells)}
                if _is_binary(array.type) and str in kinds:
                    kinds.pop(type(None), None)
                    fix = "Decode the bytes, or encode the text."
                    raise DTypeError(Path(name), "str or bytes", ", ".join(kinds.values()), fix)
                return array
            schema = pa.schema([pa.field(name, wanted)])
            spec = spec_from_schema(schema, nulls="mask")
            records = of_spec(rows, spec, request=CastRequest(dropped=None))
            return to_arrow(records, schema).column(0)
        except ExtensorError as found:
            place = found.path
            if len(path.names) > 1:
                place = f"{Path(*path.names[:-1])}.{place}"
            fix = "Correct schema=, or convert the column in the source."
            fix = found.fix if wanted is None else fix
            raise type(found)(place, found.expected, found.received, fix) from error


def _paths(columns: pd.Index) -> list[list[_Step]]:
    """Returns the path of each column: the names of the fields on it, each with what is known."""
    nested = columns.nlevels > 1
    labels: list[tuple[Any, ...]] = [label if nested else (label,) for label in columns]
    below = collections.Counter(label[:i] for label in labels for i in range(1, len(label) + 1))
    paths: list[list[_Step]] = []
    for label in labels:
        # ("a", "") is the column "a", unless there is also a column ("a", "b").
        short = _without_padding(label)
        used = short if below[short] == 1 else label
        path = [
            (str(part), {} if isinstance(part, str) else {"label": encoded_label(part, "a label")})
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
            expected = "columns with different names"
            fix = "Rename one of them; the name of a field is str(label)."
            raise StructureError(Path(*path), expected, "two columns of this name", fix)
        for depth in range(1, len(path) + 1):
            if path[:depth] in seen and last[:depth] != path[:depth]:
                expected = "the columns of this label next to each other"
                received = "other columns between them"
                fix = "Sort the columns: df.sort_index(axis=1)."
                raise StructureError(Path(*path[:depth]), expected, received, fix)
            seen.add(path[:depth])
        last = path


def _nest_fields(leaves: list[_Leaf], path: Path) -> tuple[list[pa.Field], list[pa.Array]]:
    """Returns the fields of columns with paths; columns of one name make a record."""
    groups: dict[str, list[_Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(leaf[0][0][0], []).append(leaf)
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for name, group in groups.items():
        outer, array, known = group[0]
        if len(outer) > 1:
            below = [(steps[1:], values, its) for steps, values, its in group]
            inner = _nest_fields(below, path / name)
            array, known = pa.StructArray.from_arrays(inner[1], fields=inner[0]), {}
        fields.append(field_of(name, array, {**known, **outer[0][1]}))
        arrays.append(array)
    return fields, arrays


def _copy(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """Returns a copy of NumPy numbers as an Arrow array; its memory is aligned for tensors."""
    dtype = numbers.dtype.newbyteorder("=")
    buffer = pa.allocate_buffer(len(numbers) * dtype.itemsize)
    np.frombuffer(buffer, dtype)[:] = numbers
    return pa.Array.from_buffers(pa.from_numpy_dtype(dtype), len(numbers), [None, buffer])


def _convert(cells: Sequence[Any]) -> pa.Array:
    """Returns objects as Arrow converts them.

    Raises:
        TypeError: If Arrow might change a value: it cuts dates and nanoseconds of times, takes NaT
            for the year 1 and a time without a zone for one of UTC, and bools for numbers.
        pa.ArrowException, ValueError, OverflowError: If Arrow does not convert them.
    """
    array = pa.array(cells, from_pandas=False)
    arrow, t = array.type, pa.types
    kinds: set[Any] = {v.dtype if isinstance(v, np.ndarray) else type(v) for v in cells}
    kinds.discard(type(None))
    is_exact = len(kinds) == 1 and getattr(next(iter(kinds)), "kind", "") in ("m", "M")
    is_time = contains_type(arrow, lambda each: t.is_temporal(each) and not t.is_interval(each))
    if is_time and not is_exact:
        raise TypeError("times of several kinds")
    if (t.is_integer(arrow) or t.is_floating(arrow)) and kinds & {bool, np.bool_}:
        raise TypeError("bools beside numbers")
    if _is_binary(arrow) and str in kinds:
        raise TypeError("text beside bytes")
    return array


def _is_binary(arrow: pa.DataType) -> bool:
    return pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow)


def _is_missing(value: object) -> bool:
    """Returns whether pandas takes a value of a column of objects for a null."""
    # Of the values that differ from themselves, or do not say so, all are missing values.
    if value is None:
        return True
    if isinstance(value, (str, bytes, list, tuple, dict, np.ndarray)):
        return False
    same: object = value == value
    return same is not True and type(value).__name__ in ("float", "float64", "NAType", "NaTType")


def _of_tensors(cells: list[Any], path: Path) -> pa.Array:
    """Returns NumPy arrays of two or more dimensions as an Arrow array."""
    present = [np.asarray(cell) for cell in cells if cell is not None]
    first = present[0]
    if len({(cell.shape, cell.dtype) for cell in present}) == 1 and len(present) == len(cells):
        return pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack(present))
    if len({(cell.ndim, cell.dtype) for cell in present}) > 1:
        received = ", ".join(sorted({f"{c.dtype} of rank {c.ndim}" for c in present}))
        fix = "Convert them with astype and reshape."
        raise DTypeError(path, "arrays of one rank and dtype", received, fix)
    kind = pa.from_numpy_dtype(first.dtype)
    if len({cell.shape for cell in present}) == 1:
        valid = np.array([cell is not None for cell in cells])
        values = np.zeros([len(cells), first.size], first.dtype)
        values[valid] = np.reshape(present, [len(present), -1])
        rows = pa.FixedSizeListArray.from_arrays(
            pa.array(values.reshape(-1)), first.size, mask=pa.array(~valid)
        )
        return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(kind, first.shape), rows)
    for _ in range(first.ndim):
        kind = pa.list_(kind)
    return pa.array([None if cell is None else cell.tolist() for cell in cells], kind)
