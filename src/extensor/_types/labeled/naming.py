"""Checks of axis names, and the axis that a name or number refers to."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor.errors import DTypeError, ExtensorError, StructureError

if TYPE_CHECKING:
    from extensor._types.labeled.value import LabeledTensor

Axis = str | int | tf.Tensor
"""The name of an axis, or its number, which may count from the end."""

Axes = Axis | Collection[Axis]


def axes_text(axes: Iterable[str], shape: tf.TensorShape) -> str:
    """Returns the names and sizes of axes as a string, for errors and reprs.

    >>> from extensor._types.labeled.naming import axes_text
    >>> import tensorflow as tf
    >>> axes_text(("word", "unit"), tf.TensorShape([None, 3]))
    '(word=None, unit=3)'
    """
    sizes = shape.as_list() if shape.rank is not None else []
    # A damaged SavedModel may have more names than axes; a repr must not fail then.
    pairs = itertools.zip_longest(axes, sizes, fillvalue="?")
    return f"({', '.join(f'{name}={size}' for name, size in pairs)})"


def describe(value: Any) -> str:
    """Returns the description of a value in an error: its axes, or its type and shape."""
    axes = getattr(value, "axes", None)
    if isinstance(axes, tuple):
        return f"axes {axes_text(axes, value.values.shape)}"
    shape = getattr(value, "shape", None)
    if shape is None:
        return f"a {type(value).__qualname__}"
    return f"a {type(value).__qualname__} of shape {tuple(shape)}, without names"


def check_names(axes: Any, shape: tf.TensorShape, path: str) -> tuple[str, ...]:
    """Returns the names of axes as a tuple, after checking them.

    Args:
        axes: One name, or a list or tuple of names.
        shape: The shape of the tensor.
        path: The path for errors.

    Raises:
        DTypeError: If a name is not a nonempty string (also a TypeError).
        StructureError: If a name occurs twice, or the number of names is not the rank (also a
            ValueError).
    """
    axes = (axes,) if isinstance(axes, str) else axes
    is_list = isinstance(axes, (list, tuple))
    wrong = [name for name in axes if not (isinstance(name, str) and name)] if is_list else [axes]
    if wrong:
        expected = "a list of names, each a nonempty string"
        received = repr(wrong[0]) if is_list else f"a {type(axes).__qualname__}"
        raise DTypeError(path, expected, received, "Name each axis: axes=['word', 'feature'].")
    found = tuple(str(name) for name in axes)
    expect_unique(found, path)
    if shape.rank != len(found):
        expected = f"one name for each axis of shape {shape}"
        if shape.rank is None:
            expected = "values of known rank"
        received, fix = f"({', '.join(found)})", "Name each axis once."
        if shape.rank is None:
            fix = "Set the shape first, with tf.ensure_shape."
        raise StructureError(path, expected, received, fix)
    return found


def expect_unique(axes: Sequence[str], path: str, fix: str = "Rename one of the two.") -> None:
    """Raises StructureError if a name occurs twice."""
    for i, name in enumerate(axes):
        if name in axes[:i]:
            expected = "axes of different names"
            raise StructureError(path, expected, f"{name!r} twice in ({', '.join(axes)})", fix)


def new_name(axes: Sequence[str], name: object, path: str) -> str:
    """Returns the name of a new axis, after checking it.

    Raises:
        DTypeError: If it is not a nonempty string (also a TypeError).
        StructureError: If the axis exists already (also a ValueError).
    """
    if not isinstance(name, str) or not name:
        expected = "a name for the new axis"
        raise DTypeError(path, expected, repr(name), "Pass it as axis: axis='batch'.")
    expect_unique((*axes, name), path, "Choose another name.")
    return name


def axis_number(x: LabeledTensor, axis: Axis, path: str) -> int:
    """Returns the number of the axis that a name or a number refers to.

    Args:
        x: A LabeledTensor.
        axis: A name, or a number that may count from the end.
        path: The name of the operation, for errors.

    Raises:
        StructureError: If the axis does not exist (also a ValueError).
        DTypeError: If `axis` is neither a name nor a number (also a TypeError).
    """
    if isinstance(axis, str):
        if axis in x.axes:
            return x.axes.index(axis)
    else:
        axis = _integer(axis, path)
        if -len(x.axes) <= axis < len(x.axes):
            return axis % len(x.axes)
    expected = f"one of the {describe(x)}" if x.axes else "no axis, because the tensor is a scalar"
    raise StructureError(path, expected, repr(axis), "Check the spelling.")


def axis_numbers(x: LabeledTensor, axis: Any, path: str) -> list[int]:
    """Returns the numbers of the axes that a name, a number, or a list of them refers to.

    Raises:
        StructureError: If an axis does not exist, or occurs twice (also a ValueError).
        DTypeError: If an axis is neither a name nor a number (also a TypeError).
    """
    if isinstance(axis, (tf.Tensor, np.ndarray)) and axis.shape != ():
        known = tf.get_static_value(axis)
        axis = [None] if known is None else known.ravel().tolist()
    found = [axis_number(x, one, path) for one in (axis if is_many(axis) else [axis])]
    expect_unique([x.axes[i] for i in found], path, "Name each axis once.")
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
        expected = "the name or the number of an axis, known while tracing"
        raise DTypeError(path, expected, f"a {type(axis).__qualname__}", "Write axis='word'.")
    return int(known)


def mismatch_error(
    path: str, x: LabeledTensor, y: LabeledTensor, name: str | None = None
) -> StructureError:
    """Returns the error for two tensors whose axes do not match.

    Args:
        path: The name of the operation.
        x: A LabeledTensor.
        y: Another LabeledTensor.
        name: The axis whose sizes differ; None if the names differ.
    """
    expected = "the same axes" if name is None else f"the same size of axis {name!r}"
    received = f"{describe(x)} and {describe(y)}"
    fix = "Rename, expand or squeeze axes until the names are equal, in any order."
    if name:
        fix = "Axes of the same name are the same axis: rename one, or slice both to the same size."
    return StructureError(path, expected, received, fix)


def names_error(path: str, x: LabeledTensor, fix: str) -> ExtensorError:
    """Returns the error for an operation that would lose the names."""
    return StructureError(path, "a tensor without names of axes", describe(x), fix)
