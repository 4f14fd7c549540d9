"""Writes the pages of the reference: one for each public module, and one for each of its names.

`docs/conf.py` calls it when the site is built; Sphinx reads the docstrings.
"""

from __future__ import annotations

import importlib
import inspect
import shutil
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structure.api import is_alias, public_modules


def write(folder: Path) -> None:
    """Writes all pages into a folder, which has nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    modules = public_modules()
    for module in modules:
        names = sorted(_names(module))
        (folder / f"{module}.md").write_text(_module_page(module, names))
        for name, value in names:
            (folder / f"{module}.{name}.md").write_text(_page(module, name, value))
    toc = "\n".join(modules)
    (folder / "index.md").write_text(f"# Reference\n\n```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n")


def names_of(module: str) -> list[str]:
    """Returns the full names of what a module has."""
    return [f"{module}.{name}" for name, _ in _names(module)]


def _names(module: str) -> Iterator[tuple[str, Any]]:
    """Yields the public functions, classes and constants of a module."""
    found = importlib.import_module(module)
    for name in dir(found):
        value = getattr(found, name)
        if not name.startswith("_") and not isinstance(value, types.ModuleType):
            yield name, value


def _module_page(module: str, names: list[tuple[str, Any]]) -> str:
    """Returns the page of a module: what it is for, and a table of its names."""
    rows = [f"| [`{name}`]({module}.{name}.md) | {_summary(value)} |" for name, value in names]
    table = "\n".join(["| name | what it is |", "| --- | --- |", *rows]) if rows else ""
    pages = "\n".join(f"{module}.{name}" for name, _ in names)
    toc = f"```{{toctree}}\n:hidden:\n\n{pages}\n```" if pages else ""
    about = inspect.getdoc(importlib.import_module(module)) or ""
    return f"# {_short(module)}\n\n{about}\n\n{table}\n\n{toc}\n"


def _page(module: str, name: str, value: Any) -> str:
    kind, options = "autodata", [":no-value:"]
    if getattr(importlib.import_module("extensor"), name, None) is value and module != "extensor":
        return f"# {_short(module)}.{name}\n\nThe same as [xt.{name}](extensor.{name}.md).\n"
    if isinstance(value, type):
        kind, options = "autoclass", [":members:", ":inherited-members: object"]
        options = [":members:", ":show-inheritance:"]
    elif callable(value) and not is_alias(value):
        kind, options = "autofunction", []
    body = "\n".join([f".. {kind}:: {module}.{name}", *(f"   {option}" for option in options)])
    return f"# {_short(module)}.{name}\n\n```{{eval-rst}}\n{body}\n```\n"


def _short(module: str) -> str:
    return module.replace("extensor", "xt", 1)


def _summary(value: Any) -> str:
    """Returns the first line of a docstring, as a cell of a table."""
    has_own = isinstance(value, type) or (callable(value) and not is_alias(value))
    text = inspect.getdoc(value) if has_own else None
    return (text or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
