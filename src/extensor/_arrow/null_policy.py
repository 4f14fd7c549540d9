"""What reading does with nulls: the argument `nulls` of all functions that read Arrow data."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import decoded_type, inner_fields, is_encoded, is_list, may_be_empty
from extensor._converter import converter
from extensor._path import Path, PathLike, quote
from extensor._typing import NullsLike
from extensor.errors import DTypeError, FieldError, StructureError

_WORDS = ("error", "mask", "auto", "empty")
_OF_ANY_TYPE = ("error", "mask", "auto")
_shown = reprlib.Repr()
_shown.maxother = 80  # a datetime with its zone
REST = "*"
"""The path of all other fields."""

Place = tuple[tuple[str, ...], int]
"""The names of a field, and the number of lists around a value: 1 for the items of a list."""


class Fill:
    """A value in place of nulls; see `fill`."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"xt.fill({self.value!r})"


Policy = str | Fill
"""A policy that was checked: "error", "mask", "auto", "empty", or a value."""


def fill(value: object) -> Fill:
    """Returns the policy for nulls that replaces each of them by a value.

    Args:
        value: A Python value of the field's type: a number, a string, a list, a dict.

    >>> import pyarrow as pa
    >>> import extensor as xt
    >>> table = pa.table({"title": ["bread", None]})
    >>> xt.from_arrow(table, nulls={"title": xt.fill("unknown")}).to_py()
    [{'title': 'bread'}, {'title': 'unknown'}]
    """
    return Fill(value)


class Nulls:
    """The policies of a schema, by place.

    Args:
        nulls: The argument of the functions that read Arrow data; see `from_arrow`.

    Raises:
        DTypeError, StructureError, PathError: If `nulls` is not a policy, or not policies by path.
    """

    def __init__(self, nulls: NullsLike | None) -> None:
        self._by_place: dict[Place, Any] = {}
        self._default: Any = "error"
        self._seen: dict[Place, None] = {}
        self._is_used = False  # whether the default fits anywhere
        if not isinstance(nulls, Mapping):
            self._default = _policy(nulls, "nulls")
            return
        for path, policy in nulls.items():
            if path == REST:
                self._default = _policy(policy, "nulls")
            else:
                place = place_of(path)
                self._by_place[place] = _policy(policy, f"nulls, {text_of(place)}")

    @property
    def are_errors(self) -> bool:
        """Whether every null is an error."""
        return self._default == "error" and not self._by_place

    def chosen(self, text: str) -> Policy:
        """Returns the policy that was chosen for a path, or for all, whatever its type."""
        return self._by_place.get(place_of(text), self._default)

    def of_variants(self, union: Place, arrow: pa.DataType) -> Policy:
        """Returns the policy of variants without one, in a union, which has no nulls of its own.

        If the nulls of the union have one variant, the other variants have none: see
        `variant_of_nulls`.
        """
        policy = self._by_place.get(union, self._default)
        return policy if variant_of_nulls(policy, arrow) is None else "error"

    def at(self, place: Place, arrow: pa.DataType, default: Policy | None = None) -> Policy:
        """Returns the policy of a place: "error", "mask", "auto", "empty" or a Fill.

        Args:
            place: The place.
            arrow: The type there.
            default: The policy where there is none for the place, if it is not that of all
                places.

        Raises:
            DTypeError: If the policy does not fit the type (also a TypeError).
            FieldError: If a dict that fills records has other keys than the fields (also a
                KeyError).
        """
        self._seen[place] = None
        if not place[0]:
            return "error"  # the records themselves
        if place in self._by_place:
            policy = self._by_place[place]
            _expect_fit(policy, arrow, text_of(place))
            return policy
        policy = self._default if default is None else default
        if policy in _OF_ANY_TYPE:
            return policy
        try:
            _expect_fit(policy, arrow, text_of(place))
        except (DTypeError, FieldError):
            if not _fits_items(policy, arrow):
                return "error"  # a default applies where it fits
            policy = "empty"
        self._is_used = True
        return policy

    def expect_all_seen(self) -> None:
        """Raises if there is a policy that applies nowhere.

        Raises:
            FieldError: If a path does not exist (also a KeyError).
            DTypeError: If the policy for all other fields fits none (also a TypeError).
        """
        for place in self._by_place:
            if place not in self._seen:
                raise _no_place(text_of(place), [text_of(p) for p in self._seen if p[0]])
        if self._default not in _OF_ANY_TYPE and not self._is_used:
            fields = "a list" if self._default == "empty" else "a field of its type"
            raise _does_not_fit("*", fields, f"no such field, for nulls={self._default!r}")


