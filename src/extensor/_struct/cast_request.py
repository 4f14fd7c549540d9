"""CastRequest: what a caller of `spec.cast` asks for beside the cast itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from extensor._path import Path
from extensor.errors import DTypeError


@dataclass(frozen=True)
class CastRequest:
    """The arguments `extra` and `times` of `spec.cast`, which are checked.

    Attributes:
        dropped: The paths of the fields to leave out; None for all that the spec does not have.
        reads_times: Whether text becomes times where the spec has times.
    """

    dropped: frozenset[Path] | None = frozenset()
    reads_times: bool = False

    @classmethod
    def from_arguments(cls, extra: object, times: object = None) -> CastRequest:
        """Returns the request of the two arguments.

        Raises:
            DTypeError: If an argument has another value (also a TypeError).
        """
        if times not in (None, "text"):
            fix = "Leave it out for times of Python, Arrow and records alone."
            raise DTypeError("cast: times", '"text"', repr(times)[:60], fix)
        if extra in ("error", "ignore"):
            dropped = frozenset[Path]() if extra == "error" else None
            return cls(dropped, times is not None)
        if isinstance(extra, str) or not isinstance(extra, Iterable):
            expected, fix = '"error", "ignore", or a list of paths', "Leave it out for an error."
            raise DTypeError("cast: extra", expected, repr(extra)[:60], fix)
        paths: Iterable[Any] = extra
        return cls(frozenset(Path.of(path) for path in paths), times is not None)

    def drops(self, path: Path) -> bool:
        """Returns whether a field that the spec does not have is left out."""
        return self.dropped is None or path in self.dropped

    def below(self, *names: str) -> CastRequest:
        """Returns the request for the records at a path."""
        if not self.dropped or not names:
            return self
        size = len(names)
        inner = [path for path in self.dropped if path.names[:size] == names]
        return replace(self, dropped=frozenset(Path(*path.names[size:]) for path in inner))

    def inside(self, *names: str) -> CastRequest:
        """Returns the request for records of which those of this request are at a path."""
        if not self.dropped or not names:
            return self
        return replace(self, dropped=frozenset(Path(*names, *path) for path in self.dropped))


STRICT = CastRequest()
"""The request of who asks for nothing."""
