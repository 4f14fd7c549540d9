"""The demonstration runs to its end."""

import pytest

pytestmark = pytest.mark.whole("runs the whole demonstration")

DEMO = """
from pathlib import Path
from demo.__main__ import main

main(Path({folder!r}), epochs=1, count=20)
"""


def test_the_demonstration_runs_to_its_end(run_python, tmp_path):
    printed = run_python(DEMO.format(folder=str(tmp_path))).stdout
    assert "probabilities are equal" in printed
    assert "list of names" in printed
    assert (tmp_path / "scored.parquet").exists()
