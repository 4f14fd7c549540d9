"""Field paths, such as `recipe.ingredients.amount`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Union

from extensor.errors import ImmutableError, PathError

PathLike = Union[str, Sequence[str], "Path"]
"""Types that functions accept for a path: a string, a sequence of field names, or a `Path`."""

# Characters that an unquoted name must not contain, because the grammar uses them.
_RESERVED = frozenset(".\"'[]\\`")


class Path:
    r"""A path of field names from a record to one of its fields.

    As a string, the names are separated by dots. A name is written in double quotes if it is empty
    or contains a dot, white space, a quote, a bracket, a backslash or a control character; a
    backslash precedes each double quote and each backslash in it. `parse` also accepts white space
    without quotes. List levels are not part of a path: the path of the amounts in a list of
    ingredients is `recipe.ingredients.amount`. Error messages may show list levels
    (`recipe.ingredients[*].amount`); `parse` accepts them.

    >>> from extensor import Path
    >>> Path("recipe", "ingredients", "amount")
    Path('recipe', 'ingredients', 'amount')
    >>> print(Path("recipe", "ingredients", "amount"), Path("nutrition facts", "vit. C"))
    recipe.ingredients.amount "nutrition facts"."vit. C"
    >>> Path.parse('"nutrition facts"."vit. C"').names
    ('nutrition facts', 'vit. C')

    Args:
        *names: The field names, outermost first. Without names, the path is the record itself.
    """

    __slots__ = ("names",)

    names: tuple[str, ...]
    """The field names, outermost first."""

    def __init__(self, *names: str) -> None:
        for name in names:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                fix = "Pass a path as a string or as a sequence of field names."
                raise PathError("path", "field names of type str", f"{type(name).__name__}", fix)
        object.__setattr__(self, "names", names)

    def __setattr__(self, name: str, value: object) -> None:
        raise _immutable(name, "assignment")

    def __delattr__(self, name: str) -> None:
        raise _immutable(name, "deletion")

    @classmethod
    def parse(cls, text: str) -> Path:
        """Returns the path of a string.

        Args:
            text: Names separated by dots, quoted if necessary.

        Raises:
            PathError: If the string is not a valid path (also a ValueError).

        >>> from extensor import Path
        >>> Path.parse("recipe.ingredients[*].amount")
        Path('recipe', 'ingredients', 'amount')
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _not_path_like(text)
        return cls(*_parse(text))

    @classmethod
    def of(cls, path: PathLike) -> Path:
        """Returns `path` as a Path. A string is parsed; names in a sequence are used unchanged.

        >>> from extensor import Path
        >>> Path.of(("recipe", "est. time"))
        Path('recipe', 'est. time')
        """
        if isinstance(path, Path):
            return path
        if isinstance(path, str):
            return cls.parse(path)
        if not isinstance(path, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _not_path_like(path)
        return cls(*path)

    def __truediv__(self, name: str) -> Path:
        if name.__class__ is not str:
            return Path(*self.names, name)
        path = object.__new__(Path)  # the names of a path have been checked
        object.__setattr__(path, "names", (*self.names, name))
        return path

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self.names == other.names

    def __hash__(self) -> int:
        return hash((Path, self.names))

    def __reduce__(self) -> tuple[type[Path], tuple[str, ...]]:
        return Path, self.names

    def __str__(self) -> str:
        return ".".join(quote(name) for name in self.names)

    def __repr__(self) -> str:
        return f"Path({', '.join(map(repr, self.names))})"


def quote(name: str) -> str:
    """Returns a field name in the form in which a path contains it.

    >>> from extensor._path import quote
    >>> print(quote("title"), quote("vit. C"), quote(""))
    title "vit. C" ""
    """
    bare = name and not any(c in _RESERVED or c.isspace() or not c.isprintable() for c in name)
    if bare:
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _immutable(name: str, what: str) -> ImmutableError:
    at = f"Path.{name}"
    fix = "Make a new path: Path(*path.names, name)."
    return ImmutableError(at, f"no {what}, because paths are immutable", f"{what} of {name!r}", fix)


def _not_path_like(value: object) -> PathError:
    expected = "a string, a sequence of field names or a Path"
    fix = "Pass a path as a string or as a sequence of field names."
    return PathError("path", expected, type(value).__name__, fix)


_NAME = re.compile(r'"((?:\\.|[^"\\])*)"(?:\[\*\])*|([^."\'\[\]\\`]+)(?:\[\*\])*', re.DOTALL)
"""A name in quotes, or one without; list levels may follow."""


def _parse(text: str) -> Iterator[str]:
    at = 0
    while text:
        found = _NAME.match(text, at)
        if found is None:
            is_quoted = text.startswith('"', at)
            raise _syntax_error(text, at, "a closing quote" if is_quoted else "a field name")
        in_quotes, bare = found.groups()
        yield re.sub(r"\\(.)", r"\1", in_quotes, flags=re.DOTALL) if bare is None else bare
        at = found.end()
        if at == len(text):
            return
        if text[at] != ".":
            raise _syntax_error(text, at, "a dot between two names")
        at += 1


def _syntax_error(text: str, at: int, expected: str) -> PathError:
    received = repr(text[at]) if at < len(text) else "the end of the string"
    fix = 'Quote a name with a dot, a quote or a bracket: recipe."est. time", or pass a tuple.'
    return PathError(f"path {text!r}", f"{expected} at position {at}", received, fix)
