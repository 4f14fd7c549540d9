"""The leaves of a nest, each with the names on the way to it."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor._typing import Nest, Value
from extensor.errors import UnsupportedTypeError

Names = tuple[str, ...]


def named_leaves(structure: Nest, names: Names = ()) -> Iterator[tuple[Names, Value]]:
    """Yields the leaves of a nest with their names, in the order of `tf.nest`.

    Args:
        structure: A nest of dicts, lists, tuples and namedtuples.
        names: What the names of each leaf begin with.

    >>> from extensor._protocol.named_leaves import named_leaves
    >>> list(named_leaves({"b": (1, 2), "a": 3}))
    [(('a',), 3), (('b', '0'), 1), (('b', '1'), 2)]
    """
    inner = items_of(structure)
    if inner is None:
        yield names, structure
    else:
        for name, item in inner:
            yield from named_leaves(item, (*names, name))


def items_of(structure: Nest) -> list[tuple[str, Nest]] | None:
    """Returns the items of a container in a nest with their names, or None for a leaf.

    Raises:
        UnsupportedTypeError: If it is another container of `tf.nest` (also a TypeError).
    """
    if isinstance(structure, Mapping):
        return [(name_of_key(key), structure[key]) for key in sorted(structure)]
    if isinstance(structure, (list, tuple)):
        names: Any = getattr(structure, "_fields", None) or map(str, range(len(structure)))
        return list(zip(names, structure, strict=True))
    if tf.nest.is_nested(structure):
        expected = "dicts, lists, tuples and namedtuples"
        fix = "Use only these containers in arguments and results."
        raise UnsupportedTypeError("structure", expected, type(structure).__name__, fix)
    return None


def name_of_key(key: object) -> str:
    """Returns the name in a path for a key of a dict."""
    if isinstance(key, enum.Enum):
        return key.name
    return key if isinstance(key, str) else repr(key)
