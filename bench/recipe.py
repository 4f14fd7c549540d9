"""Realistic recipe records, the data of all benchmarks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EMBEDDING = 6

INGREDIENT = pa.struct([("amount", pa.float32()), ("unit", pa.string()), ("name", pa.string())])
STEP = pa.struct([("description", pa.string())])
USER_RATING = pa.struct(
    [("user_embedding", pa.list_(pa.float32(), EMBEDDING)), ("score", pa.float32())]
)
SCHEMA = pa.schema(
    [
        ("title", pa.string()),
        ("est_time", pa.float32()),
        ("ingredients", pa.list_(INGREDIENT)),
        ("steps", pa.list_(STEP)),
        ("user_ratings", pa.list_(USER_RATING)),
    ]
)

_STYLES = ["Grandma's", "Slow-Cooked", "Spicy", "Roasted", "Baked", "Creamy", "Crispy", "Vegan"]
_MAINS = ["Chicken", "Lentil", "Mushroom", "Salmon", "Pumpkin", "Spinach", "Crème Fraîche", "Leek"]
_DISHES = ["Soup", "Curry", "Stew", "Salad", "Gratin", "Tacos", "Noodles", "Jalapeño Dip", "Pie"]
_UNITS = ["g", "kg", "ml", "cup", "cups", "tsp", "tbsp", "pinch", "clove", "slice", "handful", ""]
_STATES = ["fresh", "dried", "ground", "chopped", "ripe", "whole", "frozen", ""]
_FOODS = ["salt", "oil", "rice", "onion", "basil", "butter", "tomato", "thyme", "parsley", "garlic"]
_VERBS = ["Chop", "Fry", "Stir in", "Add", "Bake", "Simmer", "Drain", "Season", "Whisk", "Fold in"]
_OBJECTS = ["the onions", "the rice", "everything", "the sauce", "the dough", "half the stock"]
_MANNERS = ["gently", "until golden", "for 5 min", "at 180 °C", "on low heat", "and set aside"]


def recipes(count: int, seed: int = 0) -> pa.Table:
    """Returns recipe records without nulls, in one chunk.

    Args:
        count: How many records; 50,000 of them are about 19 MB.
        seed: Equal seeds give equal records.
    """
    rng = np.random.default_rng(seed)
    ingredient_offsets = _offsets(rng.integers(1, 12, count))
    step_offsets = _offsets(rng.integers(1, 8, count))
    rating_offsets = _offsets(rng.integers(0, 5, count))
    ingredient_count, step_count, rating_count = (
        int(offsets[-1]) for offsets in (ingredient_offsets, step_offsets, rating_offsets)
    )
    ingredients = pa.StructArray.from_arrays(
        [
            _numbers(rng, ingredient_count, 500),
            _strings(rng, ingredient_count, _UNITS),
            _strings(rng, ingredient_count, _STATES, _FOODS),
        ],
        fields=list(INGREDIENT),
    )
    steps = pa.StructArray.from_arrays(
        [_strings(rng, step_count, _VERBS, _OBJECTS, _MANNERS)], fields=list(STEP)
    )
    embeddings = pa.FixedSizeListArray.from_arrays(
        _numbers(rng, rating_count * EMBEDDING, 1), EMBEDDING
    )
    user_ratings = pa.StructArray.from_arrays(
        [embeddings, _numbers(rng, rating_count, 5)], fields=list(USER_RATING)
    )
    columns = [
        _strings(rng, count, _STYLES, _MAINS, _DISHES),
        _numbers(rng, count, 120),
        pa.ListArray.from_arrays(ingredient_offsets, ingredients),
        pa.ListArray.from_arrays(step_offsets, steps),
        pa.ListArray.from_arrays(rating_offsets, user_ratings),
    ]
    # Concatenating moves every buffer into Arrow's own memory, which starts at multiples of 64
    # bytes as it does in a table that was read from a file. NumPy's memory does not.
    return pa.table([pa.concat_arrays([c, c.slice(0, 0)]) for c in columns], schema=SCHEMA)


def numbers(count: int, columns: int = 8, seed: int = 0) -> pa.Table:
    """Returns a flat table of float32 columns without nulls, in one chunk."""
    rng = np.random.default_rng(seed)
    arrays = [_numbers(rng, count, 1) for _ in range(columns)]
    return pa.table({f"x{i}": pa.concat_arrays([a, a.slice(0, 0)]) for i, a in enumerate(arrays)})


def _offsets(lengths: np.ndarray) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _numbers(rng: np.random.Generator, count: int, scale: float) -> pa.Array:
    return pa.array(rng.random(count, np.float32) * np.float32(scale))


def _strings(rng: np.random.Generator, count: int, *vocabularies: list[str]) -> pa.Array:
    """Returns strings of one word from each vocabulary, separated by spaces."""
    pool = [""]
    for words in vocabularies:
        pool = [f"{start} {word}".strip() for start in pool for word in words]
    return pc.take(pa.array(pool), pa.array(rng.integers(0, len(pool), count, np.int32)))
