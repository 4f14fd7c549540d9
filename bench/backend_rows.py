"""Training with Keras on JAX, in the environment of `make backends-test` where it exists."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from bench.row import ProcessRow, Within

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-backends" / "bin" / "python"


def rows() -> list[ProcessRow]:
    if not PYTHON.exists():
        return []
    name = "a training step of Keras on JAX, fed by xt.data.arrays from Parquet, vs by ready arrays"
    return [ProcessRow(name, Within(1.2), _times)]


def _times() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(PYTHON), "-m", "backends.feed", folder, "1024"],
            cwd=ROOT,
            env={**os.environ, "KERAS_BACKEND": "jax"},
            check=True,
            capture_output=True,
            text=True,
        )
    report = json.loads(done.stdout.splitlines()[-1])
    return report["ours"], report["ready"]
