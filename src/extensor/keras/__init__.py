"""Extension types and StructuredTensors in Keras 3 layers and models, on its TensorFlow backend."""

# pyright: reportUnusedImport=false

from extensor.keras.backend import check_backend

check_backend()

from extensor.keras import functional as _functional  # noqa: E402, F401 - what Model makes
from extensor.keras.config import serialize  # noqa: E402 - Keras waits for the check
from extensor.keras.input import Input  # noqa: E402
from extensor.keras.layer import Layer  # noqa: E402
from extensor.keras.model import Model  # noqa: E402
from extensor.keras.sequential import Sequential  # noqa: E402
from extensor.keras.wrapper import Identity, Lambda, Masked, TimeDistributed  # noqa: E402

__all__ = [
    "Identity",
    "Input",
    "Lambda",
    "Layer",
    "Masked",
    "Model",
    "Sequential",
    "TimeDistributed",
    "serialize",
]


def __dir__() -> list[str]:
    # Not the modules that it is made of.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
