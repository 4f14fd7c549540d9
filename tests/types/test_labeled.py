"""LabeledTensor: its axis names in every API, and conversion from and to xarray."""

import copy
import functools
import pickle
import sys

import numpy as np
import pytest
import tensorflow as tf
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import extensor as xt
from extensor.types import LabeledTensor
from tests.types.labeled_arrays import assert_equal, labeled, one

Spec = LabeledTensor.Spec

GRAMS = LabeledTensor(
    np.arange(6.0, dtype=np.float32).reshape(2, 3) - 1.5, ["recipe", "ingredient"]
)
PRICES = LabeledTensor(tf.constant([2.0, -0.5, 3.0]), ["ingredient"])


def same(x, y):
    return x.axes == y.axes and x.dtype == y.dtype and np.array_equal(x.numpy(), y.numpy())


# What it holds.


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize(
    "values",
    [
        [GRAMS, GRAMS * 2.0, tf.zeros_like(GRAMS)],
        [LabeledTensor(3, [])],
        [LabeledTensor(["basil", "oil"], ["batch"])],
        [LabeledTensor(tf.zeros([2, 1, 2], tf.bool), ["batch_2", "batch", "b"])],
        [LabeledTensor(tf.zeros([2, 0]), ["word", "feature"])],
    ],
    ids=["matrix", "scalar", "string", "batches", "empty"],
)
def test_laws(values):
    xt.testing.check_extension_type(values)


@pytest.mark.slow
def test_laws_of_generated_tensors():
    spec = Spec(tf.TensorSpec([None, None], tf.float64), ["word", "feature"])
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=3)
    arrays = hnp.arrays(np.float64, shapes, elements=st.integers(-9, 9).map(float))
    values = arrays.map(lambda array: LabeledTensor(array, ["word", "feature"]))
    xt.testing.check_spec(spec, values=values, max_examples=5)


def test_names_are_static():
    x = LabeledTensor([[1, 2]], ("word", "feature"))
    assert x.axes == ("word", "feature")
    assert (x.shape, x.dtype, x.sizes) == (
        tf.TensorShape([1, 2]),
        tf.int32,
        {"word": 1, "feature": 2},
    )
    assert repr(x) == "<LabeledTensor (word=1, feature=2) int32>"
    assert LabeledTensor([1.0], "word").axes == ("word",)
    spec = x.__tf_type_spec__()
    assert spec == Spec(tf.TensorSpec([1, 2], tf.int32), ["word", "feature"])
    assert (spec.shape, spec.dtype, spec.axes) == (x.shape, x.dtype, x.axes)
    assert not spec.is_compatible_with(x.rename(word="token"))
    assert not spec.is_compatible_with(x.transpose())
    assert not spec.is_compatible_with(x.values)


def test_a_function_is_traced_for_each_set_of_names():
    traces = []

    @tf.function
    def double(x):
        traces.append(x.axes)
        return x * 2.0

    for x in (GRAMS, GRAMS + 1.0, GRAMS.rename(recipe="meal"), GRAMS):
        assert same(double(x), x * 2.0)
    assert traces == [("recipe", "ingredient"), ("meal", "ingredient")]


@pytest.mark.parametrize(
    "again",
    [
        copy.deepcopy,
        lambda x: pickle.loads(pickle.dumps(x)),
        lambda x: tf.nest.map_structure(tf.identity, x, expand_composites=True),
        tf.identity,
        lambda x: x.with_values(x.values),
        lambda x: x.rename({}),
        lambda x: x[...],
    ],
)
def test_copies(again):
    assert same(again(GRAMS), GRAMS)


def test_it_is_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        GRAMS.axes = ("word",)


def test_rows_can_be_counted_and_iterated():
    assert len(GRAMS) == 2
    assert [row.axes for row in GRAMS] == [("ingredient",)] * 2
    np.testing.assert_array_equal([row.numpy() for row in GRAMS], GRAMS.numpy())


# Scalars have no names to lose.


