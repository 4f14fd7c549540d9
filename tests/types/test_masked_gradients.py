"""Gradients of MaskedTensors: zero for masked items, and the number of ops that they need."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor._dispatch.operation import FUNCTIONS, operation_of
from extensor.types import MaskedTensor
from tests.dispatch.brute import call
from tests.dispatch.samples import EXCLUDED, SAMPLES, USUAL
from tests.types.test_masked_dispatch import run as run

Spec = MaskedTensor.Spec

# Every elementwise operation there is.


def _sampled(arity):
    is_kind = (xt.dispatch.is_unary_elementwise_op, xt.dispatch.is_binary_elementwise_op)[arity - 1]
    own = ("identity", "stop_gradient", "__operators__.eq", "__operators__.ne")
    for public in FUNCTIONS.values():
        if is_kind(public.function) and public.name not in EXCLUDED and public.name not in own:
            yield public.name


def _arguments(name):
    [function] = [f for f, public in FUNCTIONS.items() if public.name == name]
    operation = operation_of(function)
    given = {
        parameter: SAMPLES[name].get(parameter, USUAL.get(parameter))
        for parameter in operation.public.parameters
        if parameter in SAMPLES[name]
        or parameter in operation.public.parameters[: operation.required]
    }
    return operation, given


def _spoiled(values, mask):
    """Values with zeros where they are not valid."""
    if values.dtype.is_floating or values.dtype.is_complex:
        return tf.where(mask, values, tf.cast(np.nan, values.dtype))
    if values.dtype == tf.string or values.dtype == tf.bool:
        return values
    return tf.where(mask, values, tf.zeros_like(values))


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", [*_sampled(1), *_sampled(2)])
def test_gradients_of_elementwise_operations_are_finite_beside_masked_items(name):
    operation, given = _arguments(name)
    count = 2 if xt.dispatch.is_binary_elementwise_op(operation.function) else 1
    names = list(operation.tensors)[:count]
    plain = [tf.convert_to_tensor(given[n]) for n in names]
    shape = tf.broadcast_static_shape(plain[0].shape, plain[-1].shape)
    mask = tf.reshape(tf.range(shape.num_elements()) % 3 != 1, shape)
    ours = [MaskedTensor(_spoiled(p, mask), mask) if p.shape == shape else p for p in plain]
    others = [_spoiled(p, mask) if p.shape == shape else p for p in plain]

    def compute(*values):
        return call(operation, {**given, **dict(zip(names, values, strict=True))})

    # Both operands with a mask, and each beside a plain one.
    calls = [ours]
    if count == 2:
        calls += [c for c in ([ours[0], others[1]], [others[0], ours[1]]) if _any_masked(c)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([*plain, *others, *ours])
        expected = compute(*plain)
        total = _total(tf.where(mask, expected, tf.zeros_like(expected)))
        results = [compute(*operands) for operands in calls]
        totals = [_total(result.fill(_zero_of(result.dtype))) for result in results]
    for result in results:
        assert isinstance(result, MaskedTensor)
        np.testing.assert_array_equal(result.mask, mask)
        valid, wanted = (tf.boolean_mask(part, mask) for part in (result.values, expected))
        if expected.dtype == tf.string:
            assert (valid.numpy() == wanted.numpy()).all()
        else:
            np.testing.assert_allclose(valid, wanted, rtol=1e-5)
    if total is None:
        return
    for operands, one in zip(calls, totals, strict=True):
        for operand, source in zip(operands, plain, strict=True):
            try:
                wanted = tape.gradient(total, source)
            except LookupError:  # there is none
                return
            if wanted is not None:
                gradient = tape.gradient(one, operand)
                gradient = gradient.values if isinstance(operand, MaskedTensor) else gradient
                np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-6)


def _any_masked(operands):
    return any(isinstance(operand, MaskedTensor) for operand in operands)


def _zero_of(dtype):
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)


def _total(values):
    return tf.reduce_sum(tf.abs(values)) if values.dtype.is_floating else None


# Gradients.


def _numeric(function, values):
    """The gradients of a function, and the same by finite differences."""
    theoretical, numerical = tf.test.compute_gradient(function, values, delta=1e-5)
    return zip(theoretical, numerical, strict=True)


MASK = tf.constant([[True, False, True], [True, True, False], [False, False, False]])
DIFFERENTIABLE = {
    "sum": lambda x, y: tf.reduce_sum(x * y, 1).fill(0.0),
    "mean": lambda x, y: tf.reduce_mean(x / y, 0).fill(0.0),
    "variance": lambda x, y: tf.math.reduce_variance(x - y, 0).fill(0.0),
    "std": lambda x, y: tf.math.reduce_std(x * y).fill(0.0),
    "max": lambda x, y: tf.reduce_max(x * y, 1).fill(0.0),
    "min": lambda x, y: tf.reduce_min(tf.sqrt(x), 1).fill(0.0) * y[:, 0],
    "prod": lambda x, y: tf.reduce_prod(x, 1).fill(0.0) * y[:, 0],
    "logsumexp": lambda x, y: tf.reduce_logsumexp(x * y, 1).fill(0.0),
    "euclidean norm": lambda x, y: tf.math.reduce_euclidean_norm(x * y, 1).fill(0.0),
    "cumsum": lambda x, y: tf.cumsum(x * y, 1).fill(0.0),
    "matmul": lambda x, y: tf.matmul(x, y).fill(0.0),
    "matmul on the right": lambda x, y: tf.matmul(y, tf.math.log(x)).fill(0.0),
    "where": lambda x, y: tf.where(y > 1.5, tf.math.log(x), y).fill(0.0),
    "concat": lambda x, y: tf.reduce_sum(tf.concat([x, y], 0) ** 2).values,
    "gather": lambda x, y: tf.gather(tf.math.rsqrt(x) * y, [2, 0, 0]).fill(0.0),
    "fill": lambda x, y: x.fill(3.0) * y,
    "keras mask": lambda x, y: x.__keras_mask__()[0] * y,
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_finite_differences(name):
    rng = np.random.default_rng(3)
    # Negative where not valid: of no use to sqrt and log.
    x = tf.where(MASK, rng.uniform(1, 2, (3, 3)), -1.0)
    y = tf.constant(rng.uniform(1, 2, (3, 3)))

    def function(x, y):
        return DIFFERENTIABLE[name](MaskedTensor(x, MASK), y)

    [of_x, of_y] = _numeric(function, [x, y])
    np.testing.assert_allclose(*of_x, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(*of_y, rtol=1e-4, atol=1e-6)
    assert not np.asarray(of_x[0])[:, ~MASK.numpy().ravel()].any()
    # The same with nothing there at all.
    spoiled = _spoiled(x, MASK)
    with tf.GradientTape() as tape:
        tape.watch([spoiled, y])
        result = function(spoiled, y)
    for gradient, (jacobian, _) in zip(
        tape.gradient(result, [spoiled, y]), (of_x, of_y), strict=True
    ):
        np.testing.assert_allclose(gradient, np.sum(jacobian, 0).reshape(3, 3), rtol=1e-6)


def test_the_gradient_of_masked_items_is_zero(run):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = tf.reduce_sum(tf.math.log(x) / x)
        return tape.gradient(result.values, x)

    values = np.array([1.0, np.nan, -1.0, 0.0, 2.0])
    valid = np.array([True, False, False, False, True])
    ours = run(gradient, MaskedTensor(values, valid))
    good = np.where(valid, values, 1)
    np.testing.assert_allclose(ours.values, np.where(valid, (1 - np.log(good)) / good**2, 0))


@pytest.mark.parametrize("number", [0.0, np.inf, -2.0])
@pytest.mark.parametrize("op", [tf.multiply, tf.truediv])
def test_numbers_as_operands_do_not_spoil_gradients(op, number):
    x = MaskedTensor([4.0, np.nan, 0.0], [True, False, False])
    for operands in ((x, number), (number, x)):
        with tf.GradientTape() as tape:
            tape.watch(x.values)
            total = tf.reduce_sum(op(*operands)).values
        assert tape.gradient(total, x.values).numpy()[1:].tolist() == [0, 0]


# What it costs.


def _operations(function, *specs):
    """How many of each op a graph has, without those of every graph."""
    graph = tf.function(function, input_signature=specs).get_concrete_function().graph
    kinds = [op.type for op in graph.get_operations()]
    return sorted(kind for kind in kinds if kind not in ("Placeholder", "Identity", "NoOp"))


SPEC = MaskedTensor.Spec(tf.TensorSpec([None, 4]))
BY_HAND = {
    "add": (
        lambda x, y: x + y,
        lambda xv, xm, yv, ym: (xv + yv, xm & ym),
    ),
    "multiply by a number": (
        lambda x, y: 3.0 * (x - 1.0) / 2.0,
        lambda xv, xm, yv, ym: (3.0 * (xv - 1.0) / 2.0, xm),
    ),
    "compare": (
        lambda x, y: x < y,
        lambda xv, xm, yv, ym: (xv < yv, xm & ym),
    ),
    "sum": (
        lambda x, y: tf.reduce_sum(x, 1),
        lambda xv, xm, yv, ym: (
            tf.reduce_sum(tf.where(xm, xv, tf.constant(0.0)), 1),
            tf.reduce_any(xm, 1),
        ),
    ),
    "gather": (
        lambda x, y: tf.gather(x, [0]),
        lambda xv, xm, yv, ym: (tf.gather(xv, [0]), tf.gather(xm, [0])),
    ),
    "concat": (
        lambda x, y: tf.concat([x, y], 0),
        lambda xv, xm, yv, ym: (tf.concat([xv, yv], 0), tf.concat([xm, ym], 0)),
    ),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", BY_HAND)
def test_a_graph_has_the_ops_of_handwritten_code(name):
    ours, by_hand = BY_HAND[name]
    parts = [spec for _ in range(2) for spec in (SPEC.values, SPEC.mask)]
    operations = _operations(by_hand, *parts)
    assert len(operations) >= 1
    assert _operations(ours, SPEC, SPEC) == operations


def test_gradients_need_one_more_op_for_each_operand():
    plain = _operations(lambda x, y: (x.values * y.values, x.mask & y.mask), SPEC, SPEC)
    ours = _operations(lambda x, y: x * y, SPEC, SPEC)
    # The constants are folded when the graph is optimized.
    added = [kind for kind in ours if kind != "Const"]
    assert added == sorted([*plain, "SelectV2", "SelectV2"])
