"""Writes docs/errors.md: each class of error, an example, and the texts in the source.

Run `make structure`. A test compares the page, and its examples run with those of all pages.
"""

from __future__ import annotations

import ast
import collections
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from extensor import errors

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "errors.md"
SOURCE = ROOT / "src" / "extensor"
_PARTS = ("path", "expected", "received", "fix")
_ANY = "…"

_HEAD = """\
# Errors

Written by `make structure`, from `xt.errors` and the texts in the source.

An error has four parts: where (the path, and the record, line or file), what was expected, what was
received, and what to do. Search this page for the words after "expected", or for those of the last
sentence; `…` stands for what depends on your data.

- Each class is also the builtin that you may catch already, and an `xt.ExtensorError`.
- `error.path`, `error.expected`, `error.received` and `error.fix` are the parts.
- After an error nothing is half done: a file is complete or absent.

| class | also | when |
| --- | --- | --- |
"""

# Pages that say more, by the class of the error.
_PAGES = {
    "NullError": "[Records with nulls](howto/nulls.md)",
    "DTypeError": "[Fields of several types](howto/unions.md), [casting](casting.md)",
    "FieldError": "[Paths](paths.md), [structured tensors](structured-tensor.md)",
    "StructureError": "[Lists of different lengths](howto/ragged.md)",
    "FormatError": "[Formats](formats/README.md)",
    "StoreError": "[Object stores](formats/object-stores.md)",
    "RegistrationError": "[Extension types](extension-types.md)",
    "ProtocolError": "[Extension types](extension-types.md), [laws](laws.md)",
    "ArgumentError": "[auto_composite_tensor](auto-composite-tensor.md)",
    "LawError": "[Laws](laws.md)",
    "MissingTypeError": "[Save and load](howto/saving.md)",
    "DatabaseError": "[SQL](formats/sql.md)",
    "QueryError": "[SQL](formats/sql.md), [Spanner](formats/spanner.md)",
}


def text() -> str:
    """Returns the content of the page."""
    classes = [value for _, value in sorted(vars(errors).items()) if _is_error(value)]
    texts = _texts()
    rows = [
        f"| [`{cls.__name__}`](#{cls.__name__.lower()}) | `{_builtin(cls)}` | {_about(cls)} |"
        for cls in classes
    ]
    blocks = [_block(cls, texts.get(cls.__name__, {})) for cls in classes]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(blocks)


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, errors.ExtensorError)


def _builtin(cls: type) -> str:
    """Returns the name of the first builtin that a class is also."""
    return next(base.__name__ for base in cls.__mro__ if base.__module__ == "builtins")


def _about(cls: type) -> str:
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")


def _block(cls: type, fixes: Mapping[str, str]) -> str:
    doc = inspect.getdoc(cls) or ""
    example = doc[doc.index(">>>") :].strip()
    more = f"More: {_PAGES[cls.__name__]}.\n\n" if cls.__name__ in _PAGES else ""
    lines = [f"## {cls.__name__}", "", _about(cls), "", "```python", example, "", "```", ""]
    if fixes:
        lines += ["| expected | what to do |", "| --- | --- |"]
        lines += [f"| {_cell(expected)} | {_cell(fixes[expected])} |" for expected in sorted(fixes)]
        lines += [""]
    return "\n".join(lines) + (f"\n{more}" if more else "\n")


def _cell(text: str) -> str:
    """Returns a text as a cell of a table, in which nothing is markup."""
    text = re.sub(r"\s+", " ", text).strip().replace("`", "")
    return re.sub(r"([|\\*_<>\[\]])", r"\\\1", text)


def _texts() -> dict[str, dict[str, str]]:
    """Returns what to do for what was expected, by the class of the error."""
    found: dict[str, dict[str, set[str]]] = collections.defaultdict(dict)
    names = {name for name, value in vars(errors).items() if _is_error(value)}
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text()
        module, lines = ast.parse(source), source.splitlines()
        for function in ast.walk(module):
            if isinstance(function, ast.FunctionDef):
                for name, parts, line in _raised(function, names):
                    indent = len(lines[line - 1]) - len(lines[line - 1].lstrip())
                    known = _assigned(module.body) | _assigned(ast.walk(function), line, indent)
                    expected, fix = (_words(parts.get(part), known) for part in ("expected", "fix"))
                    if _has_words(expected) and _has_words(fix):
                        found[name].setdefault(expected, set()).add(fix)
    return {
        name: {expected: " / ".join(sorted(fixes)) for expected, fixes in texts.items()}
        for name, texts in found.items()
    }


def _has_words(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) > 1


def _assigned(
    nodes: Iterable[ast.AST], line: int | None = None, indent: int = 0
) -> dict[str, list[ast.expr]]:
    """Returns the values that names may have in a line: the last, and those of an `if` after it.

    Args:
        nodes: The statements.
        line: The line; None for the end.
        indent: The indentation of the line.
    """
    found: dict[str, list[ast.expr]] = {}
    assigned = [each for each in nodes if isinstance(each, ast.Assign)]
    for node in sorted(assigned, key=lambda each: each.lineno):
        if line is None or node.lineno < line:
            for name, value in _pairs(node.targets[0], node.value):
                is_choice = line is not None and node.col_offset > indent
                found[name] = [*(found.get(name, []) if is_choice else []), value]
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, its)


def _raised(function: ast.AST, names: set[str]) -> Iterator[tuple[str, dict[str, ast.expr], int]]:
    """Yields the class, the arguments and the line of each error that a function makes."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in names:
                given = dict(zip(_PARTS, node.args, strict=False))
                given |= {each.arg: each.value for each in node.keywords if each.arg}
                yield name, given, node.lineno


def _words(node: ast.expr | None, known: Mapping[str, list[ast.expr]], depth: int = 0) -> str:
    """Returns the words of a text in the source, with `…` for what is computed."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = (each.value if isinstance(each, ast.Constant) else _ANY for each in node.values)
        return "".join(str(part) for part in parts)
    if isinstance(node, ast.Name) and node.id in known and depth < 3:
        return " / ".join(dict.fromkeys(_words(each, known, depth + 1) for each in known[node.id]))
    if isinstance(node, ast.BinOp):
        sides = (_words(side, known, depth) or _ANY for side in (node.left, node.right))
        return "".join(sides)
    if isinstance(node, ast.IfExp):
        return " / ".join(filter(None, (_words(x, known, depth) for x in (node.body, node.orelse))))
    return "" if node is None else _ANY


def main() -> None:
    """Writes the page."""
    FILE.write_text(text())
    print(f"[errors] wrote {FILE.name}")


if __name__ == "__main__":
    main()
