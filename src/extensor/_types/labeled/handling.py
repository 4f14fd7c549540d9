"""How the handlers of LabeledTensors are entered, and what their operations are called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extensor._types.labeled.tensor import LabeledTensor
from extensor.dispatch import implements


def handles(*ops: Any) -> Callable[[Any], Any]:
    """Makes a function the handler of operations, or of kinds of these, for LabeledTensors."""
    return implements(*ops, on=LabeledTensor)
