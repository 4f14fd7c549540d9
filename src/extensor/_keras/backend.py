"""The check that Keras runs on TensorFlow, before any other file here imports Keras."""

from __future__ import annotations

import os

from extensor.errors import MissingDependencyError

OLDEST = (3, 10)


def check_backend() -> None:
    """Raises unless Keras 3 is installed and uses the TensorFlow backend.

    Raises:
        MissingDependencyError: If Keras 3 or its TensorFlow backend is missing (also an
            ImportError).
    """
    variable = os.environ.get("KERAS_BACKEND", "tensorflow")
    if variable != "tensorflow":
        raise _wrong_backend(variable)
    try:
        import keras
    except ImportError as error:
        raise MissingDependencyError(
            path="extensor.keras",
            expected="Keras 3",
            received=f"a failed import ({error})",
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
        mend="Set KERAS_BACKEND=tensorflow before the first import of Keras. "
        "The rest of extensor works with any backend.",
    )
