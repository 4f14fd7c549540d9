"""The errors for Python values that fit neither each other nor what is wanted."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from extensor._arrow.found_nulls import choice_text
from extensor._formats.python.kinds import Kind, kind_of_value
from extensor._formats.python.place import Place, show
from extensor._formats.python.wanted import Fields, Leaf, WantedLists
from extensor.errors import DTypeError, ExtensorError, FieldError, NullError, StructureError


def null_error(index: int, values: Sequence[object], place: Place) -> NullError:
    """Returns the error for the nulls in a column, of which the first has this index."""
    given = [value for value in values if value is not None]
    count = len(values) - len(given)
    expected = f"a value, such as {show(given[0])}" if given else "a value"
    received = f"null, the first of {count} nulls" if count > 1 else "null"
    return NullError(place.at(index), expected, received, choose_nulls(place))


def choose_nulls(place: Place) -> str:
    """Returns the fix for nulls at a place: the argument `nulls=`, with their path as its key."""
    if not place.text:  # null records have no path
        return "Leave out the null records."
    return choice_text({place.key: "mask"})


def expect_one_zone(values: Sequence[object], arrow: pa.DataType | None, place: Place) -> None:
    """Raises for datetimes with and without a zone in one column, which Arrow takes for UTC."""
    first = None if arrow is None else getattr(arrow, "tz", None) is not None
    for index, value in enumerate(values):
        if isinstance(value, datetime.datetime):
            has_zone = value.utcoffset() is not None
            if first is None:
                first = has_zone
            if has_zone != first:
                texts = ("a datetime without a zone", "a datetime with a zone")
                expected = f"{texts[first]}, as the others"
                fix = "Give all datetimes a zone, or none."
                raise DTypeError(place.at(index), expected, f"{texts[has_zone]} ({value})", fix)


def first_of(values: Sequence[object], types: Collection[type]) -> int:
    """Returns the index of the first value of some types."""
    return next(i for i, value in enumerate(values) if type(value) in types)


def first_failing(values: Sequence[Any], convert: Callable[[Any], object]) -> tuple[int, object]:
    """Returns the index and the value of the first value for which `convert` raises."""
    for index, value in enumerate(values):
        try:
            convert(value)
        except Exception:  # whatever the conversion raises for a value
            return index, value
    return 0, values[0]


def missing_key_error(
    records: Sequence[Mapping[Any, Any] | None], names: Sequence[str], place: Place
) -> NullError:
    """Returns the error for records of which some lack a field, where no null may be."""
    known = set(names)
    lacking = next(i for i, v in enumerate(records) if v is not None and known - set(v))
    lacks = records[lacking] or {}
    missing = next(name for name in names if name not in lacks)
    having = next(i for i, v in enumerate(records) if v is not None and missing in v)
    has = records[having] or {}
    other, at = place.record(having), place.field(missing)
    whose = "another item" if other == place.record(lacking) else other
    count = sum(v is not None and missing not in v for v in records)
    first = f", the first of {count} without the key" if count > 1 else ""
    expected = f"a value, as {whose} has ({show(has[missing])})"
    received = f"a record with {_listed_keys(lacks)}{first}; {whose} has {_listed_keys(has)}"
    fix = "Give all records the same keys. A missing key is a null. " + choose_nulls(at)
    return NullError(at.at(lacking), expected, received, fix)


def _listed_keys(record: Mapping[Any, Any]) -> str:
    names = list(map(repr, itertools.islice(record, 5)))
    more = ", ..." if len(record) > 5 else ""
    return f"the keys {', '.join(names)}{more}" if names else "no keys"


def fields_error(
    names: Collection[str], keys: Collection[object], missing: Sequence[str], at: str
) -> FieldError:
    """Returns the error for a dict whose keys are not the fields of records."""
    given = list(map(str, keys))
    unknown = [key for key in given if key not in names]
    wrong = [f"missing: {_as_list(missing, 5)}"] if missing else []
    wrong += [f"unknown: {_as_list(unknown, 5)}"] if unknown else []
    text = "; ".join(wrong)
    fix = f"Give exactly these fields. {text[:1].upper()}{text[1:]}."
    if unknown:
        fix += ' extra="ignore" leaves unknown fields out.'
    expected = f"the fields {_as_list(list(names), 20)}"
    return FieldError(at, expected, _as_list(given, 20) or "an empty dict", fix)


def _as_list(names: Sequence[str], count: int) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > count else ""
    return ", ".join(names[:count]) + more


def kind_error(value: object, wanted: Fields | WantedLists | Leaf, at: str) -> ExtensorError:
    """Returns the error for a value of another kind than the spec wants."""
    if isinstance(wanted, Leaf) and kind_of_value(value) not in (Kind.LIST, Kind.RECORD):
        fix = f"Give values that convert to {wanted.text}, or change the spec."
        if wanted.is_time and isinstance(value, (str, bytes)):
            fix = 'Give datetime objects, or times="text" for text in ISO 8601: '
            fix += 'xt.spec_of(records).cast(data, times="text").'
        return DTypeError(at, wanted.text, show(value), fix)
    fix = "Nest one list for each dimension, and write records as dicts."
    return StructureError(at, wanted.text, show(value), fix)


def conflict_error(
    values: Sequence[object], groups: Collection[set[type]], place: Place, is_of_format: bool
) -> StructureError | DTypeError:
    """Returns the error for values of different kinds in one column."""
    first, second = sorted(first_of(values, types) for types in groups)[:2]
    one, other = place.record(first), place.record(second)
    where = f", as in {one}" if one != other else ""
    kind, its = (kind_of_value(values[i]) for i in (first, second))
    is_nested = bool({kind, its} & {Kind.LIST, Kind.RECORD})
    make = StructureError if is_nested else DTypeError
    expected = f"{kind.value}{where} ({show(values[first])})"
    received = f"{its.value} ({show(values[second])})"
    fix = 'Give all records one type, or keep both: conflicts="union"'
    fix += "." if is_nested or is_of_format else "; dtype= or spec= fixes the type of the field."
    return make(place.at(second), expected, received, fix)
