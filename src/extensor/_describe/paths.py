"""Statistics of each path of Arrow data."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import contains_type, is_encoded, is_list, is_string, names_of
from extensor._arrow.encoded_types import decode, storage_of
from extensor._arrow.selection import items_of
from extensor._arrow.union_types import union_numbers
from extensor._describe.sketches import Numbers, Words
from extensor._path import Path, quote
from extensor._struct.display.schema import printable
from extensor._struct.meaning import meaning_of
from extensor.errors import DTypeError

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

_CALENDAR = 60_000_000_000 * 10**9
"""So many nanoseconds around 1970 are the years 68 to 3871, which Arrow writes well."""


class PathStatistics:
    """Statistics of the values of a path.

    Attributes:
        path: The path, such as `steps[*].minutes`, where `[*]` stands for the items of a list.
        kind: "number", "string", "list", "record", "union" or "other". Bools are strings, "true"
            and "false". Timestamps, dates, times and durations are numbers in their unit.
        type: The Arrow type.
        count: The number of values that are not null.
        nulls: The number of nulls. Where a record is null, each of its fields is null too.
        numbers: The statistics of numbers, or None.
        words: The statistics of strings, or of the names of a union's variants, or None.
        lengths: The statistics of the lengths of lists, or None.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> found["minutes"].kind, found["minutes"].count, found["minutes"].nulls
    ('number', 2, 0)
    """

    def __init__(self, path: str, arrow: pa.DataType) -> None:
        self.path = path
        self.kind = _kind(arrow)
        self.type = arrow
        self.count = 0
        self.nulls = 0
        self.numbers = Numbers() if self.kind == "number" else None
        self.words = Words() if self.kind in ("string", "union") else None
        self.lengths = Numbers() if self.kind == "list" else None

    @property
    def null_share(self) -> float:
        """The share of nulls; 0.0 if there is neither a value nor a null."""
        return self.nulls / max(1, self.nulls + self.count)

    def text_of(self, number: float | int | None) -> str:
        """Returns a number of this path as text; that of a timestamp as date and time."""
        return number_text(number, self.type)

    def merge(self, other: PathStatistics) -> None:
        """Adds the values of other statistics of the same path.

        Raises:
            DTypeError: If the path has another kind there (also a TypeError).
        """
        if _base(self.type) != _base(other.type):
            if pa.types.is_null(other.type):
                self.nulls += other.nulls
                return
            if not pa.types.is_null(self.type):
                self._expect_like(other)
            else:
                nulls = self.nulls
                self.__init__(self.path, other.type)
                self.nulls = nulls
        self.count += other.count
        self.nulls += other.nulls
        for name in ("numbers", "words", "lengths"):
            if getattr(self, name) is not None:
                getattr(self, name).merge(getattr(other, name))

    def _expect_like(self, other: PathStatistics) -> None:
        # A unit of time makes other numbers of the same value.
        is_plain = _is_plain_number(self.type) and _is_plain_number(other.type)
        if self.kind != other.kind or (self.kind == "number" and not is_plain):
            expected = f"values of type {self.type}, as in earlier records"
            fix = "Describe the parts one by one."
            raise DTypeError(self.path, expected, f"type {other.type}", fix)


def in_one_unit(
    one: PathStatistics, other: PathStatistics
) -> tuple[PathStatistics, PathStatistics]:
    """Returns statistics of one path with their times in the smaller of two units."""
    units = [_unit(each.type) if is_time(each.type) else 0 for each in (one, other)]
    if units[0] > units[1] > 0:
        return _in_unit_of(other, one, units[0] // units[1]), other
    if units[1] > units[0] > 0:
        return one, _in_unit_of(one, other, units[1] // units[0])
    return one, other


def _in_unit_of(of: PathStatistics, each: PathStatistics, factor: int) -> PathStatistics:
    found = copy.copy(each)
    found.type = of.type
    found.numbers = each.numbers and each.numbers.scaled(factor)
    return found


def _unit(arrow: pa.DataType) -> int:
    """Returns the nanoseconds of the unit of a type of time."""
    unit: Any = meaning_of(arrow)
    return unit.size


class Statistics:
    """The statistics of all paths of records, in the order of the fields."""

    def __init__(self) -> None:
        self.num_records = 0
        self.paths: dict[str, PathStatistics] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds records.

        Raises:
            DTypeError: If a path has another type than in earlier records (also a TypeError).
            StructureError: If two fields have one name (also a ValueError).
        """
        self.num_records += batch.num_rows
        for name, column in zip(names_of(batch.schema, Path()), batch.columns, strict=True):
            self._add(quote(name), column, 0)

    def merge(self, other: Statistics) -> None:
        """Adds the records of other statistics."""
        self.num_records += other.num_records
        for path, theirs in other.paths.items():
            mine = self.paths.get(path)
            if mine is None:
                mine = self.paths[path] = PathStatistics(path, theirs.type)
            mine.merge(theirs)

    def _add(self, path: str, array: pa.Array, nulls_around: int) -> None:
        """Adds the values of a path.

        Args:
            path: The path.
            array: The values.
            nulls_around: The number of null records around that the values do not have.
        """
        array = _plain(array)
        arrow = array.type
        known = self.paths.get(path)
        if known is None:
            known = self.paths[path] = PathStatistics(path, arrow)
        elif _base(known.type) != _base(arrow):
            known.merge(PathStatistics(path, arrow))
        nulls = array.null_count
        known.nulls += nulls + nulls_around
        known.count += len(array) - nulls
        if pa.types.is_struct(arrow):
            names = names_of(arrow.fields, Path.parse(path))
            for name, (child, around) in zip(names, _children(array), strict=True):
                self._add(f"{path}.{quote(name)}", child, around)
        elif is_list(arrow):
            lengths = pc.list_value_length(array).drop_null().cast(pa.int64())
            if known.lengths is not None:
                known.lengths.add(lengths)
            self._add(f"{path}[*]", items_of(array), 0)
        elif pa.types.is_union(arrow):
            self._add_variants(known, path, array)
        elif nulls == len(array):
            return
        elif known.numbers is not None:
            known.numbers.add(_as_numbers(array.drop_null() if nulls else array))
        elif known.words is not None:
            known.words.add(_as_words(array.drop_null() if nulls else array))

    def _add_variants(self, known: PathStatistics, path: str, array: pa.UnionArray) -> None:
        arrow = array.type
        codes = union_numbers(array, 1, np.int8, path)
        for number, code in enumerate(arrow.type_codes):
            name = arrow.field(number).name
            chosen = codes == code
            variant = array.field(number)
            if arrow.mode == "dense":
                places = union_numbers(array, 2, np.int32, path)[chosen]
            else:
                places = np.flatnonzero(chosen)
            variant = variant.take(pa.array(places))
            if known.words is not None:
                known.words.add(pa.array([name] * len(variant), pa.string()))
            self._add(f"{path}.{quote(name)}", variant, 0)


