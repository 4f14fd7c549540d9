"""Functions of higher layers that methods of lower ones call, such as `records.to_pandas()`.

The method belongs to StructuredTensor, and its code to `_formats`. So that no folder imports one
above it, `extensor/__init__.py` registers where the code is.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

_modules: dict[str, str] = {}
"""The module of each function."""


def register_converters(functions: Mapping[str, str]) -> None:
    """Registers functions, for `converter`.

    Args:
        functions: From modules to the names of their functions, separated by spaces.
    """
    _modules.update({name: m for m, names in functions.items() for name in names.split()})


@functools.cache
def converter(name: str) -> Callable[..., Any]:
    """Returns a registered function. Its module is imported on first use.

    >>> from extensor._converter import converter, register_converters
    >>> register_converters({"math": "sqrt"})
    >>> converter("sqrt")(4)
    2.0
    """
    return getattr(importlib.import_module(_modules[name]), name)
