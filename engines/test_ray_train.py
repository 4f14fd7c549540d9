"""Ray Train: two workers train together, each on its own shard of the files."""

import json
import subprocess
import sys
import textwrap

from engines import recipe_files
from engines.page import ROOT, example

SCRIPT = """
import ray
import ray.train
from ray.train.tensorflow import TensorflowTrainer

from tests.data import trainer


def loop(index, count):
    trainer.train(index, count, {source!r}, f"{folder}/{{index}}.json")


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False)
{example}
"""


def test_ray_train(tmp_path):
    source = str(tmp_path / "recipes")
    recipe_files.write_files(source)
    lines = textwrap.indent(example("Ray Train"), "    ")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(source=source, folder=tmp_path, example=lines))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    first, second = (json.loads((tmp_path / f"{i}.json").read_text()) for i in range(2))
    rows = recipe_files.ROWS
    assert sorted(first["seen"] + second["seen"]) == list(range(rows))
    assert first["steps"] == second["steps"]
    assert first["total"] == second["total"] == [rows, sum(range(rows))]