def policies_of(nulls: NullsLike | None, columns: Iterable[PathLike]) -> Any:
    """Returns the argument `nulls` without the policies of fields that are not read.

    Args:
        nulls: The argument for all fields.
        columns: The paths of the fields that are read.
    """
    if not isinstance(nulls, Mapping):
        return nulls
    read = [Path.of(column).names for column in columns]

    def kept(path: PathLike, policy: object) -> Any:
        """Returns the policy of a path without fields that are not read; None if it is not read."""
        if path == REST:
            return policy
        names, items = place_of(path)
        if not any(a[: len(names)] == names or names[: len(a)] == a for a in read):
            return None
        value = policy.value if isinstance(policy, Fill) else policy
        if items or not isinstance(value, Mapping) or names in read:
            return policy
        inner = {name: kept(Path(*names, name), one) for name, one in value.items()}
        return Fill({name: one for name, one in inner.items() if one is not None})

    found = {path: kept(path, policy) for path, policy in nulls.items()}
    return {path: policy for path, policy in found.items() if policy is not None}


def is_auto(policy: object) -> bool:
    """Returns whether a policy is "auto": a field is masked if it has nulls."""
    return isinstance(policy, str) and policy == "auto"


def is_error(policy: object) -> bool:
    """Returns whether a policy is "error", the default."""
    return policy is None or (isinstance(policy, str) and policy == "error")


def text_of(place: Place) -> str:
    """Returns the text of a place, such as `steps.tools[*]`."""
    return str(Path(*place[0])) + "[*]" * place[1]


def place_of(path: PathLike) -> Place:
    """Returns the place of a path in the argument `nulls`."""
    if not isinstance(path, str):
        return Path.of(path).names, 0
    stem = path
    while stem.endswith("[*]"):
        stem = stem[:-3]
    return Path.parse(stem).names, (len(path) - len(stem)) // 3


def _policy(policy: object, where: str) -> Policy:
    if policy is None:
        return "error"
    if not isinstance(policy, str):
        return policy if isinstance(policy, Fill) else Fill(policy)
    if policy in _WORDS:
        return policy
    near = difflib.get_close_matches(policy, _WORDS, 1)
    expected = '"error", "mask", "auto", "empty", or a value in place of nulls'
    fix = f"To fill with a string, write xt.fill({policy!r})."
    if near:
        fix = f"Did you mean {near[0]!r}?"
    raise StructureError(where, expected, repr(policy), fix)


def needs_data(where: str) -> StructureError:
    """Returns the error for "auto" where no data is read that says which fields have nulls."""
    expected = "a policy that is known before the data is read"
    fix = (
        'Choose "mask", which masks a field whether it has nulls or not. Or read some of the '
        'records with nulls="auto", and give schema=xt.spec_of(records).'
    )
    return StructureError(f"nulls, {where}" if where else "nulls", expected, "'auto'", fix)


def _no_place(text: str, places: list[str]) -> FieldError:
    near = difflib.get_close_matches(text, places, 3)
    listed = ", ".join(places[:20]) + (f", ... ({len(places)} in all)" if len(places) > 20 else "")
    expected, received = f"one of the paths {listed}", text or "'', the records themselves"
    fix = (
        f"Did you mean {' or '.join(near)}?"
        if near
        else "Check the spelling; items of a list are path[*]."
        if text
        else "Name a field, or give one policy for all; the field named '' is '\"\"'."
    )
    return FieldError(f"nulls, {text}", expected, received, fix)


