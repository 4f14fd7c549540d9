"""Classes that TensorFlow's nest would take apart by itself.

| name | why |
| --- | --- |
| `tf.nest.is_nested` (public; that it remembers is not) | To nest, a value of an attrs class is a container of all its fields, before anything asks whether it is a composite tensor. It asks each class once for `__attrs_attrs__` and remembers the answer, which can therefore be given in advance. |
| `nest_util` | `sequence_like` packs a container anew, and asserts that one which is a composite tensor too has one component. That is where a container with the protocol is met if nothing has asked for its spec before. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf
from tensorflow.python.util import nest_util

from extensor._tf._tf_protocol import ATTRS, Container, refused

_PLAIN = (tuple, dict, list)  # most of what comes
_plain_sequence_like = nest_util.sequence_like


@functools.wraps(_plain_sequence_like)
def _sequence_like(instance: Any, args: Any) -> Any:
    if type(instance) not in _PLAIN and isinstance(instance, Container):
        raise refused(type(instance))
    return _plain_sequence_like(instance, args)


nest_util.sequence_like = _sequence_like


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
