"""The error for a null in Python values, with all fields that have nulls."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.found_nulls import FoundNulls, found_nulls, not_in_spec, with_list
from extensor._arrow.location import Location
from extensor._arrow.null_argument import by_path
from extensor._arrow.null_policy import REST, Nulls, is_error, text_of
from extensor._arrow.reader import rows_reader
from extensor._formats.python.columns import ColumnConverter
from extensor._formats.python.variants import NULL
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
    error: NullError,
    nulls: NullsLike | None,
    lenient: ColumnConverter,
    read: Callable[[ColumnConverter], pa.Array],
) -> NullError:
    """Returns the error for a null in values of a spec, which lists all fields with such nulls.

    Args:
        error: The error for the first null.
        nulls: The argument `nulls`.
        lenient: A conversion that takes all nulls.
        read: Returns the records as an Arrow array, by a conversion.
    """
    given = {path: each for path, each in by_path(nulls).items() if not is_error(each)}
    replaced = {
        path: each for path, each in given.items() if each == "empty" or not isinstance(each, str)
    }
    try:
        array = read(lenient)
        described = rows_reader(array.type, {**lenient.policies, **replaced})
    except ExtensorError:
        return error  # the values have other faults too
    found = found_nulls(described, array, Location(Path(), tf.int64))
    return not_in_spec(error, given, found, "xt.struct.constant")
