"""The HTML of records for notebooks: a schema whose parts open and close, and the first records.

There is no JavaScript. All text is escaped. The colors are those of the notebook where it has CSS
variables for them (JupyterLab, VS Code), else those of the light or dark scheme of the browser.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from extensor._path import Path
from extensor._struct.display.cells import cell, cell_at, num_rows, with_first_fields
from extensor._struct.display.schema import Node, printable, root
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.to_python import decoders_of_field, holds_values
from extensor._typing import FieldValue
from extensor.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor

_ROWS, _COLUMNS, _FIELDS, _WIDTH = 5, 12, 100, 60

_OPEN = 20
"""With more fields, the schema is closed at first."""

# Every rule begins with the class, so that it changes nothing else on the page.
_STYLE = """<style>
.xt-records {
  --xt-text: var(--jp-content-font-color1, var(--vscode-editor-foreground, #1f2328));
  --xt-faint: var(--jp-content-font-color2, var(--vscode-descriptionForeground, #656d76));
  --xt-line: var(--jp-border-color2, var(--vscode-panel-border, #d0d7de));
  color: var(--xt-text); font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-x: auto;
}
@media (prefers-color-scheme: dark) {
  .xt-records {
    --xt-text: var(--jp-content-font-color1, var(--vscode-editor-foreground, #e6edf3));
    --xt-faint: var(--jp-content-font-color2, var(--vscode-descriptionForeground, #9198a1));
    --xt-line: var(--jp-border-color2, var(--vscode-panel-border, #3d444d));
  }
}
.xt-records ul { list-style: none; margin: 0; padding-left: 1.2em; }
.xt-records ul, .xt-records li { color: inherit; }
.xt-records summary { cursor: pointer; }
.xt-records .xt-type { color: var(--xt-faint); }
.xt-records table { border-collapse: collapse; color: inherit; margin-top: .5em; }
.xt-records th, .xt-records td {
  background: none; border: 1px solid var(--xt-line); color: inherit; padding: .1em .6em;
  text-align: left; white-space: pre;
}
</style>"""


def records_html(records: StructuredTensor) -> str:
    """Returns the HTML of records: the schema, and the first records if they are not in a graph."""
    spec = records.__tf_type_spec__()
    table = "".join(_table(records)) if holds_values(records) else ""
    return _page("StructuredTensor", spec, table)


def spec_html(spec: StructuredTensorSpec) -> str:
    """Returns the HTML of a schema."""
    return _page("records", spec, "")


def _page(title: str, spec: StructuredTensorSpec, table: str) -> str:
    top = root(spec)
    head = f"{title} {_faint(top.text)}"
    schema = _branch(head, top, len(top.children) <= _OPEN)
    return f'{_STYLE}\n<div class="xt-records">{schema}{table}</div>'


def _branch(head: str, of: Node, is_open: bool = False) -> str:
    """Returns a line that opens and closes what is inside the node; a plain line for a leaf."""
    if not of.children:
        return head
    items = [f"<li>{_branch(_line(child), child)}</li>" for child in of.nodes(_FIELDS)]
    hidden = len(of.children) - len(items)
    if hidden > 0:
        items.append(f"<li>{_faint(f'... {hidden:,} more')}</li>")
    state = " open" if is_open else ""
    return f"<details{state}><summary>{head}</summary><ul>{''.join(items)}</ul></details>"


def _line(of: Node) -> str:
    return f"{escape(of.name)} {_faint(of.label)}"


def _faint(text: str) -> str:
    return f'<span class="xt-type">{escape(text)}</span>'


def _field(records: StructuredTensor, name: str) -> FieldValue | None:
    """Returns the value of a field, or None for a type that cannot be cut into the rows."""
    try:
        return with_first_fields(records._field(name, Path(name)), _WIDTH // 4)
    except UnsupportedTypeError:
        return None


def _table(records: StructuredTensor) -> Iterator[str]:
    """Yields a table with a row for each of the first records, and a column for each field."""
    names = records.field_names()[:_COLUMNS]
    if not names:
        return
    more = len(records.field_names()) > len(names)
    heads = [node.name for node in root(records.__tf_type_spec__()).nodes(len(names))]
    yield "<table><thead><tr>"
    yield from (f"<th>{escape(name)}</th>" for name in [*heads, *(["..."] if more else [])])
    yield "</tr></thead><tbody>"
    is_one = records.rank == 0
    size = 1 if is_one else num_rows(records)
    fields = [_field(records, name) for name in names]
    columns = [
        (field, decoders_of_field(records, n)) for n, field in zip(names, fields, strict=True)
    ]
    for i in range(min(size, _ROWS)):
        yield "<tr>"
        for field, decoders in columns:
            text = "..."
            if field is not None:
                text = (
                    cell(field, _WIDTH, decoders) if is_one else cell_at(field, i, _WIDTH, decoders)
                )
            yield f"<td>{escape(printable(text))}</td>"
        yield "<td>...</td></tr>" if more else "</tr>"
    yield "</tbody></table>"
    if size > _ROWS:
        yield f"<div>{_faint(f'{_ROWS} of {size:,} records')}</div>"
