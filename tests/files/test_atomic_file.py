"""Files that are written whole or not at all, and what killed writers leave."""

import contextlib
import importlib
import os
import threading
import types

import pytest

from extensor._files.atomic_file import atomic_file

atomic_file_module = importlib.import_module("extensor._files.atomic_file")

ABANDONED = ".menu.txt.extensor-0"


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
    others = [ABANDONED + "0", ABANDONED.replace("menu", "drinks"), ABANDONED[1:]]
    for name in others:
        (path.parent / name).write_text("somebody else's")
    with atomic_file(str(path)) as unfinished:
        with atomic_file(str(path)) as second:
            assert names(path) == sorted([*others, ABANDONED, ABANDONED[:-1] + "1", "menu.txt"])
            write(path, "bread")
            for name in (unfinished, second):
                with open(name, "w") as file:
                    file.write("cheese")
        assert path.read_text() == "cheese"
    assert path.read_text() == "cheese"
    assert names(path) == sorted([*others, "menu.txt"])


def test_a_file_that_is_moved_to_its_path_while_another_finds_it_is_kept(path, monkeypatch):
    """A writer ends, and another takes its name, when a third has just opened the file."""
    with contextlib.ExitStack() as second, contextlib.ExitStack() as first:
        first.enter_context(atomic_file(str(path)))

        def end_first(file, kind):
            monkeypatch.undo()
            first.close()
            second.enter_context(atomic_file(str(path)))
            fcntl.flock(file, kind)

        fcntl = atomic_file_module.fcntl
        other = types.SimpleNamespace(**{**vars(fcntl), "flock": end_first})
        monkeypatch.setattr(atomic_file_module, "fcntl", other)
        write(path, "bread")
        assert names(path) == [ABANDONED, "menu.txt"]
    assert names(path) == ["menu.txt"]


def test_a_folder_is_not_listed_because_it_may_have_many_files(path, monkeypatch):
    other = types.SimpleNamespace(**vars(os))
    del other.listdir, other.scandir
    monkeypatch.setattr(atomic_file_module, "os", other)
    write(path, "bread")
    assert path.read_text() == "bread"


def test_many_threads_write_one_path_and_the_file_is_whole_at_any_time(path):
    texts = [f"{i}" * 10_000 for i in range(8)]
    write(path, texts[0])
    threads = [
        threading.Thread(target=lambda t=t: [write(path, t) for _ in range(30)]) for t in texts
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert path.read_text() in texts
    for thread in threads:
        thread.join()
    assert names(path) == ["menu.txt"]
