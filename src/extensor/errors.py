"""The errors that extensor raises, each also the builtin that TensorFlow users already catch.

Every message names the path, what was expected, what was received and the mend, and never the
contents of a tensor.
"""

from collections.abc import Iterable as _Iterable
from typing import Any as _Any


class ExtensorError(Exception):
    """Base of every error that extensor raises on purpose.

    Either give a whole sentence, or the four parts, from which the sentence is made:

    >>> print(StructureError(path="recipe.est_time", expected="3 rows", received="2 rows",
    ...                      mend="Give every field one value a record."))
    recipe.est_time: expected 3 rows, got 2 rows. Give every field one value a record.

    Args:
        message: The whole message, when it does not fit the four parts.
        path: Where the fault lies: a field path, a file, a class.
        expected: What would have been right.
        received: What was found.
        mend: What to do about it.
    """

    # AutoGraph replaces an error that passes through a tf.function by one of its own, which no
    # handler expects, unless the error has this attribute.
    ag_pass_through = True

    def __init__(
        self,
        message: str | None = None,
        *,
        path: object = None,
        expected: str | None = None,
        received: str | None = None,
        mend: str | None = None,
    ) -> None:
        self.path = None if path is None else str(path)
        self.expected = expected
        self.received = received
        self.mend = mend
        super().__init__(self._sentence() if message is None else message)
        # ImportError has a `path` of its own, which its __init__ empties.
        self.path = None if path is None else str(path)

    def _sentence(self) -> str:
        parts: list[str] = []
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.received is not None:
            parts.append(f"got {self.received}")
        text = ", ".join(parts)
        if self.path:
            text = f"{self.path}: {text}" if text else self.path
        return f"{text}. {self.mend}" if self.mend else text

    def __str__(self) -> str:
        # KeyError would show the repr of its argument.
        return str(self.args[0]) if self.args else ""


class StructureError(ExtensorError, ValueError):
    """The pieces of a value do not fit each other: shapes, row counts, row splits, names."""


class DTypeError(ExtensorError, TypeError):
    """A value has another dtype, or another kind of type, than its place asks for."""


class FieldError(ExtensorError, KeyError):
    """A path names a field that is not there."""


class RowError(ExtensorError, IndexError):
    """An index points outside the rows that there are."""


class PathError(ExtensorError, ValueError):
    """A text does not follow the grammar of field paths."""


class NullError(ExtensorError, ValueError):
    """A null stands where nothing was said about nulls."""


class UnsupportedTypeError(ExtensorError, TypeError):
    """A type of another library has no counterpart here (yet)."""


class RegistrationError(ExtensorError, ValueError):
    """A TypeSpec cannot be registered under the name asked for."""


class MissingTypeError(RegistrationError, AttributeError):
    """A value of a type that is not imported is asked for what only its class knows."""


class ProtocolError(ExtensorError, TypeError):
    """A class does not keep its side of a protocol."""


class ArgumentError(ProtocolError, ValueError):
    """A value cannot be taken apart, or made again, by the arguments of its constructor."""


class FormatError(ExtensorError, ValueError):
    """A file or buffer does not hold the format that it was read as."""


class MissingFileError(ExtensorError, FileNotFoundError):
    """A file to read is not there."""


class DirectoryError(ExtensorError, IsADirectoryError):
    """A directory stands where a file is needed."""


class MissingDependencyError(ExtensorError, ImportError):
    """A package is needed that is not installed, or not in a version that serves."""


class ImmutableError(ExtensorError, AttributeError):
    """Something was to be changed in a value that cannot change."""


class MissingAttributeError(ExtensorError, AttributeError):
    """A value, spec or module has no attribute of a name."""


class AbstractMethodError(ProtocolError, NotImplementedError):
    """A class lacks a method that its base leaves to it."""


class LawError(ExtensorError, AssertionError):
    """A type breaks laws that extension types obey; the message tells all of them.

    Attributes:
        type_name: The type.
        breaches: For each broken law, what was expected and received.
        unjudged: The names of the laws that rest on a broken one, and were not checked.
    """

    def __init__(
        self,
        type_name: str,
        breaches: _Iterable[_Any],
        unjudged: _Iterable[str] = (),
        note: str = "",
    ) -> None:
        self.type_name = type_name
        self.breaches = tuple(breaches)
        self.unjudged = tuple(unjudged)
        number = "a law" if len(self.breaches) == 1 else f"{len(self.breaches)} laws"
        lines = [f"{type_name} breaks {number} of extension types{note}"]
        lines += map(str, self.breaches)
        if self.unjudged:
            lines.append(f"  Not judged, for they rest on the above: {', '.join(self.unjudged)}.")
        super().__init__("\n".join(lines))

    @property
    def names(self) -> frozenset[str]:
        """The names of the broken laws."""
        return frozenset(breach.law.name for breach in self.breaches)
