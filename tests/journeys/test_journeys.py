"""Three new users reach their goal by the public names: each script runs in a folder of its own."""

from pathlib import Path

import pytest

QUICK = "researcher"
MARK = pytest.mark.whole("one journey is enough for the quick tests")
SCRIPTS = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py") if path.stem[:5] != "test_"
)

RUN = """
import os, runpy
os.chdir({folder!r})
runpy.run_path({path!r}, run_name="__main__")
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == QUICK else MARK) for name in SCRIPTS]
)
def test_a_new_user_reaches_the_goal(run_python, tmp_path, name):
    path = Path(__file__).with_name(f"{name}.py")
    printed = run_python(RUN.format(folder=str(tmp_path), path=str(path)), timeout=300).stdout
    assert printed.splitlines()[-1] == "done"
