"""The text forms of records: a repr of a few lines, and the schema as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from extensor._struct.display.cells import cell, cell_at, num_rows, with_first_fields
from extensor._struct.display.html import spec_html
from extensor._struct.display.schema import Node, node, root, shape_text
from extensor._struct.spec import StructuredTensorSpec, spec_or_none
from extensor._struct.to_python import holds_values
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor

WIDTH = 88
"""The width of a line of values, and of a repr of one line."""

_SCHEMA = 120
"""The length of a schema in a repr."""

_ROWS = 5


def short_text(records: StructuredTensor) -> str:
    """Returns shape, schema and the first and last records, in a few lines.

    Only the records and fields that are shown are read.
    """
    spec = records.__tf_type_spec__()
    head = f"<StructuredTensor shape={shape_text(spec)} {_schema(spec)}"
    if not holds_values(records):
        return head + ">"
    records = with_first_fields(records, WIDTH // 4)
    if spec.rank == 0:
        rows = [cell(records, WIDTH - 2)]
        one = f"{head} {rows[0]}>"
    else:
        rows = list(_rows(records)) or [""]
        one = f"{head} [{', '.join(rows)}]>"
        rows[:1] = ["[" + row for row in rows[:1]]
        rows[-1:] = [row + "]" for row in rows[-1:]]
        rows[1:] = [" " + row for row in rows[1:]]
    if len(one) <= WIDTH:
        return one
    return head + "\n " + ",\n ".join(rows) + ">"


def kind_text(records: StructuredTensor) -> str:
    """Returns class, shape and schema of records in one line, for an error."""
    spec = records.__tf_type_spec__()
    return f"a {type(records).__name__} of shape {shape_text(spec)} {_schema(spec)}"


def _schema(spec: StructuredTensorSpec) -> str:
    return _inline(node("", spec, spec.rank), _SCHEMA)[0]


def _rows(records: StructuredTensor) -> Iterator[str]:
    size = num_rows(records)
    shown = range(size) if size <= _ROWS else [0, 1, 2, None, size - 2, size - 1]
    for i in shown:
        yield "..." if i is None else cell_at(records, i, WIDTH - 4)


def _inline(of: Node, width: int) -> tuple[str, int]:
    """Returns the fields of a node in one line, and the width that is left."""
    parts: list[str] = []
    for i, name in enumerate(of.children):
        if width <= 0:
            parts.append(f"... {len(of.children) - i:,} more")
            break
        child = node(name, *of.children[name])
        if child.text.endswith(("record", "records", "union", "unions")):
            inner, width = _inline(child, width - len(child.name))
            union = "union " if "union" in child.text else ""
            text = f"{child.brackets}{' ' if child.brackets else ''}{union}{inner}"
        else:
            text = child.text
            width -= len(child.name) + len(text)
        text += " or null" if child.is_null else ""
        parts.append(f"{child.name}: {text}")
    return "{" + ", ".join(parts) + "}", width


class Tree:
    """The schema of records as a tree, one field a line; `str(tree)` is its text."""

    __slots__ = ("_lines", "_spec")

    def __init__(self, spec: StructuredTensorSpec, lines: list[str]) -> None:
        self._spec, self._lines = spec, lines

    def __repr__(self) -> str:
        return "\n".join(self._lines)

    def _repr_html_(self) -> str:
        return spec_html(self._spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._lines == other._lines

    def __hash__(self) -> int:
        return hash(tuple(self._lines))


def tree(
    records_or_spec: StructuredTensor | StructuredTensorSpec, max_fields: int | None = 100
) -> Tree:
    """Returns the schema of records as a tree, one field a line.

    Records inside records are shown with their fields, unions with their variants, and values of
    other types with their components.

    Args:
        records_or_spec: A StructuredTensor or the spec of one.
        max_fields: How many fields of one record are shown; None for all.

    Returns:
        An object whose repr and str is the tree. In a notebook, its parts open and close.

    Raises:
        DTypeError: If it is neither (also a TypeError).

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor([2], {
    ...     "title": ["Snickerdoodles", "Flapjacks"],
    ...     "stars": xt.types.MaskedTensor([4, 0], [True, False]),
    ...     "steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> xt.struct.tree(recipes)
    records (2,)
    ├── title: string
    ├── stars: int32 or null
    └── steps: list of records
        └── minutes: int32
    """
    spec = spec_of(records_or_spec)
    top = root(spec)
    return Tree(spec, [f"{top.name} {top.text}", *_branches(top, "", max_fields)])


def spec_of(records_or_spec: object) -> StructuredTensorSpec:
    """Returns the spec of records, or the spec itself.

    Raises:
        DTypeError: If the argument is neither (also a TypeError).
    """
    spec = spec_or_none(records_or_spec)
    if isinstance(spec, StructuredTensorSpec):
        return spec
    expected = "a StructuredTensor, or the spec of one"
    fix = "For a dataset, use its element_spec; for an Arrow schema, spec_from_schema."
    raise DTypeError("tree", expected, type(records_or_spec).__name__, fix)


def _branches(of: Node, indent: str, limit: int | None) -> Iterator[str]:
    children = of.nodes(limit)
    hidden = len(of.children) - len(children)
    for i, child in enumerate(children):
        last = i == len(children) - 1 and not hidden
        yield f"{indent}{'└── ' if last else '├── '}{child.name}: {child.label}"
        yield from _branches(child, indent + ("    " if last else "│   "), limit)
    if hidden:
        yield f"{indent}└── ... {hidden:,} more"
