"""Whether names of axes fit a tensor and each other, and which axis a name stands for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor.errors import DTypeError, ExtensorError, StructureError


def described(axes: Iterable[str], shape: tf.TensorShape) -> str:
    """Returns names and sizes of axes, for errors and reprs.

    >>> described(("word", "unit"), tf.TensorShape([None, 3]))
    '(word=None, unit=3)'
    """
    sizes = shape.as_list() if shape.rank is not None else []
    # Of a damaged model there may be more names than axes, which is no reason to fail here.
    pairs = itertools.zip_longest(axes, sizes, fillvalue="?")
    return f"({', '.join(f'{name}={size}' for name, size in pairs)})"


def of(value: Any) -> str:
    """Returns what to call a value in an error: its axes, or that it has no names."""
    axes = getattr(value, "axes", None)
    if isinstance(axes, tuple):
        return f"axes {described(axes, value.values.shape)}"
    shape = getattr(value, "shape", None)
    if shape is None:
        return f"a {type(value).__qualname__}"
    return f"a {type(value).__qualname__} of shape {tuple(shape)}, without names"


def names(axes: Any, shape: tf.TensorShape, path: str) -> tuple[str, ...]:
    """Returns names of axes as a tuple.

    Args:
        axes: One name, or a list or tuple of names.
        shape: The shape of what they are the axes of.
        path: What to call them.

    Raises:
        DTypeError: If one is no name (also a TypeError).
        StructureError: If a name stands twice, or their number is not the rank (also a
            ValueError).
    """
    axes = (axes,) if isinstance(axes, str) else axes
    is_list = isinstance(axes, (list, tuple))
    wrong = [name for name in axes if not (isinstance(name, str) and name)] if is_list else [axes]
    if wrong:
        raise DTypeError(
            path=path,
            expected="a list of names, each a string that is not empty",
            received=repr(wrong[0]) if is_list else f"a {type(axes).__qualname__}",
            mend="Name each axis: axes=['word', 'feature'].",
        )
    found = tuple(str(name) for name in axes)
    unique(found, path)
    if shape.rank != len(found):
        raise StructureError(
            path=path,
            expected="values of known rank, whose axes can be named"
            if shape.rank is None
            else f"{shape.rank} names, one for each axis of shape {shape}",
            received=f"{len(found)}: {', '.join(found)}" if found else "none",
            mend="Set the shape first, with tf.ensure_shape."
            if shape.rank is None
            else "Name each axis once.",
        )
    return found


def unique(axes: Sequence[str], path: str, mend: str = "Rename one of the two.") -> None:
    """Raises StructureError if a name stands twice."""
    for i, name in enumerate(axes):
        if name in axes[:i]:
            raise StructureError(
                path=path,
                expected="axes of different names",
                received=f"{name!r} twice in ({', '.join(axes)})",
                mend=mend,
            )


def new(axes: Sequence[str], name: Any, path: str) -> str:
    """Returns the name of an axis that is to be added.

    Raises:
        DTypeError: If it is no name (also a TypeError).
        StructureError: If there is such an axis (also a ValueError).
    """
    if not isinstance(name, str) or not name:
        raise DTypeError(
            path=path,
            expected="a name for the new axis",
            received="none" if name is None else repr(name),
            mend="Give it as axis: axis='batch'.",
        )
    unique((*axes, name), path, "Choose another name.")
    return name


def number(x: Any, axis: Any, path: str) -> int:
    """Returns which axis of a tensor a name, or a number, stands for.

    Args:
        x: A LabeledTensor.
        axis: A name, or a number that may count from the end.
        path: Who asks.

    Raises:
        StructureError: If there is no such axis (also a ValueError).
        DTypeError: If it is neither (also a TypeError).
    """
    if isinstance(axis, str):
        if axis in x.axes:
            return x.axes.index(axis)
    else:
        axis = _integer(axis, path)
        if -len(x.axes) <= axis < len(x.axes):
            return axis % len(x.axes)
    raise StructureError(
        path=path,
        expected=f"one of the {of(x)}" if x.axes else "no axis, because there is none",
        received=repr(axis),
        mend="Check the spelling.",
    )


def numbers(x: Any, axis: Any, path: str) -> list[int]:
    """Returns which axes of a tensor a name, a number, or a list of these stands for.

    Raises:
        StructureError: If one is not there, or stands twice (also a ValueError).
        DTypeError: If one is neither a name nor a number (also a TypeError).
    """
    if isinstance(axis, (tf.Tensor, np.ndarray)) and axis.shape != ():
        known = tf.get_static_value(axis)
        axis = [None] if known is None else known.ravel().tolist()
    found = [number(x, one, path) for one in (axis if is_many(axis) else [axis])]
    unique([x.axes[i] for i in found], path, "Name each axis once.")
    return found


def is_many(axis: Any) -> bool:
    """Returns whether an axis is a list of axes."""
    return isinstance(axis, (list, tuple, set, frozenset)) or (
        isinstance(axis, (tf.Tensor, np.ndarray)) and axis.shape != ()
    )


def _integer(axis: Any, path: str) -> int:
    known = tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
    if (
        known is None
        or isinstance(known, bool)
        or not isinstance(known, (int, np.integer, np.ndarray))
    ):
        raise DTypeError(
            path=path,
            expected="the name or the number of an axis, known when a function is traced",
            received=f"a {type(axis).__qualname__}",
            mend="Write axis='word'.",
        )
    return int(known)


def apart(path: str, x: Any, y: Any, name: str | None = None) -> StructureError:
    """Returns the error for two tensors whose axes do not fit.

    Args:
        path: What was to be done with them.
        x: A LabeledTensor.
        y: Another.
        name: The name of the axis of which they have two sizes; None if they have other names.
    """
    return StructureError(
        path=path,
        expected="the same axes in all" if name is None else f"one size of axis {name!r}",
        received=f"{of(x)} beside {of(y)}",
        mend="Axes of one name are one axis: rename one of the two, or slice them to one size."
        if name
        else "Rename, expand or squeeze axes until the names agree; their order does not matter.",
    )


def refused(path: str, x: Any, mend: str) -> ExtensorError:
    """Returns the error for what names do not survive."""
    return StructureError(
        path=path,
        expected="a tensor, whose axes have no names",
        received=of(x),
        mend=mend,
    )
