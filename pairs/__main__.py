"""`python -m pairs FOLDER`: which tests of a folder pass only without `import extensor`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pairs.compare import Pair, compare
from pairs.side import ImportFailedError, Outcome, Side

PATTERNS = ("test_*.py", "*_test.py")


def main(arguments: list[str] | None = None) -> int:
    """Runs the pairs, and returns the exit status: 1 if a test passes only without the import."""
    # So that the process of the tests is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = _options(arguments)
    root, files = _files(Path(options.suite))
    if not files:
        print(f"[pairs] {options.suite}: no file is called {' or '.join(PATTERNS)}")
        return 2
    first = options.first
    if first.endswith(".py"):
        first = str(Path(first).resolve())
    sides = [
        Side(root, name, options.seconds, tuple(options.pytest_options)) for name in (None, first)
    ]
    print(f"[pairs] {len(files)} files of {root}, without and with {options.first}", flush=True)
    try:
        pairs = _run(files, sides)
    except ImportFailedError as error:
        print(f"[pairs] {options.first} cannot be imported\n{error}")
        return 2
    return _report(pairs, options.first)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m pairs",
        description="Runs the tests of a folder without and with `import extensor`, and names "
        "those that pass only without. Exits with 1 if there are any, with 2 if nothing was run.",
    )
    parser.add_argument("suite", help="a folder of pytest files (unittest too), or one file")
    parser.add_argument(
        "--first",
        default="extensor",
        metavar="MODULE",
        help="what to import first on one side: a module or a .py file (default: extensor)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=600,
        help="how long one test, or the collection of a file, may take (default: 600)",
    )
    parser.add_argument(
        "pytest_options", nargs="*", metavar="-- OPTION", help="more options for pytest"
    )
    return parser.parse_args(arguments)


def _files(suite: Path) -> tuple[Path, list[Path]]:
    """Returns the root of a suite, and the files with its tests."""
    suite = suite.resolve()
    if suite.is_file():
        return suite.parent, [suite]
    return suite, sorted({file for pattern in PATTERNS for file in suite.rglob(pattern)})


def _run(files: list[Path], sides: list[Side]) -> list[Pair]:
    pairs: list[Pair] = []
    started = time.monotonic()
    for number, file in enumerate(files, 1):
        print(f"[pairs] {number}/{len(files)} {file.relative_to(sides[0].root)}", flush=True)
        pair = compare(file, *sides)
        pairs.append(pair)
        seconds = time.monotonic() - started
        print(f"[pairs]     {_counted(pair.counts())} ({seconds:.0f} s so far)", flush=True)
        if not pair.ran():
            print(_line(f"{pair.file}, either way", pair.without[pair.file]), flush=True)
        found = len(pair.named) + len(pair.unsteady)
        if found:
            print(f"[pairs]     {found} passed only without it: see the end", flush=True)
    return pairs


def _report(pairs: list[Pair], first: str) -> int:
    total: Counter[str] = Counter()
    for pair in pairs:
        total.update(pair.counts())
    print(f"[pairs] {len(pairs)} files: {_counted(total)}")
    parts = {
        "passes only with it, which is no fault": [p.only_with() for p in pairs],
        "passed only without it, once: unsteady": [p.unsteady for p in pairs],
        f"passes only without {first}": [p.named for p in pairs],
    }
    for title, found in parts.items():
        if any(found):
            print(f"[pairs] {title}:")
        for tests in found:
            for test, outcome in tests.items():
                print(_line(test, outcome))
    if not any(pair.ran() for pair in pairs):
        print("[pairs] no test ran")
        return 2
    return 1 if any(pair.named for pair in pairs) else 0


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "no test"


def _line(test: str, outcome: Outcome) -> str:
    return f"    {test}\n        {outcome.word}: {outcome.why}"


if __name__ == "__main__":
    sys.exit(main())
