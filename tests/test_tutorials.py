"""The cells of each tutorial run, one after another, in a process and a folder of their own."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
CELL = re.compile(
    r"^```\{code-cell\} ipython3\n((?::[^\n]*\n)*)(.*?)^```", re.MULTILINE | re.DOTALL
)
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "\n```{code-cell}" in page.read_text()]

pytestmark = [pytest.mark.whole("trains models and starts servers"), pytest.mark.first]

RUN = """
import linecache, os
os.chdir({folder!r})
names = {{"__name__": "__main__"}}
for number, (tags, code) in enumerate({cells!r}):
    file = f"<cell {{number}}>"
    linecache.cache[file] = len(code), None, code.splitlines(True), file  # AutoGraph reads it
    try:
        exec(compile(code, file, "exec"), names)
    except Exception:
        if "raises-exception" not in tags:
            raise
print("done")
"""


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_the_cells_of_a_tutorial_run(run_python, tmp_path, page):
    cells = CELL.findall(page.read_text())
    assert len(cells) == page.read_text().count("```{code-cell}")
    code = RUN.format(folder=str(tmp_path), cells=cells)
    printed = run_python(code, timeout=600).stdout
    assert printed.splitlines()[-1] == "done"
