"""The HTML of records in a real browser, in its light and its dark scheme."""

import html
import json
import re
import shutil
import subprocess

import pytest
import tensorflow as tf

import extensor as xt
from tests.struct.test_display import NASTY, recipes, wide

pytestmark = pytest.mark.slow  # a browser starts for each test

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
SCHEMES = {"dark": 0, "light": 1}  # as Chromium's setting preferredColorScheme counts

PAGE = """<!doctype html>
<html><head><meta name="color-scheme" content="light dark"><script>
var alerts = 0; window.alert = function () { alerts += 1; };
</script></head><body style="background: Canvas">
<table id="other"><tr><td>outside</td></tr></table>
%s
<pre id="found"></pre>
<script>
function all(selector) { return [...document.querySelectorAll(selector)]; }
function color(element, name) { return getComputedStyle(element)[name]; }
function shown() { return all(".xt-records li").filter(e => e.checkVisibility()).length; }
var outer = all(".xt-records > details")[0], before = shown();
if (outer) outer.open = !outer.open;
var after = shown();
all("details").forEach(e => { e.open = true; });
document.getElementById("found").textContent = JSON.stringify({
  alerts: alerts, before: before, after: after, open: shown(),
  background: color(document.body, "backgroundColor"),
  texts: all(".xt-records, .xt-records *").map(e => color(e, "color")),
  outside: color(all("#other td")[0], "borderTopWidth"),
  inside: all(".xt-records td").map(e => color(e, "borderTopWidth")),
  scripts: document.scripts.length,
  cells: all(".xt-records td").map(e => e.textContent),
  rows: all(".xt-records tr").length,
});
</script></body></html>"""


@pytest.fixture
def seen(tmp_path):
    """A function that returns what a browser makes of HTML in one of its schemes."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed, which renders the HTML")

    def look(text, scheme):
        page = tmp_path / "page.html"
        page.write_text(PAGE % text, encoding="utf-8")
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--no-first-run"]
        command += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        (found,) = re.findall(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
        return json.loads(html.unescape(found))

    return look


def contrast(one, other):
    """Returns the contrast ratio of two colors, as the guidelines for accessibility define it."""

    def luminance(color):
        parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(p * weight for p, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_can_be_read_in_both_schemes(seen, scheme):
    found = seen(recipes()._repr_html_(), scheme)
    brightness = sum(map(int, re.findall(r"\d+", found["background"])[:3]))
    assert (brightness < 200) == (scheme == "dark")
    for color in set(found["texts"]):
        assert contrast(color, found["background"]) >= 4.5, color
    assert found["outside"] == "0px"  # the style is that of the records only
    assert set(found["inside"]) == {"1px"}


def test_the_schema_opens_and_closes_without_a_script(seen):
    found = seen(recipes()._repr_html_(), "light")
    assert found["before"] == 4  # the fields of the records
    assert found["after"] == 0
    assert found["open"] == 8
    assert found["cells"][:2] == ["b'Snickerdoodles'", "4"]
    assert found["rows"] == 3


def test_names_and_values_are_text(seen):
    nasty = xt.DenseStructuredTensor([1], {NASTY: [NASTY], "<img src=x onerror=alert(1)>": [1]})
    found = seen(nasty._repr_html_(), "dark")
    assert found["alerts"] == 0
    assert found["scripts"] == 2  # those of the test
    assert "<script>" in found["cells"][0]


def test_many_fields_are_closed_at_first(seen):
    found = seen(wide()._repr_html_(), "light")
    assert found["before"] == 0
    assert found["after"] == 101
    lists = tf.RaggedTensor.from_row_lengths(tf.range(100_000), [100_000])
    long = seen(xt.DenseStructuredTensor([1], {"x": lists})._repr_html_(), "light")
    assert max(map(len, long["cells"])) < 80