def variant_of_nulls(policy: object, union: pa.DataType) -> int | None:
    """Returns the number of the variant that all nulls of a union are read into, or None.

    Under "mask" and "auto" it is the variant of nulls, if there is one; else each variant keeps its
    nulls. A value in place of nulls is a row of the first variant that it fits.
    """
    fields = inner_fields(union)
    if policy in ("mask", "auto"):
        return next((i for i, field in enumerate(fields) if pa.types.is_null(field.type)), None)
    if not isinstance(policy, Fill):
        return None
    # The variant of nulls takes a value only if no other variant does.
    for i in sorted(range(len(fields)), key=lambda i: pa.types.is_null(fields[i].type)):
        if pa.types.is_union(fields[i].type):
            continue
        try:
            _expect_value(policy.value, fields[i].type, fields[i].name)
        except (DTypeError, FieldError):
            continue
        return i
    return None


# Whether a policy fits a type.


def _expect_fit(policy: object, arrow: pa.DataType, where: str) -> None:
    if policy == "empty" and not _holds_empty(arrow):
        raise _does_not_fit(where, f"a list, for nulls={policy!r}", f"Arrow type {arrow}")
    if isinstance(policy, Fill):
        _expect_value(policy.value, arrow, where)


def _holds_empty(arrow: pa.DataType) -> bool:
    """Returns whether the type is a list of any length, or a union with a variant of this kind."""
    if pa.types.is_union(arrow):
        return any(_holds_empty(field.type) for field in inner_fields(arrow))
    return may_be_empty(arrow)


def _expect_value(value: object, arrow: pa.DataType, where: str) -> None:
    """Raises unless a Python value converts to an Arrow type without loss."""
    if pa.types.is_union(arrow):
        _expect_variant(value, arrow, where)
        return
    is_bool8 = isinstance(arrow, pa.BaseExtensionType) and arrow == pa.bool8()
    arrow = pa.bool_() if is_bool8 else decoded_type(arrow)
    if pa.types.is_null(arrow):
        arrow = pa.float32()  # as `NullType` reads it
    if pa.types.is_struct(arrow):
        _expect_record(value, arrow, where)
    elif is_list(arrow):
        _expect_list(value, arrow, where)
    elif (
        value is None
        or isinstance(value, bool) != pa.types.is_boolean(arrow)
        or not _converts(value, arrow)
    ):
        raise _does_not_fit(where, f"a value of Arrow type {arrow}", _shown.repr(value))


def _fits_items(policy: object, arrow: pa.DataType) -> bool:
    """Returns whether a policy fits the items of lists, at any depth: then a null list is empty."""
    if not isinstance(policy, Fill) or not may_be_empty(arrow) or not is_list(decoded_type(arrow)):
        return False
    items = decoded_type(arrow).value_type
    try:
        _expect_fit(policy, items, "*")
    except (DTypeError, FieldError):
        return _fits_items(policy, items)
    return True


def _expect_variant(value: object, arrow: pa.DataType, where: str) -> None:
    for field in inner_fields(arrow):
        try:
            _expect_value(value, field.type, where)
        except (DTypeError, FieldError):
            continue
        return
    raise _does_not_fit(where, f"a value of Arrow type {arrow}", repr(value))


def _expect_record(value: object, arrow: pa.DataType, where: str) -> None:
    names = [field.name for field in arrow.fields]
    if not isinstance(value, Mapping):
        raise _does_not_fit(where, f"a dict with the fields {', '.join(names)}", _shown.repr(value))
    record = cast("Mapping[Any, Any]", value)
    if set(record) != set(names):
        expected = f"a dict with the fields {', '.join(names)}"
        received = f"a dict with {', '.join(map(str, record)) or 'no fields'}"
        fix = "Give a value for each field of the record."
        raise FieldError(f"nulls, {where}", expected, received, fix)
    for field in arrow.fields:
        _expect_value(record[field.name], field.type, f"{where}.{quote(field.name)}")


