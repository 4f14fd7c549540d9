"""Writes `tests/quick.txt`, a quick test file for each module of the library: `make quick-tests`.

A plugin of pytest. It looks at each function call while the quick tests run, which takes twice
their time; so the file is kept, and `test_tiers.py` checks that each module is in it and each test
is quick. Of several test files a module gets the one that runs the fewest other modules. A module
of which only the import runs functions has the word `import`.
"""

import ast
import collections
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_SOURCE = str(_ROOT / "src" / "extensor")
FILE = _ROOT / "tests" / "quick.txt"
_IMPORT = "import"
_HEADER = (
    "# A quick test file for each module, found by running it. Written by `make quick-tests`.\n"
)

# By module, the test files that run it.
_runs = collections.defaultdict(set)


def modules():
    """Returns the modules that define a function with a body, as paths below the package."""
    return [
        str(path.relative_to(_SOURCE))
        for path in sorted(Path(_SOURCE).rglob("*.py"))
        if any(map(_has_body, ast.walk(ast.parse(path.read_text()))))
    ]


def _has_body(node):
    """Returns whether a node is a function with more than a docstring and `...`."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return not all(
        isinstance(line, ast.Raise)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )


def read():
    """Returns the test file of each module."""
    lines = FILE.read_text().splitlines()
    return dict(line.split() for line in lines if line and not line.startswith("#"))


def _look_for(file):
    """Notes the modules whose functions are called from now on, for a test file."""
    seen = set()

    def look(frame, event, arg):
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
            if code.co_filename.startswith(_SOURCE) and code.co_name[0] != "<":
                _runs[code.co_filename].add(file)

    sys.setprofile(look)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Looks at the calls of the imports."""
    _look_for(_IMPORT)
    yield
    sys.setprofile(None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Looks at the calls of a test, with those of its fixtures."""
    _look_for(str(item.path.relative_to(_ROOT)))
    yield
    sys.setprofile(None)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Adds what another process has seen."""
    for module, files in node.workeroutput["runs"].items():
        _runs[module].update(files)


def pytest_sessionfinish(session):
    """Sends what this process has seen to the first one, which writes the file."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["runs"] = {
            module: sorted(files) for module, files in _runs.items()
        }
        return
    width = collections.Counter(file for files in _runs.values() for file in files)
    width[_IMPORT] = len(_runs) + 1  # the last choice
    found = {
        str(Path(module).relative_to(_SOURCE)): min(files, key=lambda file: (width[file], file))
        for module, files in _runs.items()
    }
    FILE.write_text("\n".join([_HEADER, *(f"{m} {found[m]}" for m in sorted(found))]) + "\n")
    missing = sorted(set(modules()) - set(found))
    print(f"\n[quick-tests] wrote {FILE.name}; modules without a quick test: {missing}")
