"""How the values of a CSV file are separated, named and encoded."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any, NamedTuple

from extensor._files.files import FilePath
from extensor.errors import DTypeError, StructureError


class Dialect(NamedTuple):
    """The arguments that only functions of CSV have.

    Attributes:
        delimiter: What separates values; None for a tab in `.tsv` files and a comma in others.
        names: The names of the columns of files without a header; None if they have one.
        null_values: The texts without quotes that are nulls.
        encoding: The encoding of the text, as Python names it.
    """

    delimiter: str | None = None
    names: tuple[str, ...] | None = None
    null_values: tuple[str, ...] = ("",)
    encoding: str = "utf-8"

    @property
    def is_utf8(self) -> bool:
        """Whether the text is UTF-8 as it is stored."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")

    def delimiter_of(self, path: object) -> str:
        """Returns what separates the values of a file."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if ".tsv" in str(path)[-9:] else ","


def dialect_of(
    delimiter: str | None, names: Iterable[str] | None, null_values: Iterable[str], encoding: str
) -> Dialect:
    """Returns the checked arguments of a function that reads CSV.

    Raises:
        DTypeError: If an argument has another type (also a TypeError).
        StructureError: If a delimiter is not one character, a name comes twice, or Python does not
            know the encoding (also a ValueError).
    """
    if delimiter is not None:
        check_delimiter(delimiter)
    found = None if names is None else _texts("names", names)
    if found is not None:
        expect_different("names", found)
    dialect = Dialect(delimiter, found, _texts("null_values", null_values), encoding)
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError) as error:
        fix = 'Write it as Python does, such as "latin-1" or "utf-16".'
        raise StructureError("encoding", "an encoding", repr(encoding)[:60], fix) from error
    return dialect


def check_delimiter(delimiter: Any) -> None:
    """Raises StructureError unless a delimiter is one character of ASCII that can separate."""
    is_one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not is_one or delimiter in '"\r\n':
        fix = r'Give one, such as delimiter=";" or delimiter="\t".'
        raise StructureError("delimiter", "one character of ASCII", repr(delimiter)[:60], fix)


def expect_different(path: FilePath, names: Iterable[str]) -> None:
    """Raises StructureError if a name comes twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            fix = "Give the columns other names: names= is for files without a header."
            raise StructureError(str(path), "columns with different names", f"{name!r} twice", fix)
        seen.add(name)


def _texts(argument: str, given: Iterable[str]) -> tuple[str, ...]:
    texts = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not texts or not all(isinstance(text, str) for text in texts):
        fix = f'Write {argument}=["a", "b"].'
        raise DTypeError(argument, "a list of str", repr(given)[:60], fix)
    return texts
