"""attrs classes, which tf.nest would flatten as containers.

| name | why |
| --- | --- |
| `tf.nest.is_nested` (public; its cache is private) | tf.nest treats a value of an attrs class as a container of its fields, before it checks for composite tensors. It reads `__attrs_attrs__` of each class once and caches the answer, so extensor can set the answer in advance. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import NoReturn

import tensorflow as tf

from extensor._tf._tf_composite import ATTRS


class _Hidden:
    """An attribute that raises AttributeError, as if the class did not have it."""

    def __get__(self, value: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(ATTRS)


def composite_first(cls: type) -> None:
    """Makes TensorFlow treat values of an attrs class as composite tensors, not as containers.

    The attrs library still recognizes the class, unless TensorFlow's cache is full (some thousand
    classes).

    Args:
        cls: Any class whose values TensorFlow has not processed yet.
    """
    if not hasattr(cls, ATTRS):
        return
    try:
        value = object.__new__(cls)
    except TypeError:  # an abstract class
        return
    own = vars(cls).get(ATTRS)
    setattr(cls, ATTRS, _Hidden())
    tf.nest.is_nested(value)
    if own is None:
        delattr(cls, ATTRS)
    else:
        setattr(cls, ATTRS, own)
    if tf.nest.is_nested(value):  # it was not cached
        setattr(cls, ATTRS, _Hidden())
