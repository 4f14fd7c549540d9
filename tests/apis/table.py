"""Writes the table of `docs/apis.md` from the matrix: `python -m tests.apis.table`."""

from pathlib import Path

from tests.apis.matrix import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "apis.md"
BEGIN, END = "<!-- table: python -m tests.apis.table -->", "<!-- end of table -->"


def table():
    """Returns the rows as Markdown, one table a group."""
    lines = []
    for group in dict.fromkeys(row.group for row in ROWS):
        lines += ["", f"## {group}", ""]
        lines += ["| API | how | where | since |", "| --- | --- | --- | --- |"]
        for row in (row for row in ROWS if row.group == group):
            text = f"{row.how}. {row.note}" if row.note else row.how
            lines.append(f"| `{row.name}` | {text} | {', '.join(row.modes)} | {row.since} |")
    return "\n".join([*lines, ""])


def written(page):
    """Returns the text of the page with the table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
