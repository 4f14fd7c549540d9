"""What a user does wrong is one line on the standard error and exit code 2, without a traceback."""

import datetime as dt
import decimal
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
from extensor_command.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files of every fault, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"x": [1, 2], "u": [[["a"]], None]}), "fine.parquet")
    pq.write_table(pa.table({"x": [[1e300]]}), "large.parquet")
    content = (tmp_path / "fine.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.parquet").write_text("x,y\n1,2\n")
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "table.xml").write_text("x,y\n1,2\n")
    (tmp_path / "bad.jsonl").write_text('{"x": 1}\n{"x": \n')
    (tmp_path / "mixed.jsonl").write_text('{"x": 1}\n{"x": "a"}\n')
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "empty.tfrecord").touch()
    (tmp_path / "records.py").write_text("import sys\n\ndef value(): sys.exit(0)\n")
    os.mkdir("folder")
    return tmp_path


MISTAKES = {
    "no command": ([], "Usage: extensor"),
    "another command": (["shcema"], "No such command 'shcema'"),
    "no file": (["schema"], "Missing argument 'FILE...'"),
    "another option": (["schema", "fine.parquet", "--nope"], "No such option"),
    "another format": (["schema", "fine.parquet", "--format", "xml"], "is not one of 'parquet'"),
    "a missing file": (["head", "none.parquet"], "none.parquet: expected a file"),
    "a pattern of nothing": (["head", "no-*.parquet"], "at least one file"),
    "a folder of nothing": (["head", "folder"], "at least one file"),
    "a file of another format": (["schema", "text.parquet"], "text.parquet: expected a"),
    "an empty file": (["schema", "empty.parquet"], "empty.parquet: expected a"),
    "a truncated file": (["head", "cut.parquet"], "cut.parquet: expected a"),
    "a suffix that is not known": (["schema", "table.xml"], "suffix '.xml'. Name the format"),
    "broken JSON": (["head", "bad.jsonl"], "bad.jsonl"),
    "JSON of two types": (
        ["convert", "mixed.jsonl", "x.parquet"],
        "x, line 2 of mixed.jsonl: expected a number",
    ),
    "a missing column": (["head", "fine.parquet", "-c", "y"], "y: expected one of"),
    "a column that is no path": (["head", "fine.parquet", "-c", "a..b"], "a..b"),
    "a negative count": (["head", "fine.parquet", "-n", "-1"], "-1 is not in the range"),
    "no target": (["convert", "fine.parquet"], "Missing argument"),
    "a target without format": (["convert", "fine.parquet", "x.xml"], "suffix '.xml'"),
    "a folder that does not exist": (["convert", "fine.parquet", "no/x.arrow"], "no, which does"),
    "a target that is a folder": (["convert", "fine.parquet", "folder", "--to", "json"], "folder"),
    "records that do not fit": (["convert", "fine.parquet", "x.tfrecord"], "u: expected"),
    "a number that float32 does not hold": (
        ["convert", "large.parquet", "x.parquet", "--float32"],
        "(a number is too large). Write float64: leave --float32 out.",
    ),
    "nulls of a format that has them": (
        ["convert", "fine.parquet", "x.csv", "--nulls", "x=0"],
        "csv keeps nulls",
    ),
    "a page in no folder": (["describe", "fine.parquet", "--html", "no/x.html"], "does not exist"),
    "a threshold": (["describe", "fine.parquet", "--threshold", "7"], "not in the range"),
    "no other files": (["describe", "fine.parquet", "--compare", "none.parquet"], "none.parquet"),
    "no model": (["serve-check", "none"], "none: expected the folder of a SavedModel"),
    "no SavedModel": (["serve-check", "folder"], "with saved_model.pb"),
    "a device": (["convert", "fine.parquet", "/dev/null", "--to", "json"], "device"),
    "a URL of nobody": (["schema", "nobody://x.parquet"], "nobody://x.parquet"),
    "a name that is no text": (["schema", "caf\udce9.parquet"], "caf\\xe9.parquet: expected a"),
    "a threshold that is no number": (
        ["describe", "fine.parquet", "--compare", "fine.parquet", "--threshold", "nan"],
        "expected a number between 0 and 1, got nan",
    ),
    "a module that ends Python": (["check", "exits:value"], "exits: expected a module"),
    "a function that ends Python": (["check", "records:value"], "records:value: expected a"),
    "a TFRecord file without records": (
        ["schema", "empty.tfrecord"],
        "empty.tfrecord: expected at least one record",
    ),
}


