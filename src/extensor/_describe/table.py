"""Descriptions and comparisons as tables of text."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from extensor._describe.drift import Drift
from extensor._describe.paths import PathStatistics, Statistics, is_time, number_text, short

LENGTH = pa.int64()
"""The type of the lengths of lists."""

_TOP = 3


def description_table(tree: Statistics) -> str:
    """Returns the statistics of each path, one a line."""
    head = ["path", "type", "values", "nulls", "min", "median", "mean", "max", "most frequent"]
    rows = [_row(each) for each in visible_paths(tree)]
    lines = _lines([head, *rows], "<<>>>>>><")
    return "\n".join([f"{tree.num_records:,} records", *lines])


def comparison_table(drifts: Sequence[Drift]) -> str:
    """Returns the difference at each path, one a line."""
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
    return "\n".join([drift_title(drifts), *_lines([head, *rows], "<<<>><")])


def drift_title(drifts: Sequence[Drift]) -> str:
    """Returns how many paths drifted, as text."""
    return f"{sum(drift.drifted for drift in drifts)} of {len(drifts)} paths drifted"


def visible_paths(tree: Statistics) -> list[PathStatistics]:
    """Returns the paths to show: records only where some of them are null."""
    return [each for each in tree.paths.values() if each.kind != "record" or each.nulls]


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


def _row(each: PathStatistics) -> list[str]:
    row = [short(each.path), type_text(each), f"{each.count:,}", f"{each.null_share:.1%}"]
    found = each.numbers or each.lengths
    if found is None or not found.count:
        return [*row, "", "", "", "", top_text(each)]
    numbers = (found.min, found.median, found.mean, found.max)
    is_length = each.numbers is None
    texts = [number_text(n, LENGTH if is_length else each.type) for n in numbers]
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
