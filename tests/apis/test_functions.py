"""Functions, control flow and loops with extension values."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.apis.kinds import assert_same, masked, measured
from tests.apis.matrix import RUN, row
from tests.samples.types import StaticSpec


@row("tf.function: arguments and results")
def test_function_takes_and_returns_values(kind, run):
    value = kind.make(3)
    assert_same(run(kind.doubled, value), kind.doubled(value))
    nested = run(lambda x: {"a": [kind.doubled(x["a"][0])], "b": x["b"]}, {"a": [value], "b": 1})
    assert_same(nested["a"][0], kind.doubled(value))


@row("tf.function: input_signature")
def test_a_spec_is_an_input_signature(kind, run):
    traces = []

    @tf.function(input_signature=[kind.spec])
    def double(value):
        traces.append(value)
        return kind.doubled(value)

    for size in (2, 3):
        assert_same(double(kind.make(size)), kind.doubled(kind.make(size)))
    assert len(traces) == 1
    with pytest.raises((TypeError, ValueError)):
        double(tf.constant(1.0))


@row("tf.function: get_concrete_function")
def test_a_spec_or_a_value_makes_a_concrete_function(kind, run):
    value = kind.make(3)
    for argument in (kind.spec, value):
        concrete = tf.function(kind.doubled).get_concrete_function(argument)
        assert_same(concrete(value), kind.doubled(value))


@row("tf.function: captured values")
def test_a_function_captures_values(kind, run):
    value = kind.make(3)
    assert_same(run(lambda: kind.doubled(value)), kind.doubled(value))


@row("tf.function: no retrace for equal specs")
def test_equal_specs_share_a_trace(kind, run):
    traces = []
    double = tf.function(lambda value: (traces.append(value), kind.doubled(value))[1])
    for value in (kind.make(3), kind.doubled(kind.make(3)), kind.make(3)):
        assert_same(double(value), kind.doubled(value))
    assert len(traces) == 1


@row("tf.function: reduce_retracing")
def test_compatible_specs_share_a_trace_with_reduce_retracing(kind, run):
    traces = []

    @tf.function(reduce_retracing=True)
    def double(value):
        traces.append(value)
        return kind.doubled(value)

    for size in (2, 3, 4, 5):
        assert_same(double(kind.make(size)), kind.doubled(kind.make(size)))
    assert len(traces) == 2


@row("tf.function: jit_compile")
def test_xla_compiles_functions_of_values_without_strings(kind, run):
    value, xla = kind.make(3), tf.function(kind.doubled, jit_compile=True)
    if kind.has_strings:
        with pytest.raises(tf.errors.InvalidArgumentError, match="unsupported operations"):
            run(xla, value)
        value = value.without("title", "tags")
    assert_same(run(xla, value), kind.doubled(value))


@row("tf.py_function")
def test_py_function_takes_and_returns_values(kind, run):
    value = kind.make(3)

    def eagerly_doubled(x):
        assert isinstance(kind.floats(x).numpy(), np.ndarray)
        return kind.doubled(x)

    def call(x):
        return tf.py_function(eagerly_doubled, [x], Tout=kind.spec)

    assert_same(run(call, value), kind.doubled(value))


@row("tf.numpy_function")
def test_numpy_function_takes_and_returns_values(kind, run):
    value = kind.make(3)

    def in_python(x, factor):
        assert isinstance(factor, np.ndarray | np.generic)
        return kind.change(
            lambda floats: tf.constant(floats.numpy() * factor), x
        ), factor + np.float32(1)

    def call(x):
        return xt.numpy_function(in_python, [x, 2.0], (kind.spec, tf.float32))

    assert_same(run(call, value), (kind.doubled(value), tf.constant(3.0)))


@row("tf.cond")
def test_cond_returns_values(kind, run):
    value = kind.make(3)
    choose = lambda yes, x: tf.cond(yes, lambda: kind.doubled(x), lambda: x)  # noqa: E731
    assert_same(run(choose, tf.constant(True), value), kind.doubled(value))
    assert_same(run(choose, tf.constant(False), value), value)


@row("tf.case")
def test_case_returns_values(kind, run):
    value = kind.make(3)

    def choose(n, x):
        branches = [(n > 1, lambda: kind.doubled(kind.doubled(x))), (n > 0, lambda: x)]
        return tf.case(branches, default=lambda: kind.doubled(x))

    assert_same(run(choose, tf.constant(2), value), kind.doubled(kind.doubled(value)))
    assert_same(run(choose, tf.constant(1), value), value)
    assert_same(run(choose, tf.constant(0), value), kind.doubled(value))


@row("tf.switch_case")
def test_switch_case_returns_values(kind, run):
    value = kind.make(3)
    choose = lambda n, x: tf.switch_case(n, [lambda: x, lambda: kind.doubled(x)])  # noqa: E731
    assert_same(run(choose, tf.constant(0), value), value)
    assert_same(run(choose, tf.constant(1), value), kind.doubled(value))


@row("tf.while_loop")
def test_while_loop_carries_values(kind, run):
    value = kind.make(3)

    def loop(times, x):
        return tf.while_loop(lambda i, _: i < times, lambda i, x: (i + 1, kind.doubled(x)), [0, x])

    assert_same(run(loop, tf.constant(2), value)[1], kind.doubled(kind.doubled(value)))
    assert_same(run(loop, tf.constant(0), value)[1], value)


@row("tf.while_loop: shape_invariants")
def test_a_spec_is_a_shape_invariant(kind, run):
    # Batches of growing size: the last of 1, 2, 3.
    batches = [kind.make(n) for n in (1, 2, 3)]

    def loop(*batches):
        def body(i, _):
            return i + 1, tf.switch_case(i - 1, [lambda b=b: b for b in batches])

        return tf.while_loop(
            lambda i, _: i < 4,
            body,
            [tf.constant(1), batches[0]],
            shape_invariants=[tf.TensorShape([]), kind.spec],
        )[1]

    assert_same(run(loop, *batches), batches[-1])


@row("autograph: if")
def test_autograph_if_chooses_values(kind, run):
    value = kind.make(3)

    def choose(yes, x):
        if yes:  # noqa: SIM108 - autograph reads statements
            x = kind.doubled(x)
        else:
            x = x
        return x

    assert_same(run(choose, tf.constant(True), value), kind.doubled(value))
    assert_same(run(choose, tf.constant(False), value), value)


@row("autograph: for")
def test_autograph_for_carries_values(kind, run):
    value = kind.make(3)

    def loop(times, x):
        for _ in tf.range(times):
            x = kind.doubled(x)
        return x

    assert_same(run(loop, tf.constant(2), value), kind.doubled(kind.doubled(value)))


@row("autograph: while")
def test_autograph_while_carries_values(kind, run):
    value = kind.make(3)

    def loop(limit, x):
        while tf.reduce_max(kind.floats(x)) < limit:
            x = kind.doubled(x)
        return x

    assert_same(run(loop, tf.constant(7.0), value), kind.doubled(kind.doubled(value)))


@row("tf.map_fn")
def test_map_fn_maps_values_to_values_and_tensors(kind, run):
    value = kind.make(3)

    def mapped(x):
        return tf.map_fn(kind.doubled, x, fn_output_signature=kind.element)

    assert_same(run(mapped, value), kind.doubled(value))
    floats = run(lambda x: tf.map_fn(kind.floats, x, fn_output_signature=tf.float32), value)
    assert_same(floats, kind.floats(value))


@row("tf.vectorized_map")
def test_vectorized_map_maps_values_to_values_and_tensors(kind, run):
    value = kind.make(3)
    floats = run(lambda x: tf.vectorized_map(lambda e: kind.floats(e) * 2, x), value)
    assert_same(floats, kind.floats(value) * 2)
    if kind.has_strings:
        with pytest.raises(ValueError, match=r"got xt.DenseStruct.*Use tf.map_fn for lists\."):
            run(lambda x: tf.vectorized_map(kind.doubled, x), value)
        value = value.without("tags", "steps")
    assert_same(run(lambda x: tf.vectorized_map(kind.doubled, x), value), kind.doubled(value))


def with_last_weight(kind):
    """Takes an accumulated value and an element; returns the element, with sums of floats."""
    return lambda total, x: kind.change(lambda floats: floats + kind.floats(total), x)


def refuses_values(function, value):
    # Eagerly only: what raises inside tf.scan in a graph leaves its variable scope as it is in
    # there, which breaks later calls of others.
    names = f"({type(value).__name__}|conversion of records to an array or tensor)"
    with pytest.raises(TypeError, match=f"{names}: expected a tensor"):
        function(lambda total, _: total, value)


@pytest.mark.whole("traces many functions")
@row("tf.scan")
def test_scan_unstacks_and_accumulates_values(kind, run):
    value, step = kind.make(4), with_last_weight(kind)
    sums = kind.change(tf.cumsum, value)
    assert_same(run(lambda x: xt.scan(step, x), value), sums)
    start = kind.row(kind.example(0))  # adds nothing
    assert_same(run(lambda x: xt.scan(step, x, start), value), sums)
    backwards = kind.change(lambda floats: tf.cumsum(floats, reverse=True), value)
    assert_same(run(lambda x: xt.scan(step, x, reverse=True), value), backwards)
    add = lambda total, x: total + kind.floats(x)  # noqa: E731
    assert_same(run(lambda x: xt.scan(add, x, 1.0), value), kind.floats(sums) + 1)
    pairs = run(lambda x: xt.scan(lambda t, p: t + kind.floats(p[0]) * p[1],
                                          (x, tf.range(4.0)), 0.0), value)  # fmt: skip
    assert_same(pairs, tf.cumsum(kind.floats(value) * tf.range(4.0)))
    refuses_values(tf.scan, value)


@pytest.mark.parametrize(
    ("ours", "plain"),
    [
        (xt.scan, tf.scan),
        (xt.foldl, tf.foldl),
        (xt.foldr, tf.foldr),
    ],
    ids=["scan", "foldl", "foldr"],
)
@pytest.mark.parametrize("initializer", [None, 3], ids=["first element", "initializer"])
@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_scan_and_folds_of_plain_tensors_equal_those_of_tensorflow(ours, plain, initializer, run):
    def of(function):
        return run(lambda x: function(lambda a, b: a * 2 - b, x, initializer), tf.range(5))

    assert_same(of(ours), of(plain))


@pytest.mark.parametrize("function", [xt.scan, xt.foldl], ids=["scan", "foldl"])
def test_the_error_of_scan_and_folds_names_the_expected_result(function):
    with pytest.raises(ValueError, match="fn must return this type"):
        function(lambda _, element: xt.replace(element, unit="lb"), measured(3))


def test_a_type_that_does_not_stack_is_an_error_as_a_sequence():
    class Alone(type(masked(1))):
        def __tf_type_spec__(self):
            return StaticSpec()

    value = Alone(tf.constant([1.0]), tf.constant([True]))
    with pytest.raises(TypeError, match=r"Derive StaticSpec from xt\.StackableTypeSpec"):
        xt.scan(lambda total, _: total, value)


@row("tf.foldl")
def test_foldl_unstacks_and_accumulates_values(kind, run):
    value, step = kind.make(4), with_last_weight(kind)
    last = kind.change(lambda floats: floats * 0 + 6, kind.example(3))
    assert_same(run(lambda x: xt.foldl(step, x), value), last)
    # What is accumulated need not stack: here it is a batch.
    again = lambda total, _: kind.doubled(total)  # noqa: E731
    assert_same(run(lambda x: xt.foldl(again, tf.range(2), x), value),
                kind.doubled(kind.doubled(value)))  # fmt: skip
    joined = lambda total, x: total * 10 + kind.floats(x)  # noqa: E731
    assert_same(run(lambda x: xt.foldl(joined, x, 0.0), value), tf.constant(123.0))
    refuses_values(tf.foldl, value)


@row("tf.foldr")
def test_foldr_unstacks_and_accumulates_values(kind, run):
    value, step = kind.make(4), with_last_weight(kind)
    first = kind.change(lambda floats: floats * 0 + 6, kind.example(0))
    assert_same(run(lambda x: xt.foldr(step, x), value), first)
    joined = lambda total, x: total * 10 + kind.floats(x)  # noqa: E731
    assert_same(run(lambda x: xt.foldr(joined, x, 0.0), value), tf.constant(3210.0))
    refuses_values(tf.foldr, value)
