"""What the integers of a field mean: units of time, or decimals of a scale.

Arrow's unit, its scale, whether a time has a zone, and date or timestamp are the meaning of a
number. Specs with different meanings are not equal, and values of one change to the other only
without loss. All else in an Arrow type is storage: its width, dictionaries, the name of a zone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from extensor._path import PathLike
from extensor.errors import DTypeError


class Unit(NamedTuple):
    """The meaning of the integers of a field.

    Attributes:
        kind: What they count, such as "timestamps without a zone".
        size: The length of one unit in nanoseconds; for decimals, the scale.
    """

    kind: str
    size: int

    def __str__(self) -> str:
        if self.kind.startswith(_DECIMAL):
            return f"{self.kind}, scale {self.size}"
        return f"{self.kind} in {_NAMES[self.size]}"


Meaning = Unit | tuple[tuple[str, Any], ...] | None
"""A Unit; for a union, pairs of the name and the meaning of each variant that has one."""

_DECIMAL, _DATE, _LOCAL = "decimals", "dates", "timestamps without a zone"
_SMALL = f"{_DECIMAL} of at most 18 digits"
WHOLE = Unit(_SMALL, 0)
"""The meaning of integers beside decimals."""

_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9
_NAMES = {**{size: name for name, size in _UNITS.items()}, _DAY: "days"}


def meaning_of(arrow: pa.DataType) -> Meaning:
    """Returns the meaning of the numbers of an Arrow type, also in lists; None if it has none.

    >>> from extensor._struct.meaning import meaning_of
    >>> import pyarrow as pa
    >>> str(meaning_of(pa.list_(pa.timestamp("us", "UTC"))))
    'timestamps with a zone in us'
    >>> meaning_of(pa.decimal32(5, 2)) == meaning_of(pa.decimal128(18, 2))
    True
    """
    while isinstance(arrow, pa.BaseExtensionType):  # such a type may have no hash
        arrow = arrow.storage_type
    try:
        return _meaning_of(arrow)
    except TypeError:  # a list of such a type
        return _meaning_of.__wrapped__(arrow)


@functools.lru_cache(maxsize=4096)
def _meaning_of(arrow: pa.DataType) -> Meaning:
    t = pa.types
    if t.is_timestamp(arrow):
        kind = _LOCAL if arrow.tz is None else "timestamps with a zone"
        return Unit(kind, _UNITS[arrow.unit])
    if t.is_date(arrow):
        return Unit(_DATE, _DAY if t.is_date32(arrow) else _UNITS["ms"])
    if t.is_time(arrow):
        return Unit("times of day", _UNITS[arrow.unit])
    if t.is_duration(arrow):
        return Unit("durations", _UNITS[arrow.unit])
    if t.is_decimal(arrow):
        kind = _SMALL if arrow.precision <= 18 else f"{_DECIMAL} of {arrow.bit_width} bits"
        return Unit(kind, arrow.scale)
    if t.is_union(arrow):
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        pairs = ((field.name, meaning_of(field.type)) for field in fields)
        return tuple(sorted(pair for pair in pairs if pair[1] is not None)) or None
    if t.is_map(arrow):
        return None  # its keys and values are fields of records
    return meaning_of(arrow.value_type) if hasattr(arrow, "value_type") else None


def is_integer(arrow: pa.DataType) -> bool:
    """Returns whether the numbers of an Arrow type are integers, also in lists."""
    while hasattr(arrow, "value_type"):
        arrow = arrow.value_type
    return pa.types.is_integer(arrow)


def are_decimals(meaning: Meaning) -> bool:
    """Returns whether numbers are decimals."""
    return isinstance(meaning, Unit) and meaning.kind.startswith(_DECIMAL)


def common_meaning(a: Meaning, b: Meaning) -> tuple[bool, Meaning]:
    """Returns whether numbers of both meanings change to one of them, and to which.

    Args:
        a: A meaning. Numbers without one take any.
        b: Another meaning.
    """
    for want, have in ((a, b), (b, a)):
        if have is None or _all(want, have, _keeps):
            return True, want
    return False, None


def can_change(want: Meaning, have: Meaning) -> bool:
    """Returns whether numbers of one meaning may change to another one without loss.

    Dates in milliseconds change to days, because they are whole days.
    """
    return want is None or _all(want, have, lambda w, h: _keeps(w, h) or w.kind == h.kind == _DATE)


def are_apart(want: Meaning, have: Meaning) -> bool:
    """Returns whether two meanings count different things, so that no number has both.

    >>> from extensor._struct.meaning import are_apart, meaning_of
    >>> import pyarrow as pa
    >>> are_apart(meaning_of(pa.date32()), meaning_of(pa.timestamp("s")))
    True
    >>> are_apart(meaning_of(pa.timestamp("s")), meaning_of(pa.date32()))
    False
    """
    if not isinstance(want, Unit) or not isinstance(have, Unit):
        return False
    kinds = [_DECIMAL if are_decimals(unit) else unit.kind for unit in (want, have)]
    return kinds[0] != kinds[1] and kinds != [_LOCAL, _DATE]


def _keeps(want: Unit, have: Unit) -> bool:
    return want == have or bool(factor_of(want, have))


def _all(want: Meaning, have: Meaning, holds: Callable[[Unit, Unit], bool]) -> bool:
    """Returns whether a condition holds for each unit of two meanings."""
    if isinstance(want, Unit) and isinstance(have, Unit):
        return holds(want, have)
    if want is None or have is None or isinstance(want, Unit) or isinstance(have, Unit):
        return have is None
    wanted = dict(want)
    return all(_all(wanted.get(name), each, holds) for name, each in have)


def factor_of(want: Unit, have: Unit) -> int:
    """Returns by what numbers are multiplied to change their unit; 0 if that loses information."""
    if want.kind == have.kind == _SMALL:
        return 10 ** (want.size - have.size) if want.size >= have.size else 0
    is_time = want.kind == have.kind and not want.kind.startswith(_DECIMAL)
    if (is_time or (have.kind, want.kind) == (_DATE, _LOCAL)) and have.size % want.size == 0:
        return have.size // want.size
    return 0


def different_meanings(want: Meaning, have: Meaning, path: PathLike) -> DTypeError:
    """Returns the error for numbers of a meaning that does not change to another one."""
    fix = "Read both with one schema=, or change the type in Arrow: xt.to_arrow(records).cast."
    return DTypeError(path, meaning_text(want), meaning_text(have), fix)


def meaning_text(meaning: Meaning) -> str:
    """Returns a meaning as text."""
    if meaning is None or isinstance(meaning, Unit):
        return "numbers without a unit" if meaning is None else str(meaning)
    return ", ".join(f"{name}: {meaning_text(each)}" for name, each in meaning)
