"""The record of one change of TensorFlow, and the decorators that make records of functions."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf

from extensor._tf._tf_dispatch import REPLACED
from extensor.errors import MissingDependencyError

_F = TypeVar("_F", bound=Callable[..., Any])

VERSIONS = ("2.20", "2.21")
"""The releases of TensorFlow with which the patches are seen to work."""

TABLE: list[Patch] = []
"""The patches that are always installed, whether or not dispatch is switched off."""

_ROOT = Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True, repr=False)
class Patch:
    """One thing that extensor changes in TensorFlow.

    Attributes:
        target: The dotted name of what is changed.
        reason: Why.
        probe: The name of the probe in `tests/tf/test_tf_probe.py` that fails where a release of
            TensorFlow does not do what the change relies on.
        function: What makes the change.
        apply: Makes it, without arguments. A second time it changes nothing.
        versions: The releases of TensorFlow with which it is seen to work.
    """

    target: str
    reason: str
    probe: str
    function: Callable[..., Any] = dataclasses.field(compare=False)
    apply: Callable[[], None] = dataclasses.field(compare=False)
    versions: tuple[str, ...] = VERSIONS

    @property
    def defined_in(self) -> str:
        """The file, below the package, and the line of the function that makes the change."""
        code = self.function.__code__
        path = Path(code.co_filename)
        return f"{path.relative_to(_ROOT.parent).as_posix()}:{code.co_firstlineno}"

    def __repr__(self) -> str:
        return f"<{self.target}: {self.reason} ({self.defined_in})>"


def replaces(target: str, *, reason: str, probe: str) -> Callable[[_F], _F]:
    """Makes a patch of a function that gets what stands under a name, and returns what shall.

    Args:
        target: The dotted name of a function, or of a method of a class.
        reason: See `Patch`.
        probe: See `Patch`.
    """

    def decorate(make: _F) -> _F:
        TABLE.append(Patch(target, reason, probe, make, functools.partial(_replace, target, make)))
        return make

    return decorate


def changes(target: str, *, reason: str, probe: str) -> Callable[[_F], _F]:
    """Makes a patch of a function that makes the change itself; see `Patch.apply`."""

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


def plain_of(found: Any) -> Any:
    """Returns what a function or a method of ours replaced; and all else as it is."""
    return getattr(found, REPLACED, found)


def place(target: str) -> tuple[Any, str]:
    """Returns the module or class that holds what has a dotted name, and the last part of this.

    Raises:
        MissingDependencyError: If TensorFlow has no such name.
    """
    names = target.split(".")
    try:
        owner: Any = tf if names[0] == "tf" else importlib.import_module(names[0])
        for i, name in enumerate(names[1:-1], 2):
            path = ".".join(names[:i])
            # A package may hold a function of the name of a module.
            owner = sys.modules.get(path) or getattr(owner, name, None)
            if owner is None:
                owner = importlib.import_module(path)
        getattr(owner, names[-1])
    except (AttributeError, ImportError) as error:
        raise MissingDependencyError(
            path=target,
            expected=f"a name of TensorFlow {' or '.join(VERSIONS)}, which extensor changes",
            received=f"TensorFlow {tf.__version__}, which has no such name",
            mend="Install a release of TensorFlow that this release of extensor knows.",
        ) from error
    return owner, names[-1]
