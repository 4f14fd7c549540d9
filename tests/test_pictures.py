"""The pictures of the documentation: drawn by code, and true."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pictures import bars
from pictures.__main__ import PICTURES
from pictures.drawing import FOLDER

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_up_to_date(name):
    drawn = PICTURES[name]().svg()
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert drawn == (FOLDER / name).read_text(), "Run `make docs`, and look at the picture."


def test_every_picture_is_drawn_by_code():
    assert {path.name for path in FOLDER.iterdir()} == set(PICTURES)


def test_every_picture_is_in_a_page():
    pages = "".join(page.read_text() for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    assert {name for name in PICTURES if f"pictures/{name})" not in pages} == set()


def test_colors_have_a_form_for_dark_pages():
    for name in PICTURES:
        light, _, dark = (FOLDER / name).read_text().partition("prefers-color-scheme: dark")
        used = set(re.findall(r'class="(\w+)"', dark))
        assert used <= set(re.findall(r"\.(\w+)\{", light))
        assert used <= set(re.findall(r"\.(\w+)\{", dark))


def test_the_numbers_of_the_readme_are_those_of_the_bench():
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert float(bars.rows()[bars.ROWS[0][2]][2]) > 100  # "in less than a hundredth of the time"
    assert "in less than a hundredth of the CPU time of" in readme
    for _, _, row in bars.ROWS[1:3]:
        assert f" {bars.rows()[row][2]} times as fast" in readme
    assert f"in {bars.rows()[bars.ROWS[4][2]][2]} of the time of a dict of 8 tensors" in readme
    assert len(bars.rows()) > 204  # the four above, and more than 200 others


def test_the_times_of_the_page_of_performance_are_those_of_the_bench():
    page = (ROOT / "docs" / "performance.md").read_text().partition("## Batch before map")[0]
    times = set(re.findall(r"[\d.]+ (?:ms|us)\b", page))
    assert len(times) > 5
    assert times <= {cell for row in bars.rows().values() for cell in row[:2]}