def short(text: str, width: int = 60) -> str:
    """Returns a text on one line, cut to a width."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def number_text(number: float | int | None, arrow: pa.DataType) -> str:
    """Returns a number as a short text, or, of a type of time, as that time."""
    if number is None or number != number:
        return ""
    if is_time(arrow):
        return _time_text(round(number), arrow)
    if abs(number) >= 1e12 or (isinstance(number, float) and abs(number) < 1e4):
        return f"{number:.4g}"
    return f"{number:,}" if isinstance(number, int) else f"{number:,.0f}"


def _time_text(number: int, arrow: pa.DataType) -> str:
    has_year = pa.types.is_timestamp(arrow) or pa.types.is_date(arrow)
    if has_year and abs(number) * _unit(arrow) > _CALENDAR:
        return f"{number:,}"
    try:
        whole = pa.scalar(number, pa.int32() if arrow.bit_width == 32 else pa.int64()).cast(arrow)
        if pa.types.is_duration(arrow):  # as Python writes it
            return str(whole.cast(pa.duration("us")).as_py())
        text = str(whole.cast(pa.string()).as_py())
    except (pa.ArrowException, OverflowError):
        return f"{number:,} {arrow.unit}" if pa.types.is_duration(arrow) else f"{number:,}"
    return re.sub(r"\.0+(?=Z?$)", "", text)


def _plain(array: pa.Array) -> pa.Array:
    """Returns an array without extension type, dictionary, run ends, or map."""
    arrow = array.type
    if isinstance(arrow, pa.BaseExtensionType):
        return _plain(storage_of(array))
    if is_encoded(arrow):
        return _plain(decode(array))
    if pa.types.is_string_view(arrow):  # Arrow has more functions for other strings
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(arrow) or pa.types.is_fixed_size_binary(arrow):
        return array.cast(pa.large_binary())
    if pa.types.is_map(arrow):
        # `keys` and `items` are those of all maps, also of those before a slice.
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        return pa.Array.from_buffers(
            pa.list_(entries.type),
            len(array),
            array.buffers()[:2],
            offset=array.offset,
            children=[entries],
        )
    return array


def _children(array: pa.StructArray) -> list[tuple[pa.Array, int]]:
    """Returns the fields of records, null where the record is null.

    With each comes the number of null records that it does not have: a union has no nulls of its
    own.
    """
    if not array.null_count or not contains_type(array.type, pa.types.is_union):
        return [(child, 0) for child in array.flatten()]
    # `flatten` aborts the process where a union is below a null.
    valid = array.is_valid()
    children: list[tuple[pa.Array, int]] = []
    for i in range(array.type.num_fields):
        child = array.field(i)
        if not contains_type(child.type, pa.types.is_union):
            one = pa.StructArray.from_arrays([child], ["x"], mask=pc.invert(valid))
            children.append((one.flatten()[0], 0))
        elif pa.types.is_struct(child.type):
            inside = [child.field(j) for j in range(child.type.num_fields)]
            is_null = pc.invert(pc.and_(valid, child.is_valid()))
            fields = list(child.type)
            children.append((pa.StructArray.from_arrays(inside, fields=fields, mask=is_null), 0))
        else:
            children.append((child.filter(valid), array.null_count))
    return children


def _base(arrow: pa.DataType) -> pa.DataType | str:
    """Returns what two types of one path must have in common."""
    kind = _kind(arrow)
    return kind if kind in ("record", "list") else arrow


def _kind(arrow: pa.DataType) -> str:
    t = pa.types
    if t.is_struct(arrow):
        return "record"
    if is_list(arrow):
        return "list"
    if t.is_union(arrow):
        return "union"
    if _is_plain_number(arrow) or is_time(arrow):
        return "number"
    if t.is_boolean(arrow) or is_string(arrow) or t.is_fixed_size_binary(arrow):
        return "string"
    return "other"


def _is_plain_number(arrow: pa.DataType) -> bool:
    return pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow)


def is_time(arrow: pa.DataType) -> bool:
    """Returns whether the type is one of time, whose numbers have a unit."""
    return pa.types.is_temporal(arrow) and not pa.types.is_interval(arrow)


def counts_of(arrow: pa.DataType) -> str:
    """Returns what the numbers of a type count: only those that count the same are compared."""
    if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow):
        return "times"
    if pa.types.is_duration(arrow):
        return "durations"
    return "times of a day" if pa.types.is_time(arrow) else _kind(arrow)


def _as_numbers(array: pa.Array) -> pa.Array:
    arrow = array.type
    if is_time(arrow):
        return array.cast(pa.int32() if arrow.bit_width == 32 else pa.int64())
    return array.cast(pa.float64()) if pa.types.is_decimal(arrow) else array


def _as_words(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if pa.types.is_boolean(array.type) else array
