"""Descriptions and comparisons as HTML pages without scripts.

The colors are those of the notebook where it has CSS variables for them (JupyterLab, VS Code), else
those of the light or dark scheme of the browser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
import pyarrow as pa

from extensor._describe.drift import Drift
from extensor._describe.paths import (
    PathStatistics,
    Statistics,
    counts_of,
    in_one_unit,
    is_time,
    number_text,
    short,
)
from extensor._describe.sketches import Numbers, Words, edges_between
from extensor._describe.table import LENGTH, drift_title, type_text, visible_paths
from extensor._files.files import FilePath
from extensor._files.output import atomic_output

# Every rule begins with the class, so that it changes nothing else in a notebook.
_STYLE = """
.xt-describe {
  --ink: var(--jp-content-font-color1, var(--vscode-editor-foreground, #1f2328));
  --faint: var(--jp-content-font-color2, var(--vscode-descriptionForeground, #59636e));
  --line: var(--jp-border-color2, var(--vscode-panel-border, #d1d9e0));
  --card: var(--jp-layout-color1, var(--vscode-editor-background, #ffffff));
  --back: var(--jp-layout-color2, var(--vscode-sideBar-background, #f6f8fa));
  --one: var(--jp-brand-color1, var(--vscode-charts-blue, #0969da));
  --two: var(--jp-warn-color1, var(--vscode-charts-orange, #bc4c00));
  --alarm: var(--jp-error-color1, var(--vscode-errorForeground, #cf222e));
  color: var(--ink); background: var(--back);
  font: 14px/1.45 system-ui, sans-serif; padding: 1.5em; box-sizing: border-box;
}
@media (prefers-color-scheme: dark) {
  .xt-describe {
    --ink: var(--jp-content-font-color1, var(--vscode-editor-foreground, #e6edf3));
    --faint: var(--jp-content-font-color2, var(--vscode-descriptionForeground, #9198a1));
    --line: var(--jp-border-color2, var(--vscode-panel-border, #3d444d));
    --card: var(--jp-layout-color1, var(--vscode-editor-background, #151b23));
    --back: var(--jp-layout-color2, var(--vscode-sideBar-background, #0d1117));
    --one: var(--jp-brand-color1, var(--vscode-charts-blue, #4493f8));
    --two: var(--jp-warn-color1, var(--vscode-charts-orange, #f0883e));
    --alarm: var(--jp-error-color1, var(--vscode-errorForeground, #ff7b72));
  }
}
.xt-describe h1 { font-size: 1.35em; margin: 0 0 .2em; }
.xt-describe h2 { font: 600 1em ui-monospace, Menlo, Consolas, monospace; margin: 0;
  overflow-wrap: anywhere; }
.xt-describe p { margin: 0 0 1em; color: var(--faint); }
.xt-describe .one { fill: var(--one); color: var(--one); }
.xt-describe .two { fill: var(--two); color: var(--two); }
.xt-describe section {
  background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .9em 1.1em;
  margin: 0 0 .8em; display: grid; grid-template-columns: minmax(15em, 2fr) minmax(15em, 3fr);
  gap: .4em 2em;
}
.xt-describe section.drifted { border-left: 5px solid var(--alarm); }
.xt-describe .drift { color: var(--alarm); font-weight: 600; }
.xt-describe .faint { color: var(--faint); }
.xt-describe table { border-collapse: collapse; background: none; margin: .4em 0 0; }
.xt-describe th, .xt-describe td { border: 0; padding: 0 1.2em 0 0; text-align: left;
  color: inherit; background: none; font-weight: normal; }
.xt-describe th { color: var(--faint); }
.xt-describe td { font-variant-numeric: tabular-nums; }
.xt-describe svg { width: 100%; max-width: 460px; height: auto; overflow: visible; }
.xt-describe svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
.xt-describe svg line { stroke: var(--line); }
@media (max-width: 700px) { .xt-describe section { grid-template-columns: minmax(0, 1fr); } }
"""


def description_page(tree: Statistics, is_document: bool = True) -> str:
    """Returns the page of the statistics of records.

    Args:
        tree: The statistics.
        is_document: Whether to return a document; otherwise, a part for a notebook.
    """
    title = f"{tree.num_records:,} records"
    parts = [f"<h1>{title}</h1><p>{len(tree.paths):,} paths</p>"]
    parts += [_section([each]) for each in visible_paths(tree)]
    return _page(title, "".join(parts), is_document)


def comparison_page(
    one: Statistics, other: Statistics, drifts: Sequence[Drift], is_document: bool = True
) -> str:
    """Returns the page of a comparison of two; see `description_page`."""
    title = drift_title(drifts)
    parts = [
        f'<h1>{title}</h1><p><span class="one">&#9632;</span> {one.num_records:,} records, '
        f'<span class="two">&#9632;</span> {other.num_records:,} records</p>'
    ]
    visible = {each.path for each in [*visible_paths(one), *visible_paths(other)]}
    for drift in drifts:
        if drift.path in visible or drift.drifted:
            both = [each.paths.get(drift.path) for each in (one, other)]
            parts.append(_section(both, drift))
    return _page(title, "".join(parts), is_document)


def write_page(page: str, path: FilePath) -> None:
    """Writes a page to a file."""
    with atomic_output(path) as stream:
        stream.write(page.encode())


def _page(title: str, body: str, is_document: bool) -> str:
    part = f'<div class="xt-describe">{body}</div>'
    if not is_document:
        return f"<style>{_STYLE}</style>{part}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>body {{ margin: 0; }}"
        f".xt-describe {{ min-height: 100vh; }}{_STYLE}</style></head>\n"
        f"<body>{part}</body></html>\n"
    )


def _section(both: list[PathStatistics | None], drift: Drift | None = None) -> str:
    """Returns the section of a path: its statistics, and its histogram.

    Args:
        both: The statistics in one description or in two; None where the path is missing.
        drift: The difference of two.
    """
    known = [each for each in both if each is not None]
    first = known[0]
    types = " and ".join(dict.fromkeys(type_text(each) for each in known))
    head = f'<h2>{escape(short(first.path, 200))}</h2><div class="faint">{escape(types)}</div>'
    mark = ""
    if drift is not None:
        text = f"{drift.statistic} distance {drift.distance:.3f}, limit {drift.limit:.3f}"
        name = "drift" if drift.drifted else "faint"
        word = "drifted: " if drift.drifted else ""
        head += f'<div class="{name}">{word}{escape(f"{text}; {drift.reason}")}</div>'
        mark = ' class="drifted"' if drift.drifted else ""
    rows: dict[str, list[str]] = {}
    for i, each in enumerate(both):
        for name, text in _facts(each) if each is not None else []:
            rows.setdefault(name, [""] * len(both))[i] = text
    kinds = ("one", "two") if len(both) > 1 else ("",)
    table = "".join(
        f"<tr><th>{name}</th>"
        + "".join(f'<td class="{k}">{escape(t)}</td>' for k, t in zip(kinds, texts, strict=True))
        + "</tr>"
        for name, texts in rows.items()
    )
    chart = _chart(known) if len(known) == len(both) or len(both) == 1 else ""
    return f"<section{mark}><div>{head}<table>{table}</table></div><div>{chart}</div></section>"


def _chart(both: list[PathStatistics]) -> str:
    if len({counts_of(each.type) for each in both}) > 1:
        return ""
    if len(both) > 1:
        both = [*in_one_unit(*both)]
    words = [each.words for each in both if each.words is not None]
    lengths = [each.lengths for each in both if each.lengths is not None]
    numbers = [each.numbers for each in both if each.numbers is not None]
    if words:
        return _frequencies(words)
    return _histogram(lengths or numbers, LENGTH if lengths else both[0].type)


def _facts(each: PathStatistics) -> Iterator[tuple[str, str]]:
    yield "values", f"{each.count:,}"
    if each.nulls:
        yield "nulls", f"{each.nulls:,} ({each.null_share:.1%})"
    if each.words is not None and each.words.count:
        yield "different", f"{each.words.unique:,}"
        if each.kind == "string" and not pa.types.is_boolean(each.type):
            yield "longest", f"{each.words.lengths.max:,} bytes"
    found, of = each.numbers or each.lengths, " length" if each.lengths is not None else ""
    if found is None:
        return
    arrow = LENGTH if of else each.type
    if found.count:
        yield f"smallest{of}", number_text(found.min, arrow)
        ranks = (found.quantile(0.25), found.median, found.quantile(0.75))
        quartiles = [number_text(each, arrow) for each in ranks]
        yield "quartiles", "; ".join(quartiles) if is_time(arrow) else " / ".join(quartiles)
        yield f"largest{of}", number_text(found.max, arrow)
        yield "mean", number_text(found.mean, arrow)
        if not is_time(arrow):  # whose deviation is no time, but a duration
            yield "std", number_text(found.std, arrow)
    for name, count in (("zeros", found.zeros), ("NaN", found.nans), ("inf", found.infinities)):
        if count and not of:
            yield name, f"{count:,}"


_WIDTH, _HEIGHT = 360, 96
_ROW, _LABEL, _MOST = 18, 150, 10

_SERIES = ("one", "two")


def _histogram(series: Sequence[Numbers], arrow: pa.DataType) -> str:
    """Returns the histograms of numbers, all with the same bars.

    Args:
        series: The numbers of one description or of two.
        arrow: Their type, for labels.
    """
    edges = _edges(series)
    if len(edges) < 2:
        return ""
    shares = [one.histogram(edges) for one in series]
    highest = max(max((float(share.max()) for share in shares), default=0.0), 1e-12)
    slot = _WIDTH / (len(edges) - 1)
    width = slot * 0.9 / len(series)
    bars: list[str] = []
    for number, (one, share) in enumerate(zip(series, shares, strict=True)):
        for i, part in enumerate(share.tolist()):
            if part <= 0:
                continue
            height = max(1.0, part / highest * _HEIGHT)
            ends = _ends(edges[i : i + 2], one, arrow)
            bars.append(
                f'<rect class="{_SERIES[number]}" x="{i * slot + number * width:.1f}" '
                f'y="{_HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
                f"<title>{escape(ends)}: {part:.1%}</title></rect>"
            )
    low, high = (escape(end) for end in _outer(edges, series, arrow))
    axis = (
        f'<line x1="0" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>'
        f'<text x="0" y="{_HEIGHT + 15}">{low}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 15}" text-anchor="end">{high}</text>'
    )
    return _svg(_HEIGHT + 20, "Histogram", "".join(bars) + axis)


def _frequencies(series: Sequence[Words]) -> str:
    """Returns bars for the most frequent strings."""
    shares = [
        {word: count / max(1, words.count) for word, count in words.top()} for words in series
    ]
    found = {word: max(share.get(word, 0.0) for share in shares) for one in shares for word in one}
    shown = sorted(found, key=lambda word: (-found[word], word))[:_MOST]
    if not shown:
        return ""
    height = (_ROW - 4) / len(series)
    space = (_WIDTH - _LABEL - 45 * len(series)) / max(found.values())
    parts: list[str] = []
    for row, word in enumerate(shown):
        y = row * _ROW
        label = escape(short(word, 22)) or "(empty)"
        parts.append(
            f'<text x="{_LABEL - 6}" y="{y + 12}" text-anchor="end">{label}'
            f"<title>{escape(short(word, 200))}</title></text>"
        )
        for number, share in enumerate(shares):
            part = share.get(word, 0.0)
            width = max(1.0, part * space)
            parts.append(
                f'<rect class="{_SERIES[number]}" x="{_LABEL}" '
                f'y="{y + 2 + number * height:.1f}" width="{width:.1f}" height="{height:.1f}">'
                f"<title>{label}: {part:.1%}</title></rect>"
            )
        largest = max(share.get(word, 0.0) for share in shares)
        text = " / ".join(f"{share.get(word, 0.0):.1%}" for share in shares)
        parts.append(
            f'<text x="{_LABEL + max(1.0, largest * space) + 6:.1f}" y="{y + 12}">{text}</text>'
        )
    return _svg(len(shown) * _ROW, "The most frequent strings", "".join(parts))


def _edges(series: Sequence[Numbers]) -> np.ndarray:
    edges = [one.histogram_edges() for one in series if one.count]
    if len(edges) < 2:
        return edges[0] if edges else np.zeros(0)
    is_integer = all(one.is_integer for one in series)
    margin = 0.5 if is_integer else 0.0  # the edges of integers are between them
    low, high = min(each[0] for each in edges), max(each[-1] for each in edges)
    return edges_between(float(low) + margin, float(high) - margin, is_integer)


def _outer(edges: np.ndarray, series: Sequence[Numbers], arrow: pa.DataType) -> tuple[str, str]:
    """Returns the labels of both ends of the axis."""
    one = series[0]
    first, last = (_ends(pair, one, arrow) for pair in (edges[:2], edges[-2:]))
    low, high = first.split(" to ")[0], last.split(" to ")[-1]
    if any(each.count and each.min < edges[0] for each in series):
        low = f"{low} or less"
    if any(each.count and each.max > edges[-1] for each in series):
        high = f"{high} or more"
    return low, high


def _ends(ends: np.ndarray, one: Numbers, arrow: pa.DataType) -> str:
    """Returns the numbers of a bar as text: one integer, or the first and the last number."""
    low, high = (float(end) for end in ends)
    if one.is_integer and low % 1 == 0.5:
        low, high = low + 0.5, high - 0.5
    if low == high:
        return number_text(low, arrow)
    return f"{number_text(low, arrow)} to {number_text(high, arrow)}"


def _svg(height: float, title: str, content: str) -> str:
    return (
        f'<svg viewBox="-2 0 {_WIDTH + 4} {height:.0f}" role="img" aria-label="{title}">'
        f"{content}</svg>"
    )
