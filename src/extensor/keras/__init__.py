"""Extension types and StructuredTensors in Keras 3 layers and models, on its TensorFlow backend."""

# pyright: reportUnusedImport=false

from extensor._keras.backend import check_backend as _check_backend

_check_backend()

from extensor._keras._keras_patches import TABLE as _TABLE  # noqa: E402
from extensor._keras.input import Input  # noqa: E402
from extensor._keras.layer import Layer  # noqa: E402
from extensor._keras.masked import Masked  # noqa: E402
from extensor._keras.model import Model  # noqa: E402
from extensor._keras.recurrent import RNN  # noqa: E402
from extensor._keras.sequential import Sequential  # noqa: E402
from extensor._keras.serialization import serialize  # noqa: E402 - Keras waits for the check
from extensor._keras.stock_layers import Identity, Lambda, TimeDistributed  # noqa: E402
from extensor._patches.install import install_keras as _install_keras  # noqa: E402
from extensor.keras import callbacks, layers  # noqa: E402

__all__ = [
    "RNN",
    "Identity",
    "Input",
    "Lambda",
    "Layer",
    "Masked",
    "Model",
    "Sequential",
    "TimeDistributed",
    "callbacks",
    "layers",
    "serialize",
]

_install_keras(_TABLE)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
