"""The cache of types that override nothing: TensorFlow handles calls with only these types."""

from __future__ import annotations

import types

from extensor._declare.fields import is_declared
from extensor._lookup import defines, lineage
from extensor._typing import Nest


class Types(set[type]):
    """A set of types that is hashable, so that it can be a constant of code."""

    __hash__ = object.__hash__  # type: ignore[assignment]


FLAT = Types({bool, bytes, float, int, str, type(None), types.FunctionType})
PLAIN = Types({*FLAT, list, tuple})
"""The types that are known to override nothing. Each is added when a function first gets a value of
it. `FLAT` has those of them whose values contain no others."""


def is_plain(kind: type) -> bool:
    """Returns whether a type is known to override nothing."""
    try:
        return kind in PLAIN
    except Exception:  # a class without a hash
        return False


def plain_sequence(value: Nest) -> bool:
    """Returns whether a value is plain; a nested list or tuple, whether all its items are."""
    kind = type(value)
    if kind is not list and kind is not tuple:
        return is_plain(kind)
    try:
        if len(value) > 32:  # this loop runs in C: a million numbers take 10 ms
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


def plain_iterable(value: Nest) -> bool:
    """Returns whether a value is plain, for a parameter that takes any iterable."""
    kind = type(value)
    if kind is list or kind is tuple:
        return plain_sequence(value)
    return kind is str or (is_plain(kind) and not defines(kind, "__iter__"))


def overrides_nothing(kind: type) -> None:
    """Caches a type that does not follow the protocol.

    The cache has a maximum size, so that classes that a program creates all the time can be freed.
    Lists and tuples are not cached: their items are checked in each call. Nor are declared types,
    whose rows some functions select and join.
    """
    if len(PLAIN) < 4096 and not issubclass(kind, (list, tuple)) and not is_declared(kind):
        try:
            PLAIN.add(kind)
            FLAT.add(kind)
        except Exception:  # as above
            pass


def overrides_now(kind: type) -> None:
    """Removes a type that now follows the protocol from the cache, and its subclasses."""
    for known in list(PLAIN):  # another thread may add to it
        if any(base is kind for base in lineage(known)):
            PLAIN.discard(known)
            FLAT.discard(known)