def _expect_list(value: object, arrow: pa.DataType, where: str) -> None:
    size = arrow.list_size if pa.types.is_fixed_size_list(arrow) else None
    if not isinstance(value, (list, tuple)) or size not in (None, len(cast("Any", value))):
        expected = "a list" if size is None else f"a list of {size}"
        raise _does_not_fit(where, expected, _shown.repr(value))
    for item in cast("list[Any]", value):
        _expect_value(item, arrow.value_type, f"{where}[*]")


def exact_value(value: Any, arrow: pa.DataType) -> Any:
    """Returns a value with times and decimals as Arrow's scalars, which are the same value.

    Arrow alone cuts the digits of a time that its type does not hold, and takes a time without a
    zone for UTC.

    Args:
        value: A value of Python: also a list or a dict, of values that fit the type.
        arrow: The Arrow type.

    Raises:
        DTypeError: If the type does not hold a time or a decimal exactly, or holds other values
            (also a TypeError).
    """
    t = pa.types
    if t.is_struct(arrow):
        return {field.name: exact_value(value[field.name], field.type) for field in arrow.fields}
    if is_list(arrow):
        return [exact_value(item, arrow.value_type) for item in value]
    if value is None or not (t.is_temporal(arrow) or t.is_decimal(arrow)) or t.is_interval(arrow):
        return value
    is_number = isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)
    if is_number and t.is_temporal(arrow):
        return int(value)
    return converter("time_or_decimal")(value, arrow)


def _converts(value: Any, arrow: pa.DataType) -> bool:
    try:
        made = pa.array([exact_value(value, arrow)], arrow)
        if not pa.types.is_integer(arrow) and not pa.types.is_floating(arrow):
            return made.null_count == 0
        kept = made[0].as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    if pa.types.is_integer(arrow):
        return kept == value
    # A float may be rounded, but not become infinite.
    return not pa.types.is_floating(arrow) or math.isfinite(kept) or not math.isfinite(value)


def _does_not_fit(where: str, expected: str, received: str) -> DTypeError:
    fix = 'Choose "mask", or xt.fill with a value of the type of the field.'
    return DTypeError(f"nulls, {where}", expected, received, fix)


class PlacedNulls:
    """The policies of a schema, seen from one place in it.

    Args:
        nulls: The policies.
        place: The place.
        default: The policy where there is none for the place, if it is not that of all places.
        is_encoding: Whether this is the type of encoded values, such as a dictionary's, which has
            the place of the type around it.
    """

    def __init__(
        self,
        nulls: Nulls,
        place: Place = ((), 0),
        default: Policy | None = None,
        is_encoding: bool = False,
    ) -> None:
        self.nulls = nulls
        self._place = place
        self._default = default
        self._is_encoding = is_encoding

    def policy(self, arrow: pa.DataType) -> Policy:
        """Returns the policy for nulls of a type at this place."""
        # The type around values that are encoded has read their nulls.
        if self._is_encoding:
            return "error"
        return self.nulls.at(self._place, arrow, self._default)

    def inside(self, arrow: pa.DataType, path: Path, inner_path: Path) -> PlacedNulls:
        """Returns the policies at the place of an inner type.

        Args:
            arrow: The type at this place.
            path: Its path.
            inner_path: The path of the inner type, with one more name for a field.
        """
        names, items = self._place
        if len(inner_path) > len(path):
            is_variant = pa.types.is_union(arrow)
            default = self.nulls.of_variants(self._place, arrow) if is_variant else None
            return PlacedNulls(self.nulls, ((*names, inner_path.names[-1]), 0), default)
        if is_encoded(arrow) or isinstance(arrow, pa.BaseExtensionType):
            return PlacedNulls(self.nulls, self._place, is_encoding=True)
        return PlacedNulls(self.nulls, (names, items + 1))
