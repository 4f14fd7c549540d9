"""expect_one_of: the check of an argument that is one of a few values."""

from __future__ import annotations

from collections.abc import Sequence

from extensor.errors import DTypeError


def expect_one_of(
    choices: Sequence[object], value: object, argument: str, fix: str | None = None
) -> None:
    """Raises a DTypeError for a value that is none of those that an argument may have.

    Args:
        choices: The values, at least two.
        value: The value that was given.
        argument: The function and the argument, for the error.
        fix: What to do instead. Default: to leave out the argument, whose default is the first
            choice.

    >>> from extensor._choice import expect_one_of
    >>> expect_one_of(("error", "union"), "both", "read_json: conflicts")
    Traceback (most recent call last):
    extensor.errors.DTypeError: read_json: conflicts: expected 'error' or 'union', got 'both'. ...
    """
    if value not in choices:
        *names, last = map(repr, choices)
        fix = fix or f"Leave it out for {choices[0]!r}."
        raise DTypeError(argument, f"{', '.join(names)} or {last}", repr(value)[:60], fix)