def test_scalars_are_converted_to_tensors():
    total = tf.reduce_sum(GRAMS)
    assert total.axes == ()
    assert tf.convert_to_tensor(total).numpy() == 6.0
    assert tf.convert_to_tensor(total, tf.float32).dtype == tf.float32
    assert (float(total), int(total), np.asarray(total)) == (6.0, 6, 6.0)
    assert np.asarray(total, np.int32).dtype == np.int32
    assert bool(total > 5.0)
    assert tf.cond(total > 5.0, lambda: 1, lambda: 2) == 1
    assert tf.fill([2], total).numpy().tolist() == [6.0, 6.0]
    assert (
        tf.function(lambda x: tf.cond(tf.reduce_sum(x) > 7.0, lambda: 1, lambda: 2))(GRAMS).numpy()
        == 2
    )
    assert tf.gather(GRAMS, tf.argmax(PRICES), axis="ingredient").numpy().tolist() == [0.5, 3.5]
    assert GRAMS[tf.argmin(PRICES)].numpy().tolist() == [1.5, 2.5, 3.5]


def test_scalars_are_numbers_in_operations_with_other_types():
    total = tf.reduce_sum(GRAMS)
    np.testing.assert_array_equal(tf.constant([1.0, 2.0]) / total, np.array([1.0, 2.0], "f") / 6)
    np.testing.assert_array_equal(total * np.array([1.0, 2.0], np.float32), [6.0, 12.0])
    ragged = tf.ragged.constant([[1.0], []]) * total
    assert ragged.to_list() == [[6.0], []]
    sparse = xt.types.CSRSparseTensor.from_dense([[0.0, 2.0]])
    assert (sparse * total).values.numpy().tolist() == [12.0]
    masked = xt.types.MaskedTensor([1.0, 2.0], [True, False])
    assert (masked * total).mask.numpy().tolist() == [True, False]
    assert (total * masked).values.numpy()[0] == 6.0


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.int64, tf.complex64])
def test_numbers_take_the_dtype_of_the_values(dtype):
    x = LabeledTensor(tf.cast([1, 2], dtype), ["word"])
    for result in (1 + x, x + 1, 2 - x, x - 2, 3 * x, x * 3, x**2, sum([x, x])):
        assert result.dtype == dtype
    if dtype.is_floating:
        assert (1 / x).dtype == (2**x).dtype == (7 % x).dtype == (7 // x).dtype == dtype
        assert (1 / x).numpy().tolist() == [1.0, 0.5]


def test_a_symbolic_scalar_is_no_condition_of_python():
    @tf.function
    def through(x):
        if tf.reduce_any(x > 0.0):
            return x
        return -x

    with pytest.raises(xt.ExtensorError, match=r"Inside a tf.function.*if x.values:"):
        through(GRAMS)


# In TensorFlow.


def test_batching_adds_an_axis_called_batch():
    rows = tf.data.Dataset.from_tensor_slices(GRAMS)
    assert rows.element_spec == Spec(tf.TensorSpec([3]), ["ingredient"])
    batches = rows.batch(2)
    assert batches.element_spec.axes == ("batch", "ingredient")
    twice = batches.repeat(2).batch(2)
    assert twice.element_spec.axes == ("batch_2", "batch", "ingredient")
    assert same(next(iter(twice)).isel(batch_2=0).rename(batch="recipe"), GRAMS)
    assert twice.unbatch().unbatch().element_spec == rows.element_spec
    assert all(same(x, GRAMS[i]) for i, x in enumerate(batches.unbatch()))
    sums = batches.map(lambda x: tf.reduce_sum(x, axis="batch"))
    assert same(next(iter(sums)), tf.reduce_sum(GRAMS, "recipe"))
    assert rows.batch(2, drop_remainder=True).element_spec.shape == [2, 3]
    renamed = batches.map(lambda x: x.rename(batch="recipe"))
    assert same(next(iter(renamed)), GRAMS)
    assert same(batches.concatenate(batches).rebatch(1).take(1).get_single_element()[0], GRAMS[0])


def test_control_flow():
    _, grown = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, GRAMS))
    assert same(grown, GRAMS * 8.0)
    doubled = tf.map_fn(lambda row: row * PRICES, GRAMS)
    assert same(doubled.rename(batch="recipe"), GRAMS * PRICES)
    folded = tf.function(lambda x: tf.foldl(lambda a, b: a + b, x.values))(GRAMS)
    np.testing.assert_array_equal(folded, tf.reduce_sum(GRAMS, "recipe").values)
    either = tf.cond(tf.constant(True), lambda: GRAMS, lambda: tf.transpose(GRAMS).transpose())
    assert same(either, GRAMS)


