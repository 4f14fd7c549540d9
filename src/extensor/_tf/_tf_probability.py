"""TensorFlow Probability's flag for deferred checks of constructor arguments.

| name | why |
| --- | --- |
| `_sig_cache` | The signatures that TensorFlow Probability stores for constructors with incomplete signatures (`ZeroInflatedNegativeBinomial`, which takes `**kwargs`). |
| `_DEFERRED_ASSERTION_CONTEXT` | Distributions and bijectors of TensorFlow Probability skip the checks of `validate_args` if this flag is set, while they are rebuilt from their tensors. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

_MODULE = "tensorflow_probability.python.internal.auto_composite_tensor"
"""The module of these names, looked up in `sys.modules`: no import, no classes of TFP."""


class _Ours(threading.local):
    is_deferred = False


_ours = _Ours()


class Deferred:
    """A context in which constructors may skip the checks of their arguments.

    >>> from extensor._tf._tf_probability import Deferred
    >>> from extensor._tf._tf_probability import is_deferred
    >>> with Deferred():
    ...     is_deferred()
    True
    >>> is_deferred()
    False
    """

    __slots__ = ("_before",)

    _before: list[tuple[Any, bool]]

    def __enter__(self) -> None:
        self._before = [(flag, getattr(flag, "is_deferred", False)) for flag in _flags()]
        for flag, _ in self._before:
            flag.is_deferred = True

    def __exit__(self, *_: object) -> None:
        for flag, before in self._before:
            flag.is_deferred = before


def is_deferred() -> bool:
    """Returns whether checks are deferred in this thread, by extensor or TensorFlow Probability."""
    return any(getattr(flag, "is_deferred", False) for flag in _flags())


def _flags() -> list[Any]:
    theirs = getattr(sys.modules.get(_MODULE), "_DEFERRED_ASSERTION_CONTEXT", None)
    return [_ours] if theirs is None else [_ours, theirs]


def signature_of(init: Callable[..., Any]) -> inspect.Signature | None:
    """Returns the signature that TensorFlow Probability stores for a constructor, or None."""
    known = getattr(sys.modules.get(_MODULE), "_sig_cache", {})
    return known.get(init)
