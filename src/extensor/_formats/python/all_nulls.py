"""The error for a null in Python values, with all fields that have nulls."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.found_nulls import FoundNulls, found_nulls, with_list
from extensor._arrow.location import Location
from extensor._arrow.null_argument import as_code, by_path
from extensor._arrow.null_policy import REST, Fill, Nulls, is_error, text_of
from extensor._arrow.reader import rows_reader
from extensor._formats.python.columns import offsets_of
from extensor._formats.python.objects import as_dict
from extensor._formats.python.place import Place
from extensor._formats.python.variants import NULL
from extensor._formats.python.wanted import Fields, Leaf, Wanted, WantedLists
from extensor._path import Path
from extensor._typing import NullsLike
from extensor.errors import ExtensorError, NullError


def with_all_nulls(
    error: NullError, nulls: NullsLike | None, read: Callable[[NullsLike], pa.Array]
) -> NullError:
    """Returns the error for a null in Python values, which lists all fields whose nulls are errors.

    Args:
        error: The error for the first null.
        nulls: The argument `nulls`.
        read: Returns the records as an Arrow array, for another argument `nulls`.
    """
    given = by_path(nulls)
    masks = {path: "mask" if is_error(each) else each for path, each in given.items()}
    try:
        array = read({REST: "mask", **masks})
        described = rows_reader(array.type, given)
    except ExtensorError:
        return error  # the values have other faults too
    policies = Nulls(given)
    counts: dict[Any, int] = collections.Counter()
    for each in found_nulls(described, array, Location(Path(), tf.int64)):
        path = each.path if each.is_refused else _union_of(each)
        is_refused = each.is_refused or (path is not None and is_error(policies.chosen(path)))
        if is_refused and each.number:
            counts[path] += each.number
    return with_list(error, nulls, counts)


def _union_of(found: FoundNulls) -> str | None:
    """Returns the path of the union whose nulls these are: under "mask" they are a variant."""
    names = found.location.place[0]
    union = found.location.parent
    if found.described.arrow != pa.null() or names[-1:] != (NULL,) or union is None:
        return None
    return text_of(union.place)


def with_all_nulls_of_spec(
    error: NullError, nulls: NullsLike | None, values: list[Any], wanted: Wanted, place: Place
) -> NullError:
    """Returns the error for a null in values of a spec, which lists all fields with such nulls.

    Args:
        error: The error for the first null.
        nulls: The argument `nulls`.
        values: The records.
        wanted: What the spec wants of them.
        place: Their place.
    """
    try:
        found = list(_nulls_in(values, wanted, place, Nulls(nulls)))
    except (TypeError, AttributeError):
        return error  # the values have other faults too
    given = {path: each for path, each in by_path(nulls).items() if not is_error(each)}
    fills = {path: _filler(each) for path, _, each in found}
    if not found or "" in fills or None in fills.values():
        return error
    fields = ", ".join(f"{path} ({count})" for path, count, _ in found)
    fix = (
        f"Fields with nulls: {fields}. Describe them by specs of MaskedTensors, or give "
        f"xt.struct.constant a value in place of the nulls:\n{as_code({**given, **fills})}"
    )
    return NullError(error.path, error.expected, error.received, fix)


def _nulls_in(
    values: Sequence[Any], wanted: Wanted, place: Place, policies: Nulls
) -> Iterator[tuple[str, int, Wanted]]:
    """Yields the path of each field with nulls that a spec does not want, and their number."""
    present = [value for value in values if value is not None]
    count = len(values) - len(present)
    if count and not wanted.nullable and not isinstance(policies.chosen(place.text), Fill):
        yield place.key, count, wanted
    if isinstance(wanted, Fields):
        records = [as_dict(value) for value in present]
        for name, each in wanted.fields.items():
            column = [record[name] for record in records if name in record]
            yield from _nulls_in(column, each, place.field(name), policies)
    elif isinstance(wanted, WantedLists):
        items = list(itertools.chain.from_iterable(present))
        yield from _nulls_in(items, wanted.items, place.items(offsets_of(present)), policies)


def _filler(wanted: Wanted) -> Fill | str | None:
    """Returns a policy that gives nulls the zero of their type; None if there is no zero."""
    if isinstance(wanted, WantedLists) and not wanted.dense:
        return "empty"
    zero = _zero(wanted)
    return None if zero is None else Fill(zero)


def _zero(wanted: Wanted) -> object:
    if isinstance(wanted, Leaf):
        return {tf.string: "", tf.bool: False}.get(wanted.dtype, 0)
    if isinstance(wanted, WantedLists):
        if not wanted.dense:
            return []
        item = _zero(wanted.items)
        return None if item is None or wanted.size is None else [item] * wanted.size
    if isinstance(wanted, Fields):
        zeros = {name: _zero(each) for name, each in wanted.fields.items()}
        return None if None in zeros.values() else zeros
    return None
