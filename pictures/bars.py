"""Bars of the rows of docs/bench.md."""

from __future__ import annotations

import math
from pathlib import Path

from pictures.drawing import Drawing

TABLE = Path(__file__).parent.parent / "docs" / "bench.md"

# What users compare, and the row that measures it: our name for the work, the peer, the row.
ROWS = [
    (
        "50,000 nested records from Arrow",
        "tf.experimental StructuredTensor.from_pyval",
        "from_arrow, 50,000 recipes, vs tf from_pyval(to_pylist()) of 1,000, scaled up",
    ),
    (
        "50,000 nested records from JSON",
        "json.loads and from_pyval",
        "read_json, 50,000 recipes, vs json.loads and tf from_pyval of 1,000, scaled up",
    ),
    (
        "50,000 nested records from Arrow",
        "TFRecord, batch, tf.io.parse_example",
        "from_arrow, 50,000 recipes, vs TFRecord, batch(2048), parse_example",
    ),
    (
        "construct a value of 8 fields",
        "tf.experimental StructuredTensor.from_fields",
        "DenseStructuredTensor(shape, 8 fields), vs tf StructuredTensor.from_fields",
    ),
    (
        "tf.function call with 8 fields",
        "a dict of 8 tensors",
        "tf.function call, one field + 1, vs dict of 8 tensors",
    ),
]

# The same for the page of comparisons, with rows in which the peer is faster.
PEERS = [
    (
        "a value of a type with 2 fields",
        "tf.experimental.ExtensionType",
        "2-field type made from tensors, vs tf ExtensionType",
    ),
    (
        "tf.function call with a value of 2 fields",
        "tf.experimental.ExtensionType",
        "tf.function call, 2-field type in and out, vs tf ExtensionType",
    ),
    (
        "tf.function call with a class by its constructor",
        "TensorFlow Probability's decorator",
        "tf.function call, Adder in and out, vs TFP",
    ),
    (
        "parse 20,000 tf.Examples",
        "tf.io.parse_example",
        "from_tf_example, 20,000 recipes, vs tf.io.parse_example",
    ),
    (
        "Arrow to RaggedTensors, 50,000 records",
        "code by hand for this schema",
        "from_arrow, 50,000 recipes, vs by hand",
    ),
    (
        "Keras train step, 8 fields, 3 of them ragged",
        "a dict of tensors",
        "Keras train step, 8 fields, 3 of them ragged, 10k parameters, vs dict of tensors",
    ),
    (
        "attention in 1,024 lists, forward and gradient",
        "lists that are padded already",
        "xt.keras.layers.ListAttention, 1,024 lists of 0 to 16, forward and gradient, vs padded",
    ),
    (
        "write 50,000 records to an Arrow file",
        "pyarrow's writer, from Arrow data",
        "write_arrow, 50,000 recipes, vs pyarrow's writer alone",
    ),
]


def times(row: str) -> tuple[str, str, float]:
    """Returns our time, the peer's, and how many times the peer's is ours.

    Raises:
        KeyError: If the table has no such row.
    """
    ours, theirs, ratio, limit = rows()[row]
    return ours, theirs, float(ratio) if limit.startswith("peer/ours") else 1 / float(ratio)


def rows() -> dict[str, tuple[str, str, str, str]]:
    """Returns the times, the ratio and its limit of each row of the table."""
    lines = [[cell.strip() for cell in line.split("|")] for line in TABLE.read_text().splitlines()]
    # The other tables have no limits such as "ours/peer <= 1.5".
    rows = [line for line in lines if len(line) == 8 and line[5].startswith(("ours", "peer", "-"))]
    return {line[1]: (line[2], line[3], line[4], line[5]) for line in rows if line[1] != "---"}


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[unit]


def speed() -> Drawing:
    """Returns the picture of the README."""
    return _bars(ROWS, "Times of extensor and of its peers")


def peers() -> Drawing:
    """Returns the picture of the page of comparisons."""
    return _bars(PEERS, "Times of extensor and of other libraries")


def _bars(rows: list[tuple[str, str, str]], title: str) -> Drawing:
    """Returns two bars for each row, ours and the peer's, on a logarithmic scale."""
    drawing = Drawing(860, 76 + 62 * len(rows), title)
    drawing.text(
        24, 34, "Time for the same work, lower is better (logarithmic scale)", 16, bold=True
    )
    for number, (work, peer, row) in enumerate(rows):
        ours, theirs, ratio = times(row)
        y = 62 + number * 62
        drawing.text(24, y + 12, work, 13, bold=True)
        drawing.text(836, y + 12, _in_words(ratio), 13, anchor="end", bold=True)
        for line, (name, time, kind) in enumerate(
            (("extensor", ours, "ours"), (peer, theirs, "bar"))
        ):
            top = y + 18 + line * 17
            drawing.text(24, top + 11, name, 11, "soft")
            # From a microsecond to ten seconds: seven decades.
            length = 430 * math.log10(_seconds(time) / 1e-6) / 7
            drawing.box(300, top, max(length, 2), 13, kind)
            drawing.text(306 + length, top + 11, time, 11, "soft")
    return drawing


def _in_words(ratio: float) -> str:
    """Returns how many times the peer's time is ours."""
    if 0.95 <= ratio <= 1.05:
        return "about the same"
    return f"{ratio:.3g} times as fast" if ratio > 1 else f"takes {1 / ratio:.3g} times as long"
