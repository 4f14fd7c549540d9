"""Gradients of and with respect to extension values."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor._patches import _tf_py_function
from extensor._patches.patch import with_original
from tests.apis.kinds import assert_same, masked, measured
from tests.apis.matrix import RUN, row


@xt.extension_type
class Count:
    """A type without floating point components."""

    number: tf.Tensor


def gradient_of(kind, numbers, like):
    """The value that a gradient should be: `like`, with its floats replaced, all others zero."""
    zeroed = like
    if kind.name == "measured":
        zeroed = xt.replace(like, weight=like.weight * 0)
    if kind.name == "recipes":
        zeroed = like.with_updates({"steps.minutes": like["steps", "minutes"] * 0})
    return kind.change(lambda floats: tf.constant(numbers, floats.dtype), zeroed)


def squares(kind, value):
    return kind.change(lambda floats: floats**2, value)


@row("tf.GradientTape.gradient: sources")
def test_a_value_is_a_source(kind, run):
    value = kind.make(3)

    def gradient(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.reduce_sum(kind.floats(x) ** 2)
            z = tf.constant(1.0)
        both = tape.gradient(y, {"value": x, "tensor": kind.floats(x)})
        return both, tape.gradient(z, x)

    both, none = run(gradient, value)
    assert_same(both["value"], gradient_of(kind, [0.0, 2.0, 4.0], value))
    assert_same(both["tensor"], tf.constant([0.0, 2.0, 4.0]))
    assert none is None


@row("tf.GradientTape.gradient: targets")
def test_a_value_is_a_target(kind, run):
    value = kind.make(3)

    def gradient(x):
        floats = kind.floats(x)
        with tf.GradientTape() as tape:
            tape.watch(floats)
            y = kind.change(lambda _: floats**2, x)
        return tape.gradient(y, floats)

    assert_same(run(gradient, value), tf.constant([0.0, 2.0, 4.0]))


@row("tf.GradientTape.gradient: output_gradients")
def test_a_value_is_an_output_gradient(kind, run):
    value, weights = kind.make(3), kind.make(3, 1)

    def gradient(x, weights):
        floats = kind.floats(x)
        with tf.GradientTape() as tape:
            tape.watch(floats)
            y = kind.change(lambda _: floats**2, x)
        return tape.gradient(y, floats, output_gradients=weights)

    if kind.has_strings:  # ragged fields of other lengths: an output gradient is of the same shape
        weights = kind.change(lambda _: tf.constant([1.0, 2.0, 3.0]), value)
    assert_same(run(gradient, value, weights), tf.constant([0.0, 4.0, 12.0]))


@row("tf.GradientTape.gradient: nested tapes")
def test_gradients_of_gradients(kind, run):
    value = kind.make(3)

    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(kind.floats(x) ** 3)
            first = inner.gradient(y, x)
        return first, outer.gradient(kind.floats(first), x)

    first, again = run(second, value)
    assert_same(first, gradient_of(kind, [0.0, 3.0, 12.0], value))
    assert_same(again, gradient_of(kind, [0.0, 6.0, 12.0], value))


@row('tf.GradientTape.gradient: unconnected_gradients="zero"')
def test_unconnected_gradients_are_zero(kind, run):
    value, other = kind.make(3), tf.constant([1.0, 2.0])

    def gradient(x, other):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch((x, other))
            y = tf.reduce_sum(kind.floats(x) ** 2)
            z = tf.constant(1.0)
        zero = tf.UnconnectedGradients.ZERO
        return (
            tape.gradient(y, [other, x], unconnected_gradients="zero"),
            tape.gradient(z, [x, other], unconnected_gradients=zero),
        )

    connected, unconnected = run(gradient, value, other)
    zeros = tf.constant([0.0, 0.0])
    assert_same(connected, [zeros, gradient_of(kind, [0.0, 2.0, 4.0], value)])
    assert_same(unconnected, [gradient_of(kind, [0.0, 0.0, 0.0], value), zeros])


@pytest.mark.whole("traces many functions")
@row("tf.GradientTape.jacobian")
def test_the_jacobian_by_a_value_stacks_its_gradients(kind, run):
    value = kind.make(3)

    def jacobian(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = kind.floats(x)[:2] ** 2
            table, total, none = y[:, None], tf.reduce_sum(y), tf.constant([1.0])
        return (
            tape.jacobian(y, {"value": x, "tensor": kind.floats(x)}),
            tape.jacobian(table, x),
            tape.jacobian(total, x),
            tape.jacobian(none, x),
        )

    by_both, of_table, of_total, of_none = run(jacobian, value)
    rows = [[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    assert_same(by_both["tensor"], tf.constant(rows))
    gradients = [gradient_of(kind, row, value) for row in rows]
    stacked = list(tf.data.Dataset.from_tensor_slices(by_both["value"]))
    assert_same(stacked, gradients)
    [[first], [second]] = [
        list(tf.data.Dataset.from_tensor_slices(row))
        for row in tf.data.Dataset.from_tensor_slices(of_table)
    ]
    assert_same([first, second], gradients)
    assert_same(of_total, gradient_of(kind, [0.0, 2.0, 0.0], value))
    assert of_none is None


@row("tf.GradientTape.batch_jacobian")
def test_batch_jacobians_are_taken_by_component(kind, run):
    value = kind.make(3)

    def jacobian(x, by_component):
        rows = kind.floats(x)[:, None]
        with tf.GradientTape() as tape:
            tape.watch(rows)
            tape.watch(x)
            y = rows**2
        return tape.batch_jacobian(y, rows if by_component else x)

    by_component = run(lambda x: jacobian(x, True), value)
    assert_same(by_component, tf.constant([[[0.0]], [[2.0]], [[4.0]]]))
    with pytest.raises(TypeError, match=f"got a {type(value).__name__}.*Pass one component"):
        run(lambda x: jacobian(x, False), value)


@row("tf.gradients")
def test_tf_gradients_takes_values(kind, run):
    value = kind.make(3)

    def gradients(x):
        y = squares(kind, x)
        [by_value] = tf.gradients(y, x, grad_ys=None)
        [by_zero] = tf.gradients(kind.floats(y), x, unconnected_gradients="zero")
        return by_value, by_zero

    by_value, by_zero = run(gradients, value)
    np.testing.assert_array_equal(kind.floats(by_value), [0.0, 2.0, 4.0])
    assert_same(by_zero, gradient_of(kind, [0.0, 2.0, 4.0], value))


@row("tf.custom_gradient")
def test_custom_gradients_take_and_return_values(kind, run):
    value = kind.make(3)

    @tf.custom_gradient
    def times_two_with_a_gradient_of_ten(x):
        def gradient(upstream):
            return kind.change(lambda floats: floats * 10, upstream)

        return kind.doubled(x), gradient

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = times_two_with_a_gradient_of_ten(x)
            total = tf.reduce_sum(kind.floats(y))
        return y, tape.gradient(total, x)

    y, found = run(gradient, value)
    assert_same(y, kind.doubled(value))
    assert_same(found, gradient_of(kind, [10.0] * 3, value))


@row("tf.py_function: gradients")
def test_gradients_flow_through_py_function(kind, run):
    value = kind.make(3)
    spec = value.__tf_type_spec__()

    def by_value(x):
        return kind.floats(tf.py_function(lambda x: squares(kind, x), [x], spec))

    def to_floats(x):
        return tf.py_function(lambda x: kind.floats(x) ** 2, [x], tf.float32)

    def from_floats(x):
        change = lambda floats: kind.change(lambda _: floats**2, value)  # noqa: E731
        return kind.floats(tf.py_function(change, [kind.floats(x)], spec))

    def gradient(call, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(call(x) * [1.0, 2.0, 3.0])
        return tape.gradient(total, x)

    expected = gradient_of(kind, [0.0, 4.0, 12.0], value)
    for call in (by_value, to_floats, from_floats):
        assert_same(run(lambda x, call=call: gradient(call, x), value), expected)
        # The tape is outside of the graph.
        assert_same(gradient(lambda x, call=call: run(call, x), value), expected)


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_unused_arguments_of_py_function_have_zero_gradients_of_their_shape(run):
    value = measured(3)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            doubled = lambda x: x.masked.values * 2  # noqa: E731
            total = tf.reduce_sum(tf.py_function(doubled, [x], tf.float32))
        return tape.gradient(total, x)

    found = run(gradient, value)
    np.testing.assert_array_equal(found.weight, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(found.masked.values, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_values_without_floats_have_no_gradient_through_py_function(run):
    weight = tf.constant([1.0, 2.0])

    def gradient(weight, name):
        with tf.GradientTape() as tape:
            tape.watch(weight)
            named = Named(tf.strings.join([name, tf.strings.as_string(weight)]))
            length = lambda x: tf.cast(tf.strings.length(x.name), tf.float32)  # noqa: E731
            total = tf.reduce_sum(tf.py_function(length, [named], tf.float32) * weight)
        return tape.gradient(total, weight)

    found = run(gradient, weight, tf.constant(["a", "bc"]))
    np.testing.assert_array_equal(found, [9.0, 10.0])


@xt.extension_type
class Named:
    name: tf.Tensor


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_the_gradient_of_py_function_without_extension_values_is_that_of_tensorflow(
    run, monkeypatch
):
    asked = []
    registered = _tf_py_function.ops.gradient_registry._registry["EagerPyFunc"]
    plain = registered["type"].__wrapped__

    def gradient_of_the_op(op, *upstream):
        asked.append(op)
        return plain(op, *upstream)

    ours = with_original(_tf_py_function.gradient, gradient_of_the_op)
    monkeypatch.setitem(registered, "type", ours)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.py_function(lambda x: x * x, [x], tf.float32))
        return tape.gradient(total, x)

    np.testing.assert_array_equal(run(gradient, tf.constant([1.0, 2.0])), [2.0, 4.0])
    assert len(asked) == 1


@row("tf.recompute_grad")
def test_recompute_grad_takes_and_returns_values(kind, run):
    value, calls = kind.make(3), []

    def square(x, factor):
        calls.append(x)
        return squares(kind, kind.change(lambda floats: floats * factor, x))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = xt.recompute_grad(square)(x, factor=tf.constant(2.0))
            total = tf.reduce_sum(kind.floats(y))
        assert len(calls) == 1
        found = tape.gradient(total, x)
        assert len(calls) == 2
        return y, found

    y, found = run(gradient, value)
    assert_same(y, squares(kind, kind.doubled(value)))
    assert_same(found, gradient_of(kind, [0.0, 8.0, 16.0], value))
    with pytest.raises((TypeError, ValueError), match=type(value).__name__):
        run(lambda x: (tf.recompute_grad(kind.doubled)(x), gradient_through_tensorflow(x)), value)


def gradient_through_tensorflow(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.recompute_grad(lambda x: x)(x)
    return tape.gradient(y, x)


@row("tf.autodiff.ForwardAccumulator")
def test_forward_accumulators_watch_values(kind, run):
    value = kind.make(3)

    def product(x):
        tangent = kind.change(lambda floats: floats * 0 + [1.0, 2.0, 3.0], x)
        with xt.ForwardAccumulator(x, tangent) as accumulator:
            y = squares(kind, x)
            total = tf.reduce_sum(kind.floats(y))
        return accumulator.jvp((y, total)), accumulator.jvp(tf.constant(1.0))

    (value_product, total), none = run(product, value)
    np.testing.assert_array_equal(kind.floats(value_product), [0.0, 4.0, 12.0])
    assert type(value_product) is type(value)
    assert_same(total, tf.constant(16.0))
    assert none is None
    with pytest.raises((AttributeError, TypeError, ValueError)):
        run(lambda x: bool(tf.autodiff.ForwardAccumulator(x, x)), value)


def test_a_value_without_floats_has_no_gradient_as_a_ragged_tensor():
    count, ragged, x = Count([1, 2]), tf.ragged.constant([[1], [2]]), tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * tf.cast(count.number, tf.float32)
    found = tape.gradient(y, {"count": count, "ragged": ragged, "x": x})
    assert (found["count"], found["ragged"], found["x"].numpy().tolist()) == (None, None, [1, 2])


def test_a_variable_inside_a_value_has_its_gradient():
    variable = tf.Variable([1.0, 2.0])
    held = type(masked(2))(variable, tf.constant([True, False]))
    for unconnected in ("none", "zero"):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(held.values**2)
        found = tape.gradient(y, held, unconnected_gradients=unconnected)
        np.testing.assert_array_equal(found.values, [2.0, 4.0])
        np.testing.assert_array_equal(found.mask, held.mask)
    with tf.GradientTape() as tape:
        y = tf.constant(1.0)
    found = tape.gradient(y, held, unconnected_gradients="zero")
    np.testing.assert_array_equal(found.values, [0.0, 0.0])


def test_a_gradient_of_slices_becomes_dense_inside_a_value():
    value = masked(3)
    with tf.GradientTape() as tape:
        tape.watch(value)
        y = tf.reduce_sum(tf.gather(value.values, [0, 0, 2]))
    np.testing.assert_array_equal(tape.gradient(y, value).values, [2.0, 0.0, 1.0])


def test_a_class_may_have_gradients_of_its_own():
    class Own(type(masked(1))):
        __composite_gradient__ = "its own"

    assert isinstance(Own(tf.constant([1.0]), tf.constant([True])), xt.ExtensionType)
    tf.nest.flatten(Own(tf.constant([1.0]), tf.constant([True])), expand_composites=True)
    assert Own.__composite_gradient__ == "its own"
