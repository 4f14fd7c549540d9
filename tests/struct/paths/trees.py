"""Recipes as Python data and as records in all encodings, for tests of operations on paths."""

import copy

import pyarrow as pa
import tensorflow as tf
from hypothesis import strategies as st

import extensor as xt

STEP = pa.struct(
    {
        "minutes": pa.int32(),
        "tags": pa.list_(pa.string()),
        "tools": pa.list_(pa.struct({"grams": pa.float32()})),
    }
)
SCHEMA = pa.schema(
    {
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
        "minutes": numbers,
        "tags": lists(texts),
        "tools": lists(st.fixed_dictionaries({"grams": st.sampled_from([0.5, -1.0, 2.0])})),
    }
)
recipe = st.fixed_dictionaries(
    {
        "id": numbers,
        "author": st.fixed_dictionaries({"age": numbers, "books": lists(numbers)}),
        "steps": lists(steps),
        "sizes": lists(numbers),
    }
)
recipes = lists(recipe, 4)


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


def encodings(plain):
    """Yields pairs: recipes in one encoding, and a function from their Python data to a list."""

    def joined(rows):
        return [record for row in rows for record in row]

    for dtype in (tf.int32, tf.int64):
        yield vector(plain, dtype), lambda data: data
    if plain:
        yield vector(plain)[0], lambda data: [data]
    half = len(plain) // 2
    yield (
        xt.RaggedStructuredTensor.from_row_splits(vector(plain), [0, half, half, len(plain)]),
        joined,
    )
    twice = xt.RaggedStructuredTensor.from_row_splits(
        vector(plain + plain), [0, len(plain), 2 * len(plain)]
    )
    yield twice._as_dense(tf.TensorShape([2, len(plain)])), joined


def check(plain, operation, expected):
    """Compares an operation with its Python reference, for each encoding, eager and in a graph.

    Args:
        plain: A list of recipes.
        operation: From records to records.
        expected: From one recipe to the recipe that the operation makes of it.
    """
    pairs = list(encodings(plain))
    number = len(repr(plain)) % len(pairs)  # one encoding an example: a graph takes long to trace
    records, listed = pairs[number]
    before = listed(records.to_py())
    wanted = [expected(copy.deepcopy(record)) for record in before]
    assert listed(operation(records).to_py()) == wanted
    if len(pairs) == 5:
        assert listed(_traced(operation, number)(records).to_py()) == wanted


_functions = {}


def _traced(operation, number):
    """Returns a tf.function of an operation; its sizes become symbolic at the second call."""
    cells = tuple(repr(cell.cell_contents) for cell in operation.__closure__ or ())
    key = operation.__code__, cells, number
    if key not in _functions:
        _functions[key] = tf.function(operation, reduce_retracing=True)
    return _functions[key]
