"""The badges of the README: what is supported."""

from __future__ import annotations

from pictures.drawing import Drawing

BADGES = [
    ("Python", "3.10 to 3.13"),
    ("TensorFlow", "2.20, 2.21"),
    ("Keras", "3.10 and newer"),
    ("licence", "Apache-2.0"),
]


def badges() -> Drawing:
    """Returns all badges in one row."""
    widths = [(9 + 7 * len(name), 9 + 7 * len(value)) for name, value in BADGES]
    total = sum(left + right for left, right in widths) + 8 * (len(BADGES) - 1)
    drawing = Drawing(total, 22, ", ".join(f"{name} {value}" for name, value in BADGES))
    x = 0
    for (name, value), (left, right) in zip(BADGES, widths, strict=True):
        drawing.box(x, 1, left + right, 20, "off")
        drawing.box(x + left, 1, right, 20, "good")
        drawing.text(x + left / 2, 15, name, 12, anchor="middle")
        drawing.text(x + left + right / 2, 15, value, 12, anchor="middle")
        x += left + right + 8
    return drawing
