"""A package of somebody else's, with a type of its own, installed, runs the laws from outside."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import extensor as xt

pytestmark = pytest.mark.whole("installs a package and runs its suite")

PACKAGE = Path(__file__).parents[1] / "packages" / "extensor-quantity"


def run(*command, cwd, path=()):
    """Runs a command with its own folders of modules in front; returns what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": os.pathsep.join(map(str, path)),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the installed package, and one with its tests and nothing of its sources."""
    home = tmp_path_factory.mktemp("quantity")
    source = home / "source"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    # hatchling is in this environment: neither a network nor another environment is needed.
    code, said = run(
        *(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"),
        *("--no-build-isolation", "--target", home / "site", source),
        cwd=home,
    )
    assert code == 0, said
    suite = home / "suite"
    suite.mkdir()
    shutil.copytree(source / "tests", suite / "tests")
    shutil.copy(source / "pyproject.toml", suite)
    return home / "site", suite


def test_its_own_suite_passes_with_every_law_that_applies(installed):
    site, suite = installed
    code, said = run(
        *(sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"), cwd=suite, path=[site]
    )
    assert code == 0, said
    assert re.search(r"= \d+ passed in ", said), said
    judged = set(re.findall(r"test_laws\[Quantity-(.*?)\d*\] PASSED", said))
    assert judged == {law.name for law in xt.testing.laws()}


def test_a_mistake_in_it_breaks_its_law(installed, tmp_path):
    site, suite = installed
    shutil.copytree(site / "extensor_quantity", tmp_path / "extensor_quantity")
    spec = tmp_path / "extensor_quantity" / "spec.py"
    right = "        return Quantity(components, self._unit)"
    assert spec.read_text().count(right) == 1
    wrong = "        return Quantity(components * 1, self._unit)"
    spec.write_text(spec.read_text().replace(right, wrong))
    code, said = run(
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_laws.py"),
        *("-k", "test_laws and components-run-no-op"),
        cwd=suite,
        path=[tmp_path],
    )
    assert code == 1, said
    assert re.search(
        r"LawError: Quantity breaks a law of extension types\.\nE +components-run-no-op: ", said
    ), said
    assert re.search(r"expected no op from from_components, got .*Mul", said), said
