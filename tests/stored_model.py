"""Writes the models in `tests/saved` that later versions of extensor have to load.

A release that changes what is written adds a folder, and none is ever written anew:

    python -c "from tests.stored_model import write; write('tests/saved/0.2')"
"""

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import tensorflow as tf

import extensor as xt

STEP = xt.DenseStructuredTensorSpec(
    [None], {"minutes": tf.TensorSpec([None]), "tool": tf.TensorSpec([None], tf.string)}
)
STEPS = xt.RaggedStructuredTensorSpec([None, None], STEP)
RECIPES = xt.DenseStructuredTensorSpec(
    [None],
    {
        "title": tf.TensorSpec([None], tf.string),
        "author": xt.DenseStructuredTensorSpec([None], {"age": tf.TensorSpec([None], tf.int32)}),
        "steps": STEPS,
        "tags": tf.RaggedTensorSpec([None, None], tf.string),
        "vector": tf.TensorSpec([None, 2]),
    },
)


@xt.extension_type(name="stored_model.Dish")
class Dish:
    """Has static data of the kinds that are written in words of extensor's own."""

    grams: tf.Tensor
    parts: tuple[tf.Tensor, ...]
    label: Any


LABEL = {"unit": "gram", "sizes": (1, 2.5, None), "raw": b"\x00\xff", "dtype": tf.int8}


def records():
    """Returns the model that takes and returns records."""
    module = tf.Module()
    module.scale = tf.Variable(2.0)

    @tf.function(input_signature=[RECIPES])
    def score(recipes):
        minutes = recipes["steps.minutes"] * module.scale
        return recipes.with_updates({"steps.minutes": minutes, "total": tf.reduce_sum(minutes, 1)})

    @tf.function(input_signature=[STEPS])
    def row(steps):
        return steps[0]

    module.score, module.row = score, row
    module.first = tf.function(lambda step: step, input_signature=[STEPS.unstacked()])
    return module


def dishes():
    """Returns the model that takes and returns values of a declared type."""
    module = tf.Module()
    spec = Dish.Spec(tf.TensorSpec([None]), (tf.TensorSpec([]), tf.TensorSpec([])), LABEL)
    module.double = tf.function(
        lambda dish: xt.replace(dish, grams=dish.grams * 2), input_signature=[spec]
    )
    return module


SERVED = {
    "price": pa.float32(),
    "author": pa.struct({"name": pa.string(), "age": pa.int32()}),
    "tags": pa.list_(pa.float32()),
    "kind": pa.dense_union([pa.field("number", pa.int32()), pa.field("text", pa.string())]),
    "title": pa.string(),
}
SERVED_NULLS = dict.fromkeys(["price", "author", "author.age", "tags", "tags[*]"], "mask")


def serve(recipe, plus):
    """Returns a number and a masked field."""
    tags = recipe["tags"].values
    numbers = tf.reduce_sum(tf.where(tags.mask, tags.values, 0.0), axis=1)
    return {"number": numbers + plus, "price": recipe["price"]}


def served():
    """Returns a signature of plain tensors."""
    spec = xt.spec_from_schema(pa.schema(SERVED), nulls=SERVED_NULLS)
    return xt.serving.flat_signature(serve, spec, tf.TensorSpec([]))


MODELS = {"records": records, "dishes": dishes, "served": served}


def write(folder):
    """Writes every model into a folder that does not have them yet."""
    for name, model in MODELS.items():
        place = Path(folder) / name
        if place.exists():
            raise SystemExit(f"{place} is there already, and what is written stays")
        with warnings.catch_warnings():
            # TensorFlow says so of every spec that it writes.
            warnings.filterwarnings("ignore", message="Encoding a StructuredValue")
            if model is served:
                quiet = tf.saved_model.SaveOptions(save_debug_info=False)
                xt.serving.save(None, place, served(), options=quiet)
            else:
                tf.saved_model.save(model(), str(place))
