"""Descriptions and comparisons as tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from extensor._describe.paths import PathStatistics, is_time, number_text
from extensor._struct.display.schema import printable

if TYPE_CHECKING:
    from extensor._describe.comparison import Comparison
    from extensor._describe.description import Description

_WIDTH = 60
_TOP = 3
_LENGTH = pa.int64()


def description_table(description: Description) -> str:
    """Returns the statistics of each path, one a line."""
    head = ["path", "type", "values", "nulls", "min", "median", "mean", "max", "most frequent"]
    rows = [_row(each) for each in visible_paths(description)]
    lines = _lines([head, *rows], "<<>>>>>><")
    return "\n".join([f"{description.num_records:,} records", *lines])


def comparison_table(comparison: Comparison) -> str:
    """Returns the difference at each path, one a line."""
    drifts = comparison.drifts
    head = ["path", "drifted", "statistic", "distance", "limit", "because"]
    rows = [
        [
            short(drift.path),
            "yes" if drift.drifted else "no",
            drift.statistic,
            f"{drift.distance:.3f}",
            f"{drift.limit:.3f}",
            drift.reason,
        ]
        for drift in drifts
    ]
    title = f"{len(comparison.drifted)} of {len(drifts)} paths drifted"
    return "\n".join([title, *_lines([head, *rows], "<<<>><")])


def visible_paths(description: Description) -> list[PathStatistics]:
    """Returns the paths to show: records only where some of them are null."""
    return [each for each in description.paths.values() if each.kind != "record" or each.nulls]


def type_text(each: PathStatistics) -> str:
    """Returns the type of a path; for lists and records, only this word."""
    return each.kind if each.kind in ("list", "record", "union") else short(str(each.type), 24)


def top_text(each: PathStatistics) -> str:
    """Returns the most frequent strings and their shares."""
    words = each.words
    if words is None or not words.count:
        return ""
    listed = [f"{short(word, 20)} {count / words.count:.1%}" for word, count in words.top(_TOP)]
    if words.unique > _TOP:
        listed.append(f"... ({words.unique:,} different)")
    return ", ".join(listed)


def short(text: str, width: int = _WIDTH) -> str:
    """Returns a text on one line, cut to a width."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _row(each: PathStatistics) -> list[str]:
    row = [short(each.path), type_text(each), f"{each.count:,}", f"{each.null_share:.1%}"]
    found = each.numbers or each.lengths
    if found is None or not found.count:
        return [*row, "", "", "", "", top_text(each)]
    numbers = (found.min, found.quantile(0.5), found.mean, found.max)
    is_length = each.numbers is None
    texts = [number_text(n, _LENGTH if is_length else each.type) for n in numbers]
    if is_length:
        return [*row, *texts, "(lengths)"]
    return [*row, *texts, "" if is_time(each.type) else f"std {found.std:.3g}"]


def _lines(rows: Sequence[Sequence[str]], alignment: str) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(alignment))]
    return [
        "  ".join(
            f"{cell:{side}{width}}"
            for cell, side, width in zip(row, alignment, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
