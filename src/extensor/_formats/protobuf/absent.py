"""What `nulls=` does with the fields that a message does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import pyarrow as pa

from extensor._arrow.null_argument import by_path
from extensor._arrow.null_policy import REST, Nulls, Policy
from extensor._path import Path
from extensor._typing import NullsLike
from extensor.errors import FieldError


class Absent:
    """The policies for fields that a message does not have.

    Args:
        nulls: None for lists of no value or of one; "default", a policy of `from_arrow`, or a dict
            of policies by path.
    """

    def __init__(self, nulls: NullsLike | None) -> None:
        given = by_path(nulls)
        self._rest = given.get(REST)
        self._by_path = {Path.of(path).names: each for path, each in given.items() if path != REST}
        self._used: set[tuple[str, ...]] = set()
        # Raises for a policy that does not exist.
        self._nulls = Nulls(
            {
                path: policy
                for path, policy in {REST: self._rest, **self._by_path}.items()
                if policy is not None and not is_word(policy, "default", "empty")
            }
        )

    def policy(self, path: Path, arrow: pa.DataType) -> Policy | None:
        """Returns None for a list, "default", a policy of `from_arrow` for a field, or a value."""
        self._used.add(path.names)
        policy = self._by_path.get(path.names, self._rest)
        if policy is None or is_word(policy, "empty"):
            return None
        if is_word(policy, "default"):
            return policy
        found = self._nulls.at((path.names, 0), arrow)
        is_chosen = path.names in self._by_path or is_word(self._rest, "error", "mask", "auto")
        # A value in place of all nulls is for the fields that it fits; others stay lists.
        return None if found == "error" and not is_chosen else found

    def masks(self, paths: Iterable[Path]) -> bool:
        """Returns whether the policy of one of some paths, by its own name, is a mask."""
        return any(is_word(self._by_path.get(path.names), "mask") for path in paths)

    def is_known(self, path: Path) -> None:
        """Marks a path as one that exists, though its policy is that of the field around it."""
        self._used.add(path.names)

    def expect_all_used(self) -> None:
        for names in self._by_path:
            if names not in self._used:
                known = [str(Path(*used)) for used in sorted(self._used)]
                near = difflib.get_close_matches(str(Path(*names)), known, 3)
                listed = ", ".join(known[:20]) or "there is none"
                expected = f"the path of a field that a message may lack: {listed}"
                fix = f"Did you mean {' or '.join(near)}?" if near else "Remove the policy."
                raise FieldError(f"nulls, {Path(*names)}", expected, str(Path(*names)), fix)


def is_word(policy: object, *words: str) -> bool:
    return isinstance(policy, str) and policy in words
