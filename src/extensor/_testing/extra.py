"""Optional packages, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from extensor.errors import MissingDependencyError


def require(package: str) -> Any:
    """Returns an imported package.

    Raises:
        MissingDependencyError: If it is not installed (also an ImportError).
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingDependencyError(
            "extensor.testing",
            f"the package {package}",
            "an environment without it",
            'Install it: pip install "extensor[testing]".',
        ) from None
