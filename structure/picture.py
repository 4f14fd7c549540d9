"""Draws docs/layers.svg, the picture of the imports.

Each box is a folder or file at the top of `src/extensor`, above all that it imports. An arrow means
"imports"; an arrow that follows from other arrows is omitted. A dashed arrow is an import upwards
inside a function. A public module that only lists the names of the private folder of the same name
shares its box.
"""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "extensor"
FILE = ROOT / "docs" / "layers.svg"

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 176, 50, 18, 44, 20

Graph = dict[str, set[str]]


def imports(late: bool = False) -> Graph:
    """Returns the packages that each package imports.

    Args:
        late: Whether to return the imports inside functions instead of those of modules.
    """
    packages = [p for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()]
    names = {path.stem for path in packages} - {"__init__"}
    graph: Graph = {name: set() for name in names}
    for path in packages:
        if path.stem in names:
            for file in [path] if path.is_file() else path.rglob("*.py"):
                graph[path.stem] |= set(_import(file, late)) & names - {path.stem}
    return graph


@functools.cache
def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _import(file: Path, late: bool) -> Iterator[str]:
    """Yields the packages that a file imports, except under TYPE_CHECKING."""
    for node in _statements(_parse(file), False, late):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts == ["extensor"]:
                yield from (alias.name for alias in node.names)
            elif parts[0] == "extensor":
                yield parts[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("extensor."):
                    yield alias.name.split(".")[1]


def _statements(node: ast.AST, in_function: bool, late: bool) -> Iterator[ast.AST]:
    """Yields the statements inside functions, or those outside, but none under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.stmt):
            if in_function is late:
                yield child
            starts = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from _statements(child, in_function or starts, late)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from _statements(child, in_function, late)


def with_late(graph: Graph, late: Graph) -> tuple[Graph, list[tuple[str, str]]]:
    """Returns the graph with the imports inside functions, and the list of imports upwards."""
    joined = {package: below | late[package] for package, below in graph.items()}
    upwards = [
        (package, other)
        for package in sorted(late)
        for other in sorted(late[package])
        if package in _below(graph, other)
    ]
    for package, other in upwards:
        joined[package].discard(other)
    return joined, upwards


def _below(graph: Graph, package: str) -> set[str]:
    """Returns all packages that a package imports, also indirectly."""
    found: set[str] = set()
    new = {package}
    while new:
        new = set[str]().union(*(graph[one] for one in new)) - found
        found |= new
    return found


def layers(graph: Graph) -> list[list[str]]:
    """Returns the packages of each layer, from the bottom up.

    Raises:
        ValueError: If imports form a cycle.
    """
    height: dict[str, int] = {}

    def measure(package: str, above: tuple[str, ...] = ()) -> int:
        if package in above:
            raise ValueError(f"an import cycle: {' -> '.join((*above, package))}")
        if package not in height:
            below = [measure(other, (*above, package)) for other in graph[package]]
            height[package] = 1 + max(below, default=-1)
        return height[package]

    for package in graph:
        measure(package)
    return [sorted(r for r in graph if height[r] == n) for n in range(max(height.values()) + 1)]


def arrows(graph: Graph) -> list[tuple[str, str]]:
    """Returns the imports that do not follow from other imports."""

    return [
        (package, other)
        for package in sorted(graph)
        for other in sorted(graph[package])
        if not any(other in _below(graph, between) for between in graph[package])
    ]


def folded(graph: Graph) -> Graph:
    """Returns the graph without the public modules that only list names of a private folder."""
    public_modules = {package for package in graph if graph[package] == {f"_{package}"}}
    return {
        package: below - public_modules
        for package, below in graph.items()
        if package not in public_modules
    }


def ordered(rows: list[list[str]], graph: Graph) -> list[list[str]]:
    """Returns the packages of each layer in an order that makes the arrows short."""
    edges = {package: set(graph[package]) for package in graph}
    for package, below in graph.items():
        for other in below:
            edges[other].add(package)
    for _ in range(8):
        at = {package: i - len(row) / 2 for row in rows for i, package in enumerate(row)}
        rows = [
            sorted(row, key=lambda r: sum(at[o] for o in edges[r]) / max(1, len(edges[r])))
            for row in rows
        ]
    return rows


def _first_line(package: str) -> str:
    path = SOURCE / package / "__init__.py"
    text = (path if path.exists() else SOURCE / f"{package}.py").read_text()
    return (ast.get_docstring(ast.parse(text)) or "").split("\n", 1)[0]


def svg() -> str:
    """Returns the picture."""
    every, upwards = with_late(imports(), imports(late=True))
    graph = folded(every)
    rows = ordered(layers(graph), graph)
    most = max(map(len, rows))
    width = 2 * _MARGIN + most * _WIDTH + (most - 1) * _GAP_X
    height = 2 * _MARGIN + len(rows) * _HEIGHT + (len(rows) - 1) * _GAP_Y
    at: dict[str, tuple[float, float]] = {}
    for layer, row in enumerate(rows):
        free = width - len(row) * _WIDTH - (len(row) - 1) * _GAP_X
        for i, package in enumerate(row):
            y = height - _MARGIN - _HEIGHT - layer * (_HEIGHT + _GAP_Y)
            at[package] = free / 2 + i * (_WIDTH + _GAP_X), y
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12">',
        "<style>.b{fill:#eef3fa;stroke:#5b7da6}.p{fill:#e7f6ea;stroke:#4c9a62}.t{fill:#1b2733}"
        ".s{fill:#5a6b7b;font-size:9px}.a{stroke:#9aa9b8;fill:none}.h{fill:#9aa9b8}"
        "@media (prefers-color-scheme: dark){.b{fill:#1d2a3a}.p{fill:#1c3324}.t{fill:#e6edf3}"
        ".s{fill:#9fb0c0}}</style>",
        '<defs><marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="h" d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for package, other in upwards:
        (x0, y0), (x1, y1) = at[package], at[other]
        lines.append(
            f'<path class="a" stroke-dasharray="4 4" marker-end="url(#h)" '
            f'd="M{x0 + _WIDTH * 0.8:.0f} {y0:.0f}L{x1 + _WIDTH * 0.8:.0f} {y1 + _HEIGHT:.0f}"/>'
        )
    for package, other in arrows(graph):
        (x0, y0), (x1, y1) = at[package], at[other]
        a, b = x0 + _WIDTH / 2, x1 + _WIDTH / 2
        bend = (y1 - y0 - _HEIGHT) / 2
        lines.append(
            f'<path class="a" marker-end="url(#h)" d="M{a:.0f} {y0 + _HEIGHT:.0f}C{a:.0f} '
            f'{y0 + _HEIGHT + bend:.0f} {b:.0f} {y1 - bend:.0f} {b:.0f} {y1:.0f}"/>'
        )
    for package, (x, y) in at.items():
        public = package.lstrip("_")
        shared = public in every and public not in graph
        kind = "p" if shared or public == package else "b"
        title = f"{public}, {package}" if shared else package
        lines.append(
            f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" '
            f'rx="6"/><text class="t" x="{x + 10:.0f}" y="{y + 18:.0f}">{escape(title)}</text>'
        )
        for i, line in enumerate(_wrap(_first_line(package), 32, 2)):
            lines.append(
                f'<text class="s" x="{x + 10:.0f}" y="{y + 31 + 11 * i:.0f}">{escape(line)}</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _wrap(text: str, width: int, most: int) -> list[str]:
    """Returns the wrapped lines of a text, at most `most` of them."""
    lines = textwrap.wrap(text.replace("`", ""), width)
    return lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: width - 1]}…"]


def main() -> None:
    """Writes the picture."""
    FILE.write_text(svg())
    print(f"[picture] drew {FILE.name}")


if __name__ == "__main__":
    main()
