"""A file of tests on both sides: which pass only on one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pairs.side import Outcome, Side

ALONE = 20
"""So many tests of a file are each run again in a process of their own. More are run together."""

MISSING = Outcome("not run", "there is no test of this id")


@dataclass
class Pair:
    """What became of the tests of a file on both sides.

    Args:
        file: The path of the file below the suite's folder, which is the id of the file itself.
        without: The outcome of each test without the import, by its id.
        with_import: The same with the import.
    """

    file: str
    without: dict[str, Outcome]
    with_import: dict[str, Outcome]
    named: dict[str, Outcome] = field(default_factory=dict)
    """What passes only without, twice: its outcome with the import."""
    unsteady: dict[str, Outcome] = field(default_factory=dict)
    """What passed only without, and not again: its first outcome with the import."""

    def ran(self) -> bool:
        """Returns whether there is a test that ran without the import."""
        return len(self.without) > 1

    def only_without(self) -> dict[str, Outcome]:
        """Returns what passes only without the import, with its outcome with it."""
        return _only(self.without, self.with_import)

    def only_with(self) -> dict[str, Outcome]:
        """Returns what passes only with the import, with its outcome without it."""
        return _only(self.with_import, self.without)

    def counts(self) -> dict[str, int]:
        """Returns how many tests came out how, the file itself not counted."""
        tests = (self.without.keys() | self.with_import.keys()) - {self.file}
        passed = [
            (
                self.without.get(test, MISSING).word == "passed",
                self.with_import.get(test, MISSING).word == "passed",
            )
            for test in tests
        ]
        return {
            "pass both ways": passed.count((True, True)),
            "pass neither way": passed.count((False, False)),
            "pass only with": passed.count((False, True)),
            "pass only without": sum(test in self.named for test in tests),
            "unsteady": sum(test in self.unsteady for test in tests),
        }


def _only(here: dict[str, Outcome], there: dict[str, Outcome]) -> dict[str, Outcome]:
    return {
        test: there.get(test, MISSING)
        for test, outcome in here.items()
        if outcome.word == "passed" and there.get(test, MISSING).word != "passed"
    }


def compare(file: Path, without: Side, with_import: Side) -> Pair:
    """Runs a file on both sides, and what passes only without again before it is named.

    It runs again alone. What does not happen again alone may need the tests before it, so then
    the whole file runs again.
    """
    name = file.relative_to(without.root).as_posix()
    pair = Pair(name, without.run(file), with_import.run(file))
    suspects = pair.only_without()
    if not suspects:
        return pair
    groups = [[test] for test in suspects] if len(suspects) <= ALONE else [list(suspects)]
    if name in suspects:  # it was not collected, or its process died
        groups = []
    confirmed: set[str] = set()
    for group in groups:
        again = _only(without.run(file, group), with_import.run(file, group))
        confirmed |= again.keys() & set(group)
    if confirmed != suspects.keys():
        again = _only(without.run(file), with_import.run(file))
        confirmed |= again.keys() & suspects.keys()
    for test, outcome in suspects.items():
        (pair.named if test in confirmed else pair.unsteady)[test] = outcome
    return pair
