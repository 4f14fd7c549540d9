"""Which fields of Arrow data have nulls: for the policy "auto", and for errors that list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import is_string, may_be_empty
from extensor._arrow.column_type import ColumnType
from extensor._arrow.location import Location
from extensor._arrow.null_argument import as_code, by_path, masking, with_masks
from extensor._arrow.null_policy import REST, Fill, is_auto, is_error, text_of
from extensor._arrow.nullable_type import NullableType
from extensor._arrow.union_types import UnionType
from extensor._typing import NullsLike
from extensor.errors import NullError

_MANY = 50  # fields that an error names


class FoundNulls(NamedTuple):
    """The nulls of one field, without those below other nulls.

    Attributes:
        described: The type of the field, with the policy for its nulls.
        location: The location of the field.
        number: The number of nulls.
    """

    described: ColumnType
    location: Location
    number: int

    @property
    def path(self) -> str:
        """The path of the field, as the argument `nulls` names it; "" for the records."""
        place = self.location.place
        return text_of(place) if place[0] else ""

    @property
    def is_auto(self) -> bool:
        """Whether the policy of the field is "auto"."""
        return is_auto(getattr(self.described, "policy", None))

    @property
    def is_refused(self) -> bool:
        """Whether nulls of the field are errors."""
        return not isinstance(self.described, (NullableType, UnionType))


def found_nulls(described: ColumnType, array: pa.Array, location: Location) -> Iterator[FoundNulls]:
    """Yields the nulls of a validated column and of the columns inside it, outer ones first.

    The nulls of a union are those of its variants. If a variant of nulls takes all of them, the
    union is yielded, with the number 0.

    Args:
        described: The type of the column.
        array: The column.
        location: Its location.
    """
    if isinstance(described, UnionType):
        if is_auto(described.policy):
            yield FoundNulls(described, location, 0)
    else:
        valid = described.valid(array)
        if valid is not None:
            nulls = ~valid if location.hidden is None else ~(valid | location.hidden)
            number = int(np.count_nonzero(nulls))
            # A column of Arrow's null type has no values, also where its nulls are hidden.
            if number or pa.types.is_null(described.arrow):
                yield FoundNulls(described, location, number)
            location = location.hiding(~valid)
    for inner, column, at in described.inner(array, location):
        yield from found_nulls(inner, column, at)


def with_masks_for_auto(nulls: NullsLike | None, found: Iterable[FoundNulls]) -> NullsLike:
    """Returns the argument `nulls` with "mask" for each field under "auto" that has nulls.

    Args:
        nulls: The argument.
        found: The nulls of all data, with the types of this argument.
    """
    masked = dict.fromkeys(each.path for each in found if each.is_auto)
    return with_masks(masking(nulls, "error"), masked)


def refused_nulls(
    error: NullError, nulls: NullsLike | None, found: Iterable[FoundNulls], is_part: bool = False
) -> NullError:
    """Returns the error for nulls, which lists all fields whose nulls are errors.

    Args:
        error: The error, which names the first of these fields.
        nulls: The argument `nulls`.
        found: The nulls of all data that was read, with the types of this argument.
        is_part: As in `with_list`.
    """
    counts: dict[str, int] = {}
    for each in found:
        if each.is_refused and each.number:
            counts[each.path] = counts.get(each.path, 0) + each.number
    return with_list(error, nulls, counts, is_part)


def with_list(
    error: NullError, nulls: Any, counts: Mapping[str, int], is_part: bool = False
) -> NullError:
    """Returns an error that lists fields with nulls, and ends in an argument to paste.

    Args:
        error: The error, which names the first of these fields.
        nulls: The argument `nulls` that was given.
        counts: The numbers of nulls of all these fields, by path.
        is_part: Whether other parts of the data may have nulls in other fields.
    """
    if "" in counts or not counts:  # null records, for which there is no policy
        return error
    texts = [f"{path} ({count})" for path, count in counts.items()]
    others = f" and {len(texts) - _MANY} more" if len(texts) > _MANY else ""
    fields = f"Fields with nulls: {', '.join(texts[:_MANY])}{others}. " if len(texts) > 1 else ""
    chosen = with_masks(nulls, list(counts)[:_MANY])
    if others and is_error(by_path(nulls).get(REST)):
        chosen = {**by_path(chosen), REST: "mask" if is_part else "auto"}
    lead = (error.fix or "").partition(_CHOOSE)[0]
    expected = error.expected
    return NullError(error.path, expected, error.received, f"{lead}{fields}{choice_text(chosen)}")


def not_in_spec(
    error: NullError, nulls: NullsLike | None, found: Iterable[FoundNulls], function: str = ""
) -> NullError:
    """Returns the error for nulls of fields that have no mask in the spec that the caller gave.

    Args:
        error: The error, which names the first of these fields.
        nulls: The policies of the spec.
        found: The nulls of the data, with the types of these policies.
        function: The function that has the argument `nulls`, if the caller has none.
    """
    refused = [each for each in found if each.is_refused and each.number]
    fills = {each.path: _filler(each.described.arrow) for each in refused}
    if not refused or "" in fills:
        return error
    counts = ", ".join(f"{each.path} ({each.number})" for each in refused)
    fix = (
        f"Fields with nulls: {counts}. They are no MaskedTensors in the spec: describe them by "
        "xt.types.MaskedTensorSpec, or leave the spec out."
    )
    if None not in fills.values():
        line = as_code({**by_path(nulls), **fills})
        where = f" by {function}" if function else ""
        fix = f"{fix} Or choose values in place of the nulls{where}:\n{line}"
    return NullError(error.path, error.expected, error.received, fix)


def _filler(arrow: pa.DataType) -> Any:
    """Returns a policy that gives nulls of a type a value; None if no value is at hand."""
    zero = _zero(arrow)
    return "empty" if may_be_empty(arrow) else None if zero is None else Fill(zero)


def _zero(arrow: pa.DataType) -> Any:
    """Returns the zero of a type as a Python value; None if there is none."""
    t = pa.types
    if may_be_empty(arrow):
        return []
    if t.is_struct(arrow):
        zeros = {field.name: _zero(field.type) for field in arrow.fields}
        return None if None in zeros.values() else zeros
    if t.is_fixed_size_list(arrow):
        item = _zero(arrow.value_type)
        return None if item is None else [item] * arrow.list_size
    if is_string(arrow):
        return ""
    if t.is_boolean(arrow):
        return False
    is_time = t.is_temporal(arrow) and not t.is_interval(arrow)
    is_number = t.is_integer(arrow) or t.is_floating(arrow) or t.is_decimal(arrow)
    return 0 if is_time or is_number else None


def choice_text(nulls: NullsLike | None) -> str:
    """Returns the end of an error for a null, with an argument `nulls` to paste."""
    return _CHOOSE + as_code(nulls)


_CHOOSE = (
    'Choose for each field what becomes of its nulls: "mask", xt.fill(value), or "empty" for '
    'lists; "auto" masks the fields that have nulls. For example:\n'
)
