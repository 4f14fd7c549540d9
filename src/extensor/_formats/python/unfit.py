"""The errors for Python values that fit neither each other nor what is wanted."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from extensor._arrow.found_nulls import choose
from extensor._formats.python import kinds
from extensor._formats.python.place import Place, shown
from extensor._formats.python.wanted import Fields, Leaf, Lists
from extensor.errors import DTypeError, ExtensorError, FieldError, NullError, StructureError


def no_null(index: int, values: Any, place: Place) -> NullError:
    """Returns the error for the nulls in a column, of which the first has this index."""
    given = [value for value in values if value is not None]
    count = len(values) - len(given)
    expected = f"a value, such as {shown(given[0])}" if given else "a value"
    received = f"null, the first of {count} nulls" if count > 1 else "null"
    return NullError(place.at(index), expected, received, choose_nulls(place))


def choose_nulls(place: Place) -> str:
    """Returns the fix for nulls at a place: the argument `nulls=`, with their path as its key."""
    if not place.text:  # null records have no path
        return "Leave out the null records."
    return choose({place.key: "mask"})


def expect_one_zone(values: Any, arrow: Any, place: Place) -> None:
    """Raises for datetimes with and without a zone in one column, which Arrow takes for UTC."""
    first = getattr(arrow, "tz", None) is not None if arrow is not None else None
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


def first_of(values: Any, types: set[type]) -> int:
    return next(i for i, value in enumerate(values) if type(value) in types)


def first_failing(values: Any, convert: Callable[[Any], Any]) -> tuple[int, Any]:
    """Returns the index and the value of the first value that `convert` refuses."""
    for index, value in enumerate(values):
        try:
            convert(value)
        except Exception:  # whatever the conversion raises for a value
            return index, value
    return 0, values[0]


def listed_keys(record: Mapping[Any, Any]) -> str:
    names = list(map(repr, itertools.islice(record, 5)))
    more = ", ..." if len(record) > 5 else ""
    return f"the keys {', '.join(names)}{more}" if names else "no keys"


def other_fields(
    names: Iterable[str], value: Iterable[Any], missing: Sequence[str], at: str
) -> FieldError:
    """Returns the error for a dict whose keys are not the fields of records."""
    names = list(names)
    keys = list(map(str, value))
    unknown = [key for key in keys if key not in names]
    wrong = [f"unknown: {_listed(unknown, 5)}"] if unknown else []
    if missing:
        wrong.insert(0, f"missing: {_listed(missing, 5)}")
    text = "; ".join(wrong)
    return FieldError(
        at,
        f"the fields {_listed(names, 20)}",
        _listed(keys, 20) or "an empty dict",
        f"Give exactly these fields. {text[:1].upper()}{text[1:]}."
        + (' extra="ignore" leaves unknown fields out.' if unknown else ""),
    )


def _listed(names: Sequence[str], count: int) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > count else ""
    return ", ".join(names[:count]) + more


def wanted_text(wanted: Any) -> str:
    if isinstance(wanted, Fields):
        return "a record, as a dict"
    if isinstance(wanted, Lists):
        return "a list"
    return wanted.dtype.name if wanted.arrow is None else str(wanted.arrow)


def unfit(value: Any, wanted: Any, at: str) -> ExtensorError:
    """Returns the error for a value of another kind than the spec wants."""
    if isinstance(wanted, Leaf) and kinds.kind_of(type(value), [value]) not in (
        kinds.LIST,
        kinds.RECORD,
    ):
        fix = f"Give values that convert to {wanted_text(wanted)}, or change the spec."
        return DTypeError(at, wanted_text(wanted), shown(value), fix)
    fix = "Nest one list for each dimension, and write records as dicts."
    return StructureError(at, wanted_text(wanted), shown(value), fix)


def conflict(
    values: Any, groups: list[set[type]], place: Place, of_format: bool
) -> StructureError | DTypeError:
    """Returns the error for values of different kinds in one column."""
    first, second = sorted(first_of(values, types) for types in groups)[:2]
    one, other = place.record(first), place.record(second)
    where = f", as in {one}" if one != other else ""
    kind, its = (kinds.kind_of(type(values[i]), [values[i]]) for i in (first, second))
    nested = {kind, its} & {kinds.LIST, kinds.RECORD}
    make = StructureError if nested else DTypeError
    return make(
        place.at(second),
        f"{kind}{where} ({shown(values[first])})",
        f"{its} ({shown(values[second])})",
        'Give all records one type, or keep both: conflicts="union"'
        + ("." if nested or of_format else "; dtype= or spec= fixes the type of the field."),
    )
