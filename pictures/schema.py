"""The tree of a nested schema, and what each field is in TensorFlow."""

from __future__ import annotations

import tensorflow as tf

import extensor as xt
from pictures.drawing import Drawing

RECIPES = [
    {
        "title": "Tea",
        "rating": 4.5,
        "ingredients": [
            {"name": "water", "amount": 0.5},
            {"name": "tea", "amount": "a pinch"},
        ],
        "steps": [{"minutes": 4.0, "tools": ["kettle", "cup"]}],
    },
    {"title": "Toast", "rating": None, "ingredients": [], "steps": []},
]


def schema() -> Drawing:
    """Returns the picture: one box a field, joined to the record that has it."""
    recipes = xt.struct.constant(RECIPES, nulls={"rating": "mask"}, conflicts="union")
    rows = [("recipes", "recipes", recipes, 0), *_rows(recipes, "", 1)]
    drawing = Drawing(980, 92 + 36 * len(rows), "The schema of nested recipes as a tree of fields")
    drawing.text(24, 34, "The schema of recipes", 16, bold=True)
    drawing.text(330, 34, "You write", 16, bold=True)
    drawing.text(640, 34, "You get", 16, bold=True)
    above = {0: 0}  # the row of the last field at each depth
    for number, (name, code, value, depth) in enumerate(rows):
        y = 52 + number * 36
        kind = _kind(value)
        drawing.box(24 + depth * 36, y, 12 + 8 * len(name), 26, kind)
        drawing.text(30 + depth * 36, y + 17, name, 13, mono=True)
        if depth:
            parent = 52 + above[depth - 1] * 36
            x = 24 + (depth - 1) * 36 + 16
            drawing.arrow((x, parent + 26), (x, y + 13), (22 + depth * 36, y + 13))
        above[depth] = number
        drawing.text(330, y + 17, code, 13, mono=True)
        drawing.text(640, y + 17, _what(value), 13, mono=True)
    y = 66 + len(rows) * 36
    for x, kind, words in (
        (24, "box", "records"),
        (150, "good", "one tensor, dense or ragged"),
        (410, "warm", "nulls or several types: a mask or codes beside the values"),
    ):
        drawing.box(x, y, 14, 14, kind)
        drawing.text(x + 22, y + 12, words, 12, "soft")
    return drawing


def _rows(records, path, depth):
    for name in records.field_names():
        at = f"{path}.{name}" if path else name
        value = records[name]
        yield name, f'recipes["{at}"]', value, depth
        if isinstance(value, xt.StructuredTensor):
            yield from _rows(value, at, depth + 1)


def _kind(value) -> str:
    if isinstance(value, xt.StructuredTensor):
        return "box"
    return "warm" if isinstance(value, xt.types.MaskedTensor | xt.types.UnionTensor) else "good"


def _what(value) -> str:
    shape = "[" + ", ".join("*" if size is None else str(size) for size in value.shape) + "]"
    if isinstance(value, xt.types.UnionTensor):
        return f"UnionTensor {shape} {', '.join(value.names)}"
    if isinstance(value, xt.StructuredTensor):
        return f"StructuredTensor {shape}"
    if isinstance(value, tf.Tensor):
        return f"tf.Tensor {shape} {value.dtype.name}"
    return f"{type(value).__name__} {shape} {value.dtype.name}"