UNKNOWN = Spec(tf.TensorSpec([None, None]), ["recipe", "ingredient"])
OF_UNKNOWN_SIZES = {
    "add": lambda x, y: tf.transpose(y) + x,
    "outer": lambda x, y: x - y.rename(recipe="other"),
    "where": lambda x, y: tf.where(x > tf.transpose(y), x, 0.0),
    "matmul": lambda x, y: x @ y.rename(recipe="other"),
    "einsum": lambda x, y: tf.einsum("ri,ri->i", x, y),
    "reduce": lambda x, y: tf.reduce_mean(x, ["recipe"], keepdims=True) + tf.reduce_max(y),
    "concat": lambda x, y: tf.concat([x, tf.transpose(y)], "ingredient"),
    "stack": lambda x, y: tf.stack([x, tf.transpose(y)], "which"),
    "isel": lambda x, y: x.isel(recipe=[-1, 0], ingredient=slice(None, None, -1)),
    "mask": lambda x, y: x.isel(recipe=tf.reduce_any(y > 0.0, "ingredient")),
    "last": lambda x, y: x[..., -1] + y.isel(ingredient=tf.constant(-1)),
    "gather": lambda x, y: tf.gather(x, tf.argmax(y, "ingredient"), axis="ingredient"),
    "softmax": lambda x, y: tf.nn.softmax(x, axis="recipe"),
    "squeeze": lambda x, y: tf.squeeze(tf.expand_dims(x, "batch"), "batch"),
    "pad": lambda x, y: tf.pad(x, {"ingredient": (1, 0)}),
    "tile": lambda x, y: tf.tile(x, {"ingredient": 2}),
    "shape": lambda x, y: tf.ones_like(x) * tf.cast(tf.shape(y)[0], tf.float32),
    "log_poisson": lambda x, y: tf.nn.log_poisson_loss(tf.reduce_sum(x, "recipe"), y),
}


@functools.cache
def of_unknown_sizes(name):
    """Returns a function that is traced once, for all sizes."""
    return tf.function(OF_UNKNOWN_SIZES[name], input_signature=[UNKNOWN, UNKNOWN])


@pytest.mark.whole("draws many values")
@pytest.mark.parametrize("name", OF_UNKNOWN_SIZES)
@given(st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_sizes_need_not_be_known(name, shape):
    function = of_unknown_sizes(name)
    x = LabeledTensor(np.random.default_rng(0).normal(size=shape).astype(np.float32), UNKNOWN.axes)
    y = x * 2.0 - 1.0
    ours, expected = function(x, y), OF_UNKNOWN_SIZES[name](x, y)
    assert ours.axes == expected.axes
    np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["add", "where", "matmul", "einsum", "stack"])
@pytest.mark.parametrize("size", [1, 2])
def test_sizes_that_differ_are_an_error_when_the_function_runs(name, size):
    function = tf.function(OF_UNKNOWN_SIZES[name], input_signature=[UNKNOWN, UNKNOWN])
    y = GRAMS.isel(ingredient=slice(size))
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"same size of axis .{0,2}ingredient.*, got axes \(.*\) and",
    ):
        function(GRAMS, y)


def test_sizes_that_are_known_are_not_asserted():
    graph = tf.function(lambda x, y: tf.transpose(y) + x * PRICES)
    operations = graph.get_concrete_function(GRAMS, GRAMS).graph.get_operations()
    assert not any(op.type in ("Assert", "Shape") for op in operations)


def test_operations_without_alignment_run_one_op():
    graph = tf.function(lambda x, y: x * y + x)
    operations = graph.get_concrete_function(GRAMS, PRICES).graph.get_operations()
    assert [op.type for op in operations if op.type not in ("Placeholder", "Identity")] == [
        "Mul",
        "AddV2",
    ]


