"""check_laws: the laws of extension types, for a value that is named by its module."""

from __future__ import annotations

import importlib
import os
import sys
from functools import reduce
from typing import Any

import tensorflow as tf

from extensor.errors import FieldError, FormatError, LawError, StructureError


def check_laws(name: str) -> str:
    """Returns which laws a value breaks; the empty string if none.

    Args:
        name: The module and the name in it, such as `recipes.types:small`.

    Raises:
        FormatError: If it is not such a name (also a ValueError).
        FieldError: If there is no such value (also a KeyError).
        StructureError: If the module cannot be imported (also a ValueError).
        ProtocolError, DTypeError: If it is no value with laws.
    """
    from extensor import testing

    value = _value(name)
    check = testing.check_spec if isinstance(value, tf.TypeSpec) else testing.check_extension_type
    try:
        check(value)
    except LawError as error:
        return str(error)
    return ""


def _value(name: str) -> Any:
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        expected = "a module, a colon and a name, such as recipes.types:small"
        raise FormatError("MODULE:VALUE", expected, repr(name), "Write the colon.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    # Whatever the user's module raises, sys.exit too: it would end the command with its code.
    except (Exception, SystemExit) as error:
        received = f"{type(error).__name__}: {error}{_line(error)}"
        fix = "Run the command in the folder from which the module is imported."
        raise StructureError(module_name, "a module that can be imported", received, fix) from error
    try:
        value: Any = reduce(getattr, path.split("."), module)
    except AttributeError as error:
        names = [each for each in vars(module) if not each.startswith("_")]
        expected = f"one of the names {', '.join(names[:20])}"
        raise FieldError(name, expected, str(error), "Check the name after the colon.") from error
    if not callable(value) or hasattr(value, "__tf_type_spec__"):
        return value
    try:
        return value()
    # Whatever the user's function raises.
    except (Exception, SystemExit) as error:
        expected = "a function that returns a value without arguments"
        received = f"{type(error).__name__}: {error}{_line(error)}"
        fix = "Name a value, or a function that makes one."
        raise StructureError(name, expected, received, fix) from error


def _line(error: BaseException) -> str:
    """Returns where the user's code raised an error."""
    trace = error.__traceback__
    where = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<") and file not in (__file__, importlib.__file__):
            where = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return where
