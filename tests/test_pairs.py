"""`make pairs`: tests that pass only without the import are named, and nothing else is."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole("runs suites in processes of their own")

ROOT = Path(__file__).parents[1]

# Tests ask whether this module was imported.
STUB = '"""Stands for what is imported."""'
HEAD = """
    import os, pathlib, sys, time, unittest
    import pytest
    is_imported = "pairs_first" in sys.modules
    marks = pathlib.Path(os.environ["PAIRS_MARKS"])
"""


@pytest.fixture
def pairs(tmp_path):
    """`pairs({file: source}, *options)`: runs the command, with a stub for the import."""
    suite = tmp_path / "suite"
    (tmp_path / "marks").mkdir()
    (tmp_path / "stub.py").write_text(STUB)

    def run(files, *options, first=tmp_path / "stub.py"):
        for name, source in files.items():
            path = suite / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(HEAD + source))
        done = subprocess.run(
            [sys.executable, "-m", "pairs", str(suite), "--first", str(first), *options],
            cwd=ROOT,
            env={**os.environ, "PAIRS_MARKS": str(tmp_path / "marks")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.stderr == ""
        written = {path.relative_to(suite).as_posix() for path in suite.rglob("*")}
        assert written <= {*files, *(str(p) for name in files for p in Path(name).parents)}
        return done

    return run


def named(done):
    """The tests that the command names as passing only without the import."""
    _, _, text = done.stdout.partition("[pairs] passes only without ")
    return [line.strip() for line in text.splitlines() if line[:5].strip() and line[:4] == "    "]


def test_a_planted_test_that_passes_only_without_the_import_is_named(pairs):
    done = pairs(
        {
            "test_planted.py": """
    def test_passes(): pass

    def test_fails(): assert False

    @pytest.mark.parametrize("x", ["a b", "e::[x]"])
    def test_planted(x): assert not is_imported, "noticed"

    def test_only_with(): assert is_imported

    def test_skipped(): pytest.skip("always")

    @pytest.mark.xfail
    def test_expected(): assert False

    @pytest.fixture
    def late():
        yield
        assert not is_imported

    def test_teardown(late): pass

    class Case(unittest.TestCase):
        def test_case(self): self.assertFalse(is_imported)
        def test_sub(self):
            with self.subTest("x"): pass
""",
            "deep/planted_test.py": "    def test_fine(): pass",
            "deep/not_a_test_file.py": "    def test_other(): assert not is_imported",
        }
    )
    assert named(done) == [
        "test_planted.py::test_planted[a b]",
        "test_planted.py::test_planted[e::[x]]",
        "test_planted.py::test_teardown",
        "test_planted.py::Case::test_case",
    ]
    assert done.returncode == 1
    assert "noticed" in done.stdout
    assert "2 files: 3 pass both ways, 3 pass neither way, 1 pass only with, 4 pass" in done.stdout


def test_a_suite_that_does_not_notice_is_no_error(pairs):
    done = pairs({"test_fine.py": "    def test_fine(): pass\n\n    def test_bad(): assert 0"})
    assert named(done) == []
    assert done.returncode == 0
    assert "1 files: 1 pass both ways, 1 pass neither way" in done.stdout


@pytest.mark.slow
def test_extensor_is_imported_unless_an_option_names_another(pairs, tmp_path):
    source = """
    def test_planted(): assert "extensor" not in sys.modules
"""
    assert named(pairs({"test_it.py": source}, first="extensor")) == ["test_it.py::test_planted"]
    command = [sys.executable, "-m", "pairs", "--help"]
    help_text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "(default: extensor)" in help_text


@pytest.mark.slow
def test_a_test_that_ends_its_process_is_reported_and_the_rest_goes_on(pairs):
    done = pairs(
        {
            "test_abort.py": """
    def test_before(): pass

    def test_abort():
        if is_imported: os.abort()

    def test_exit():
        if is_imported: os._exit(0)

    def test_aborts_anyway(): os.abort()

    def test_after(): assert not is_imported
""",
            "test_at_the_end.py": """
    import atexit
    if is_imported: atexit.register(os.abort)

    def test_one(): pass
""",
            "test_when_collected.py": """
    if is_imported: os.abort()

    def test_one(): pass
""",
        }
    )
    assert named(done) == [
        "test_abort.py::test_abort",
        "test_abort.py::test_exit",
        "test_abort.py::test_after",
        "test_at_the_end.py",
        "test_when_collected.py::test_one",
        "test_when_collected.py",
    ]
    assert "aborted: SIGABRT" in done.stdout
    assert "aborted: exit 0" in done.stdout
    assert done.returncode == 1


@pytest.mark.slow
def test_a_test_that_takes_too_long_is_ended_and_the_rest_goes_on(pairs):
    source = """
    def test_long():
        if is_imported: time.sleep(1000)

    def test_after(): assert not is_imported
