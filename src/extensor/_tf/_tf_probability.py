"""TensorFlow Probability's word for "this value was checked when it was first made".

| name | why |
| --- | --- |
| `_sig_cache` | Where TensorFlow Probability writes down the arguments of constructors that are more than their signatures tell (`ZeroInflatedNegativeBinomial`, which takes `**kwargs`). |
| `_DEFERRED_ASSERTION_CONTEXT` | TensorFlow Probability's distributions and bijectors ask this, and nothing else, whether to leave out the checks of `validate_args` because they are being rebuilt from their tensors. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import inspect
import sys
import threading
from typing import Any

_MODULE = "tensorflow_probability.python.internal.auto_composite_tensor"
"""Where the name stands. Looked for among what was imported: a class of TFP's cannot be at hand
otherwise."""


class _Ours(threading.local):
    is_deferred = False


_ours = _Ours()


class Deferred:
    """A context in which constructors may leave out the checks of their arguments.

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
    """Returns whether a `Deferred` context is open in this thread, ours or theirs."""
    return any(getattr(flag, "is_deferred", False) for flag in _flags())


def _flags() -> list[Any]:
    theirs = getattr(sys.modules.get(_MODULE), "_DEFERRED_ASSERTION_CONTEXT", None)
    return [_ours] if theirs is None else [_ours, theirs]


def signature_of(init: Any) -> inspect.Signature | None:
    """Returns the signature that TensorFlow Probability has written down for a constructor."""
    known = getattr(sys.modules.get(_MODULE), "_sig_cache", {})
    return known.get(init)
