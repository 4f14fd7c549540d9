"""Whether types override TensorFlow's operations, which the environment can switch off."""

from __future__ import annotations

import os

_VARIABLE = "EXTENSOR_DISPATCH"

SWITCHED_OFF = (
    f"{_VARIABLE}=0 in the environment switches off that types override TensorFlow's operations: "
    "unset it before extensor is imported, or call the operation with the tensors in the value."
)
"""What an error says where a handler is needed and no operation asks for one."""


def is_on() -> bool:
    """Returns whether TensorFlow's functions and operators are to ask types."""
    return os.environ.get(_VARIABLE) != "0"
