"""Results of functions for numpy_function, scan, foldl and foldr match their declared specs."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.apis.matrix import RUN
from tests.samples.types import MaskedTensor, MaskedTensorSpec

pytestmark = pytest.mark.usefixtures("variable_scope_as_it_was")


@xt.extension_type
class Load:
    """A type with static data: the unit of the weights."""

    weights: tf.Tensor
    unit: str = "kg"


@xt.extension_type
class Other:
    """Has the same components and static data as a load, but is of another class."""

    weights: tf.Tensor
    unit: str = "kg"


class Theirs(tf.experimental.ExtensionType):
    """A type of tf.experimental.ExtensionType, with static data."""

    weights: tf.Tensor
    unit: str = "kg"


LOAD = Load.Spec(tf.TensorSpec([2]), "kg")
RIGHT = Load([1.0, 2.0])
WRONG = {
    "static data": Load([1.0, 2.0], "lb"),
    "class": Other([1.0, 2.0]),
    "dtype": Load(tf.constant([1, 2])),
    "shape": Load([1.0, 2.0, 3.0]),
    "tensor": tf.constant([1.0, 2.0]),
    "None": None,
}

# Each takes a function without arguments that returns a load, and returns its result.


def by_numpy_function(function):
    return xt.numpy_function(function, [], LOAD)


def by_py_function(function):
    return tf.py_function(function, [], LOAD)


def by_map_fn(function):
    mapped = tf.map_fn(lambda _: function(), tf.range(1), fn_output_signature=LOAD)
    return Load(mapped.weights[0], mapped.unit)


def by_generator(function):
    def generated():
        yield function()

    dataset = tf.data.Dataset.from_generator(generated, output_signature=LOAD)
    return next(iter(dataset))


def by_scan(function):
    scanned = xt.scan(lambda *_: function(), tf.range(1), RIGHT)
    return Load(scanned.weights[0], scanned.unit)


def by_foldl(function):
    return xt.foldl(lambda *_: function(), tf.range(1), RIGHT)


def by_foldr(function):
    return xt.foldr(lambda *_: function(), tf.range(1), RIGHT)


def by_reduce(function):
    return tf.data.Dataset.range(1).reduce(RIGHT, lambda *_: function())


def by_dataset_scan(function):
    dataset = tf.data.Dataset.range(2).scan(RIGHT, lambda state, _: (function(), state))
    return list(dataset)[1] if tf.executing_eagerly() else next(iter(dataset.skip(1)))


def by_while_loop(function):
    return tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, function()), (0, RIGHT))[1]


BY = {
    name.removeprefix("by_"): function
    for name, function in dict(globals()).items()
    if name.startswith("by_")
}
EVERY_WAY = [
    pytest.param(by, run, id=f"{name}-{mode}")
    for name, by in BY.items()
    for mode, run in RUN.items()
    # Outside of a graph tf.while_loop is Python's loop, whose variables may be anything.
    if (name, mode) != ("while_loop", "eager")
]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(("by", "run"), EVERY_WAY)
def test_correct_results_are_returned(by, run):
    result = run(lambda: by(lambda: RIGHT))
    assert type(result) is Load
    assert result.unit == "kg"
    np.testing.assert_array_equal(result.weights, [1.0, 2.0])


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize(("by", "run"), EVERY_WAY)
def test_results_of_another_spec_are_errors(by, run, wrong):
    folds = () if run is RUN["graph"] else (by_foldl, by_foldr)
    if wrong is WRONG["shape"] and by in (by_reduce, by_dataset_scan, *folds):
        assert run(lambda: by(lambda: wrong)).weights.shape == [3]  # a state may grow
        return
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        run(lambda: by(lambda: wrong))


# xt.numpy_function


SPECS = {
    "RaggedTensor of other rows": (tf.RaggedTensorSpec([3, None]), tf.ragged.constant([[1.0], []])),
    "RaggedTensor of another dtype": (
        tf.RaggedTensorSpec([None, None], tf.int32),
        tf.ragged.constant([[1.0], []]),
    ),
    "RaggedTensor for a tensor": (tf.TensorSpec([None]), tf.ragged.constant([[1.0], []])),
    "SparseTensor of another shape": (
        tf.SparseTensorSpec([3, 1]),
        tf.sparse.from_dense([[1.0], [0.0]]),
    ),
    "a value for a tensor": (tf.TensorSpec([None]), Load([1.0, 2.0])),
    "an array of another shape": (tf.TensorSpec([2]), np.ones([3], np.float32)),
    "an array of another kind": (tf.TensorSpec([1], tf.int32), np.array([0.5])),
    "a tensor of another dtype": (tf.TensorSpec([1], tf.int32), tf.constant([1.0])),
    "None for a tensor": (tf.TensorSpec([2]), None),
    "static data of another's type": (Theirs.Spec(tf.TensorSpec([1]), "kg"), Theirs([1.0], "lb")),
    "None for another's type": (Theirs.Spec(tf.TensorSpec([1]), "kg"), None),
    "a value of a type by hand": (
        MaskedTensorSpec([2], tf.float32),
        MaskedTensor(tf.ones([3]), tf.ones([3], tf.bool)),
    ),
}


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
@pytest.mark.parametrize(("spec", "wrong"), SPECS.values(), ids=list(SPECS))
def test_numpy_function_checks_its_result_against_any_spec(spec, wrong, run):
    def refuses(declared, returned):
        with pytest.raises((xt.ExtensorError, tf.errors.InvalidArgumentError)) as caught:
            run(lambda: xt.numpy_function(lambda: returned, [], declared))
        assert "expected" in str(caught.value)

    refuses(spec, wrong)
    refuses({"right": LOAD, "it": spec}, {"right": RIGHT, "it": wrong})


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
@pytest.mark.parametrize("returned", [None, RIGHT, (RIGHT,), (RIGHT, None), {"a": RIGHT}], ids=str)
def test_numpy_function_names_the_expected_structure(returned, run):
    error = (xt.errors.StructureError, tf.errors.InvalidArgumentError)
    with pytest.raises(error, match=r"numpy_function: expected .*kg.*kg.*, got"):
        run(lambda: xt.numpy_function(lambda: returned, [], (LOAD, {"a": LOAD})))


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_numpy_function_converts_without_loss_of_data(run):
    declared = [tf.TensorSpec([2]), tf.TensorSpec([], tf.string), tf.float64, LOAD]
    returned = [np.array([1.0, 2.0]), "a", 3, RIGHT]
    numbers, text, number, load = run(lambda: xt.numpy_function(lambda: returned, [], declared))
    assert numbers.dtype == tf.float32
    assert numbers.shape == [2]
    assert text == b"a"
    assert number.dtype == tf.float64
    np.testing.assert_array_equal(load.weights, [1.0, 2.0])


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_numpy_function_takes_one_value_for_a_list_of_one_spec(run):
    [result] = run(lambda: xt.numpy_function(lambda: RIGHT, [], [LOAD]))
    assert result.unit == "kg"


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_numpy_function_without_results_is_called(run):
    seen = []

    def call(load):
        xt.numpy_function(lambda x: seen.append(x.unit), [load], [])
        return tf.constant(0)

    run(call, RIGHT)
    assert seen == ["kg"]


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
@pytest.mark.parametrize(
    ("function", "declared"),
    [
        (lambda x: x, tf.float32),
        (lambda x: x, [tf.float32]),
        (lambda x: [x], tf.float32),
        (lambda x: (x, np.int64(1)), [tf.float32, tf.int64]),
        (lambda x: ["a", "\N{EURO SIGN}"], [tf.string, tf.string]),
    ],
)
def test_numpy_function_of_plain_tensors_equals_that_of_tensorflow(function, declared, run):
    def result(numpy_function):
        return run(lambda x: numpy_function(function, [x], declared), tf.constant([1.0, 2.0]))

    ours, plain = result(xt.numpy_function), result(tf.numpy_function)
    tf.nest.assert_same_structure(ours, plain)
    for a, b in zip(tf.nest.flatten(ours), tf.nest.flatten(plain), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


# xt.scan, xt.foldl and xt.foldr


@pytest.mark.parametrize("fold", [xt.foldl, xt.foldr], ids=["foldl", "foldr"])
def test_the_accumulator_of_a_fold_may_grow(fold):
    def longer(load, _):
        return xt.replace(load, weights=tf.concat([load.weights, [0.0]], 0))

    assert fold(longer, tf.range(3), RIGHT).weights.shape == [5]


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_a_dense_accumulator_is_cast_to_the_ragged_result(run):
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    dense = tf.constant([[4.0, 5.0], [6.0, 7.0]])
    rows = dense.numpy().tolist()
    values = tf.stack([ragged, ragged])

    def folds_to_rows(fold):
        assert run(lambda: fold(lambda *_: dense, tf.range(1), ragged)).to_list() == rows
        assert run(lambda: fold(lambda *_: dense, values)).to_list() == rows

    folds_to_rows(xt.foldl)
    folds_to_rows(xt.foldr)
    assert run(lambda: xt.scan(lambda *_: dense, tf.range(1), ragged)).to_list() == [rows]
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="fn must return"):
        run(lambda: xt.scan(lambda *_: dense[:, :, None], tf.range(1), ragged))
