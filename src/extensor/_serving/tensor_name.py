"""Names for the tensors of a signature: from a path to a word that TensorFlow takes anywhere.

A name is a key of a SignatureDef, an operation of a graph, an argument of a tf.function and a key
of a request. What all of them take are ASCII letters, digits and `_`, beginning with a letter; and
operations of one graph must differ by more than capitals. Underscores make the grammar, by how
many stand in a row:

| in the name | means |
| --- | --- |
| `_` between two letters or digits | itself |
| `__` | the dot between two names of the path |
| `___e9_` | the character of that code point, in hexadecimal: one that may not stand here |
| `___row_splits` at the end | a tensor that is no field: how rows are cut |

Only how a name begins needs more. Where the path begins with no letter, or the name would be a
word that Python keeps for itself, the first character is written as `x___0e9_`, with a zero more;
the empty first name of a path is written as `x___0_`.
"""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Callable, Sequence

from extensor._path import Path

Place = tuple[Path, str]
"""What a name stands for: a path, and what of it where it is no field (or the empty text)."""


def names_of(places: Sequence[Place]) -> list[str]:
    """Returns a name for each place, which no other place has.

    A place has the same name in every signature, unless another one there differs from it by
    capitals only: then both have their capitals written as other characters are.

    Args:
        places: Different places. A path has at least one name.

    >>> names_of([(Path("recipe", "title"), ""), (Path("recipe", "steps"), "row_splits")])
    ['recipe__title', 'recipe__steps___row_splits']
    >>> names_of([(Path("vit. C"), ""), (Path("id"), ""), (Path("Id"), "")])
    ['vit___2e____20_C', 'id', 'x___049_d']
    """
    names = [_name(path, part, _is_plain) for path, part in places]
    same = Counter(name.lower() for name in names)
    return [
        name if same[name.lower()] == 1 else _name(*place, _is_small)
        for name, place in zip(names, places, strict=True)
    ]


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _is_small(character: str) -> bool:
    return _is_plain(character) and not character.isupper()


def _name(path: Path, part: str, stays: Callable[[str], bool]) -> str:
    first, *others = path.names
    if first[:1].isalpha() and stays(first[0]):
        beginning = _word(first, stays)
    else:
        beginning = _begun(first, stays)
    text = "__".join([beginning, *(_word(name, stays) for name in others)])
    if part:
        return f"{text}___{part}"
    return _begun(text, stays) if keyword.iskeyword(text) or text == "self" else text


def _begun(name: str, stays: Callable[[str], bool]) -> str:
    """Returns a name whose first character may not stand there."""
    code = f"{ord(name[0]):x}" if name else ""
    return f"x___0{code}_{_word(name[1:], stays)}"


def _word(name: str, stays: Callable[[str], bool]) -> str:
    return "".join(
        character
        if stays(character) or (character == "_" and _stands_alone(name, at, stays))
        else f"___{ord(character):x}_"
        for at, character in enumerate(name)
    )


def _stands_alone(name: str, at: int, stays: Callable[[str], bool]) -> bool:
    return 0 < at < len(name) - 1 and stays(name[at - 1]) and stays(name[at + 1])
