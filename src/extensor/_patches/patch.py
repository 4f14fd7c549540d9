"""The record of one change of TensorFlow or Keras, and the decorators that create records."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import tensorflow as tf

from extensor._tf._tf_dispatch import REPLACED
from extensor.errors import MissingDependencyError

_F = TypeVar("_F", bound=Callable[..., Any])

VERSIONS = ("2.20", "2.21")
"""The releases of TensorFlow with which the patches are tested."""

TABLE: list[Patch] = []
"""The patches that are always installed, whether or not dispatch is switched off."""

_ROOT = Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True, repr=False)
class Patch:
    """One thing that extensor changes in TensorFlow or Keras.

    Attributes:
        target: The dotted name of what is changed.
        reason: Why it is changed.
        probe: The probe in `tests/tf/test_tf_probe.py` that fails if a release of TensorFlow no
            longer does what the change relies on. For Keras: `tests/keras/test_keras_private.py`.
        function: The function that makes the change.
        apply: Makes the change, without arguments. A second call changes nothing.
        versions: The releases of TensorFlow or Keras with which the change is tested.
    """

    target: str
    reason: str
    probe: str
    function: Callable[..., Any] = dataclasses.field(compare=False)
    apply: Callable[[], None] = dataclasses.field(compare=False)
    versions: tuple[str, ...] = VERSIONS

    @property
    def defined_in(self) -> str:
        """The path in the package, and the line, of the function that makes the change."""
        code = self.function.__code__
        path = Path(code.co_filename)
        return f"{path.relative_to(_ROOT.parent).as_posix()}:{code.co_firstlineno}"

    def __repr__(self) -> str:
        return f"<{self.target}: {self.reason} ({self.defined_in})>"


def replaces(
    target: str, *, reason: str, probe: str, table: list[Patch], versions: tuple[str, ...]
) -> Callable[[_F], _F]:
    """Registers a patch; the decorated function takes the original and returns the replacement.

    Args:
        target: The dotted name of a function or method.
        reason: See `Patch`.
        probe: See `Patch`.
        table: The table to which the patch is added.
        versions: See `Patch`.
    """

    def decorate(make: _F) -> _F:
        apply = functools.partial(_replace, target, make)
        table.append(Patch(target, reason, probe, make, apply, versions))
        return make

    return decorate


def overrides(target: str, *, reason: str, probe: str) -> Callable[[_F], _F]:
    """Registers a patch; the decorated function is the replacement.

    It has the parameters of the original, and one that is passed by name only, `plain`: the
    original.

    Args:
        target: The dotted name of a function or method.
        reason: See `Patch`.
        probe: See `Patch`.
    """

    def decorate(function: _F) -> _F:
        make = functools.partial(with_original, function)
        apply = functools.partial(_replace, target, make)
        TABLE.append(Patch(target, reason, probe, function, apply))
        return function

    return decorate


def changes(target: str, *, reason: str, probe: str) -> Callable[[_F], _F]:
    """Registers a patch: the decorated function makes the change itself; see `Patch.apply`."""

    def decorate(apply: _F) -> _F:
        TABLE.append(Patch(target, reason, probe, apply, apply))
        return apply

    return decorate


def _replace(target: str, make: Callable[[Any], Any]) -> None:
    owner, name = place(target)
    plain = plain_of(getattr(owner, name))
    replacement = functools.update_wrapper(make(plain), plain)
    vars(replacement)[REPLACED] = plain
    setattr(owner, name, replacement)


def copy_of(function: types.FunctionType, code: types.CodeType | None = None) -> types.FunctionType:
    """Returns a copy of a function, with other code if given."""
    copied = types.FunctionType(
        code or function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__annotations__ = function.__annotations__
    copied.__doc__ = function.__doc__
    copied.__module__ = function.__module__
    copied.__qualname__ = function.__qualname__
    return copied


def with_original(function: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a copy of a function of `overrides` that gets an original."""
    replacement = copy_of(cast("types.FunctionType", function))
    replacement.__kwdefaults__ = {"plain": plain}
    return replacement


def plain_of(found: Any) -> Any:
    """Returns the original of a replacement of extensor, and any other object unchanged."""
    return getattr(found, REPLACED, found)


def place(target: str) -> tuple[Any, str]:
    """Returns the module or class that contains the object of a dotted name, and its last part.

    Raises:
        MissingDependencyError: If TensorFlow has no such name.
    """
    names = target.split(".")
    try:
        owner: Any = tf if names[0] == "tf" else importlib.import_module(names[0])
        for i, name in enumerate(names[1:-1], 2):
            path = ".".join(names[:i])
            # A package may have a function with the name of a module.
            owner = sys.modules.get(path) or getattr(owner, name, None)
            if owner is None:
                owner = importlib.import_module(path)
        getattr(owner, names[-1])
    except (AttributeError, ImportError) as error:
        expected = f"TensorFlow {' or '.join(VERSIONS)}, which has this name"
        received = f"TensorFlow {tf.__version__}"
        fix = "Install a release of TensorFlow that this release of extensor supports."
        raise MissingDependencyError(target, expected, received, fix) from error
    return owner, names[-1]
