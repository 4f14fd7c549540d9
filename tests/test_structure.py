"""The public names, the layers of modules, the list of tests, and the imports of examples."""

import doctest
import re
import warnings
from pathlib import Path

import pytest

import extensor as xt
from extensor._struct.spec import converter
from structure import api, errors, llms, picture, tests

ROOT = Path(__file__).parent.parent
EXAMPLE = re.compile(r"^\s*(?:>>>|\.\.\.) (.*)$", re.MULTILINE)
PRIVATE = re.compile(
    r"\b(?:extensor|xt)(?:\.\w+)*\._[a-z]|from extensor(?:\.\w+)* import .*\b_[a-z]"
)


def test_the_list_of_public_names_is_up_to_date():
    assert api.text() == api.FILE.read_text(), "Run `make structure`, and look at what changed."


def test_the_page_of_errors_is_up_to_date():
    assert errors.text() == errors.FILE.read_text(), "Run `make structure`."


def test_the_page_of_errors_has_the_texts_of_most_errors():
    page = errors.FILE.read_text()
    assert "| at least one path | Leave columns out to read all. |" in page
    assert page.count("\n| ") > 500
    for name in vars(xt.errors):
        if name.endswith("Error") and name[0] != "_":
            assert f"\n## {name}\n" in page


def test_the_texts_for_language_models_are_up_to_date():
    assert llms.index() == llms.INDEX.read_text(), "Run `make structure`."
    assert llms.full() == llms.FULL.read_text(), "Run `make structure`."


def test_the_text_for_language_models_has_each_public_name_once():
    text = llms.FULL.read_text()
    names = re.findall(r"^## (xt[.\w]+)", text, re.MULTILINE)
    assert len(names) == len(set(names)) > 250
    without = [name.partition("(")[0] for name, _, example in llms.entries() if not example]
    assert without == [], "Write an example in the docstring of each public name."
    assert text.count("(not run: it needs a server)") == 8


@pytest.mark.whole("runs an example of each public name")
def test_each_example_of_the_text_for_language_models_runs(tmp_path, monkeypatch):
    blocks = re.split(r"^## ", llms.FULL.read_text(), flags=re.MULTILINE)[1:]
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner, parser, ran = doctest.DocTestRunner(optionflags=flags), doctest.DocTestParser(), 0
    for number, block in enumerate(blocks):
        code = block.partition("```python\n")[2].rpartition("```")[0]
        if ">>>" in code:
            folder = tmp_path / str(number)
            folder.mkdir()
            monkeypatch.chdir(folder)
            name = block.partition("(")[0].split()[0]
            example = parser.get_doctest(code, {"__name__": "__main__"}, name, None, 0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                runner.run(example)
            ran += bool(example.examples)
    assert runner.failures == 0
    assert ran == len(blocks) - 8


def test_the_picture_of_the_layers_is_up_to_date():
    assert picture.svg() == picture.FILE.read_text(), "Run `make structure`."


def test_the_list_of_test_files_is_up_to_date():
    assert tests.text() == tests.FILE.read_text(), "Run `make structure`."


def test_a_test_file_without_a_docstring_is_an_error(tmp_path):
    file = tmp_path / "test_box.py"
    file.write_text("import extensor")
    with pytest.raises(ValueError, match=r"test_box\.py: expected a docstring"):
        tests.first_line(file)
    file.write_text('"""Boxes of values.\n\nMore."""')
    assert tests.first_line(file) == "Boxes of values."


# Folders of tests without a folder in the source, with what they test.
WITHOUT_SOURCE = {
    "apis": "TensorFlow's functions, one row of docs/apis.md each",
    "examples": "the programs of examples/",
    "fuzz": "damaged files, interrupted processes, threads, memory",
    "gpu": "where records and their ops are",
    "journeys": "whole programs of users",
}


def test_every_folder_of_tests_is_a_folder_of_the_source():
    source = ROOT / "src" / "extensor"
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    for folder in sorted(folders - {ROOT / "tests"}):
        first, *rest = folder.relative_to(ROOT / "tests").parts
        if first not in WITHOUT_SOURCE:
            assert source.joinpath(f"_{first}", *rest).is_dir(), folder


def test_each_folder_has_a_row_in_the_design():
    page = (ROOT / "docs" / "design.md").read_text()
    cells = re.findall(r"^\| (`[^|]*) \|", page[page.index("## The folders") :], re.MULTILINE)
    named = [name.strip("`/") for cell in cells for name in cell.split(", ")]
    source = ROOT / "src" / "extensor"
    found = {path.name for path in source.iterdir() if re.match("_[a-z]", path.name)}
    assert found <= set(named)
    assert len(named) == len(set(named))


def test_a_circle_is_not_drawn():
    with pytest.raises(ValueError, match=r"an import cycle: (a -> b -> a|b -> a -> b)"):
        picture.layers({"a": {"b"}, "b": {"a"}, "c": {"a"}})


def test_a_folder_is_drawn_above_all_that_it_imports():
    graph = {"data": {"struct", "path"}, "struct": {"path"}, "path": set()}
    assert picture.layers(graph) == [["path"], ["struct"], ["data"]]
    assert picture.arrows(graph) == [("data", "struct"), ("struct", "path")]


def test_no_import_leads_upwards():
    _, upwards = picture.with_late(picture.imports(), picture.imports(late=True))
    assert upwards == []


def test_each_converter_that_a_method_calls_is_registered():
    files = (ROOT / "src").rglob("*.py")
    calls = re.compile(r'converter\("(\w+)"\)\(')
    names = {name for file in files for name in calls.findall(file.read_text())}
    assert {"to_pandas", "mismatch"} <= names
    assert all(callable(converter(name)) for name in names - {"sqrt"})


def test_an_import_in_a_function_that_leads_upwards_is_seen():
    graph = {"data": {"struct"}, "struct": {"path"}, "path": set()}
    late = {"data": {"path"}, "struct": set(), "path": {"data"}}
    joined, upwards = picture.with_late(graph, late)
    assert joined == {"data": {"struct", "path"}, "struct": {"path"}, "path": set()}
    assert upwards == [("path", "data")]


def private_names(path):
    """Returns the lines of a file in which an example, or a program, uses a private name.

    The example of a private function imports that function from its own module.
    """
    text = path.read_text()
    own = None
    if ROOT / "src" in path.parents:
        own = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    if path.suffix == ".md" or own:
        text = "\n".join(EXAMPLE.findall(text))
    lines = [line for line in text.splitlines() if PRIVATE.search(line)]
    return [line for line in lines if line.split()[:2] != ["from", own]]


def test_examples_get_no_name_from_the_tests():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    assert [str(page) for page in pages if "getfixture" in page.read_text()] == []


FOLDERS = {"src": "*.py", "docs": "*.md", "examples": "*.py", "packages": "*.py", "demo": "*.py"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_examples_use_public_names_only(folder):
    files = [ROOT / "README.md", *(ROOT / folder).rglob(FOLDERS[folder])]
    assert len(files) > 1
    found = {str(file.relative_to(ROOT)): private_names(file) for file in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_private_name_in_an_example_is_seen(tmp_path):
    page = tmp_path / "page.md"
    lines = ["from extensor._struct import spec", "xt.struct._spec", "from extensor import _tf"]
    page.write_text("\n".join(f">>> {line}" for line in [*lines, "xt.struct.tree", "x._y"]))
    assert private_names(page) == lines
