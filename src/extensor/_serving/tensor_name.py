"""The names of the tensors of a signature, derived from their paths.

A name is a key of a SignatureDef, an operation of a graph, an argument of a tf.function and a key
of a request. All of these accept ASCII letters, digits and `_`, beginning with a letter. The names
of the operations of a graph must differ by more than upper and lower case. The number of
consecutive underscores has a meaning:

| in the name | meaning |
| --- | --- |
| `_` between two letters or digits | an underscore |
| `__` | the dot between two names of the path |
| `___e9_` | the character with this hexadecimal code point, which is not allowed in a name |
| `___row_splits` at the end | a tensor that is not a field: the rows of the field |

If a path does not begin with a letter, or the name is a Python keyword or `self`, the first
character is written as `x___0e9_`, with an additional zero. An empty first name of a path is
written as `x___0_`.
"""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Callable, Sequence

from extensor._path import Path

Place = tuple[Path, str]
"""The tensor of a name: its path, and its part if it is not a field (otherwise an empty string)."""


def names_of(places: Sequence[Place]) -> list[str]:
    """Returns a unique name for each place.

    A place has the same name in every signature. The exception are places whose names differ only
    in upper and lower case: their upper-case letters are written as code points.

    Args:
        places: Unique places. A path has at least one name.

    >>> from extensor import Path
    >>> from extensor._serving.tensor_name import names_of
    >>> names_of([(Path("recipe", "title"), ""), (Path("recipe", "steps"), "row_splits")])
    ['recipe__title', 'recipe__steps___row_splits']
    >>> names_of([(Path("vit. C"), ""), (Path("id"), ""), (Path("Id"), "")])
    ['vit___2e____20_C', 'id', 'x___049_d']
    """
    names = [_name(path, part, _is_plain) for path, part in places]
    same = Counter(name.lower() for name in names)
    return [
        name if same[name.lower()] == 1 else _name(*place, _is_plain_lower)
        for name, place in zip(names, places, strict=True)
    ]


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _is_plain_lower(character: str) -> bool:
    return _is_plain(character) and not character.isupper()


def _name(path: Path, part: str, is_allowed: Callable[[str], bool]) -> str:
    first, *others = path.names
    if first[:1].isalpha() and is_allowed(first[0]):
        start = _word(first, is_allowed)
    else:
        start = _escaped_start(first, is_allowed)
    text = "__".join([start, *(_word(name, is_allowed) for name in others)])
    if part:
        return f"{text}___{part}"
    return _escaped_start(text, is_allowed) if keyword.iskeyword(text) or text == "self" else text


def _escaped_start(name: str, is_allowed: Callable[[str], bool]) -> str:
    """Returns a name with its first character written as a code point."""
    code = f"{ord(name[0]):x}" if name else ""
    return f"x___0{code}_{_word(name[1:], is_allowed)}"


def _word(name: str, is_allowed: Callable[[str], bool]) -> str:
    return "".join(
        character
        if is_allowed(character)
        or (character == "_" and _is_single_underscore(name, at, is_allowed))
        else f"___{ord(character):x}_"
        for at, character in enumerate(name)
    )


def _is_single_underscore(name: str, at: int, is_allowed: Callable[[str], bool]) -> bool:
    return 0 < at < len(name) - 1 and is_allowed(name[at - 1]) and is_allowed(name[at + 1])
