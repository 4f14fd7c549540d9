"""Each name of `xt.authoring` is on the page for authors, and has tests."""

import ast
from pathlib import Path

import pytest

import extensor as xt

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "authoring.md").read_text()
# The tests of these are the tests of the public names that are the same objects.
SAME = {"extension_type": xt.extension_type, "replace": xt.replace}
FOLDERS = ("authoring", "protocol", "declare")


def used_names(source):
    """Returns the names that a test file imports from extensor, or reads from `xt.authoring`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("extensor."):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "xt.authoring":
            yield node.attr


@pytest.fixture(scope="module")
def tested():
    files = [path for folder in FOLDERS for path in (ROOT / "tests" / folder).glob("test_*.py")]
    files.append(ROOT / "tests" / "test_memory.py")
    return {name for file in files for name in used_names(file.read_text())}


@pytest.mark.parametrize("name", sorted(set(xt.authoring.__all__) - set(SAME)))
def test_every_name_is_on_the_page_and_in_a_test(name, tested):
    table, _, _ = PAGE.partition("\n## ")
    assert f"`{name}`" in table
    assert name in tested


@pytest.mark.parametrize("name", SAME)
def test_decorators_are_those_of_the_package(name):
    assert getattr(xt.authoring, name) is SAME[name]
