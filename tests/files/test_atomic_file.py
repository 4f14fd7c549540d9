"""Files that are written whole or not at all, and what killed writers leave."""

import importlib
import os
import re
import types

import pytest

from extensor._files.atomic_file import atomic_file

atomic_file_module = importlib.import_module("extensor._files.atomic_file")

ABANDONED = ".menu.txt." + "0123456789abcdef" * 2


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "menu.txt"
    path.write_text("soup")
    return path


def write(path, text):
    with atomic_file(str(path)) as unfinished, open(unfinished, "w") as file:
        file.write(text)


def names(path):
    return sorted(each.name for each in path.parent.iterdir())


def test_the_file_is_replaced_when_all_went_well(path):
    with atomic_file(str(path)) as unfinished:
        assert path.read_text() == "soup"
        with open(unfinished, "w") as file:
            file.write("bread")
    assert path.read_text() == "bread"
    assert names(path) == ["menu.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_new_file_has_the_permissions_of_the_old_one(path, mode):
    """A private file was one that all may read, after records were written to it."""
    path.chmod(mode)
    with atomic_file(str(path)) as unfinished:
        assert os.stat(unfinished).st_mode & 0o777 == mode | 0o200
        with open(unfinished, "w") as file:
            file.write("bread")
    assert path.read_text() == "bread"
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_file_stays_and_nothing_is_left_after_an_error(path, error):
    with pytest.raises(error), atomic_file(str(path)):
        raise error
    assert path.read_text() == "soup"
    assert names(path) == ["menu.txt"]


@pytest.mark.parametrize("function", ["fstat", "stat"])
def test_an_interrupt_after_the_file_was_created_leaves_nothing(path, function, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        other = types.SimpleNamespace(**{**vars(os), function: interrupt})
        context.setattr(atomic_file_module, "os", other)
        with pytest.raises(KeyboardInterrupt):
            write(path, "bread")
    assert path.read_text() == "soup"
    assert names(path) == ["menu.txt"]


def test_what_a_killed_writer_left_is_deleted_by_the_next(path, run_python):
    killed = run_python(
        f"""
        import os, signal
        from extensor._files.atomic_file import atomic_file

        with atomic_file({str(path)!r}) as unfinished:
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        check=False,
    )
    assert killed.returncode == -9
    assert len(names(path)) == 2
    write(path, "bread")
    assert names(path) == ["menu.txt"]


def test_files_of_others_and_of_a_writer_that_still_writes_are_kept(path):
    others = [
        ".menu.txt.notes",
        ABANDONED + "0",
        ABANDONED.replace("menu", "drinks"),
        ABANDONED[1:],
    ]
    for name in others:
        (path.parent / name).write_text("somebody else's")
    with atomic_file(str(path)) as unfinished:
        write(path, "bread")
        with open(unfinished, "w") as file:
            file.write("cheese")
    assert path.read_text() == "cheese"
    assert names(path) == sorted([*others, "menu.txt"])


def test_a_name_may_hold_what_means_more_in_a_pattern(tmp_path):
    path = tmp_path / "menu [1] (a+b).txt"
    abandoned = path.parent / f".{path.name}.{'ab' * 16}"
    abandoned.write_text("")
    write(path, "soup")
    assert re.escape(path.name) != path.name
    assert names(path) == [path.name]
