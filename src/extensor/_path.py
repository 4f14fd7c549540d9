"""One value for a path to a field, such as `recipe.ingredients.amount`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

from extensor.errors import ImmutableError, PathError

PathLike = Union[str, Sequence[str], "Path"]
"""What a caller may write for a path: its text, a sequence of field names, or a `Path`."""

# Characters that would be taken for grammar, or lost sight of, in a bare name.
_RESERVED = frozenset(".\"'[]\\`")


class Path:
    r"""A path of field names from a record down to one of its fields.

    In text the names stand between dots. A name that holds a dot, white space, a quote, a
    bracket, a backslash or a control character, and the empty name, is written in double quotes,
    with a backslash before a double quote or a backslash; white space is read without quotes
    too. List levels are not written: the path
    of the amounts in a list of ingredients is `recipe.ingredients.amount`. Error messages may
    show them (`recipe.ingredients[*].amount`), and `parse` reads such text too.

    >>> Path("recipe", "ingredients", "amount")
    Path('recipe', 'ingredients', 'amount')
    >>> print(Path("recipe", "ingredients", "amount"), Path("nutrition facts", "vit. C"))
    recipe.ingredients.amount "nutrition facts"."vit. C"
    >>> Path.parse('"nutrition facts"."vit. C"').names
    ('nutrition facts', 'vit. C')

    Args:
        *names: The field names, outermost first. None at all is the record itself.
    """

    __slots__ = ("names",)

    names: tuple[str, ...]
    """The field names, outermost first."""

    def __init__(self, *names: str) -> None:
        for name in names:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise PathError(
                    path="path",
                    expected="field names of type str",
                    received=f"{type(name).__name__}",
                    mend="Write a path as text or as a sequence of field names.",
                )
        object.__setattr__(self, "names", names)

    def __setattr__(self, name: str, value: object) -> None:
        raise _immutable(name, "assignment")

    def __delattr__(self, name: str) -> None:
        raise _immutable(name, "deletion")

    @classmethod
    def parse(cls, text: str) -> Path:
        """Returns the path that a text spells.

        Args:
            text: Names between dots, quoted where the grammar needs it.

        Raises:
            PathError: If the text is not a path (also a ValueError).

        >>> Path.parse("recipe.ingredients[*].amount")
        Path('recipe', 'ingredients', 'amount')
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _no_path(text)
        return cls(*_parse(text))

    @classmethod
    def of(cls, path: PathLike) -> Path:
        """Returns `path` as a Path: a text is parsed, names in a sequence are taken literally.

        >>> Path.of(("recipe", "est. time"))
        Path('recipe', 'est. time')
        """
        if isinstance(path, Path):
            return path
        if isinstance(path, str):
            return cls.parse(path)
        if not isinstance(path, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _no_path(path)
        return cls(*path)

    def __truediv__(self, name: str) -> Path:
        return Path(*self.names, name)

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
        return ".".join(quoted(name) for name in self.names)

    def __repr__(self) -> str:
        return f"Path({', '.join(map(repr, self.names))})"


def quoted(name: str) -> str:
    """Returns one field name as it is written in a path.

    >>> print(quoted("title"), quoted("vit. C"), quoted(""))
    title "vit. C" ""
    """
    bare = name and not any(c in _RESERVED or c.isspace() or not c.isprintable() for c in name)
    if bare:
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _immutable(name: str, what: str) -> ImmutableError:
    return ImmutableError(
        path=f"Path.{name}",
        expected=f"no {what}, because paths are immutable",
        received=f"one of {name!r}",
        mend="Make a new path: Path(*path.names, name).",
    )


def _no_path(value: object) -> PathError:
    return PathError(
        path="path",
        expected="a text, a sequence of field names or a Path",
        received=type(value).__name__,
        mend="Write a path as text or as a sequence of field names.",
    )


def _parse(text: str) -> Iterator[str]:
    if not text:
        return
    at = 0
    while True:
        name, at = _name(text, at)
        yield name
        while text.startswith("[*]", at):
            at += 3
        if at == len(text):
            return
        if text[at] != ".":
            raise _not_a_path(text, at, "a dot between two names")
        at += 1


def _name(text: str, at: int) -> tuple[str, int]:
    if text.startswith('"', at):
        return _quoted_name(text, at)
    end = at
    while end < len(text) and text[end] not in _RESERVED:
        end += 1
    if end == at:
        raise _not_a_path(text, at, "a field name")
    return text[at:end], end


def _quoted_name(text: str, start: int) -> tuple[str, int]:
    letters: list[str] = []
    at = start + 1
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            letters.append(text[at + 1])
            at += 2
        elif text[at] == '"':
            return "".join(letters), at + 1
        else:
            letters.append(text[at])
            at += 1
    raise _not_a_path(text, start, "a closing quote")


def _not_a_path(text: str, at: int, expected: str) -> PathError:
    return PathError(
        path=f"path {text!r}",
        expected=f"{expected} at position {at}",
        received=repr(text[at]) if at < len(text) else "the end",
        mend="Quote a name that holds a dot, a quote or a bracket: "
        'recipe."est. time", or give the names as a tuple.',
    )
