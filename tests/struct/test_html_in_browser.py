"""The HTML of records and of statistics in a real browser, on light and on dark pages."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from tests.struct.test_display import NASTY, recipes, wide

pytestmark = pytest.mark.slow  # a browser starts for each test

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
SCHEMES = {"dark": 0, "light": 1}  # as Chromium's setting preferredColorScheme counts

PAGE = """<!doctype html>
<html><head><meta name="color-scheme" content="light dark"><style>body { background: Canvas; }
</style>%s<script>
var alerts = 0; window.alert = function () { alerts += 1; };
</script></head><body data-theme="%s">
<table id="other"><tr><td>outside</td></tr></table>
%s
<pre id="found"></pre>
<script>
function all(selector) { return [...document.querySelectorAll(selector)]; }
function color(element, name) { return getComputedStyle(element)[name]; }
function ground(element) {
  while (element && color(element, "backgroundColor") === "rgba(0, 0, 0, 0)")
    element = element.parentElement;
  return color(element || document.documentElement, "backgroundColor");
}
function has_text(element) {
  return [...element.childNodes].some(e => e.nodeType === 3 && e.data.trim() !== "");
}
function shown() { return all(".xt-records li").filter(e => e.checkVisibility()).length; }
var outer = all(".xt-records > details")[0], before = shown();
if (outer) outer.open = !outer.open;
var after = shown();
all("details").forEach(e => { e.open = true; });
document.getElementById("found").textContent = JSON.stringify({
  alerts: alerts, before: before, after: after, open: shown(),
  background: color(document.body, "backgroundColor"),
  texts: all(".xt-records *, .xt-describe *").filter(e => has_text(e) && e.tagName !== "title")
    .map(e => [color(e, e instanceof SVGElement ? "fill" : "color"), ground(e)]),
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

    def look(text, scheme, theme="auto", style=""):
        page = tmp_path / "page.html"
        page.write_text(PAGE % (style, theme, text), encoding="utf-8")
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


def statistics():
    return xt.data.describe(pa.table({"city": ["Oslo", "Rome", None] * 9, "price": range(27)}))


def comparison():
    other = pa.table({"city": ["Paris"] * 27, "price": range(27)})
    return statistics().compare(xt.data.describe(other))


MAKERS = [recipes, statistics, comparison]


def is_dark(color):
    return sum(map(int, re.findall(r"\d+", color)[:3])) < 200


def assert_text_can_be_read(found, dark):
    assert is_dark(found["background"]) == dark
    assert found["texts"]
    for color, ground in {tuple(each) for each in found["texts"]}:
        assert is_dark(ground) == dark, ground
        assert contrast(color, ground) >= 4.5, (color, ground)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("make", MAKERS)
def test_text_can_be_read_in_both_schemes(seen, make, scheme):
    found = seen(make()._repr_html_(), scheme)
    assert_text_can_be_read(found, scheme == "dark")
    assert found["outside"] == "0px"  # the style is that of the value only
    if make is recipes:
        assert set(found["inside"]) == {"1px"}


# What Furo, the theme of the site, sets where a reader chooses light or dark.
THEMES = {
    "light": "#000000 #5a5c63 #ffffff #f8f9fb #eeebee #2757dd",
    "dark": "#cfd0d0 #9ca0a5 #131416 #1a1c1e #303335 #5ca5ff",
}
NAMES = (
    "foreground-primary foreground-muted background-primary background-secondary "
    "background-border brand-content"
)


@pytest.mark.parametrize(("chosen", "system"), [("dark", "light"), ("light", "dark")])
@pytest.mark.parametrize("make", MAKERS)
def test_the_theme_of_the_page_goes_before_that_of_the_system(seen, make, chosen, system):
    ours = (Path(__file__).parents[2] / "docs" / "_static" / "extensor.css").read_text()
    colors = zip(NAMES.split(), THEMES[chosen].split(), strict=True)
    rules = " ".join(f"--color-{name}: {color};" for name, color in colors)
    background = "background: var(--color-background-primary);"
    style = f"<style>{ours} body {{ {rules} {background} }}</style>"
    assert_text_can_be_read(seen(make()._repr_html_(), system, chosen, style), chosen == "dark")


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
