"""Histograms as SVG, of one description or of two.

The colors come from the style of the page: class `one` for the first description, `two` for the
second. Each bar has a title, which browsers show under the pointer, and screen readers read.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import pyarrow as pa

from extensor._describe.paths import number_text, short
from extensor._describe.sketches import Numbers, Words, edges_between

_WIDTH, _HEIGHT = 360, 96
_ROW, _LABEL, _MOST = 18, 150, 10

_SERIES = ("one", "two")


def histogram(series: Sequence[Numbers], arrow: pa.DataType) -> str:
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


def frequencies(series: Sequence[Words]) -> str:
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
