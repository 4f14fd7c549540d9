"""What the wheel and the archive of the sources must hold, and must not hold."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

# The same in the wheel and in the archive of the sources.
_FIELDS = {
    "Name": "extensor",
    "License-Expression": "Apache-2.0",
    "License-File": "LICENSE",
    "Description-Content-Type": "text/markdown",
}
_NOT_RELEASED = re.compile(r"(^|/)(__pycache__|\.venv[^/]*|\.git|\.[a-z]+_cache|build)/|\.pyc$")
_TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$)")


def faults_of_wheel(path: Path, version: str) -> list[str]:
    """Returns what is wrong with a wheel, or an empty list."""
    faults: list[str] = []
    with zipfile.ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    info = f"extensor-{version}.dist-info"
    if path.name != f"extensor-{version}-py3-none-any.whl":
        faults.append(f"the name of the file is {path.name}")
    for name in (
        *("extensor/__init__.py", "extensor/py.typed", f"{info}/licenses/LICENSE"),
        *(f"{info}/METADATA", f"{info}/RECORD", f"{info}/WHEEL", f"{info}/entry_points.txt"),
    ):
        if name not in files:
            faults.append(f"no {name}")
    for name in files:
        if not name.startswith(("extensor/", f"{info}/")):
            faults.append(f"{name} is outside of the package")
        if _NOT_RELEASED.search(name) or _TESTS.search(name):
            faults.append(f"{name} is a test, or made by a run")
    if f"{info}/METADATA" in files:
        faults += _faults_of_metadata(files[f"{info}/METADATA"].decode(), version)
    if f"{info}/WHEEL" in files:
        wheel_info = message_from_string(files[f"{info}/WHEEL"].decode())
        if wheel_info["Root-Is-Purelib"] != "true" or wheel_info["Tag"] != "py3-none-any":
            faults.append("WHEEL: not for every platform")
    if f"{info}/RECORD" in files:
        faults += _faults_of_record(files, f"{info}/RECORD")
    return faults


def faults_of_sources(path: Path, version: str) -> list[str]:
    """Returns what is wrong with an archive of the sources, or an empty list."""
    faults: list[str] = []
    if path.name != f"extensor-{version}.tar.gz":
        faults.append(f"the name of the file is {path.name}")
    top = f"extensor-{version}/"
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        names = {member.name.removeprefix(top) for member in members}
        for member in members:
            if not member.name.startswith(top) or ".." in Path(member.name).parts:
                faults.append(f"{member.name} is outside of the folder {top}")
            if not member.isfile():
                faults.append(f"{member.name} is not a plain file")
            if _NOT_RELEASED.search(member.name.removeprefix(top)):
                faults.append(f"{member.name} is made by a run")
        for name in ("LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO", "pyproject.toml"):
            if name not in names:
                faults.append(f"no {name}")
        for folder in ("src/extensor/", "tests/", "docs/", "constraints/"):
            if not any(name.startswith(folder) for name in names):
                faults.append(f"no files in {folder}")
        found = archive.extractfile(f"{top}PKG-INFO") if "PKG-INFO" in names else None
        if found is not None:
            faults += _faults_of_metadata(found.read().decode(), version)
    return faults


def metadata(path: Path) -> Message:
    """Returns the metadata of a wheel."""
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(wheel.read(name).decode())


def pythons(described: Message) -> list[str]:
    """Returns the versions of Python, as "3.10", that the classifiers name."""
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier)
        for classifier in described.get_all("Classifier", [])
    )
    return [match[1] for match in found if match]


def _faults_of_metadata(text: str, version: str) -> list[str]:
    described = message_from_string(text)
    faults = [
        f"{name}: expected {value}, got {described[name]}"
        for name, value in {**_FIELDS, "Version": version}.items()
        if described[name] != value
    ]
    faults += [f"no {name}" for name in ("Summary", "Requires-Python") if not described[name]]
    description = described.get_payload()
    if not description.strip():
        faults.append("no description")
    for link in re.findall(r"\]\(((?!\w+:)[^()\s]+)\)", description):
        faults.append(f"the description has the relative link {link}, which leads nowhere")
    oldest = (pythons(described) or ["none"])[0]
    if described["Requires-Python"] != f">={oldest}":
        faults.append(f"Requires-Python is {described['Requires-Python']}, a classifier {oldest}")
    if "Typing :: Typed" not in described.get_all("Classifier", []):
        faults.append("no classifier Typing :: Typed")
    for line in described.get_all("Requires-Dist", []):
        if " @ " in line:
            faults.append(f"{line}: an address, which an index rejects")
    return faults


def _faults_of_record(files: dict[str, bytes], record: str) -> list[str]:
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(files[record].decode()))}
    faults = [f"{name} is not in RECORD" for name in files.keys() - rows.keys()]
    faults += [f"{name} is in RECORD only" for name in rows.keys() - files.keys()]
    for name in rows.keys() & files.keys() - {record}:
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode()
        if rows[name] != f"sha256={digest.rstrip('=')}":
            faults.append(f"{name} differs from RECORD")
    return faults
