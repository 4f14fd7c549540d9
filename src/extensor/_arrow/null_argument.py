"""The argument `nulls` as a whole: what "auto" in it stands for, and its text as code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from extensor._arrow.null_policy import REST, is_auto, is_error, place_of
from extensor._typing import FieldValue, NullsLike


def by_path(nulls: NullsLike | None) -> Mapping[Any, Any]:
    """Returns the policies by path; one for all fields has the key `*`."""
    return nulls if isinstance(nulls, Mapping) else {REST: nulls}


def has_auto(nulls: NullsLike | None) -> bool:
    """Returns whether a policy in the argument is "auto"."""
    return any(map(is_auto, by_path(nulls).values()))


def masking(nulls: NullsLike | None, rest: str = "mask") -> NullsLike | None:
    """Returns the argument with another policy for "auto".

    Args:
        nulls: The argument.
        rest: The policy. Under "mask", all nulls can be read that may be read under "auto".
    """
    if not has_auto(nulls):
        return nulls
    return {path: rest if is_auto(each) else each for path, each in by_path(nulls).items()}


def with_masks(nulls: NullsLike | None, masked: Collection[str]) -> NullsLike:
    """Returns the argument with "mask" for some paths, in place of the policies that they have.

    >>> from extensor._arrow.null_argument import with_masks
    >>> with_masks({"*": "error", "x.y": 0}, ["x", "x.y"])
    {'*': 'error', 'x': 'mask', 'x.y': 'mask'}
    """
    places = {place_of(path) for path in masked}
    kept = {
        path: each
        for path, each in by_path(nulls).items()
        if path == REST or place_of(path) not in places
    }
    # A field may have the name `*`.
    return {**kept, **{(REST,) if path == REST else path: "mask" for path in masked}}


def with_masks_in_auto(nulls: NullsLike | None, masked: Iterable[str]) -> NullsLike:
    """Returns the argument with "mask" for those of some paths whose policy is "auto".

    The other fields under "auto" have the policy "error".
    """
    given = by_path(nulls)
    own = {place_of(path): each for path, each in given.items() if path != REST}
    rest = given.get(REST)
    chosen = [path for path in masked if is_auto(own.get(place_of(path), rest))]
    return with_masks(masking(nulls, "error"), chosen)


def as_code(nulls: NullsLike | None) -> str:
    """Returns the argument as code, without the policies that are the default.

    >>> import extensor as xt
    >>> from extensor._arrow.null_argument import as_code
    >>> print(as_code({"*": "error", "minutes": xt.fill(0), "title": "mask"}))
    nulls={"minutes": xt.fill(0), "title": "mask"}
    """
    kept = {path: each for path, each in by_path(nulls).items() if not is_error(each)}
    if kept.keys() == {REST}:
        return f"nulls={_code(kept[REST])}"
    return "nulls={" + ", ".join(f"{_code(k)}: {_code(v)}" for k, v in kept.items()) + "}"


def _code(value: FieldValue) -> str:
    text = repr(value)
    if not isinstance(value, str) or text != f"'{value}'" or '"' in value:
        return text
    return f'"{value}"'
