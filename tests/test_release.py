"""The checks of a release: what they accept, and that each of them can fail."""

import base64
import hashlib
import io
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import extensor as xt
from release import contents, install
from release.build import ReleaseError
from release.description import described

ROOT = Path(__file__).parents[1]
INFO = "extensor-1.2.0.dist-info"
METADATA = """Metadata-Version: 2.4
Name: extensor
Version: 1.2.0
Summary: A library.
License-Expression: Apache-2.0
License-File: LICENSE
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3.10
Classifier: Programming Language :: Python :: 3.11
Classifier: Typing :: Typed
Requires-Python: >=3.10
Requires-Dist: numpy>=1.26
Provides-Extra: tf
Description-Content-Type: text/markdown

# extensor
"""
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(folder, name="extensor-1.2.0-py3-none-any.whl", record=True, **changes):
    """Writes a wheel whose files are changed; None removes a file."""
    files = {
        "extensor/__init__.py": "",
        "extensor/py.typed": "",
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/WHEEL": WHEEL,
        f"{INFO}/entry_points.txt": "",
        f"{INFO}/licenses/LICENSE": "text",
        **changes.pop("files", {}),
    }
    files = {name: text.encode() for name, text in files.items() if text is not None}
    lines = [f"{INFO}/RECORD,,"]
    for file, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{file},sha256={digest if record else 'x'},{len(content)}")
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
        archive.writestr(f"{INFO}/RECORD", "\n".join(lines))
    return path


def sources(folder, top="extensor-1.2.0/", without=(), more=()):
    """Writes an archive of sources."""
    names = ["LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO", "pyproject.toml"]
    names += ["src/extensor/__init__.py", "tests/test_a.py", "docs/a.md", "constraints/a.txt"]
    path = folder / "extensor-1.2.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in [*names, *more]:
            if name in without:
                continue
            content = METADATA.encode() if name == "PKG-INFO" else b""
            member = tarfile.TarInfo(top + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_good_wheel_and_good_sources_have_no_fault(tmp_path):
    assert contents.faults_of_wheel(wheel(tmp_path), "1.2.0") == []
    assert contents.faults_of_sources(sources(tmp_path), "1.2.0") == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "extensor-1.2.0-cp310-none-any.whl"}, "the name of the file"),
        ({"files": {"extensor/py.typed": None}}, "no extensor/py.typed"),
        ({"files": {f"{INFO}/licenses/LICENSE": None}}, "no extensor-1.2.0.dist-info/licenses"),
        ({"files": {"extensor/test_a.py": ""}}, "extensor/test_a.py is a test"),
        ({"files": {"extensor/a.pyc": ""}}, "extensor/a.pyc is a test, or made by a run"),
        ({"files": {"tests/a.py": ""}}, "tests/a.py is outside of the package"),
        ({"files": {f"{INFO}/WHEEL": WHEEL.replace("py3", "cp310")}}, "WHEEL: not for every"),
        ({"record": False}, "differs from RECORD"),
    ],
)
def test_a_fault_of_a_wheel_is_found(tmp_path, changes, fault):
    assert fault in "\n".join(contents.faults_of_wheel(wheel(tmp_path, **changes), "1.2.0"))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Version: 1.2.0", "Version: 1.1.0", "Version: expected 1.2.0, got 1.1.0"),
        ("License-Expression: Apache-2.0\n", "", "License-Expression: expected Apache-2.0"),
        ("Requires-Python: >=3.10", "Requires-Python: >=3.9", "Requires-Python is >=3.9"),
        ("Classifier: Typing :: Typed\n", "", "no classifier Typing :: Typed"),
        ("numpy>=1.26", "numpy @ https://example.org/numpy.whl", "which an index rejects"),
        ("# extensor\n", "", "no description"),
        ("# extensor\n", "[page](docs/a.md)\n", "the relative link docs/a.md"),
    ],
)
def test_a_fault_of_the_metadata_is_found(tmp_path, old, new, fault):
    assert METADATA.count(old) == 1
    text = METADATA.replace(old, new)
    made = wheel(tmp_path, files={f"{INFO}/METADATA": text})
    assert fault in "\n".join(contents.faults_of_wheel(made, "1.2.0"))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"without": ["LICENSE"]}, "no LICENSE"),
        ({"without": ["tests/test_a.py"]}, "no files in tests/"),
        ({"more": [".venv/bin/python"]}, "made by a run"),
        ({"more": ["../a"]}, "is outside of the folder"),
        ({"top": "other/"}, "is outside of the folder"),
    ],
)
def test_a_fault_of_the_sources_is_found(tmp_path, changes, fault):
    found = contents.faults_of_sources(sources(tmp_path, **changes), "1.2.0")
    assert fault in "\n".join(found)


README = """[a](docs/a.md#b), ![p](docs/p.svg), [w](https://example.org), [`c`](c.md)

```python
x = y[0](z)
```

[a][0]
"""


def test_the_description_links_to_the_repository():
    text = described(README, "https://example.org/r")
    first, *rest = text.splitlines()
    assert first == (
        "[a](https://example.org/r/blob/HEAD/docs/a.md#b), "
        "![p](https://example.org/r/raw/HEAD/docs/p.svg), "
        "[w](https://example.org), [`c`](https://example.org/r/blob/HEAD/c.md)"
    )
    assert rest == README.splitlines()[1:]


def test_without_a_repository_the_description_has_no_relative_link():
    text = described(README, None)
    assert text.splitlines()[0] == "a, , [w](https://example.org), `c`"
    readme = described((ROOT / "README.md").read_text(), None)
    assert re.findall(r"\]\((?!https://)", readme) == []


def test_each_extra_has_a_use():
    text = (ROOT / "pyproject.toml").read_text()
    table = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = re.findall(r"^([\w-]+) = \[", table, re.MULTILINE)
    assert install.extras_of(extras, []) == ["", *extras]
    assert install.extras_of(extras, ["sql", "tf"]) == ["tf", "sql"]
    with pytest.raises(ReleaseError, match="no extra sq"):
        install.extras_of(extras, ["sq"])
    with pytest.raises(ReleaseError, match="other extras"):
        install.extras_of([*extras, "new"], [])


def test_a_use_runs_with_what_is_installed(run_python, tmp_path):
    program = install.PROGRAM.format(version=xt.__version__, use=install.USES["describe"])
    # This environment is not the one of a wheel.
    lines = [line for line in program.splitlines() if "assert xt.__" not in line]
    run_python(f"import os; os.chdir({str(tmp_path)!r})\n" + "\n".join(lines))


def test_interpreters_are_found_by_their_own_word(tmp_path, monkeypatch):
    version = "{}.{}".format(*sys.version_info)
    liar = tmp_path / "bin" / f"python{version}"
    liar.parent.mkdir()
    liar.write_text("#!/bin/sh\nexit 127\n")
    liar.chmod(0o755)
    monkeypatch.setenv("PATH", str(liar.parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert install.interpreters([version, "3.99"]) == {version: None, "3.99": None}
    real = tmp_path / "pyenv" / "versions" / f"{version}.1" / "bin"
    real.mkdir(parents=True)
    (real / f"python{version}").symlink_to(sys.executable)
    assert install.interpreters([version]) == {version: real / f"python{version}"}


def test_the_version_is_written_in_one_place():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {xt.__version__}\n" in citation
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["readme", "version"]' in pyproject
    assert 'path = "src/extensor/__init__.py"' in pyproject