def files_of(folder):
    return sorted(set(os.listdir(folder)) - {"__pycache__"})  # what Python compiled


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_message_and_exit_code_2(name, folder, capfd):
    words, text = MISTAKES[name]
    before = files_of(folder)
    assert main(words) == 2
    out, errors = capfd.readouterr()
    assert out == ""
    assert text in errors
    assert "Traceback" not in errors
    assert files_of(folder) == before  # nothing half written


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"], ["head", "--help"]])
def test_help_is_on_the_standard_output(words, capfd):
    assert main(words) == 0
    out, errors = capfd.readouterr()
    assert re.search("Usage|version", out)
    assert errors == ""


def test_every_command_has_help_with_an_example(capfd):
    from extensor_command.commands import extensor

    for name in extensor.commands:
        assert main([name, "--help"]) == 0
        out, _ = capfd.readouterr()
        assert f"Example: extensor {name} " in out
    main(["--help"])
    out, _ = capfd.readouterr()
    assert "..." not in out.split("Commands:")[1]  # no help that is cut


def test_an_error_of_no_files_names_each_suffix_once(folder, capfd):
    assert main(["head", "folder"]) == 2
    errors = capfd.readouterr().err
    assert errors.count(".parquet") == 1
    assert ".gz" not in errors


def test_a_folder_that_cannot_be_written_is_named(folder, capfd, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "folder/x.arrow")

    # Not by the rights of the folder: root may write everywhere.
    monkeypatch.setattr("extensor._files.atomic_file._create", refuse)
    assert main(["convert", "fine.parquet", "folder/x.arrow"]) == 2
    assert capfd.readouterr().err == "Error: folder/x.arrow: Permission denied\n"


def test_nulls_in_lists_are_filled_by_an_option_that_the_error_names(folder, capfd):
    pq.write_table(pa.table({"x": [[1, None], [2]]}), "nulls.parquet")
    assert main(["convert", "nulls.parquet", "y.tfrecord"]) == 2
    message = capfd.readouterr().err
    assert "--nulls 'x[*]=0'" in message
    assert "nulls={" not in message
    assert main(["convert", "--nulls", "x[*]=0", "nulls.parquet", "y.tfrecord"]) == 0
    assert xt.read_tfrecord("y.tfrecord").to_py() == [{"x": [1, 0]}, {"x": [2]}]
    for option, says in (
        ("x", "is not PATH=VALUE"),
        ("y[*]=0", "there is no path 'y[*]', but x, x[*]"),
        ("x[*]=a", "'a' is no value of type int64, such as 0"),
    ):
        assert main(["convert", "--nulls", option, "nulls.parquet", "y.tfrecord"]) == 2
        assert says in capfd.readouterr().err


