"""Packages that extensor needs for some functions only, and the extras that install them."""

from __future__ import annotations

import importlib
from typing import Any

from extensor.errors import MissingDependencyError


def import_extra(module: str, extra: str, function: str) -> Any:
    """Returns a module that an extra of extensor installs.

    Args:
        module: The module, such as "google.cloud.spanner".
        extra: The extra, such as "spanner".
        function: The function that needs it, for the error.

    Raises:
        MissingDependencyError: If it is not installed (also an ImportError).
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        fix = f'pip install "extensor[{extra}]"'
        raise MissingDependencyError(function, f"the module {module}", str(error), fix) from error
