"""A number with its noun, in the singular or the plural."""

from __future__ import annotations


def count_text(count: object, noun: str) -> str:
    """Returns a number and a noun, for errors.

    Args:
        count: The number.
        noun: The noun, in the plural. Its first word ends with "s".

    >>> from extensor._count_text import count_text
    >>> count_text(1, "rows"), count_text(2, "rows"), count_text(1, "columns of this name")
    ('1 row', '2 rows', '1 column of this name')
    """
    first, space, rest = noun.partition(" ")
    return f"{count} {first.removesuffix('s') if count == 1 else first}{space}{rest}"
