"""The check that Keras runs on TensorFlow, before any other file here imports Keras."""

from __future__ import annotations

import json
import os
import sys

from extensor.errors import MissingDependencyError

OLDEST = (3, 10)


def check_backend() -> None:
    """Raises unless Keras 3 is installed and uses the TensorFlow backend.

    Raises:
        MissingDependencyError: If Keras 3 or its TensorFlow backend is missing (also an
            ImportError).
    """
    variable = os.environ.get("KERAS_BACKEND")
    if variable and variable != "tensorflow":
        raise _wrong_backend(f"KERAS_BACKEND={variable}")
    if not variable and "keras" not in sys.modules:
        path, chosen = _chosen_in_file()
        if chosen != "tensorflow":
            raise _wrong_backend(
                f"{chosen!r} in {path}", f'Write "backend": "tensorflow" into {path}, or set'
            )
    try:
        import keras
    except ImportError as error:
        received, fix = f"a failed import ({error})", "pip install 'extensor[keras]'"
        raise MissingDependencyError("extensor.keras", "Keras 3", received, fix) from error
    if keras.backend.backend() != "tensorflow":
        raise _wrong_backend(f"{keras.backend.backend()!r}, with which Keras was imported")
    version = tuple(int(part) for part in keras.__version__.split(".")[:2])
    if version < OLDEST:
        expected = f"Keras {'.'.join(map(str, OLDEST))} or newer"
        fix = "pip install --upgrade keras"
        raise MissingDependencyError("extensor.keras", expected, f"Keras {keras.__version__}", fix)


def _chosen_in_file() -> tuple[str, str]:
    """Returns the path of Keras's configuration file, and the backend in it."""
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    path = os.path.join(home, "keras.json")
    try:
        with open(path, encoding="utf-8") as file:
            return path, json.load(file).get("backend", "tensorflow")
    except (OSError, ValueError, AttributeError):
        return path, "tensorflow"  # Keras ignores a file that it cannot read


def _wrong_backend(received: str, fix: str = "Set") -> MissingDependencyError:
    return MissingDependencyError(
        "extensor.keras",
        "the TensorFlow backend of Keras",
        received,
        f"{fix} KERAS_BACKEND=tensorflow before the first import of Keras; or give "
        "xt.data.arrays(dataset) to a keras.Model. The rest of extensor works with any backend.",
    )
