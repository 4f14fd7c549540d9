"""The picture of the floors, docs/floors.svg, drawn from the imports in the code.

Each box is a folder or file at the top of `src/extensor`. It stands above all that it imports. An
arrow means "imports"; an arrow that follows from others is left out. A dashed arrow is an import
inside a function that leads upwards. A public module that only
names what is in the private folder of its name shares its box.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "extensor"
FILE = ROOT / "docs" / "floors.svg"

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 176, 50, 18, 44, 20

Graph = dict[str, set[str]]


def imports(late: bool = False) -> Graph:
    """Returns for each room the rooms that it imports.

    Args:
        late: Whether to return the imports inside functions, not those of modules.
    """
    rooms = [p for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()]
    names = {path.stem for path in rooms} - {"__init__"}
    graph: Graph = {name: set() for name in names}
    for path in rooms:
        if path.stem in names:
            for file in [path] if path.is_file() else path.rglob("*.py"):
                graph[path.stem] |= set(_imported(file, late)) & names - {path.stem}
    return graph


def _imported(file: Path, late: bool) -> Iterator[str]:
    """Yields the rooms that a file imports, but not for types alone."""
    tree = ast.parse(file.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for_types = _inside(tree, lambda node: ast.unparse(node.test) == "TYPE_CHECKING", ast.If)
    in_functions = _inside(tree, lambda node: True, *functions)
    for node in ast.walk(tree):
        if node in for_types or (node in in_functions) is not late:
            continue
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


def _inside(tree: ast.AST, wanted: Callable[[Any], bool], *kinds: type) -> set[ast.AST]:
    """Returns all that stands inside nodes of some kinds."""
    found = [node for node in ast.walk(tree) if isinstance(node, kinds) and wanted(node)]
    return {inner for node in found for inner in ast.walk(node)}


def with_late(graph: Graph, late: Graph) -> tuple[Graph, list[tuple[str, str]]]:
    """Returns the graph with the imports inside functions, and those of them that lead upwards."""
    joined = {room: below | late[room] for room, below in graph.items()}
    upwards = [
        (room, other)
        for room in sorted(late)
        for other in sorted(late[room])
        if room in _below(graph, other)
    ]
    for room, other in upwards:
        joined[room].discard(other)
    return joined, upwards


def _below(graph: Graph, room: str) -> set[str]:
    """Returns all rooms that a room imports, also by others."""
    found: set[str] = set()
    new = {room}
    while new:
        new = set[str]().union(*(graph[one] for one in new)) - found
        found |= new
    return found


def floors(graph: Graph) -> list[list[str]]:
    """Returns the rooms floor by floor from the ground up.

    Raises:
        ValueError: If rooms import each other in a circle.
    """
    height: dict[str, int] = {}

    def measure(room: str, above: tuple[str, ...] = ()) -> int:
        if room in above:
            raise ValueError(f"a circle: {' -> '.join((*above, room))}")
        if room not in height:
            below = [measure(other, (*above, room)) for other in graph[room]]
            height[room] = 1 + max(below, default=-1)
        return height[room]

    for room in graph:
        measure(room)
    return [sorted(r for r in graph if height[r] == n) for n in range(max(height.values()) + 1)]


def arrows(graph: Graph) -> list[tuple[str, str]]:
    """Returns the imports that no longer way says already."""

    return [
        (room, other)
        for room in sorted(graph)
        for other in sorted(graph[room])
        if not any(other in _below(graph, between) for between in graph[room])
    ]


def folded(graph: Graph) -> Graph:
    """Returns the graph without the public modules that only name what is in a private folder."""
    faces = {room for room in graph if graph[room] == {f"_{room}"}}
    return {room: below - faces for room, below in graph.items() if room not in faces}


def ordered(rows: list[list[str]], graph: Graph) -> list[list[str]]:
    """Returns the rooms of each floor in an order that makes the arrows short."""
    edges = {room: set(graph[room]) for room in graph}
    for room, below in graph.items():
        for other in below:
            edges[other].add(room)
    for _ in range(8):
        at = {room: i - len(row) / 2 for row in rows for i, room in enumerate(row)}
        rows = [
            sorted(row, key=lambda r: sum(at[o] for o in edges[r]) / max(1, len(edges[r])))
            for row in rows
        ]
    return rows


def _first_line(room: str) -> str:
    path = SOURCE / room / "__init__.py"
    text = (path if path.exists() else SOURCE / f"{room}.py").read_text()
    return (ast.get_docstring(ast.parse(text)) or "").split("\n", 1)[0]


def svg() -> str:
    """Returns the picture."""
    every, upwards = with_late(imports(), imports(late=True))
    graph = folded(every)
    rows = ordered(floors(graph), graph)
    most = max(map(len, rows))
    width = 2 * _MARGIN + most * _WIDTH + (most - 1) * _GAP_X
    height = 2 * _MARGIN + len(rows) * _HEIGHT + (len(rows) - 1) * _GAP_Y
    at: dict[str, tuple[float, float]] = {}
    for floor, row in enumerate(rows):
        free = width - len(row) * _WIDTH - (len(row) - 1) * _GAP_X
        for i, room in enumerate(row):
            y = height - _MARGIN - _HEIGHT - floor * (_HEIGHT + _GAP_Y)
            at[room] = free / 2 + i * (_WIDTH + _GAP_X), y
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
    for room, other in upwards:
        (x0, y0), (x1, y1) = at[room], at[other]
        lines.append(
            f'<path class="a" stroke-dasharray="4 4" marker-end="url(#h)" '
            f'd="M{x0 + _WIDTH * 0.8:.0f} {y0:.0f}L{x1 + _WIDTH * 0.8:.0f} {y1 + _HEIGHT:.0f}"/>'
        )
    for room, other in arrows(graph):
        (x0, y0), (x1, y1) = at[room], at[other]
        a, b = x0 + _WIDTH / 2, x1 + _WIDTH / 2
        bend = (y1 - y0 - _HEIGHT) / 2
        lines.append(
            f'<path class="a" marker-end="url(#h)" d="M{a:.0f} {y0 + _HEIGHT:.0f}C{a:.0f} '
            f'{y0 + _HEIGHT + bend:.0f} {b:.0f} {y1 - bend:.0f} {b:.0f} {y1:.0f}"/>'
        )
    for room, (x, y) in at.items():
        face = room.lstrip("_")
        shared = face in every and face not in graph
        kind = "p" if shared or face == room else "b"
        title = f"{face}, {room}" if shared else room
        lines.append(
            f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" '
            f'rx="6"/><text class="t" x="{x + 10:.0f}" y="{y + 18:.0f}">{escape(title)}</text>'
        )
        for i, line in enumerate(_wrapped(_first_line(room), 32, 2)):
            lines.append(
                f'<text class="s" x="{x + 10:.0f}" y="{y + 31 + 11 * i:.0f}">{escape(line)}</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _wrapped(text: str, width: int, most: int) -> list[str]:
    """Returns the lines of a text, of which no more than some are kept."""
    lines = textwrap.wrap(text.replace("`", ""), width)
    return lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: width - 1]}…"]


def main() -> None:
    """Draws the picture into its file."""
    FILE.write_text(svg())
    print(f"[picture] drew {FILE.name}")


if __name__ == "__main__":
    main()
