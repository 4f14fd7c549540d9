"""The specs of placeholders whose own class cannot tell them.

A placeholder is an extension value that holds KerasTensors. A type that was not written for Keras
computes its spec from its tensors, which fails or is wrong where they are KerasTensors. So the spec
that a placeholder was made of is remembered beside it, as long as it lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# A reference to each placeholder, and its spec, by its id.
_specs: dict[int, tuple[Callable[[], Any], tf.TypeSpec]] = {}


class _Kept:
    """Keeps a placeholder whose class has no weak references, as long as its tensors live.

    Its tensors refer to it, and it refers to them, so that Python deletes all of them together.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return _Kept, (None,)  # a copy of the tensors is part of no placeholder


def remember_spec(value: Any, spec: tf.TypeSpec, tensors: list[Any]) -> None:
    """Remembers the spec of a placeholder.

    Args:
        value: The placeholder.
        spec: Its spec.
        tensors: The KerasTensors that it holds.
    """
    key = id(value)

    def forget(_: Any) -> None:
        _specs.pop(key, None)

    try:
        _specs[key] = weakref.ref(value, forget), spec
    except TypeError:
        kept = _Kept(value)
        for tensor in tensors:
            tensor._extensor_kept = [*getattr(tensor, "_extensor_kept", ()), kept]
        reference = weakref.ref(kept, forget)
        _specs[key] = (lambda: getattr(reference(), "value", None)), spec


def remembered_spec(value: Any) -> tf.TypeSpec | None:
    """Returns the spec that was remembered for a value, or None."""
    reference, spec = _specs.get(id(value), (lambda: None, None))
    return spec if reference() is value else None
