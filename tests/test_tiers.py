"""The quick tests reach each module, public name and law; matrices are cut along a diagonal."""

import ast
import collections
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import extensor as xt
from structure import api
from tests import modules, tiers

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
MARKS = ("whole", "slow")


def quick_functions(file):
    """Returns the names of the test functions of a file that the quick tier runs."""
    if tiers.is_whole(file):
        return []
    return [
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not any(f"mark.{mark}" in ast.unparse(d) for d in node.decorator_list for mark in MARKS)
    ]


def test_each_module_has_a_quick_test():
    table = modules.read()
    assert set(table) == set(modules.modules()), "Write a quick test, and run `make quick-tests`."
    for module, test in table.items():
        if test != "import" and test.startswith("tests/"):
            assert quick_functions(ROOT / test), f"{module}: {test} has no quick test"


def test_each_public_name_is_in_a_quick_test_or_in_an_example():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    examples = re.findall(r"^\s*(?:>>>|\.\.\.) .*", "\n".join(p.read_text() for p in pages), re.M)
    tests = [file.read_text() for file in FILES if quick_functions(file)]
    words = set(re.findall(r"\w+", "\n".join([*examples, *tests])))
    names = re.findall(r"^  (?:class )?(\w+)", api.text(), re.MULTILINE)
    assert len(names) > 200
    assert sorted(set(names) - words) == []


def test_each_law_is_broken_in_a_quick_test():
    file = ROOT / "tests" / "testing" / "test_laws.py"
    assert "test_a_wrong_type_breaks_one_law" in quick_functions(file)
    wrong = (ROOT / "tests" / "samples" / "wrong_types.py").read_text()
    assert [law.name for law in xt.testing.laws() if f'"{law.name}"' not in wrong] == []


def test_a_mark_that_takes_out_a_test_has_a_reason():
    marks = re.compile(r"mark\.whole(?!\(\s*\"\w[^\"]* )")
    without = [
        str(file.relative_to(ROOT))
        for file in [*FILES, *(ROOT / "tests").rglob("conftest.py")]
        if file != Path(__file__) and marks.search(file.read_text())
    ]
    assert without == []


class Case:
    """What pytest collects, as far as the tiers read it."""

    def __init__(self, test, axes, values):
        self.nodeid = f"{test}[{values}]"
        self.callspec = type("CallSpec", (), {"params": dict(zip(axes, values, strict=True))})
        self._marks = [pytest.mark.parametrize(name, []).mark for name in axes]

    def iter_markers(self, name):
        return self._marks


def cases(test, axes, *values):
    return [Case(test, axes, each) for each in values]


@pytest.mark.parametrize("sizes", [(1,), (5,), (2, 3), (37, 5), (4, 4), (2, 3, 4), (3, 1, 2)])
def test_a_diagonal_has_each_value_of_each_parameter_in_few_cases(sizes):
    axes = [f"p{i}" for i in range(len(sizes))]
    matrix = [()]
    for size in sizes:
        matrix = [(*row, value) for row in matrix for value in range(size)]
    chosen = [
        tuple(case.callspec.params.values()) for case in tiers.diagonals(cases("t", axes, *matrix))
    ]
    assert len(chosen) == max(sizes)
    for i, size in enumerate(sizes):
        assert {row[i] for row in chosen} == set(range(size))


def test_a_matrix_with_gaps_keeps_each_value():
    gaps = [(0, 1), (0, 2), (1, 0), (2, 0)]
    chosen = [tuple(c.callspec.params.values()) for c in tiers.diagonals(cases("t", "ab", *gaps))]
    assert {a for a, _ in chosen} == {b for _, b in chosen} == {0, 1, 2}


def test_cases_of_one_parameter_all_stay():
    chosen = tiers.diagonals(cases("t", "a", (0,), (1,), (2,)))
    assert len(chosen) == 3


@pytest.mark.parametrize("seed", range(4))
def test_files_that_are_marked_first_come_first(seed):
    items = [
        types.SimpleNamespace(
            path=name, get_closest_marker=lambda mark, name=name: mark == "first" and "c" in name
        )
        for name in ("a", "b", "c1", "c2", "d")
        for _ in range(2)
    ]
    found = [item.path for item in tiers.shuffled(items, seed)]
    assert sorted(found) == [item.path for item in items]
    assert {*found[:4]} == {"c1", "c2"}


# What pytest does with the options.


@pytest.fixture
def collected(tmp_path, run_python):
    """Returns a function that collects a small suite, and returns its tests by tier."""
    files = {
        "conftest.py": 'pytest_plugins = ["tests.tiers"]',
        "pytest.ini": "[pytest]\nmarkers =\n  whole(reason): r\n  slow: s\n  together(name): t\n",
        "test_quick.py": """
            import pytest
            def test_plain(): pass
            @pytest.mark.whole("reason")
            def test_marked(): pass
            @pytest.mark.slow
            def test_slow(): pass
            @pytest.mark.parametrize("a", range(3))
            @pytest.mark.parametrize("b", "xyz")
            def test_matrix(a, b): pass
        """,
        "test_whole.py": """
            import pytest
            pytestmark = pytest.mark.whole("reason")
            print("imported")
            def test_in_a_file(): pass
        """,
        "servers/conftest.py": 'import pytest\npytestmark = pytest.mark.whole("reason")\n',
        "servers/test_folder.py": "def test_in_a_folder(): pass",
    }
    for name, text in files.items():
        path = tmp_path / "suite" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("\n            ", "\n").strip() + "\n")
    code = f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        import pytest
        args = [{str(tmp_path / "suite")!r}, "--collect-only", "-q", "-p", "no:cacheprovider", "-s"]
        for tier in ("quick", "rest", "all"):
            for seed in ("1", "1", "4"):
                print("tier", tier, flush=True)
                pytest.main([*args, "--tier", tier, "--seed", seed])
    """
    printed = run_python(code).stdout
    found = collections.defaultdict(list)
    for part in printed.split("tier ")[1:]:
        tier = part.split()[0]
        found[tier].append(re.findall(r"::(\w+(?:\[.*\])?)$", part, re.MULTILINE))
        assert tier != "quick" or "imported" not in part
    return found


def test_a_file_that_is_not_there_is_named_also_by_several_processes():
    command = [sys.executable, "-m", "pytest", "--numprocesses", "2", "--tier", "quick", "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "file or directory not found: nonsense" in done.stderr + done.stdout


def test_each_test_is_in_one_tier(collected):
    quick, rest, everything = (set(collected[tier][0]) for tier in ("quick", "rest", "all"))
    matrix = {f"test_matrix[{b}-{a}]" for a in range(3) for b in "xyz"}
    diagonal = {"test_matrix[x-0]", "test_matrix[y-1]", "test_matrix[z-2]"}
    assert quick == {"test_plain", *diagonal}
    assert rest == {"test_marked", "test_in_a_file", "test_in_a_folder", *(matrix - diagonal)}
    assert everything == {*quick, *rest, "test_slow"}


def test_a_seed_is_one_order_of_whole_files(collected):
    first, again, other = collected["all"]
    assert first == again != other
    assert sorted(first) == sorted(other)
    for order in (first, other):
        plain = order.index("test_plain")
        assert order[plain + 1 : plain + 3] == ["test_marked", "test_slow"]
