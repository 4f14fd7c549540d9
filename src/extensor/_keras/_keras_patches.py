"""What `import extensor.keras` changes in Keras. `xt.patches()` lists it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from extensor._keras._keras_private import OwnGraph
from extensor._keras.serialization import own_config
from extensor._patches.patch import Patch, replaces
from extensor._typing import Nest

if TYPE_CHECKING:
    import keras

TABLE: list[Patch] = []
_VERSIONS = ("3.10", "3.15")


@replaces(
    "keras.src.models.cloning._clone_sequential_model",
    reason="`keras.models.clone_model` calls it for every Sequential. It always creates a "
    "keras.Sequential, which takes no values.",
    probe="clone_sequential_model",
    table=TABLE,
    versions=_VERSIONS,
)
def clone_sequential_model(plain: Callable[..., Any]) -> Callable[..., Any]:
    def _clone_sequential_model(
        model: keras.Sequential,
        clone_function: Callable[[keras.Layer], keras.Layer],
        input_tensors: Nest = None,
    ) -> keras.Sequential:
        """Calls Keras's function, or `clone_with` of an OwnGraph."""
        if isinstance(model, OwnGraph):
            return model.clone_with(clone_function, input_tensors)
        return plain(model, clone_function, input_tensors)

    return _clone_sequential_model


def serialize_keras_object(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns Keras's function, which also writes the specs and values of extension types."""

    def _serialize_keras_object(obj: object) -> object:
        config = own_config(obj)
        return plain(obj) if config is None else config

    return _serialize_keras_object


# The first is the one that Keras calls for the parts of a configuration.
for _module in ("keras.src.saving.serialization_lib", "keras.saving", "keras.utils"):
    replaces(
        f"{_module}.serialize_keras_object",
        reason="It writes a TypeSpec so that Keras cannot read it again, and rejects extension "
        "values.",
        probe="serialize_keras_object",
        table=TABLE,
        versions=_VERSIONS,
    )(serialize_keras_object)
