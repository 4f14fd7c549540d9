"""Writes tests/README.md, the list of all test files with the first line of each docstring.

Run `make structure`. A test compares the file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests"
FILE = FOLDER / "README.md"
_HEADER = """\
# Tests

`tests/` has the folders of `src/extensor/`, without the underscore. The tests of `_protocol/box.py`
are in `protocol/test_box.py`, and in other files of `protocol/` if they concern several source
files. Files whose names do not begin with `test_` are used by tests. Written by `make structure`.
"""


def text() -> str:
    """Returns the content of the file."""
    return "\n".join([_HEADER, *(line for folder in _folders() for line in _section(folder))])


def first_line(path: Path) -> str:
    """Returns the first line of the docstring of a file.

    Raises:
        ValueError: If the file has no docstring.
    """
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    if not docstring:
        raise ValueError(f"{path}: expected a docstring that says what the file tests, got none")
    return docstring.splitlines()[0]


def _folders() -> list[Path]:
    return sorted({path.parent for path in FOLDER.rglob("*.py")})


def _section(folder: Path) -> Iterator[str]:
    yield f"## {folder.relative_to(ROOT).as_posix()}/"
    yield ""
    paths = sorted(folder.glob("*.py"), key=lambda path: (not path.stem.startswith("test_"), path))
    for path in paths:
        link = path.relative_to(FOLDER).as_posix()
        yield f"- [{path.name}]({link}): {first_line(path)}"
    yield ""


def main() -> None:
    """Writes the file."""
    FILE.write_text(text())
    print(f"[tests] wrote {FILE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
