"""Makes sure that Keras runs on TensorFlow, before any other file here imports Keras."""

from __future__ import annotations

import os

from extensor.errors import MissingDependencyError

OLDEST = (3, 10)


def check_backend() -> None:
    """Raises unless Keras 3 is there and computes with TensorFlow.

    Raises:
        MissingDependencyError: Otherwise (also an ImportError).
    """
    asked = os.environ.get("KERAS_BACKEND", "tensorflow")
    if asked != "tensorflow":
        raise _wrong_backend(asked)
    try:
        import keras
    except ImportError as error:
        raise MissingDependencyError(
            path="extensor.keras",
            expected="Keras 3",
            received=f"an import that fails ({error})",
            mend="pip install 'extensor[keras]'",
        ) from error
    if keras.backend.backend() != "tensorflow":
        raise _wrong_backend(keras.backend.backend())
    version = tuple(int(part) for part in keras.__version__.split(".")[:2])
    if version < OLDEST:
        raise MissingDependencyError(
            path="extensor.keras",
            expected=f"Keras {'.'.join(map(str, OLDEST))} or newer",
            received=f"Keras {keras.__version__}",
            mend="pip install --upgrade keras",
        )


def _wrong_backend(received: str) -> MissingDependencyError:
    return MissingDependencyError(
        path="extensor.keras",
        expected="the TensorFlow backend of Keras",
        received=f"KERAS_BACKEND={received}",
        mend="Set KERAS_BACKEND=tensorflow before Keras is first imported. "
        "The rest of extensor works without it.",
    )
