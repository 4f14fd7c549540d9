"""Which types are known to override nothing, so that a call of them alone is TensorFlow's own."""

from __future__ import annotations

import types
from typing import Any

from extensor._lookup import defines


class Types(set[type]):
    """A set of types that may be a constant of code."""

    __hash__ = object.__hash__  # type: ignore[assignment]


FLAT = Types({bool, bytes, float, int, str, type(None), types.FunctionType})
PLAIN = Types({*FLAT, list, tuple})
"""Types that override nothing; each joins when a function first meets it. `FLAT` are those of them
whose values hold no others."""


def is_plain(kind: type) -> bool:
    """Returns whether a type is known to override nothing."""
    try:
        return kind in PLAIN
    except Exception:  # a class of somebody else's that has no hash
        return False


def plain_sequence(value: Any) -> bool:
    """Returns whether a value, and every item of it if it is a nested list or tuple, is plain."""
    kind = type(value)
    if kind is not list and kind is not tuple:
        return is_plain(kind)
    try:
        if len(value) > 32:  # in C, a million numbers take a hundredth of a second
            kinds = list(map(type, value))
            if kinds[0] in FLAT and kinds.count(kinds[0]) == len(kinds):
                return True
            return PLAIN.issuperset(kinds) and all(map(plain_sequence, value))
        for item in value:
            kind = type(item)
            if kind not in FLAT and not ((kind is list or kind is tuple) and plain_sequence(item)):
                return False
    except Exception:  # as above
        return False
    return True


def plain_iterable(value: Any) -> bool:
    """Returns the same for a parameter that takes any iterable, such as a generator."""
    kind = type(value)
    if kind is list or kind is tuple:
        return plain_sequence(value)
    return kind is str or (is_plain(kind) and not defines(kind, "__iter__"))


def overrides_nothing(kind: type) -> None:
    """Remembers a type that does not follow the protocol.

    A set that has grown to this size grows no more: types that are made anew all the time must be
    able to go. What holds items of other types is looked into each time.
    """
    if len(PLAIN) < 4096 and not issubclass(kind, (list, tuple)):
        try:
            PLAIN.add(kind)
            FLAT.add(kind)
        except Exception:  # as above
            pass


def overrides_now(kind: type) -> None:
    """Forgets a type that has come to follow the protocol."""
    if is_plain(kind):
        PLAIN.discard(kind)
        FLAT.discard(kind)
