"""Writes docs/api.txt, the list of all public names with their signatures.

Run `make structure`. A test compares the file, so that each change of a public name is noticed.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import extensor

FILE = Path(__file__).parent.parent / "docs" / "api.txt"
_HEADER = "# Every public name and its signature. Written by `make structure`.\n"


def public_modules() -> list[str]:
    """Returns the names of the public modules: those without a leading underscore."""
    return ["extensor", *sorted(_public_below("extensor", extensor.__path__))]


def _public_below(package: str, path: Iterable[str]) -> Iterator[str]:
    for module in pkgutil.iter_modules(path):
        if module.name[0] != "_":
            name = f"{package}.{module.name}"
            yield name
            if module.ispkg:
                yield from _public_below(name, importlib.import_module(name).__path__)


def text() -> str:
    """Returns the content of the file."""
    blocks = ["\n".join(_module(name)) for name in public_modules()]
    return "\n\n".join([_HEADER, *blocks]) + "\n"


def _module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"{name}"
    for public in sorted(name for name in dir(module) if not name.startswith("_")):
        value = getattr(module, public)
        if isinstance(value, types.ModuleType):
            yield f"  {public}: module"
        elif isinstance(value, type):
            yield from _class(public, value)
        elif is_alias(value):
            yield f"  {public}: type"
        elif callable(value):
            yield f"  {public}{signature(value)}"
        else:
            yield f"  {public}: {type(value).__name__}"


def is_alias(value: object) -> bool:
    """Returns whether a value is a name of a union of types."""
    return typing.get_origin(value) in (typing.Union, types.UnionType)


def _class(name: str, cls: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    yield f"  class {name}({bases})" if bases else f"  class {name}"
    for member, value in sorted(_members(cls).items()):
        if isinstance(value, property):
            yield f"    {member}: property"
        elif isinstance(value, (classmethod, staticmethod)):
            kind = type(value).__name__
            yield f"    {member}{signature(value.__func__)}: {kind}"
        elif inspect.isfunction(value):
            yield f"    {member}{signature(value)}"
        else:
            yield f"    {member}"


def _members(cls: type) -> dict[str, Any]:
    """Returns the public members that extensor defines, also in base classes."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] == "extensor":
            for name, value in vars(base).items():
                if not name.startswith("_") or _is_constructor(value):
                    members[name] = value
    return members


def _is_constructor(member: Any) -> bool:
    """Returns whether a member is an `__init__` of the class itself, not added by Protocol."""
    return inspect.isfunction(member) and member.__name__ == "__init__"


def signature(function: Any) -> str:
    """Returns the signature of a function, with the annotations of its source."""
    found = inspect.signature(function)
    empty = inspect.Parameter.empty
    parameters = [
        parameter.replace(
            default=empty if parameter.default is empty else _Shown(parameter.default),
            annotation=_annotation(parameter.annotation),
        )
        for parameter in found.parameters.values()
    ]
    returned = _annotation(found.return_annotation)
    return str(found.replace(parameters=parameters, return_annotation=returned))


def _annotation(annotation: Any) -> Any:
    """Returns an annotation that is shown without quotes."""
    return _Unquoted(annotation) if isinstance(annotation, str) else annotation


class _Unquoted(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Shown:
    """Shows a default without its address in memory."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        plain = repr(self.value)
        return f"<{type(self.value).__name__}>" if " at 0x" in plain else plain


def main() -> None:
    """Writes the file."""
    FILE.write_text(text())
    print(f"[api] wrote {FILE.name}")


if __name__ == "__main__":
    main()
