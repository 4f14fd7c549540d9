"""Records, the tensors that hold them, and the model that takes them."""

from __future__ import annotations

import json
from typing import Any

import tensorflow as tf

import extensor as xt
from pictures.drawing import Drawing

RECIPES = [
    {
        "title": "Tea",
        "steps": [{"tool": "kettle", "minutes": 4}, {"tool": "cup", "minutes": 1}],
    },
    {"title": "Toast", "steps": [{"tool": "toaster", "minutes": 3}]},
]


def records_to_model() -> Drawing:
    """Returns the picture at the top of the README."""
    recipes = xt.struct.constant(RECIPES)
    drawing = Drawing(980, 320, "Nested records become tensors, and a Keras model takes them")
    for x, head in ((24, "Your records"), (390, "Tensors in Arrow's layout"), (752, "Your model")):
        drawing.text(x, 34, head, 16, bold=True)

    drawing.box(24, 50, 312, 220)
    drawing.lines(36, 74, _json_lines(), 12, 17)
    drawing.arrow((340, 160), (382, 160))

    tensors = [
        ("title", recipes["title"], "good"),
        ("steps.tool", recipes["steps.tool"].flat_values, "good"),
        ("steps.minutes", recipes["steps.minutes"].flat_values, "good"),
        ("row splits of steps", recipes["steps"].row_splits, "warm"),
    ]
    for number, (name, tensor, kind) in enumerate(tensors):
        y = 62 + number * 54
        drawing.text(390, y + 4, name, 12, "soft", mono=True)
        drawing.cells(390, y + 10, _cells(tensor), 78, kind)
    drawing.arrow((700, 160), (744, 160))

    drawing.box(752, 50, 204, 220)
    lines = [
        "def call(self, r):",
        '  t = r["steps.minutes"]',
        "  total = tf.reduce_sum(",
        "      t, axis=1)",
        '  tool = r["steps.tool"]',
        "  ...",
    ]
    drawing.lines(764, 74, lines, 12, 18)
    for number, word in enumerate(["fit", "evaluate", "predict", "save and serve"]):
        drawing.text(764, 202 + number * 18, f"✓ {word}", 13)

    kept = (
        "One spec from the file to the server. "
        "Numbers are not copied, and access to a field adds no op."
    )
    drawing.text(24, 300, kept, 13, "soft")
    return drawing


def layout() -> Drawing:
    """Returns the picture of one nested value in memory."""
    recipes = xt.struct.constant(RECIPES)
    drawing = Drawing(860, 300, "The memory of two recipes with lists of steps")
    drawing.text(24, 34, "Two recipes, three steps: four tensors", 16, bold=True)
    x, width = 360, 110
    splits = recipes["steps"].row_splits.numpy().tolist()
    drawing.text(24, 78, "title", 13, mono=True)
    drawing.text(24, 96, "one value for each recipe", 12, "soft")
    for title, first, last in zip(_cells(recipes["title"]), splits, splits[1:], strict=False):
        drawing.cells(x + first * width, 66, [title], (last - first) * width, "good")
    drawing.text(24, 142, "row splits of steps", 13, mono=True)
    drawing.text(24, 160, "recipe i has the steps splits[i] to splits[i + 1]", 12, "soft")
    for split in splits:
        at = x + split * width
        drawing.box(at - 13, 130, 26, 24, "warm")
        drawing.text(at, 146, str(split), 12, anchor="middle", mono=True)
        drawing.arrow((at, 156), (at, 186))
    for number, field in enumerate(["steps.tool", "steps.minutes"]):
        y = 190 + number * 42
        drawing.text(24, y + 16, field, 13, mono=True)
        drawing.cells(x, y, _cells(recipes[field].flat_values), width, "good")
    drawing.text(24, 284, "Both fields of a step share one tensor of row splits.", 12, "soft")
    return drawing


def _json_lines() -> list[str]:
    lines = []
    for recipe in RECIPES:
        steps = [json.dumps(step) for step in recipe["steps"]]
        lines += [f'{{"title": {json.dumps(recipe["title"])},', ' "steps": [']
        lines += [f"   {step}{',' if step != steps[-1] else ']}'}" for step in steps]
    return lines


def _cells(tensor: Any) -> list[str]:
    values = tf.convert_to_tensor(tensor).numpy().tolist()
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]
