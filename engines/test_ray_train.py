"""Ray Train: workers train together, and go on as more of them, each record once."""

import json
import subprocess
import sys
import textwrap

from engines import recipe_files
from engines.page import ROOT, example

SCRIPT = """
import json
import pathlib
import tempfile

import ray
import ray.train
from ray.train.tensorflow import TensorflowTrainer

from tests.data import trainer


def loop(index, count, states):
    output = f"{folder}/{{count}}-{{index}}.json"
    trainer.train(index, count, {source!r}, output, states, 30 if states is None else None)
    state = json.loads(pathlib.Path(output).read_text())["state"]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"state-{{index}}.json")
        path.write_text(json.dumps(state))
        ray.train.report({{}}, checkpoint=ray.train.Checkpoint.from_directory(folder))


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False)
    states = None
    for workers in (2, 3):
{example}
        with result.checkpoint.as_directory() as folder:
            paths = sorted(pathlib.Path(folder).glob("state-*.json"))
            states = [json.loads(path.read_text()) for path in paths]
        assert len(states) == workers
"""


def test_ray_train(tmp_path):
    source = str(tmp_path / "recipes")
    recipe_files.write_files(source)
    lines = textwrap.indent(example("Ray Train"), "        ")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(source=source, folder=tmp_path, example=lines))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    runs = [
        [json.loads((tmp_path / f"{count}-{i}.json").read_text()) for i in range(count)]
        for count in (2, 3)
    ]
    assert [each["steps"] for each in runs[0]] == [30, 30]
    seen = [n for run in runs for each in run for n in each["seen"]]
    assert sorted(seen) == list(range(recipe_files.ROWS))
    for run in runs:
        numbers = [n for each in run for n in each["seen"]]
        assert all(each["total"] == [len(numbers), sum(numbers)] for each in run)
        assert len({each["steps"] for each in run}) == 1