"""
    done = pairs({"test_long.py": source}, "--seconds", "3")
    assert named(done) == ["test_long.py::test_long", "test_long.py::test_after"]
    assert "timed out" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_the_tests_end_with_the_command(tmp_path, ended_by):
    pid_file = tmp_path / "pid"
    (tmp_path / "test_long.py").write_text(
        f"""
def test_long():
    import os, pathlib, time
    pathlib.Path({str(tmp_path / "being written")!r}).write_text(str(os.getpid()))
    os.rename({str(tmp_path / "being written")!r}, {str(pid_file)!r})
    time.sleep(1000)
"""
    )
    command = [sys.executable, "-m", "pairs", str(tmp_path)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(600):
        if pid_file.exists():
            break
        time.sleep(0.1)
    pid = int(pid_file.read_text())
    process.send_signal(ended_by)
    assert process.wait(timeout=60) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_test_that_fails_once_is_not_named(pairs):
    done = pairs(
        {
            "test_unsteady.py": """
    def test_unsteady():
        failed = marks / "failed"
        if is_imported and not failed.exists():
            failed.touch()
            raise AssertionError

    def test_fine(): pass
"""
        }
    )
    assert named(done) == []
    assert done.returncode == 0
    assert "once: unsteady:\n    test_unsteady.py::test_unsteady" in done.stdout


@pytest.mark.slow
def test_a_test_that_fails_only_after_another_is_named(pairs):
    source = """
    calls = []

    def test_first(): calls.append(1)

    def test_second(): assert not (calls and is_imported)
"""
    assert named(pairs({"test_order.py": source})) == ["test_order.py::test_second"]


@pytest.mark.slow
def test_a_file_that_cannot_be_imported_after_the_import_is_named(pairs):
    source = """
    assert not is_imported, "noticed"

    def test_one(): pass
"""
    done = pairs({"test_it.py": source})
    assert named(done) == ["test_it.py::test_one", "test_it.py"]
    assert "not collected: AssertionError: noticed" in done.stdout


def test_the_tests_see_their_own_folder_and_not_ours(pairs):
    done = pairs(
        {
            "test_path.py": """
    def test_path():
        import neighbor
        assert "pairs" not in sys.modules
        assert not any(pathlib.Path(p or ".", "child.py").exists() for p in sys.path)
        assert pathlib.Path("neighbor.py").exists()
""",
            "neighbor.py": "",
        }
    )
    assert "1 pass both ways" in done.stdout


def test_the_package_of_the_tests_is_imported_and_not_an_installed_one(pairs, tmp_path):
    """Also by what is imported first."""
    (tmp_path / "importing.py").write_text("import mock_package")
    done = pairs(
        {
            "mock_package/__init__.py": "",
            "mock_package/deep/__init__.py": "",
            "mock_package/deep/one_test.py": """
    def test_one():
        import mock_package
        assert mock_package.__file__ == str(pathlib.Path(__file__).parents[1] / "__init__.py")
""",
        },
        first=tmp_path / "importing.py",
    )
    assert done.returncode == 0
    assert "1 pass both ways" in done.stdout


def test_absl_flags_can_be_read(pairs):
    source = """
    from absl import flags
    flags.DEFINE_integer("pairs_depth", 3, "For this test.")

    def test_flag(): assert flags.FLAGS.pairs_depth == 3
"""
    assert "1 pass both ways" in pairs({"test_flags.py": source}).stdout


@pytest.mark.parametrize(
    ("files", "first", "text"),
    [
        ({}, "stub.py", "no file is called"),
        ({"test_none.py": ""}, "stub.py", "no test ran"),
        ({"test_it.py": "    import no_such_thing"}, "stub.py", "no_such_thing"),
        ({"test_it.py": "    def test_it(): pass"}, "no_such_module", "No module named"),
    ],
)
def test_what_runs_nothing_is_no_success(pairs, tmp_path, files, first, text):
    (tmp_path / "suite").mkdir()
    done = pairs(files, first=tmp_path / first if first.endswith(".py") else first)
    assert done.returncode == 2
    assert text in done.stdout


def test_make_runs_the_command():
    command = ["make", "--dry-run", "pairs", "SUITE=some folder", "PAIRS_ARGS=--first x"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 'python -m pairs "some folder" --first x' in done.stdout
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "make pairs" in listed.stdout
