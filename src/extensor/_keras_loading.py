"""The classes of `extensor.keras` by their names in saved models, imported when Keras reads one.

Keras finds a class of another package by its registered name only. `import extensor` registers a
`ClassOnFirstUse` for each name, so that `keras.saving.load_model` works in a process that has not
used `extensor.keras` yet. The import of `extensor.keras` puts the classes in their place.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

NAMES = (
    *("Assemble", "EmbeddingBag", "EmbeddingBags", "Field", "FunctionLoss", "Functional"),
    *("Identity", "Kept", "Lambda", "ListAttention", "ListPooling", "ListRNN", "Masked"),
    *("Part", "RNN", "RecordFeatures", "Sequential", "StackedCells", "TimeBuckets"),
    "TimeDistributed",
)
"""The names that the classes of `extensor.keras` are registered by, in the package `extensor`."""


class ClassOnFirstUse:
    """Stands for a class in Keras's registry until a saved model needs it.

    Args:
        name: The registered name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def from_config(self, config: dict[str, Any]) -> object:
        """Imports `extensor.keras`, and returns what the class makes of a configuration."""
        importlib.import_module("extensor.keras")
        # Not get_registered_object: Keras has copied the registry before it calls this.
        objects = sys.modules["keras"].saving.get_custom_objects()
        return objects[self._name].from_config(config)


def register() -> None:
    """Registers all names, if Keras is imported. TensorFlow imports it where it is installed."""
    keras = sys.modules.get("keras")
    if keras is not None:
        objects = keras.saving.get_custom_objects()
        for name in NAMES:
            registered = f"extensor>{name}"
            objects.setdefault(registered, ClassOnFirstUse(registered))
