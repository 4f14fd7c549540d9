"""Five new users reach their goal by the public names, in an environment of the built wheel.

Two engineers with JSON, a researcher in a notebook, the author of a type, and a platform
engineer. Each script runs in a folder of its own.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem[:5] != "test_")

RUN = """
import os, runpy
os.chdir({folder!r})
runpy.run_path({path!r}, run_name="__main__")
"""


def test_a_researcher_reaches_the_goal(run_python, tmp_path):
    path = FOLDER / "researcher.py"
    printed = run_python(RUN.format(folder=str(tmp_path), path=str(path))).stdout
    assert printed.splitlines()[-1] == "done"


def _run(*command, cwd, **environment):
    """Returns what a command prints that knows neither the sources nor this environment."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**known, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Returns the Python of a new environment that has the built wheel."""
    folder = tmp_path_factory.mktemp("environment")
    _run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT),
        cwd=folder,
    )
    (wheel,) = folder.glob("*.whl")
    home = folder / "venv"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", wheel)
    _run(sys.executable, "-m", "pip", "--python", python, *install, cwd=folder)
    # The other packages are those of this environment; its editable extensor is not among them,
    # because Python reads no .pth file in a folder that a .pth file names.
    (site,) = home.glob("**/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = _run(python, "-c", "import extensor; print(extensor.__file__)", cwd=folder)
    assert where.startswith(str(home))
    return python


@pytest.mark.first
@pytest.mark.whole("builds the wheel, and trains and serves models in processes of their own")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_new_user_of_the_wheel_reaches_the_goal(python, tmp_path, name):
    shutil.copy(FOLDER / f"{name}.py", tmp_path)
    shutil.copy(ROOT / "examples" / "serving" / "rest_server.py", tmp_path)
    assert _run(python, f"{name}.py", cwd=tmp_path).splitlines()[-1] == "done"
