"""Progress bars: on request, on a terminal and in a notebook; nowhere else."""

import sys

import pytest

import extensor as xt
from extensor import _progress

RECORDS = xt.struct.constant([{"title": "Tea", "minutes": [5, 2]}, {"title": "Pie", "minutes": []}])
LINES = b'{"title": "Tea", "good": true}\n{"title": "\xc3\x84", "good": "yes"}\n'
BATCHES = [RECORDS, RECORDS[:1]]


def write_to_duckdb(**options):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    xt.write_database(BATCHES, "recipes", duckdb.connect(), **options)


def read_tfrecord(**options):
    xt.write_tfrecord(BATCHES, "recipes.tfrecord", progress=False)
    xt.read_tfrecord("recipes.tfrecord", **options)


# What the last line of the bar has.
WORK = {
    "write_json": (lambda **o: xt.write_json(BATCHES, "recipes.jsonl", **o), "3.00 records"),
    "write_parquet": (lambda **o: xt.write_parquet(BATCHES, "a.parquet", **o), "3.00 records"),
    "write_arrow": (lambda **o: xt.write_arrow(BATCHES, "a.arrow", **o), "3.00 records"),
    "write_tfrecord": (lambda **o: xt.write_tfrecord(BATCHES, "a.tfrecord", **o), "3.00 records"),
    "write_database": (write_to_duckdb, "3.00 records"),
    "write_json, one": (lambda **o: xt.write_json(RECORDS, "one.jsonl", **o), "2.00/2.00"),
    "read_json": (lambda **o: xt.read_json(LINES, conflicts="union", **o), "62.0/62.0"),
    "read_tfrecord": (read_tfrecord, "3.00/3.00"),
    "describe": (lambda **o: xt.data.describe(RECORDS, **o), "2.00/2.00"),
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", WORK)
def test_a_bar_is_shown_on_request_and_counts_all(name, capsys):
    work, end = WORK[name]
    work(progress=True)
    shown = capsys.readouterr().err
    assert name.partition(",")[0] in shown
    assert end in shown.replace("\n", "\r").rstrip("\r").split("\r")[-1], shown


@pytest.mark.parametrize("name", WORK)
def test_nothing_is_shown_where_nobody_looks(name, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_DELAY", 0.0)
    WORK[name][0]()
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar_unless_it_is_declined(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_DELAY", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    xt.write_json(RECORDS, "recipes.jsonl")
    assert "write_json" in capsys.readouterr().err
    xt.write_json(RECORDS, "recipes.jsonl", progress=False)
    assert capsys.readouterr().err == ""


def test_a_bar_that_nobody_asked_for_waits(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_DELAY", 1000.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    xt.write_json(RECORDS, "recipes.jsonl")
    assert capsys.readouterr().err == ""


def test_without_tqdm_there_is_no_bar_and_a_request_is_an_error(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    xt.write_json(RECORDS, "recipes.jsonl")
    with pytest.raises(xt.errors.MissingDependencyError, match=r"\[progress\]"):
        xt.write_json(RECORDS, "recipes.jsonl", progress=True)
    assert capsys.readouterr().err == ""


def test_an_error_removes_the_bar(capsys):
    with pytest.raises(xt.errors.DTypeError):
        xt.write_json([RECORDS, "text"], "recipes.jsonl", progress=True)
    assert capsys.readouterr().err.endswith("\r")


def test_a_notebook_shows_a_bar(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="the extra `docs` is not installed")
    nbclient = pytest.importorskip("nbclient", reason="the extra `docs` is not installed")
    cells = [
        "import extensor as xt\nfrom extensor import _progress\n_progress._DELAY = 0.0",
        "xt.write_json(xt.struct.constant([{'x': 1}, {'x': 2}]), 'records.jsonl')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    shown = "".join(output.get("text", "") for output in notebook.cells[1].outputs)
    assert "write_json" in shown
    assert "2.00/2.00" in shown
