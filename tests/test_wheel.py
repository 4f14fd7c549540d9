"""The built wheel, installed where nothing is but the packages that it asks for; the sources."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]

# What a user does first, by public names only.
IMPORT_AND_USE = """
import importlib.metadata
import sys
import extensor as xt
import tensorflow as tf

assert xt.__file__.startswith(sys.prefix), f"imported {xt.__file__}"
assert xt.__version__ == importlib.metadata.version("extensor")
for name in xt.__all__:
    getattr(xt, name)

records = xt.DenseStructuredTensor([2], {"title": ["a", "b"], "x": [1.0, 2.0]})

@tf.function
def double(records):
    return records.with_updates(x=records["x"] * 2)

doubled = double(records)
assert isinstance(doubled, xt.StructuredTensor)
assert xt.to_arrow(doubled).to_pylist()[1] == {"title": "b", "x": 4.0}
"""


def _run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # Without isolation the build takes hatchling from this environment and needs no network.
    _run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation"),
        *("--outdir", folder, ROOT),
        cwd=folder,
    )
    (built,) = folder.glob("*.whl")
    return built


def program_of_the_readme() -> tuple[str, str]:
    """Returns the program at the top of the README, and what the README says that it prints."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ((program, output),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert sum(bool(line.strip()) for line in program.splitlines()) <= 30
    return program, output


def test_wheel_holds_the_sources_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert "extensor/py.typed" in expected
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_sources_are_the_repository(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("only Git knows which files belong to the repository")
    _run(
        *(sys.executable, "-m", "build", "--sdist", "--no-isolation"),
        *("--outdir", tmp_path, ROOT),
        cwd=tmp_path,
    )
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    # Whoever owns the files: a container may run this as another user.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert tracked - names == {".ci/run"}


def test_wheel_runs_the_readme_with_its_declared_requirements_only(
    wheel: Path, tmp_path: Path
) -> None:
    home = tmp_path / "venv"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    _run(
        *(sys.executable, "-m", "pip", "--python", python),
        *("install", "--no-deps", "--no-index", wheel),
        cwd=tmp_path,
    )
    (site,) = home.glob("**/site-packages")
    _link_requirements("extensor", extra=_tensorflow_extra(), site=site)
    # -I: neither the working directory nor PYTHONPATH can offer another extensor.
    _run(python, "-I", "-c", IMPORT_AND_USE, cwd=tmp_path)
    program, output = program_of_the_readme()
    (tmp_path / "program.py").write_text(program)
    assert _run(python, "-I", "program.py", cwd=tmp_path) == output


def _tensorflow_extra() -> str:
    try:
        distribution("tensorflow-cpu")
    except PackageNotFoundError:
        return "tf"
    return "tf-cpu"


def _link_requirements(name: str, *, extra: str, site: Path) -> None:
    """Links what `name[extra]` requires, directly or not, from this environment into `site`.

    Installing them anew would fetch a gigabyte; linking the whole environment would hide a
    requirement that nobody declared.
    """
    seen = {canonicalize_name(name)}
    waiting = [(name, {extra})]
    while waiting:
        parent, extras = waiting.pop()
        for line in distribution(parent).requires or ():
            requirement = Requirement(line)
            key = canonicalize_name(requirement.name)
            if key in seen or not _wanted(requirement, extras):
                continue
            seen.add(key)
            waiting.append((requirement.name, requirement.extras))
            found = distribution(requirement.name)
            for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                link = site / top
                if not link.exists():
                    link.symlink_to(Path(str(found.locate_file(top))).resolve())


def _wanted(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})
