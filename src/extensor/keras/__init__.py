"""Extension types and StructuredTensors in Keras 3 layers and models, on its TensorFlow backend."""

from extensor.keras.backend import check_backend

check_backend()

from extensor.keras.input import Input  # noqa: E402 - Keras must not be imported before the check
from extensor.keras.layer import Layer  # noqa: E402
from extensor.keras.model import Model  # noqa: E402

__all__ = ["Input", "Layer", "Model"]
