"""The pages of the documentation: each is in the site, and each link leads somewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages that the build itself writes.
MADE = DOCS / "reference"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if MADE not in page.parents]
CODE = re.compile(r"^(`{3,}|:{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)


def _prose(page):
    """Returns a page without blocks of code, and without code in a sentence."""
    return re.sub(r"`[^`\n]*`", "", CODE.sub("", page.read_text()))


def _anchors(page):
    """Returns the anchors that GitHub and Sphinx give the headings of a page."""
    anchors = set()
    for heading in re.findall(r"^#{1,4} +(.*)$", CODE.sub("", page.read_text()), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        same = sum(
            re.fullmatch(rf"{re.escape(words)}(-\d+)?", other) is not None for other in anchors
        )
        anchors.add(f"{words}-{same}" if same else words)
    return anchors


def _in_toctrees():
    """Returns the pages that the toctrees reach from the first page."""
    seen, wanted = set(), [DOCS / "index.md"]
    while wanted:
        page = wanted.pop()
        if page in seen or MADE in page.parents:
            continue
        seen.add(page)
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S):
            entries = re.findall(r"^(?!:)\S+$", tree, re.MULTILINE)
            wanted += [page.parent / f"{entry}.md" for entry in entries]
    return seen


def test_every_page_is_in_a_toctree():
    assert _in_toctrees() == set(PAGES)


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *PAGES], ids=lambda page: page.stem)
def test_every_link_of_a_page_leads_somewhere(page):
    broken = []
    for link in re.findall(r"\]\(([^()\s]+)\)", _prose(page)):
        name, _, anchor = link.partition("#")
        if re.match(r"\w+:", name):
            continue
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("name", ["changelog", "contributing"])
def test_a_page_from_outside_of_the_docs_links_only_into_them(name):
    page = DOCS / (DOCS / f"{name}.md").read_text().split("{include} ")[1].split()[0]
    links = re.findall(r"\]\(([^()\s]+)\)", _prose(page))
    assert links
    for link in links:
        assert re.match(r"\w+:|#|docs/", link), f"the site has no page {link}"
        assert re.match(r"\w+:|#", link) or (page.parent / link.partition("#")[0]).exists(), link


def test_the_names_in_the_cheat_sheet_exist():
    import pyarrow as pa
    import pyarrow.compute as pc
    import tensorflow as tf

    import extensor as xt

    ak, pl = pytest.importorskip("awkward"), pytest.importorskip("polars")
    page = (DOCS / "cheat-sheet.md").read_text()
    modules = {"xt": xt, "tf": tf, "pa": pa, "pc": pc, "ak": ak, "pl": pl}
    names = set(re.findall(r"\b(xt|tf|pa|pc|ak|pl)((?:\.[a-zA-Z_]\w*)+)", page))
    assert len(names) > 60
    for module, rest in names:
        value = modules[module]
        for name in rest[1:].split("."):
            value = getattr(value, name)
    table = pa.table({"steps": [[1], []]})
    for name in re.findall(r"\btable\.(\w+)", page):
        assert hasattr(table, name), name


def test_the_extras_on_the_page_are_those_of_the_package():
    project = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2]
    extras = set(re.findall(r"^([\w-]+) = \[", project.partition("\n[")[0], re.MULTILINE))
    table = (DOCS / "faq.md").read_text().partition("| extra | for |\n")[2].partition("\n\n")[0]
    listed = {
        name
        for line in table.splitlines()
        for name in re.findall(r"`([\w-]+)`", line.split("|")[1])
    }
    assert listed == extras - {"bench", "dev", "docs"}


@pytest.mark.filterwarnings("ignore:xt.struct:DeprecationWarning")  # stability.md lists them
def test_the_public_names_on_the_pages_exist():
    import extensor as xt

    pages = {
        page.name: page.read_text().replace("\\_", "_") for page in [ROOT / "README.md", *PAGES]
    }
    del pages["version-0.3.md"]  # the earlier names, and what to write instead
    found = 0
    for page, text in pages.items():
        for rest in re.findall(r"(?<![\w.])xt((?:\.[a-zA-Z_]\w*)+)", text):
            value = xt
            for name in rest[1:].split("."):
                assert name == "X" or hasattr(value, name), f"{page}: xt{rest}"
                value = getattr(value, name, None)
            found += 1
    assert found > 1_000


def test_code_of_tutorials_fits_the_width_of_a_page():
    wide = [
        f"{page.stem}: {line}"
        for page in PAGES
        for cell in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", page.read_text(), re.M | re.S)
        for line in cell.splitlines()
        if len(line) > 96
    ]
    assert not wide


def test_links_and_anchors_are_found(tmp_path):
    page = tmp_path / "page.md"
    links = "[x](y.md#z) `[no](no.md)`\n\n```text\n[no](no.md)\n# no\n```"
    page.write_text(f"# A `b.c`: d_e\n\n{links}\n\n## A bc d_e\n")
    assert re.findall(r"\]\(([^()\s]+)\)", _prose(page)) == ["y.md#z"]
    assert _anchors(page) == {"a-bc-d_e", "a-bc-d_e-1"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Returns the folder of the site, built without a run of the tutorials."""
    for package in ("sphinx", "myst_nb", "furo", "sphinx_copybutton"):
        pytest.importorskip(package, reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("project")
    # A copy, because the build writes the pages of the reference beside the others.
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("reference", "_build"))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "examples"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    command = "-b html -q -W --keep-going -D nb_execution_mode=off docs site".split()
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(site):
    for page in PAGES:
        assert (site / page.relative_to(DOCS).with_suffix(".html")).exists()


@pytest.mark.slow
def test_a_page_loads_nothing_from_the_network(site):
    loads = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text()) == [], page
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)[^;)]*//[^;)]*", style.read_text()) == [], style


# Loads each page into a frame of each width, and lists the pages that are wider than the frame, and
# the pictures that are not shown.
MEASURE = """<!doctype html><body><iframe id="frame" style="border:0;height:900px"></iframe><p>
<script>
const frame = document.querySelector("iframe"), found = [];
async function measure(pages) {
  for (const width of [360, 1300]) for (const page of pages) {
    frame.style.width = width + "px";
    await new Promise(done => { frame.onload = done; frame.src = page; });
    await new Promise(done => setTimeout(done, 30));
    const root = frame.contentDocument;
    if (root.documentElement.scrollWidth > width + 1) found.push(`${page} at ${width}`);
    for (const image of root.images) if (!image.naturalWidth) found.push(`${page}: ${image.src}`);
  }
  document.querySelector("p").textContent = "FOUND" + JSON.stringify(found) + "END";
}
measure(PAGES);
</script>"""


@pytest.mark.slow
def test_a_page_fits_a_phone_and_a_desktop_and_shows_its_pictures(site):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    pages = [str(page.relative_to(DOCS).with_suffix(".html")) for page in PAGES]
    (site / "measure.html").write_text(MEASURE.replace("PAGES", json.dumps(pages)))
    options = "--headless=new --no-sandbox --disable-gpu --allow-file-access-from-files".split()
    options += ["--virtual-time-budget=600000", "--timeout=120000", "--dump-dom"]
    done = subprocess.run(
        [chromium, *options, f"file://{site}/measure.html"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert re.findall("FOUND(.*)END", done.stdout) == ["[]"], done.stdout[-2000:]
