"""The names of the tensors of a signature, derived from their paths and parts.

A name is a key of a SignatureDef, an operation of a graph, an argument of a tf.function and a key
of a request. All of these accept ASCII letters, digits and `_`, beginning with a letter. The names
of the operations of a graph must differ by more than upper and lower case.

The names of a path, and the part, are joined by `__`. The argument's name is left out if there is
no other argument. Other characters are written by their code point: `___e9_`.

So two tensors could get one name: the field `mask` of `x`, and the mask of `x`. Both get a longer
name then. In a longer name, the number of consecutive underscores has a meaning, and the name
begins with the argument:

| in the name | meaning |
| --- | --- |
| `_` between two letters or digits | an underscore |
| `__` | the dot between two names of the path |
| `___e9_` | the character with this hexadecimal code point, which is not allowed in a name |
| `___row_splits` at the end | the part |

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
"""The tensor of a name: its path, and its part; an empty string for the values at the path."""


def names_of(places: Sequence[Place], is_lone: bool = False) -> list[str]:
    """Returns a unique name for each place; it does not depend on their order.

    Args:
        places: Unique places. A path has at least one name.
        is_lone: Whether the first name of each path is left out, where the next one can begin a
            name.

    >>> from extensor import Path
    >>> from extensor._serving.tensor_name import names_of
    >>> steps = [(Path("recipe", "steps"), "row_splits"), (Path("recipe", "vit. C"), "")]
    >>> names_of(steps), names_of(steps, is_lone=True)
    (['recipe__steps__row_splits', 'recipe__vit___2e____20_C'],
     ['steps__row_splits', 'vit___2e____20_C'])
    >>> names_of([(Path("x", "mask"), ""), (Path("x"), "mask")])
    ['x__mask', 'x___mask']
    >>> names_of([(Path("id"), ""), (Path("Id"), "")])
    ['id', 'x___049_d']
    """
    forms = [_forms(*place, is_lone) for place in places]
    chosen = [0] * len(forms)
    while True:
        names = [form[i] for form, i in zip(forms, chosen, strict=True)]
        count = Counter(name.lower() for name in names)
        same = [n for n, name in enumerate(names) if count[name.lower()] > 1 and chosen[n] < 2]
        if not same:
            return names
        for n in same:
            chosen[n] += 1


def _forms(path: Path, part: str, is_lone: bool) -> tuple[str, str, str]:
    """Returns the names that a place may have: a short one, a longer one, one without capitals."""
    short = Path(*path.names[1:]) if is_lone and _begins_name(path.names[1:2]) else path
    text = _name(short, "", _is_plain)
    return (
        f"{text}__{part}" if part else text,
        _name(path, part, _is_plain),
        _name(path, part, lambda character: _is_plain(character) and not character.isupper()),
    )


def _begins_name(names: tuple[str, ...]) -> bool:
    start = names[0][:1] if names else ""
    return start.isascii() and start.isalpha() and not _is_word(names[0])


def _is_word(text: str) -> bool:
    """Returns whether a text has a meaning in Python, and cannot be an argument."""
    return keyword.iskeyword(text) or text == "self"


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _name(path: Path, part: str, is_allowed: Callable[[str], bool]) -> str:
    first, *others = path.names
    if first[:1].isalpha() and is_allowed(first[0]):
        start = _word(first, is_allowed)
    else:
        start = _escaped_start(first, is_allowed)
    text = "__".join([start, *(_word(name, is_allowed) for name in others)])
    if part:
        return f"{text}___{part}"
    return _escaped_start(text, is_allowed) if _is_word(text) else text


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
