"""Names of the dimensions of records: a string or None for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from extensor._count_text import count_text
from extensor.errors import DTypeError, StructureError

Dims = tuple[str | None, ...]
"""A name or None for each dimension; `()` if no dimension has a name."""

Axes = Sequence[int | None]
"""For each dimension of a result, the dimension of the records that it is; None for a new one."""


def move_axes(dims: Dims, axes: Axes) -> Dims:
    """Returns the names of dimensions after they were moved.

    >>> from extensor._struct.dims import move_axes
    >>> move_axes(("recipe", "step"), [1, None, 0])
    ('step', None, 'recipe')
    >>> move_axes(("recipe", None), [1])
    ()
    """
    return to_dims([None if axis is None else dims[axis] for axis in axes]) if dims else ()


def to_dims(names: Iterable[str | None]) -> Dims:
    """Returns names as `Dims`: `()` if all are None."""
    names = tuple(names)
    return names if any(names) else ()


def dims_of_field(outer: Dims, own: Dims, rank: int) -> Dims:
    """Returns the names of records in a field: the outer dimensions are those of the records.

    Args:
        outer: The names of the dimensions of the records that have the field.
        own: The names that the value of the field has.
        rank: The rank of the value.
    """
    inner = own[len(outer) :] or (None,) * (rank - len(outer))
    return (*outer, *(None if name in outer else name for name in inner))


def axes_after_gather(count: int, rank: int) -> Axes:
    """Returns the axes of records gathered along their first dimension.

    Args:
        count: The rank of the numbers. A vector of numbers keeps the name of the dimension.
        rank: The rank of the records.
    """
    return (*((0,) if count == 1 else (None,) * count), *range(1, rank))


def checked_dims(dims: object, rank: int, path: str) -> Dims:
    """Returns valid names of dimensions.

    Args:
        dims: A string or None for each dimension; for one dimension also a string; None for no
            names.
        rank: The number of dimensions.
        path: The path in errors.

    Raises:
        DTypeError: If a name is not a string (also a TypeError).
        StructureError: If the number of names differs from the rank, or two are equal (also a
            ValueError).
    """
    if dims is None or dims == ():
        return ()
    if isinstance(dims, str):
        dims = (dims,)
    if not isinstance(dims, (tuple, list)):
        raise _wrong(dims, path)
    names: tuple[Any, ...] = tuple(dims)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    for name in names:
        if name is not None and (not isinstance(name, str) or not name):
            raise _wrong(name, path)
    if len(names) != rank:
        expected = count_text(rank, "names, one for each dimension of the records")
        fix = "Give None for one without a name; dimensions inside a field have no names."
        raise StructureError(f"{path}: dims", expected, f"{len(names)}: {names}", fix)
    for i, name in enumerate(names):
        if name is not None and name in names[:i]:
            expected = "a different name for each dimension"
            fix = "Give None for a dimension without a name."
            raise StructureError(f"{path}: dims", expected, f"{name!r} twice", fix)
    return to_dims(names)


def _wrong(name: object, path: str) -> DTypeError:
    received = repr(name) if isinstance(name, str) else type(name).__name__
    fix = 'Write dims=("recipe", None).'
    return DTypeError(f"{path}: dims", "a string or None for each dimension", received, fix)
