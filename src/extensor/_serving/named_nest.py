"""The leaves of a nest with their paths, and the matching leaves of a nest of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._protocol.named_leaves import Names, items_of, named_leaves
from extensor._typing import Nest
from extensor.errors import StructureError


def typed_leaves(structure: Nest, values: Nest) -> Iterator[tuple[Names, Any, Any]]:
    """Yields the names, spec and value of each leaf of a nest, except static leaves.

    Args:
        structure: A nest of specs and static data.
        values: A nest of the same structure.

    Raises:
        StructureError: If `values` has another structure (also a ValueError).
    """
    for (names, spec), value in zip(
        signature_leaves(structure), _match(structure, values, ()), strict=True
    ):
        if isinstance(spec, tf.TypeSpec):
            yield names, spec, value


def signature_leaves(structure: Nest) -> Iterator[tuple[Names, Any]]:
    """Yields the leaves of a nest with their names, in the order of `tf.nest`."""
    inner = items_of(structure)
    if inner is None:
        yield ("output_0",), structure
    elif isinstance(structure, Mapping) or hasattr(structure, "_fields"):
        yield from named_leaves(structure)
    else:
        for name, item in inner:
            yield from named_leaves(item, (f"output_{name}",))


def _match(structure: Nest, values: Nest, names: Names) -> Iterator[Any]:
    """Yields the values at the leaves of a nest of specs."""
    inner = items_of(structure)
    if inner is None:
        yield values
        return
    own = items_of(values)
    if own is None or [name for name, _ in own] != [name for name, _ in inner]:
        expected = f"a {type(structure).__name__} with {', '.join(n for n, _ in inner)}"
        received = type(values).__name__
        if own is not None:
            received = f"a {type(values).__name__} with {', '.join(n for n, _ in own)}"
        fix = "Give a nest with the structure of the signature."
        raise StructureError(Path(*names) if names else "values", expected, received, fix)
    for (name, item), (_, value) in zip(inner, own, strict=True):
        yield from _match(item, value, (*names, name))
