"""`python -m release`: builds the wheel and the sources, checks them, and installs the wheel.

The last commit is built. The files appear in dist/ when every check passed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from release import contents
from release.build import ROOT, ReleaseError, built, output
from release.install import extras_of, install, interpreters


def main() -> int:
    """Returns 0 if every check passed."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as name:
        try:
            return _check(Path(name), arguments)
        except ReleaseError as error:
            print(f"[release] FAILED: {error}", file=sys.stderr)
            return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument(
        "--python", action="append", default=[], help="only this version, as 3.12; repeatable"
    )
    parser.add_argument("--extra", action="append", default=[], help="only this extra; repeatable")
    parser.add_argument(
        "--resolve",
        action="store_true",
        help="only let pip find the packages of each extra, and do not install them",
    )
    parser.add_argument("--no-install", action="store_true", help="only check the built files")
    return parser.parse_args()


def _check(folder: Path, arguments: argparse.Namespace) -> int:
    text = output(
        "git", "-c", "safe.directory=*", "show", "HEAD:src/extensor/__init__.py", cwd=ROOT
    )
    (version,) = re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    print(f"[release] building {version} twice")
    wheel, sources = built(folder)
    faults = contents.faults_of_wheel(wheel, version)
    faults += contents.faults_of_sources(sources, version)
    if faults:
        raise ReleaseError("\n".join(faults))
    for file in (wheel, sources):
        print(f"[release] {file.name}: {file.stat().st_size:,} bytes, the same both times")

    described = contents.metadata(wheel)
    supported = contents.pythons(described)
    extras = extras_of(described.get_all("Provides-Extra", []), arguments.extra)
    failed: list[str] = []
    missing: list[str] = []
    wrong = set(arguments.python) - set(supported)
    if wrong:
        raise ReleaseError(f"extensor does not support Python {', '.join(sorted(wrong))}")
    if not arguments.no_install:
        for python, interpreter in interpreters(arguments.python or supported).items():
            if interpreter is None:
                missing.append(python)
                print(f"[release] Python {python} is not on this machine")
                continue
            for extra in extras:
                step = f"Python {python}, {f'extensor[{extra}]' if extra else 'extensor'}"
                try:
                    done = install(
                        *(interpreter, wheel, extra, version),
                        *(folder / "environment", arguments.resolve),
                    )
                    print(f"[release] {step}: {done}", flush=True)
                except ReleaseError as error:
                    failed.append(step)
                    print(f"[release] {step}: FAILED\n{error}", flush=True)
    if failed or missing:
        not_there = [f"Python {python} is not on this machine" for python in missing]
        raise ReleaseError("; ".join(failed + not_there))
    (ROOT / "dist").mkdir(exist_ok=True)
    for file in (wheel, sources):
        shutil.copy(file, ROOT / "dist")
    print(f"[release] passed: dist/{wheel.name} and dist/{sources.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
