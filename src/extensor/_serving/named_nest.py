"""The leaves of a nest with their paths, and the matching leaves of a nest of values."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor.errors import StructureError, UnsupportedTypeError

Names = tuple[str, ...]


def typed_leaves(structure: Any, values: Any) -> Iterator[tuple[Names, Any, Any]]:
    """Yields the names, spec and value of each leaf of a nest, except static leaves.

    Args:
        structure: A nest of specs and static data.
        values: A nest of the same structure.

    Raises:
        StructureError: If `values` has another structure (also a ValueError).
    """
    for (names, spec), value in zip(
        named_leaves(structure), _matched(structure, values, ()), strict=True
    ):
        if isinstance(spec, tf.TypeSpec):
            yield names, spec, value


def named_leaves(structure: Any) -> Iterator[tuple[Names, Any]]:
    """Yields the leaves of a nest with their names, in the order of `tf.nest`."""
    inner = _items(structure)
    if inner is None:
        yield ("output_0",), structure
    elif isinstance(structure, Mapping) or hasattr(structure, "_fields"):
        yield from leaves_below(structure, ())
    else:
        for name, item in inner:
            yield from leaves_below(item, (f"output_{name}",))


def is_single(structure: Any) -> bool:
    """Returns whether a nest is one leaf, whose name `output_0` is not of the user."""
    return _items(structure) is None


def leaves_below(structure: Any, names: Names) -> Iterator[tuple[Names, Any]]:
    """Yields the leaves of a nest inside another nest; their names begin with `names`."""
    inner = _items(structure)
    if inner is None:
        yield names, structure
    else:
        for name, item in inner:
            yield from leaves_below(item, (*names, name))


def _items(structure: Any) -> list[tuple[str, Any]] | None:
    """Returns the items of a container in a nest with their names, or None for a leaf."""
    if isinstance(structure, Mapping):
        return [(name_of_key(key), structure[key]) for key in sorted(structure)]
    if isinstance(structure, (list, tuple)):
        names: Any = getattr(structure, "_fields", None) or map(str, range(len(structure)))
        return list(zip(names, structure, strict=True))
    if tf.nest.is_nested(structure):
        raise UnsupportedTypeError(
            "structure",
            "dicts, lists, tuples and namedtuples",
            type(structure).__name__,
            "Use only these containers in arguments and results.",
        )
    return None


def name_of_key(key: Any) -> str:
    """Returns the name in a path for a key of a dict."""
    if isinstance(key, enum.Enum):
        return key.name
    return key if isinstance(key, str) else repr(key)


def _matched(structure: Any, values: Any, names: Names) -> Iterator[Any]:
    """Yields the values at the leaves of a nest of specs."""
    inner = _items(structure)
    if inner is None:
        yield values
        return
    own = _items(values)
    if own is None or [name for name, _ in own] != [name for name, _ in inner]:
        raise StructureError(
            Path(*names) if names else "values",
            f"a {type(structure).__name__} with {', '.join(n for n, _ in inner)}",
            type(values).__name__
            if own is None
            else f"a {type(values).__name__} with {', '.join(n for n, _ in own)}",
            "Give a nest with the structure of the signature.",
        )
    for (name, item), (_, value) in zip(inner, own, strict=True):
        yield from _matched(item, value, (*names, name))
