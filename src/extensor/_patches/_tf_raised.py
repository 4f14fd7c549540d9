"""Errors of Python functions that TensorFlow calls, as the exceptions that they were."""

from __future__ import annotations

from typing import Any

from extensor._patches.patch import replaces
from extensor._raised import as_raised


@replaces(
    "tensorflow.python.eager.core._status_to_exception",
    reason="An error during the iteration of a dataset of `xt.data` is the error that names the "
    "file, and no InvalidArgumentError with a traceback as its text.",
    probe="raised_errors",
)
def status_to_exception(plain: Any) -> Any:
    def _status_to_exception(status: Any) -> Any:
        """Like TensorFlow's function; for an exception of `marked`, returns that exception."""
        error = as_raised(status.message)
        return plain(status) if error is None else error

    return _status_to_exception
