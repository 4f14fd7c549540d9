"""The wheel and the archive of the sources, built twice, which must give the same bytes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


class ReleaseError(Exception):
    """A release has a fault."""


def output(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """Runs a command, and returns what it wrote.

    Raises:
        ReleaseError: If the command fails; the text has what it wrote.
    """
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        words = " ".join(map(str, command))
        raise ReleaseError(f"{words}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """Returns the wheel and the archive of the sources of the last commit.

    They are built two times, from copies in two folders, with files of other times and modes.

    Raises:
        ReleaseError: If the two builds differ, or if the wheel differs from the wheel that is built
            from the archive.
    """
    # From Git, so that a file that is not committed has no effect.
    git = ("git", "-c", "safe.directory=*")
    time = output(*git, "log", "-1", "--format=%ct", cwd=ROOT).strip()
    command = [*git, "archive", "--format=tar", "HEAD"]
    sources = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    builds: list[dict[str, Path]] = []
    for name, mode in (("first", 0o022), ("second", 0o077)):
        copy, made = folder / name / "copy", folder / name / "dist"
        with tarfile.open(fileobj=io.BytesIO(sources)) as archive:
            archive.extractall(copy, filter="data")
        for file in copy.rglob("*"):
            if file.is_file():
                os.utime(file, (len(builds) * 1e6,) * 2)
                file.chmod(file.stat().st_mode & ~mode)
        # Without an option, `build` makes the wheel from the archive of the sources.
        output(
            *(sys.executable, "-m", "build", "--no-isolation", "--outdir", made, copy),
            SOURCE_DATE_EPOCH=time,
        )
        output(
            *(sys.executable, "-m", "build", "--no-isolation", "--wheel"),
            *("--outdir", made / "direct", copy),
            SOURCE_DATE_EPOCH=time,
        )
        files = {file.name: file for file in made.iterdir() if file.is_file()}
        (direct,) = (made / "direct").iterdir()
        if direct.read_bytes() != files[direct.name].read_bytes():
            raise ReleaseError(f"{direct.name}: the wheel of the sources differs from its own")
        builds.append(files)
    first, second = builds
    for name in first.keys() | second.keys():
        if name not in first or name not in second:
            raise ReleaseError(f"{name}: made by one of two builds only")
        if first[name].read_bytes() != second[name].read_bytes():
            raise ReleaseError(f"{name}: two builds differ")
    (wheel,) = (file for name, file in first.items() if name.endswith(".whl"))
    (archive,) = (file for name, file in first.items() if name.endswith(".tar.gz"))
    return wheel, archive
