"""Errors of other code: their text, and those that TensorFlow passes on as they were.

TensorFlow passes an exception of a Python function on as the text of an error of its own. So the
text gets a mark, with which an iterator (`_patches/_tf_data.py`), `reduce` and a model find the
exception again.
"""

from __future__ import annotations

import itertools
import os
import re

__all__ = ["error_of_text", "first_line", "mark", "raise_marked"]

_PROCESS = os.urandom(8).hex()
_MARK = re.compile(rf"\[raised {_PROCESS} (\d+)\]")
_KEPT = 64  # exceptions; those that nobody asked for are dropped

_numbers = itertools.count()
_raised: dict[int, BaseException] = {}


def mark(error: BaseException) -> Exception:
    """Returns an exception to raise in a function that TensorFlow calls, in place of another one.

    Not every exception may pass through TensorFlow: an IndexError ends a dataset.
    """
    number = next(_numbers)
    _raised[number] = error
    _raised.pop(number - _KEPT, None)
    return error_of_text(f"{type(error).__name__}: {error} [raised {_PROCESS} {number}]")


def error_of_text(text: str) -> Exception:
    """Returns an exception to raise for the text of one of `mark`."""
    return ValueError(text)


def raise_marked(message: object) -> None:
    """Raises the exception of `mark` that the message of a TensorFlow error contains, once.

    Nothing is raised if there is none.
    """
    found = _MARK.search(str(message))
    error = _raised.pop(int(found[1]), None) if found else None
    try:
        if error is not None:
            raise error from None
    finally:
        del error  # its traceback has this frame, and keeps the dataset alive


def first_line(error: BaseException) -> str:
    """Returns the first line of the text of an error; the name of its class if it has no text."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]