def test_gradients_have_the_names_of_their_sources():
    with tf.GradientTape() as tape:
        tape.watch([GRAMS, PRICES])
        loss = tf.reduce_sum(PRICES * GRAMS)
    gradients = tape.gradient(loss, [GRAMS, PRICES])
    assert [x.axes for x in gradients] == [GRAMS.axes, PRICES.axes]
    assert same(gradients[0], tf.zeros_like(GRAMS) + PRICES)
    assert same(gradients[1], tf.reduce_sum(GRAMS, "recipe"))


@pytest.mark.parametrize("name", sorted(OF_UNKNOWN_SIZES.keys() - {"shape"}))
def test_gradients_are_finite_differences(name):
    def function(x, y):
        result = OF_UNKNOWN_SIZES[name](LabeledTensor(x, GRAMS.axes), LabeledTensor(y, GRAMS.axes))
        return result.values

    if name in ("pad", "tile", "squeeze", "softmax", "isel", "concat"):
        y = tf.constant(GRAMS.numpy().astype(np.float32) * 0.5 + 2.25)
    else:
        y = tf.constant([[0.25, 1.0, 2.0], [1.7, 0.75, 0.6]])
    theoretical, numerical = tf.test.compute_gradient(function, [GRAMS.values, y], delta=1e-2)
    for a, b in zip(theoretical, numerical, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-2)


def test_variables_are_values():
    weights = tf.Variable(PRICES.values)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(LabeledTensor(weights, ["ingredient"]) * GRAMS)
    expected = tf.reduce_sum(GRAMS, "recipe")
    np.testing.assert_array_equal(tape.gradient(total, weights), expected.values)


@pytest.mark.whole("starts a process")
@pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type extensor.types:UserWarning:tensorflow"
)
def test_a_saved_model_keeps_the_names_in_a_fresh_process(run_python, tmp_path):
    module = tf.Module()
    spec = Spec(tf.TensorSpec([None, 3]), ["recipe", "ingredient"])
    module.cost = tf.function(
        lambda x: {"all": tf.reduce_sum(x * PRICES, "ingredient"), "turned": tf.transpose(x)},
        input_signature=[spec],
    )
    folder = str(tmp_path / "model")
    tf.saved_model.save(module, folder)
    run_python(f"""
        import numpy as np
        import tensorflow as tf
        import extensor as xt

        model = tf.saved_model.load({folder!r})
        array = np.array({GRAMS.numpy().tolist()}, np.float32)
        x = xt.types.LabeledTensor(array, ["recipe", "ingredient"])
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = model.cost(x)
        assert found["all"].axes == ("recipe",)
        assert np.array_equal(found["all"].numpy(), array @ np.array([2.0, -0.5, 3.0]))
        assert found["turned"].axes == ("ingredient", "recipe")
        assert np.array_equal(found["turned"].numpy(), array.T)
        gradient = tape.gradient(found["all"].values, x)
        assert gradient.axes == x.axes
        try:
            model.cost(x.rename(recipe="meal"))
        except (TypeError, ValueError):
            pass
        else:
            raise AssertionError("other names were taken")
    """)


# xarray.


@given(one(min_size=0))
def test_xarray_round_trip(array):
    ours = LabeledTensor.from_xarray(array)
    assert_equal(ours, array)
    assert ours.to_xarray().identical(array)
    assert_equal(LabeledTensor.from_xarray(array.variable), array)
    assert labeled(array).to_xarray(name="grams").name == "grams"


def test_coordinates_stay_with_xarray():
    array = xr.DataArray(
        np.array([["a", "b"]]), {"word": ["salt"], "feature": [3, 4]}, ["word", "feature"]
    )
    ours = LabeledTensor.from_xarray(array)
    assert ours.numpy().tolist() == [[b"a", b"b"]]
    again = ours.to_xarray(coords=array.coords)
    assert again.sel(word="salt", feature=4).item() == b"b"


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "bool", "complex64"])
def test_dtypes_round_trip(dtype):
    array = xr.DataArray(np.ones([2], dtype), dims="word")
    assert LabeledTensor.from_xarray(array).to_xarray().identical(array)


def test_xarray_is_needed_only_for_its_conversions(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(xt.ExtensorError, match=r"pip install .*\[xarray\]\"") as info:
        GRAMS.to_xarray()
    assert isinstance(info.value, ImportError)
