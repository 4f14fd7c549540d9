"""Variants of a union: their names, and the variant of a Python value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._formats.python.kinds import Kind, kind_of_arrow, kind_of_value
from extensor._formats.python.objects import as_dict
from extensor._formats.python.wanted import Cast, Fields, Leaf, Variants, Wanted, WantedLists

NULL = "null"
"""The name of the variant of None."""


def list_name(depth: int) -> str:
    """Returns the name of the variant of lists: `list`, for lists of lists `list2`, and so on."""
    return "list" if depth < 2 else f"list{depth}"


def variant_name(kind: Kind, types: Iterable[type]) -> str:
    """Returns the name of the variant of values of a kind and of types; lists are `list`."""
    return _number_name(types) if kind is Kind.NUMBER else kind.name.lower()


def variant_names(values: Sequence[object], by_kind: Mapping[Kind, set[type]]) -> list[str | None]:
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
    if Kind.LIST in by_kind:
        lists = [i for i, value in enumerate(values) if type(value) in by_kind[Kind.LIST]]
        for i, depth in zip(lists, _depths([values[i] for i in lists]), strict=True):
            found[i] = list_name(depth)
    return found


def _number_name(types: Iterable[type]) -> str:
    if any(issubclass(cls, (complex, np.complexfloating)) for cls in types):
        return "complex"
    return "float" if any(issubclass(cls, (float, np.floating)) for cls in types) else "int"


def _depths(lists: Sequence[object]) -> list[int]:
    """Returns the depth of each list of a column; an empty list has that of another one."""
    found = [_depth(each) for each in lists]
    exact = sorted({each[0] for each in found if each is not None and each[1]})
    if None in found or not exact:
        return [1] * len(lists)
    least = [each[0] for each in found if each is not None]
    return [next((depth for depth in exact if depth >= each), each) for each in least]


def _depth(value: object) -> tuple[int, bool] | None:
    """Returns the depth of nested lists, and whether it is exact and not a lower bound.

    Returns:
        None if the items have several depths.
    """
    if isinstance(value, np.ndarray):
        return value.ndim, True
    if kind_of_value(value) is not Kind.LIST or not isinstance(value, Iterable):
        return 0, True
    found = [_depth(item) for item in value if item is not None]
    depths = {each for each in found if each is not None}
    exact = {depth for depth, is_exact in depths if is_exact}
    least = max((depth for depth, _ in depths), default=0)
    if None in found or len(exact) > 1 or any(depth < least for depth in exact):
        return None
    return least + 1, bool(exact)


def variant_of(value: object, wanted: Variants) -> str | None:
    """Returns the name of the variant of a union that holds a value; None if there is none.

    Args:
        value: The value.
        wanted: What the spec wants of the rows of each variant.
    """
    misfits = {name: _misfit(value, name, each) for name, each in wanted.variants.items()}
    fits = {name: misfit for name, misfit in misfits.items() if misfit is not None}
    return min(fits, key=fits.__getitem__, default=None)


def _misfit(value: object, name: str, wanted: Wanted) -> float | None:
    """Returns how badly a value fits a variant, from 0; None if it does not fit."""
    if value is None:
        return None if not wanted.nullable else 0 if name == NULL else 1
    if name == NULL and wanted.nullable and isinstance(wanted, Leaf) and wanted.dtype == tf.float32:
        return None  # the variant of None
    if isinstance(wanted, (Cast, Variants)):
        return 9
    kind = kind_of_value(value)
    if isinstance(wanted, Fields):
        return None if kind is not Kind.RECORD else 0 if _has_fields(value, wanted) else 1
    if isinstance(wanted, WantedLists):
        if kind is not Kind.LIST:
            return None
        depth = _depth(value)
        return abs(depth[0] - _wanted_depth(wanted)) if depth is not None and depth[1] else 1
    if kind is kind_of_arrow(wanted.arrow):
        return 0
    if wanted.dtype == tf.string:
        return 0 if kind is Kind.STRING else None
    if wanted.dtype == tf.bool:
        return 0 if kind is Kind.BOOL else None
    return _misfit_of_number(value, wanted) if kind is Kind.NUMBER else None


def _misfit_of_number(value: Any, wanted: Leaf) -> float | None:
    dtype = wanted.dtype
    own = ("int", "float", "complex").index(_number_name({type(value)}))
    other = 2 if dtype.is_complex else 1 if dtype.is_floating else 0
    if other < own:
        return None
    misfit = other - own + (0 if wanted.arrow is None else 3)
    if dtype.is_integer:
        return misfit if dtype.min <= value <= dtype.max else misfit + 2
    with np.errstate(over="ignore"):
        is_exact = dtype.as_numpy_dtype(value).item() == value or value != value
    return misfit if is_exact else misfit + 0.5 - dtype.size / 100  # the widest is nearest


def _has_fields(value: object, wanted: Fields) -> bool:
    names = set(as_dict(value))
    needed = {name for name, each in wanted.fields.items() if not each.nullable}
    return needed <= names <= set(wanted.fields)


def _wanted_depth(wanted: Wanted) -> int:
    return 1 + _wanted_depth(wanted.items) if isinstance(wanted, WantedLists) else 0