@pytest.mark.parametrize(
    ("values", "arrow"),
    [
        ([[1, None]], pa.list_(pa.int64())),
        ([[1.5, None]], pa.list_(pa.float32())),
        ([["a", None]], pa.list_(pa.string())),
        ([[b"a", None]], pa.list_(pa.binary())),
        ([[True, None]], pa.list_(pa.bool_())),
        ([[dt.date(2020, 1, 1), None]], pa.list_(pa.date32())),
        ([[dt.datetime(2020, 1, 1), None]], pa.list_(pa.timestamp("us"))),
        ([[decimal.Decimal("1.5"), None]], pa.list_(pa.decimal128(5, 1))),
        ([[dt.timedelta(1), None]], pa.list_(pa.duration("s"))),
        ([[dt.time(1), None]], pa.list_(pa.time64("us"))),
        ([[dt.datetime(2020, 1, 1), None]], pa.list_(pa.timestamp("s", "UTC"))),
        ([[[1, None]]], pa.list_(pa.list_(pa.int64()))),
        ([[[1], None]], pa.list_(pa.list_(pa.int64()))),
        ([[{"a": 1}, None]], pa.list_(pa.struct({"a": pa.int64()}))),
        ([[{"a": "x", "b": None}]], pa.list_(pa.struct({"a": pa.string(), "b": pa.bool_()}))),
        ([["12", None]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    ],
    ids=str,
)
def test_what_an_error_for_nulls_advises_works_when_it_is_pasted(values, arrow, folder, capfd):
    pq.write_table(pa.table({"x": pa.array(values, arrow)}), "nulls.parquet")
    command = ["convert", "nulls.parquet", "y.tfrecord"]
    for _ in range(3):
        code = main(command)
        message = capfd.readouterr().err
        found = re.search(r"(--nulls \S.*)$", message)
        if found is None:
            break
        assert "xt." not in message
        command[1:1] = shlex.split(found[1])
    assert "nulls" not in message
    # TFRecord has no lists in lists of records, and Parquet keeps them.
    assert code == 0 or "TFRecord" in message or "tf.train" in message or "tf.Example" in message


def test_errors_of_commands_name_no_arguments_of_python(folder, capfd):
    Path("mixed.json").write_text('{"x": 1}\n{"x": "a"}\n')
    assert main(["convert", "mixed.json", "y.parquet"]) == 2
    assert "conflicts=" not in capfd.readouterr().err
    pq.write_table(pa.table({"x": [0.1]}), "wide.parquet")
    assert main(["convert", "wide.parquet", "y.tfrecord"]) == 2
    message = capfd.readouterr().err
    assert "--float32" in message
    assert "tf.cast" not in message


def test_numbers_that_json_lacks_are_written_by_an_option_that_the_error_names(folder, capfd):
    pq.write_table(pa.table({"x": [float("nan")]}), "nan.parquet")
    assert main(["convert", "nan.parquet", "y.json"]) == 2
    message = capfd.readouterr().err
    assert "--allow-nan" in message
    assert "allow_nan=" not in message


@pytest.mark.whole("starts a process")
def test_without_click_the_command_names_the_extra(run_python):
    done = run_python(
        """
        import sys
        sys.modules["click"] = None
        from extensor_command.main import main
        sys.exit(main(["schema", "x.parquet"]))
        """,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert '[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_the_extra_is_installed_from_where_extensor_was_installed(monkeypatch, capsys):
    class Distribution:
        def read_text(self, name):
            return '{"url": "file:///home/me/extensor", "dir_info": {}}'

    monkeypatch.setitem(sys.modules, "click", None)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())
    assert main(["schema", "x.parquet"]) == 2
    assert capsys.readouterr().err.strip() == (
        "Error: the command line needs the package click. "
        'pip install "extensor[cli] @ file:///home/me/extensor"'
    )


@pytest.mark.whole("starts a process")
def test_without_the_sketches_describe_names_the_extra(run_python, tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    done = run_python(
        f"""
        import sys
        sys.modules["datasketches"] = None
        from extensor_command.main import main
        sys.exit(main(["describe", {str(tmp_path / "x.parquet")!r}]))
        """,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert '[describe]"' in done.stderr


def command(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "extensor", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.whole("starts a process")
def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(tmp_path):
    path = tmp_path / "many.parquet"
    pq.write_table(pa.table({"x": list(range(300_000))}), path)
    with command("head", "-n", 300_000, path) as process:
        assert process.stdout.readline() == '{"x":0}\n'
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(120) == 141
    assert "Traceback" not in errors
    assert "Error" not in errors


@pytest.mark.whole("starts a process")
def test_an_interrupt_ends_the_command_and_leaves_no_file(tmp_path):
    path, target = tmp_path / "many.jsonl", tmp_path / "many.parquet"
    with path.open("w") as file:
        for i in range(400_000):
            file.write(f'{{"x": {i}, "y": "text {i}"}}\n')
    with command("convert", path, target, "--progress") as process:
        line = ""
        while "convert:" not in line:
            line += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        assert process.wait(120) == 130, errors
    assert "Interrupted." in errors
    assert "Traceback" not in errors
    assert os.listdir(tmp_path) == ["many.jsonl"]


@pytest.mark.whole("starts a process")
def test_the_module_runs_the_command(tmp_path):
    with command("schema", tmp_path / "none.parquet") as process:
        out, errors = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert "none.parquet: expected a file" in errors
