"""Recipes as Python data and as records in all encodings, for tests of operations on paths."""

import copy
import functools

import pyarrow as pa
import tensorflow as tf
from hypothesis import strategies as st

import extensor as xt

# Names that mean something in a path, in Arrow or in Python. No operation names these fields.
ODD = {"": 7, "null": 7, "a.b": 7, "shape": 7}
STEP = pa.struct(
    {
        **dict.fromkeys(ODD, pa.int32()),
        "minutes": pa.int32(),
        "tags": pa.list_(pa.string()),
        "tools": pa.list_(pa.struct({"grams": pa.float32()})),
    }
)
SCHEMA = pa.schema(
    {
        **dict.fromkeys(ODD, pa.int32()),
        "id": pa.int32(),
        "author": pa.struct({"age": pa.int32(), "books": pa.list_(pa.int64())}),
        "steps": pa.list_(STEP),
        "sizes": pa.list_(pa.int32()),
    }
)

numbers = st.integers(-3, 3)
texts = st.sampled_from([b"", b"a", b"ab", b"b", b"long string", b"long strings", b"\xc3\xa9"])


def lists(items, most=3):
    return st.lists(items, max_size=most)


steps = st.fixed_dictionaries(
    {
        **dict.fromkeys(ODD, numbers),
        "minutes": numbers,
        "tags": lists(texts),
        "tools": lists(st.fixed_dictionaries({"grams": st.sampled_from([0.5, -1.0, 2.0])})),
    }
)
recipe = st.fixed_dictionaries(
    {
        **dict.fromkeys(ODD, numbers),
        "id": numbers,
        "author": st.fixed_dictionaries({"age": numbers, "books": lists(numbers)}),
        "steps": lists(steps),
        "sizes": lists(numbers),
    }
)
recipes = lists(recipe, 4)


def or_none(values):
    return st.none() | values


nullable_step = st.fixed_dictionaries(
    {**dict.fromkeys(ODD, or_none(numbers)), "m": numbers, "l": or_none(lists(numbers))}
)
nullable_recipes = lists(
    st.fixed_dictionaries(
        {
            **dict.fromkeys(ODD, or_none(numbers)),
            "id": numbers,
            "sizes": lists(or_none(numbers)),
            "steps": or_none(lists(or_none(nullable_step))),
        }
    )
)
"""Recipes with lists that may be null above items and fields that may be null."""


def _text(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_text(item) for item in value]
    return {k: _text(v) for k, v in value.items()} if isinstance(value, dict) else value


def vector(plain, dtype=tf.int64):
    """Returns the records of a list of recipes."""
    table = pa.Table.from_pylist(_text(plain), SCHEMA)
    return xt.from_arrow(table, row_splits_dtype=dtype)


def _flat(rows):
    return [record for row in rows for record in row]


def _halves(plain):
    half = len(plain) // 2
    splits = tf.constant([0, half, half, len(plain)], tf.int32)
    return xt.RaggedStructuredTensor.from_row_splits(vector(plain, tf.int32), splits)


def _twice(plain):
    size = len(plain)
    twice = xt.RaggedStructuredTensor.from_row_splits(vector(plain * 2), [0, size, 2 * size])
    return twice._as_dense(tf.TensorShape([2, size]))


# Functions that encode recipes, and that list the recipes of the encoding's Python data.
ENCODINGS = (
    (vector, list),
    (_halves, _flat),
    (_twice, _flat),
    (lambda plain: vector(plain)[0], lambda record: [record]),  # not for an empty list
)


def check(plain, cases):
    """Compares operations with their Python references, for each encoding, eager and in a graph.

    Args:
        plain: A list of recipes.
        cases: For each name, an operation from records to records, and a function from one recipe
            to the recipe that the operation makes of it.
    """
    number = len(repr(plain)) % (len(ENCODINGS) - (not plain))  # one encoding an example
    encode, listed = ENCODINGS[number]
    records = encode(plain)
    # A field that moves to another name is a plain tensor of strings, which is bytes by default.
    rows = listed(records.to_py(text=True))
    results = _traced(cases, number)(records)
    for name, (operation, expected) in cases.items():
        wanted = [expected(copy.deepcopy(row)) for row in rows]
        assert listed(operation(records).to_py(text=True)) == wanted, name
        assert listed(results[name].to_py(text=True)) == wanted, f"{name}, in a graph"


@functools.cache
def _any_size(number):
    """Returns the spec of the records of one encoding, of any size."""
    a, b = (xt.spec_of(ENCODINGS[number][0](plain)) for plain in _OF_OTHER_SIZES)
    return a.most_specific_common_supertype([b])


_OF_OTHER_SIZES = [
    [
        {
            **ODD,
            "id": 0,
            "author": {"age": 0, "books": [0] * size},
            "steps": [{**ODD, "minutes": 0, "tags": [""] * size, "tools": [{"grams": 0.0}] * size}]
            * size,
            "sizes": [0] * size,
        }
    ]
    * size
    for size in (1, 2)
]

_functions = {}


def _traced(cases, number):
    """Returns all operations as one tf.function of records of any size, traced once.

    Most of the time of a trace is that of its arguments.
    """
    key = id(cases), number
    if key not in _functions:

        def results(records):
            return {name: operation(records) for name, (operation, _) in cases.items()}

        _functions[key] = tf.function(results, [_any_size(number)], autograph=False)
    return _functions[key]
