"""Each example runs in a process and a folder of its own, and does what it claims."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
README = (FOLDER / "README.md").read_text()

RUN = """
import json, os, runpy, sys
os.chdir({folder!r})
sys.path[:0] = [{own!r}, {units!r}]
names = runpy.run_path({path!r}, run_name="example")
print(json.dumps(names["main"](), default=str))
"""

BETTER = {  # what each example compares: at least so much is gained
    "recommender": 0.1,
    "lists_of_names": 0.04,
    "graphs": 0.2,
    "batch_scoring": 0.2,
}
OTHERS = {"joint_model", "sensor_gaps", "named_axes", "units", "rest_client", "grpc_client"}
PARTS = {"rest_server", "grpc_server", "late_orders", "predict_messages"}  # of the clients


def run(run_python, name, folder):
    [path] = FOLDER.rglob(f"{name}.py")
    units = ROOT / "packages" / "extensor-quantity" / "src"
    code = RUN.format(folder=str(folder), own=str(path.parent), units=str(units), path=str(path))
    *printed, last = run_python(code).stdout.splitlines()
    assert_printed_as_the_readme_says(name, printed)
    return json.loads(last)


def assert_printed_as_the_readme_says(name, printed):
    """Compares all but the numbers, which may differ from one machine to another."""
    _, _, block = README.partition(f"({name}.py)")[2].partition("```text\n")
    if not block:
        _, _, block = README.partition(f"/{name}.py)")[2].partition("```text\n")
    shown = block.partition("```")[0].splitlines()
    assert shown
    assert [without_numbers(line) for line in printed[-len(shown) :]] == [
        without_numbers(line) for line in shown
    ]


def without_numbers(line):
    return re.sub(r"[-\d.]+", "#", line)


def test_all_examples_are_tested_and_short():
    files = {path.stem: path for path in FOLDER.rglob("*.py")}
    assert set(files) == set(BETTER) | OTHERS | PARTS
    for path in files.values():
        assert len(path.read_text().splitlines()) < 120


@pytest.mark.parametrize("name", sorted(set(BETTER) | OTHERS))
def test_the_readme_names_each_example_once(name):
    assert len(re.findall(rf"\((?:serving/)?{name}\.py\)", README)) == 1


@pytest.mark.parametrize("name", BETTER)
def test_a_model_beats_its_baseline(run_python, tmp_path, name):
    baseline, score = run(run_python, name, tmp_path)
    assert score > baseline + BETTER[name]


def test_a_mask_beats_zeros_in_the_gaps(run_python, tmp_path):
    zeros, mask = run(run_python, "sensor_gaps", tmp_path)
    assert mask < zeros / 2


def test_the_angle_is_found(run_python, tmp_path):
    truth, angle = run(run_python, "named_axes", tmp_path)
    assert abs(truth - angle) < 1e-3


def test_units_are_converted_and_checked(run_python, tmp_path):
    error, refused = run(run_python, "units", tmp_path)
    assert error < 1e-3
    assert refused == ["kg + l", "the price of grams"]


@pytest.mark.parametrize("name", ["rest_client", "grpc_client"])
def test_a_server_without_extensor_predicts_as_the_model(run_python, tmp_path, name):
    if name == "grpc_client":
        pytest.importorskip("grpc", reason="grpcio is not installed")
    late, here = run(run_python, name, tmp_path)
    assert late == pytest.approx(here, abs=1e-5)
    assert late[0] > 0.5 > late[1]  # the first order has a pot
