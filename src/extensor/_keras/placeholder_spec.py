"""The specs of placeholders, for types that cannot compute them.

A placeholder is an extension value that holds KerasTensors. A type that was not written for Keras
computes its spec from its tensors, which fails or is wrong for KerasTensors. So this module keeps
the spec of a placeholder as long as the placeholder lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# The id of each placeholder, mapped to a reference to the placeholder and its spec.
_specs: dict[int, tuple[Callable[[], Any], tf.TypeSpec]] = {}


class _Keeper:
    """Keeps a placeholder whose class does not support weak references.

    The placeholder's tensors refer to this object, and it refers to the placeholder. So Python
    deletes all of them together.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _Keeper, (None,)  # a copy of the tensors does not belong to the placeholder


def remember_spec(value: object, spec: tf.TypeSpec, tensors: list[Any]) -> None:
    """Stores the spec of a placeholder for `remembered_spec`.

    Args:
        value: The placeholder.
        spec: The spec of the placeholder.
        tensors: The KerasTensors in the placeholder.
    """
    key = id(value)

    def forget(_: object) -> None:
        _specs.pop(key, None)

    try:
        _specs[key] = weakref.ref(value, forget), spec
    except TypeError:
        keeper = _Keeper(value)
        for tensor in tensors:
            tensor._extensor_kept = [*getattr(tensor, "_extensor_kept", ()), keeper]
        reference = weakref.ref(keeper, forget)
        _specs[key] = (lambda: getattr(reference(), "value", None)), spec


def remembered_spec(value: object) -> tf.TypeSpec | None:
    """Returns the spec that `remember_spec` stored for a value, or None."""
    reference, spec = _specs.get(id(value), (lambda: None, None))
    return spec if reference() is value else None
