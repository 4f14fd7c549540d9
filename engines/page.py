"""Runs the examples of docs/scaling.md, each in a process of its own."""

import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).parents[1]

# A model in a file, and a function with the number of its process.
MODELS = {
    "file": """
        recipe_files.model().save(f"{folder}/model.keras")
        model = f"{folder}/model.keras"
    """,
    "function": """
        import tensorflow as tf

        def model(records):
            total = tf.reduce_sum(records["steps.minutes"], 1)
            process = tf.fill(tf.shape(total), tf.numpy_function(os.getpid, [], tf.int64))
            return {"score": total, "scored": records["steps"], "process": process}
    """,
}

BEFORE = """
import os
import pyarrow as pa
import extensor as xt
from engines import recipe_files

folder = {folder!r}
source, target = f"{{folder}}/recipes", f"{{folder}}/scored"

if __name__ == "__main__":
    recipe_files.write_files(source)
{model}
    score = xt.arrow_function(model, recipe_files.SCHEMA, keep=pa.schema({{"id": pa.int64()}}))
{setup}
{example}
    print("processes:", recipe_files.check_scores(target))
"""


def example(title):
    """Returns the lines of the example below a title."""
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    [lines] = re.findall(rf"\*\*{title}\.\*\*.*?```python\n(.*?)```", page, re.DOTALL)
    assert len([line for line in lines.splitlines() if line]) <= 5
    return lines


def run(title, setup, model, folder, seconds):
    """Runs an example, and checks the files that it wrote.

    Args:
        title: The title of the example.
        setup: Lines that run before it.
        model: A key of `MODELS`.
        folder: An empty folder.
        seconds: The time after which the process is killed, and the test fails.

    Returns:
        The number of processes that ran the function; 0 if the model does not say.
    """
    parts = {"model": MODELS[model], "setup": setup, "example": example(title)}
    indented = {
        name: textwrap.indent(textwrap.dedent(lines).strip(), "    ")
        for name, lines in parts.items()
    }
    script = folder / "script.py"
    script.write_text(BEFORE.format(folder=str(folder), **indented), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return int(done.stdout.rpartition("processes:")[2])
