"""The types that pyright shows for each public function, in a program of a user."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from structure import api

ROOT = Path(__file__).parent
PROGRAM = ROOT / "typed" / "user_code.py"
FUNCTION = re.compile(r"^  (\w+)\(")
NOT_KNOWN = re.compile(r"\b(Any|Unknown)\b")
# The types of TensorFlow and NumPy have parameters of their own.
KNOWN = re.compile(r"(TypeSpec|Dataset)\[Unknown\]|ndarray\[Any, Any\]")
SHOWN = re.compile(r'Type of ".*" is "(.*)"', re.DOTALL)

pytestmark = pytest.mark.whole("pyright reads the library and others")


@pytest.fixture(scope="module")
def diagnostics():
    """What pyright says, by the number of the line."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(PROGRAM.parent)]
    run = subprocess.run(
        [*command, "--pythonpath", sys.executable], capture_output=True, text=True, check=False
    )
    found = {}
    for each in json.loads(run.stdout)["generalDiagnostics"]:
        if each["severity"] != "warning":
            found.setdefault(each["range"]["start"]["line"] + 1, []).append(each)
    return found


def lines():
    return list(enumerate(PROGRAM.read_text().splitlines(), 1))


def test_the_program_has_each_public_function():
    text, module, missing = PROGRAM.read_text(), "", []
    for line in api.FILE.read_text().splitlines():
        if line.startswith("extensor"):
            module = line.replace("extensor", "xt")
        elif (match := FUNCTION.match(line)) and f"reveal_type({module}.{match[1]}(" not in text:
            missing.append(f"{module}.{match[1]}")
    assert not missing, "Add a line with its type to tests/typed/user_code.py."


def test_a_type_that_is_not_known_gives_its_reason():
    for number, line in lines():
        shown, _, reason = line.rpartition("  # ")[2].partition(": ")
        if "reveal_type(" in line and NOT_KNOWN.search(KNOWN.sub("", shown)):
            assert reason, f"{PROGRAM.name}:{number}: say why the type is Any, after a colon."


def test_pyright_shows_the_types_in_the_comments(diagnostics):
    wrong = []
    for number, line in lines():
        shown = [SHOWN.fullmatch(each["message"]) for each in diagnostics.pop(number, [])]
        wanted = line.rpartition("  # ")[2].partition(": ")[0] if "reveal_type(" in line else None
        received = ", ".join(match[1] if match else "an error" for match in shown) or None
        if received != wanted:
            wrong.append(f"{PROGRAM.name}:{number}: expected {wanted}, got {received}")
    assert not wrong, "\n".join(wrong)
