"""Specs that stand in for TensorFlow's own, so that these answer to public names.

| name | why |
| --- | --- |
| `tf.types.experimental.TraceType` (public; that it is asked first is not) | TensorFlow compares the classes of specs exactly. A spec in a signature is taken as it is if it is a TraceType; else its tracing type is asked for, which of a stand-in is the spec that it stands for. So a stand-in is none. |
| `tf.TypeSpec.is_compatible_with` (public; wrapped) | Datasets ask it of the spec of a value about the spec that they were given, and it compares the classes. |
| `tf.TypeSpec.most_specific_common_supertype` (public; wrapped) | `tf.nest` asks it of the spec of a value about a spec that is said to be of one structure with it, and it compares the classes. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._tf._tf_registry import name_for_saving, registered_name


class StandIn:
    """A base of classes whose instances stand in for a spec of TensorFlow's own."""

    __slots__ = ()

    plain_class: Any

    @property
    def plain(self: Any) -> Any:
        """The spec that this one stands for."""
        return self.plain_class._deserialize(self._serialize())

    def __tf_tracing_type__(self, context: Any) -> Any:
        return self.plain

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = registered_name(getattr(cls, "plain_class", cls))
        if name is not None:
            name_for_saving(cls, name)


def plain_spec(spec: Any) -> Any:
    """Returns the spec that a spec stands for, if it stands for one; else what was given."""
    return spec.plain if isinstance(spec, StandIn) else spec


_trace_type: Any = tf.types.experimental.TraceType
_inherited: Callable[[type], Any] = _trace_type.__subclasshook__


def _subclasshook(cls: type, subclass: type) -> Any:
    if cls is _trace_type and issubclass(subclass, StandIn):
        return False
    return _inherited(subclass) if cls is _trace_type else NotImplemented


_trace_type.__subclasshook__ = classmethod(_subclasshook)


_plain_is_compatible_with: Any = tf.TypeSpec.is_compatible_with


def _is_compatible_with(self: Any, spec_or_value: Any) -> bool:
    """As TensorFlow's own, of what a stand-in stands for."""
    return _plain_is_compatible_with(self, plain_spec(spec_or_value))


tf.TypeSpec.is_compatible_with = functools.wraps(_plain_is_compatible_with)(_is_compatible_with)


_plain_supertype: Any = tf.TypeSpec.most_specific_common_supertype


def _most_specific_common_supertype(self: Any, others: Any) -> Any:
    """As TensorFlow's own, of what stand-ins stand for."""
    return _plain_supertype(self, list(map(plain_spec, others)))


tf.TypeSpec.most_specific_common_supertype = functools.wraps(_plain_supertype)(
    _most_specific_common_supertype
)
