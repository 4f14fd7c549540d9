"""The HTML pages: well-formed, without scripts, and safe for any name and string."""

import html.parser
import re
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt

HOSTILE = "<script>alert(1)</script>\"'&\x00\u202e"
VOID = {"meta", "br"}


class Parser(html.parser.HTMLParser):
    """Checks that tags are closed, and collects them."""

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(page):
    parser = Parser()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    for tag, attributes in parser.tags:
        assert tag not in ("script", "link", "iframe", "img")
        assert not any(name.startswith("on") or name in ("href", "src") for name in attributes)
    return parser


def charts(page):
    return [ET.fromstring(chart) for chart in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


TABLE = pa.table(
    {
        "number": [1.5, None, 1e300, float("nan")],
        HOSTILE: [HOSTILE, "b", "", "c" * 500],
        "list": [[1], [], [2, 3], None],
        "when": pa.array([0, 1, 2, 2**62], pa.timestamp("us")),
        "flag": [True, False, None, True],
        "none": pa.nulls(4),
    }
)


def test_a_page_has_a_histogram_for_each_path(tmp_path):
    found = xt.data.describe(TABLE)
    path = tmp_path / "page.html"
    found.write_html(path)
    page = path.read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "prefers-color-scheme: dark" in page
    parser = parsed(page)
    assert sum(tag == "section" for tag, _ in parser.tags) == len(found.paths)
    assert len(charts(page)) == 6  # all paths but `none`
    for chart in charts(page):
        assert chart.get("role") == "img"
    assert "alert" in page
    assert "<script" not in page
    assert "\u202e" not in page


def test_the_bars_are_as_high_as_the_shares():
    table = pa.table({"x": [0] * 6 + [1] * 3 + [3]})
    [chart] = charts(xt.data.describe(table)._repr_html_())
    bars = [each for each in chart if each.tag == "rect"]
    heights = np.array([float(bar.get("height")) for bar in bars])
    np.testing.assert_allclose(heights / heights.max(), [1, 3 / 6, 1 / 6], atol=0.02)
    assert [bar[0].text for bar in bars] == ["0: 60.0%", "1: 30.0%", "3: 10.0%"]
    assert [each.text for each in chart if each.tag == "text"] == ["0", "3"]


def test_far_numbers_are_in_the_outer_bars():
    table = pa.table({"x": [float(i % 100) for i in range(700)] + [1e9]})
    [chart] = charts(xt.data.describe(table)._repr_html_())
    low, high = (each.text for each in chart if each.tag == "text")
    assert low == "0"
    assert re.fullmatch(r"\d+ or more", high)


def test_a_comparison_page_shows_both_and_drifted_paths_first(tmp_path):
    one = xt.data.describe(pa.table({"a": [1] * 500, "b": ["x"] * 500, "c": [2] * 500}))
    other = xt.data.describe(pa.table({"a": [1] * 500, "b": ["y"] * 500, "d": [2] * 500}))
    comparison = one.compare(other)
    path = tmp_path / "page.html"
    comparison.write_html(path)
    page = path.read_text()
    parsed(page)
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == ["b", "c", "d", "a"]
    assert page.count('<section class="drifted">') == 3
    chart = next(chart for chart in charts(page) if "frequent" in chart.get("aria-label"))
    kinds = {(bar.get("class"), bar[0].text) for bar in chart if bar.tag == "rect"}
    assert ("one", "x: 100.0%") in kinds
    assert ("two", "y: 100.0%") in kinds


@given(st.lists(st.none() | st.floats(), max_size=50), st.lists(st.text(max_size=20), max_size=20))
def test_every_description_has_a_page(numbers, texts):
    found = xt.data.describe(
        [pa.table({"x": pa.array(numbers, pa.float64())}), pa.table({"y": texts})]
    )
    page = found._repr_html_()
    parsed(page)
    charts(page)
    parsed(found.compare(xt.data.describe(TABLE))._repr_html_())


def test_a_page_for_a_folder_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(xt.errors.MissingFileError, match="no"):
        xt.data.describe(TABLE).write_html(tmp_path / "no" / "page.html")


def test_tables_keep_hostile_names_on_their_line():
    lines = str(xt.data.describe(TABLE)).splitlines()
    assert len(lines) == 2 + 7
    assert not any("\u202e" in line or "\x00" in line for line in lines)
