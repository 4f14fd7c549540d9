"""Classes that TensorFlow's nest would take apart by itself.

| name | why |
| --- | --- |
| `tf.nest.is_nested` (public; that it remembers is not) | To nest, a value of an attrs class is a container of all its fields, before anything asks whether it is a composite tensor. It asks each class once for `__attrs_attrs__` and remembers the answer, which can therefore be given in advance. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._tf._tf_composite import ATTRS


class _Hidden:
    """An attribute of a class that is not there."""

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        raise AttributeError(ATTRS)


def composite_first(cls: type) -> None:
    """Lets TensorFlow take values of an attrs class for composite tensors, not for containers.

    The attrs library goes on to see the class for what it is, unless TensorFlow has met so many
    classes (some thousand) that it remembers no more.

    Args:
        cls: Any class whose values TensorFlow has not met yet.
    """
    if not hasattr(cls, ATTRS):
        return
    try:
        value = object.__new__(cls)
    except TypeError:  # an abstract class, which has no values
        return
    own = vars(cls).get(ATTRS)
    setattr(cls, ATTRS, _Hidden())
    tf.nest.is_nested(value)
    if own is None:
        delattr(cls, ATTRS)
    else:
        setattr(cls, ATTRS, own)
    if tf.nest.is_nested(value):  # it was not remembered
        setattr(cls, ATTRS, _Hidden())
