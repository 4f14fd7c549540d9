"""Which inputs a graph uses: changing the others changes nothing."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._arrow.schema import spec_from_schema
from extensor._data.fields_used import uses_by
from extensor._data.prunable import unpack_used
from extensor._pruning.components import blank, checked_uses, components
from extensor._pruning.consumption import NOTHING, VALUE, Consumption
from tests.pruning.programs import EXPRESSIONS, table, value

VECTOR = tf.TensorSpec([None], tf.float32)


@pytest.mark.whole("draws many values")
@given(EXPRESSIONS, st.integers(0, 3))
def test_results_depend_only_on_what_is_used(expression, seed):
    records = xt.from_arrow(table(seed))
    spec = spec_from_schema(table(seed).schema, None)
    function = tf.function(lambda records: value(expression, records))
    found = checked_uses(components(spec), uses_by(function, spec))
    flat = tf.nest.flatten(records, expand_composites=True)
    used = [
        tensor if use == VALUE else tf.shape(tensor, tf.int64)[0]
        for tensor, use in zip(flat, found, strict=True)
        if use != NOTHING
    ]
    whole = function.get_concrete_function(spec)(records)
    pruned = tf.function(lambda used: function(unpack_used(spec, found, used)))(used)
    np.testing.assert_array_equal(whole, pruned)


def uses(function, count=3, spec=VECTOR):
    """Returns the letters of the arguments that a function uses: v for values, s for shapes."""
    found = uses_by(lambda args: function(*args), (spec,) * count)
    return "".join(".sv"[found.get(i, NOTHING)] for i in range(count))


VARIABLE = tf.Variable(0.0)


@tf.function
def pair(a, b):
    return a + 1.0, b * 2.0


@tf.function
def printing(a, b):
    tf.print(b)
    return a * 2.0


def loop(a, b, c):
    # c goes round in the loop, and reaches b after two rounds.
    return tf.while_loop(lambda i, *_: i < 3, lambda i, a, b, c: (i + 1, a, b + c, c), (0, a, b, c))


FUNCTIONS = {
    "nothing": (lambda a, b, c: tf.constant(1), "..."),
    "an argument itself": (lambda a, b, c: b, ".v."),
    "a sum": (lambda a, b, c: a + c, "v.v"),
    "a shape": (lambda a, b, c: tf.shape(b), ".s."),
    "the shape of a slice": (lambda a, b, c: tf.shape(b[:-1]), ".s."),
    "a shape and the values": (lambda a, b, c: (tf.shape(b), b * 2.0), ".v."),
    "zeros of a shape": (lambda a, b, c: a + tf.zeros_like(c), "v.s"),
    "one result of a call": (lambda a, b, c: pair(a, b)[0], "v.."),
    "the other result": (lambda a, b, c: pair(a, b)[1], ".v."),
    "a call of a call": (lambda a, b, c: tf.function(lambda x: pair(x, c)[1])(a), "..v"),
    "the shape of a result": (lambda a, b, c: tf.shape(pair(a, b)[0]), "v.."),
    "the shape of an argument that a call returns": (
        lambda a, b, c: tf.shape(tf.function(lambda x, y: (x, y))(a, b)[1]),
        ".s.",
    ),
    "printed in a call": (lambda a, b, c: printing(a, b), "vv."),
    "printed": (lambda a, b, c: (tf.print(c), a)[1], "v.v"),
    "both branches": (lambda a, b, c: tf.cond(a[0] > 0, lambda: b * 1.0, lambda: c * 1.0), "vvv"),
    "one result of branches": (
        lambda a, b, c: tf.cond(a[0] > 0, lambda: (a, b), lambda: (a * 2.0, c))[0],
        "v..",
    ),
    "printed in a branch": (
        lambda a, b, c: tf.cond(a[0] > 0, lambda: (tf.print(b), a)[1], lambda: a),
        "vv.",
    ),
    "cases": (lambda a, b, c: tf.switch_case(tf.size(a), [lambda: b, lambda: b * 2.0]), "sv."),
    "a variable of a loop": (lambda a, b, c: loop(a, b, c)[1], "v.."),
    "another variable": (lambda a, b, c: loop(a, b, c)[2], ".vv"),
    "an assertion": (lambda a, b, c: (tf.debugging.assert_positive(b), a)[1], "vv."),
    "an assignment": (lambda a, b, c: (VARIABLE.assign(b[0]), a)[1], "vv."),
    "Python": (lambda a, b, c: tf.py_function(lambda x: x, [c], tf.float32), "..v"),
    "map_fn": (lambda a, b, c: tf.map_fn(lambda x: x + b[0], a), "vv."),
    "a random mask": (lambda a, b, c: tf.nn.dropout(a, 0.5), "v.."),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_uses(name):
    function, expected = FUNCTIONS[name]
    assert uses(function) == expected


def test_the_calls_of_functions_are_followed_once(monkeypatch):
    followed = []
    call_uses = Consumption.call_uses
    monkeypatch.setattr(
        Consumption,
        "call_uses",
        lambda self, node, uses: followed.append(node.name) or call_uses(self, node, uses),
    )
    inner = tf.function(lambda *args: [arg + 1.0 for arg in args])
    assert uses(tf.function(lambda *args: inner(*args)), 20) == "v" * 20
    assert len(followed) < 7 * 20


def test_a_recursion_in_the_library_ends():
    @tf.function
    def countdown(n, a, b):
        return tf.cond(n > 0, lambda: a + b, lambda: b)

    found = uses(lambda a, b, c: countdown(tf.size(a), b, c))
    assert found == "svv"


def test_gradients_use_what_a_custom_gradient_uses():
    def function(a, b, c):
        @tf.custom_gradient
        def scaled(x):
            return tf.identity(x), lambda upstream: upstream * b

        with tf.GradientTape() as tape:
            tape.watch(a)
            y = scaled(a)
        return tape.gradient(y, a)

    assert uses(function)[1] == "v"


def test_a_blank_is_no_constant():
    @tf.function
    def function():
        tensor = blank(tf.TensorSpec([None, 2], tf.int64), tf.constant(3))
        assert tensor.shape.as_list() == [None, 2]
        assert tf.get_static_value(tensor) is None
        return tf.shape(tensor)

    assert function().numpy().tolist() == [3, 2]
