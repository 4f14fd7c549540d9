"""Variants of a union: their names, and the variant of a Python value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._formats.python import kinds
from extensor._formats.python.objects import as_dict
from extensor._formats.python.wanted import Cast, Fields, Leaf, Lists

NULL = "null"
"""The name of the variant of None."""

_NAMES = {
    kinds.RECORD: "record",
    kinds.STRING: "string",
    kinds.BOOL: "bool",
    kinds.DATE: "date",
    kinds.DATETIME: "datetime",
    kinds.TIME: "time",
    kinds.DURATION: "duration",
    kinds.DECIMAL: "decimal",
    kinds.UUID: "uuid",
    kinds.TENSOR: "tensor",
    kinds.OTHER: "other",
}


def list_name(depth: int) -> str:
    """Returns the name of the variant of lists: `list`, for lists of lists `list2`, and so on."""
    return "list" if depth < 2 else f"list{depth}"


def variant_name(kind: str, types: set[Any]) -> str:
    """Returns the name of the variant of values of a kind and of types; lists are `list`."""
    return _number_name(types) if kind == kinds.NUMBER else _NAMES.get(kind, "list")


def names_of(values: Any, by_kind: Mapping[str, set[type]]) -> list[str | None]:
    """Returns for each value of a column the name of its variant; None for a null.

    Numbers have one variant, `int`, `float` or `complex`: the type that holds all of them. Lists
    have one variant for each depth, unless one list has items of several depths.

    Args:
        values: The column.
        by_kind: Its types, by kind.
    """
    names: dict[type, str] = {}
    for kind, types in by_kind.items():
        names.update(dict.fromkeys(types, variant_name(kind, types)))
    found = [names.get(type(value)) for value in values]
    if kinds.LIST in by_kind:
        lists = [i for i, value in enumerate(values) if type(value) in by_kind[kinds.LIST]]
        for i, depth in zip(lists, _depths([values[i] for i in lists]), strict=True):
            found[i] = list_name(depth)
    return found


def _number_name(types: set[type]) -> str:
    for name, classes in (
        ("complex", (complex, np.complexfloating)),
        ("float", (float, np.floating)),
    ):
        if any(issubclass(cls, classes) for cls in types):
            return name
    return "int"


def _depths(lists: list[Any]) -> list[int]:
    """Returns the depth of each list of a column; an empty list has that of another one."""
    found = [_depth(each) for each in lists]
    exact = sorted({each[0] for each in found if each is not None and each[1]})
    if None in found or not exact:
        return [1] * len(lists)
    return [
        next((e for e in exact if e >= each[0]), each[0])
        for each in found
        if each is not None
    ]  # fmt: skip


def _depth(value: Any) -> tuple[int, bool] | None:
    """Returns the depth of nested lists, and whether it is exact and not a lower bound.

    Returns:
        None if the items have several depths.
    """
    if isinstance(value, np.ndarray):
        return value.ndim, True
    if kinds.kind_of(type(value), [value]) != kinds.LIST:
        return 0, True
    inner = {_depth(item) for item in value if item is not None}
    if None in inner:
        return None
    depths: Any = inner
    exact = {depth for depth, is_exact in depths if is_exact}
    least = max((depth for depth, _ in depths), default=0)
    if len(exact) > 1 or any(depth < least for depth in exact):
        return None
    return least + 1, bool(exact)


def variant_of(value: Any, variants: Mapping[str, Any]) -> str | None:
    """Returns the name of the variant of a spec that holds a value; None if there is none.

    Args:
        value: The value.
        variants: What the spec wants of the rows of each variant.
    """
    fits = [(_misfit(value, name, wanted), name) for name, wanted in variants.items()]
    best = min((each for each in fits if each[0] is not None), key=lambda each: each[0] or 0,
               default=None)  # fmt: skip
    return None if best is None else best[1]


def _misfit(value: Any, name: str, wanted: Any) -> int | None:
    """Returns how badly a value fits a variant, from 0; None if it does not fit."""
    if value is None:
        return None if not wanted.nullable else 0 if name == NULL else 1
    if name == NULL and wanted.nullable and _is_of_none(wanted):
        return None
    if isinstance(wanted, Cast):
        return 9
    kind = kinds.kind_of(type(value), [value])
    if isinstance(wanted, Fields):
        return None if kind != kinds.RECORD else 0 if _has(value, wanted) else 1
    if isinstance(wanted, Lists):
        if kind != kinds.LIST:
            return None
        depth = _depth(value)
        known = depth is not None and depth[1]
        return 1 if not known or depth is None else abs(depth[0] - _wanted_depth(wanted))
    if wanted.arrow is not None and kinds.of_arrow(wanted.arrow) == kind:
        return 0
    if wanted.dtype == tf.string:
        return 0 if kind == kinds.STRING else None
    if wanted.dtype == tf.bool:
        return 0 if kind == kinds.BOOL else None
    if kind != kinds.NUMBER:
        return None
    return _misfit_of_number(value, wanted)


def _is_of_none(wanted: Any) -> bool:
    """Returns whether a nullable variant has the type of the variant of None."""
    return isinstance(wanted, Leaf) and wanted.dtype == tf.float32


def _misfit_of_number(value: Any, wanted: Any) -> int | None:
    own = ("int", "float", "complex").index(_number_name({type(value)}))
    dtype = wanted.dtype
    other = 2 if dtype.is_complex else 1 if dtype.is_floating else 0
    if other < own:
        return None
    return other - own + (0 if wanted.arrow is None else 3)


def _has(value: Any, wanted: Fields) -> bool:
    keys = set(as_dict(value))
    needed = {name for name, each in wanted.fields.items() if not each.nullable}
    return needed <= keys <= set(wanted.fields)


def _wanted_depth(wanted: Any) -> int:
    depth = 0
    while isinstance(wanted, Lists):
        depth, wanted = depth + 1, wanted.items
    return depth
