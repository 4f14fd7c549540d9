"""The switch for dispatch in the environment."""

from __future__ import annotations

import os

_VARIABLE = "EXTENSOR_DISPATCH"

SWITCHED_OFF = (
    f"The environment variable {_VARIABLE}=0 switches off dispatch: unset it before extensor is "
    "imported, or call the operation with the tensors in the value."
)
"""The fix of errors about a handler that is not called because dispatch is off."""


def is_on() -> bool:
    """Returns whether types override TensorFlow's functions and operators."""
    return os.environ.get(_VARIABLE) != "0"
