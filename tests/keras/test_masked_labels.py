"""Keras takes masked values in which nothing is null; where something is null, errors count it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.types import MaskedTensor
from tests.keras.kinds import reused

WORDS = tf.constant([["a", "b"], ["b", "c"], ["c", "c"], ["d", "a"]])
NUMBERS = tf.constant([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
# Each has the number of nulls.
MASKS = {
    "each item": ([[True, False], [True, True], [False, True], [True, False]], 3),
    "rows": ([True, False, True, False], 2),
}


def lookup(**options):
    return keras.layers.StringLookup(vocabulary=["a", "b", "c"], **options)


def adapted(layer, *args, **kwargs):
    layer.adapt(*args, **kwargs)
    return layer.get_vocabulary() if hasattr(layer, "get_vocabulary") else layer(NUMBERS)


def batches(x):
    return tf.data.Dataset.from_tensor_slices(x).batch(4)


STRINGS = {
    "StringLookup(x)": lambda x: lookup()(x),
    "StringLookup(inputs=x)": lambda x: lookup()(inputs=x),
    "StringLookup(output_mode)(x)": lambda x: lookup(output_mode="multi_hot")(x),
    "StringLookup in tf.function": lambda x: tf.function(lookup())(x),
    "StringLookup in dataset.map": lambda x: next(iter(batches(x).map(lookup()))),
    "StringLookup in a layer of ours": lambda x: xt.keras.Lambda(lambda x: lookup()(x))(x),
    "StringLookup.adapt(x)": lambda x: adapted(keras.layers.StringLookup(), x),
    "StringLookup.adapt(data=x)": lambda x: adapted(keras.layers.StringLookup(), data=x),
    "StringLookup.adapt(dataset)": lambda x: adapted(keras.layers.StringLookup(), batches(x)),
    "TextVectorization.adapt(x)": lambda x: adapted(
        keras.layers.TextVectorization(standardize=None, split=None), x[:, :1]
    ),
}

OUTPUTS = tf.constant([[0.9, 0.2], [0.1, 0.8], [0.7, 0.6], [0.3, 0.4]])
LOSSES = {
    "a loss": lambda x: keras.losses.MeanSquaredError()(x, OUTPUTS),
    "a loss function": lambda x: keras.losses.binary_crossentropy(x, OUTPUTS),
    "a loss in tf.function": lambda x: tf.function(keras.losses.MeanAbsoluteError())(x, OUTPUTS),
    "a loss of masked outputs": lambda x: keras.losses.MeanSquaredError()(OUTPUTS, x),
    "a loss of integers": lambda x: keras.losses.MeanSquaredError()(tf.cast(x, tf.int32), OUTPUTS),
    "a loss of bools": lambda x: keras.losses.BinaryCrossentropy()(tf.cast(x, tf.bool), OUTPUTS),
    "a loss of classes": lambda x: keras.losses.sparse_categorical_crossentropy(
        tf.cast(x, tf.int64)[:, 0], OUTPUTS
    ),
    "a metric": lambda x: keras.metrics.BinaryAccuracy()(x, OUTPUTS),
    "Normalization.adapt(x)": lambda x: adapted(keras.layers.Normalization(), x),
    "tf.convert_to_tensor(x)": tf.convert_to_tensor,
    "keras.ops.convert_to_tensor(x, dtype)": lambda x: keras.ops.convert_to_tensor(x, "float64"),
}

DOORS = {
    **{name: (WORDS, door) for name, door in STRINGS.items()},
    **{name: (NUMBERS, door) for name, door in LOSSES.items()},
}


def assert_counts(count, door, x):
    """Checks that an error counts the nulls; an error of a graph is an error of TensorFlow."""
    with pytest.raises((errors.NullError, tf.errors.InvalidArgumentError)) as caught:
        door(x)
    message = str(caught.value)
    assert "expected no nulls, got" in message
    if isinstance(caught.value, errors.NullError):
        assert f"got {count} nulls. Replace them with x.fill(value)" in message
    else:
        assert f"The number of nulls is] [{count}]" in message


COLUMN_ONLY = {"TextVectorization.adapt(x)", "a loss of classes"}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("door", DOORS)
def test_a_masked_value_without_nulls_is_its_values(door, mask):
    values, door = DOORS[door]
    all_valid = tf.ones_like(MASKS[mask][0])
    expected, found = door(values), door(MaskedTensor(values, all_valid))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("door", [name for name in DOORS if name not in COLUMN_ONLY])
def test_where_something_is_null_the_error_counts_it(door, mask):
    values, door = DOORS[door]
    bools, count = MASKS[mask]
    assert_counts(count, door, MaskedTensor(values, bools))


def test_a_null_is_one():
    with pytest.raises(errors.NullError, match="got 1 null\\. "):
        lookup()(MaskedTensor(["a", "b"], [True, False]))


def test_lists_that_may_be_null_of_items_that_may_be_null():
    ragged = tf.ragged.constant([["a", "b"], [], ["c"]])
    expected = lookup()(ragged).to_list()
    assert lookup()(MaskedTensor(ragged)).to_list() == expected
    both = MaskedTensor(MaskedTensor(ragged), [True] * 3)
    assert lookup()(both).to_list() == expected
    assert_counts(2, lookup(), MaskedTensor(ragged, [True, False, False]))
    items = tf.ragged.constant([[True, False], [], [True]])
    with pytest.raises(errors.NullError, match="got 1 null\\."):
        lookup()(MaskedTensor(MaskedTensor(ragged, items), [True] * 3))


def test_a_mask_that_is_known_to_be_true_costs_no_operation():
    def operations(make_mask):
        function = tf.function(lambda x: tf.convert_to_tensor(MaskedTensor(x, make_mask())))
        graph = function.get_concrete_function(tf.TensorSpec([2], tf.float32)).graph
        return {op.type for op in graph.get_operations()}

    assert not any("Assert" in op or "If" in op for op in operations(lambda: [True, True]))
    unknown = operations(lambda: tf.random.uniform([2]) > 0.5)
    assert any("Assert" in op or "If" in op for op in unknown)


def test_fractions_are_not_lost():
    with pytest.raises(errors.DTypeError, match=r"tf\.convert_to_tensor"):
        tf.convert_to_tensor(MaskedTensor([1.5], [True]), tf.int32)


# Labels: what `fit` and the others get as `y`.

X = xt.DenseStructuredTensor([4], {"x": [[1.0], [2.0], [3.0], [4.0]]})


def model(loss="mse", outputs=("score",), eager=False, of_ragged=False):
    record = xt.keras.Input(xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 1])}))
    made = {
        name: keras.layers.Dense(2, kernel_initializer="ones", name=name)(record["x"])
        for name in outputs
    }
    only = made[outputs[0]]
    if of_ragged:
        only = xt.keras.Lambda(lambda x: tf.RaggedTensor.from_tensor(x, lengths=[2, 0, 1, 2]))(only)
    result = xt.keras.Model(record, only if len(outputs) == 1 else made)
    result.compile(keras.optimizers.SGD(0.01), loss, run_eagerly=eager)
    return result


RAGGED = tf.RaggedTensor.from_tensor(NUMBERS, lengths=[2, 0, 1, 2])
TWO = {"loss": {"a": "mse", "b": "mae"}, "outputs": ("a", "b")}


def records(**fields):
    return xt.DenseStructuredTensor([4], fields)


# Each has options of the model, and makes targets of masked or plain values.
TARGETS = {
    "y": ({}, lambda y: y),
    "eager y": ({"eager": True}, lambda y: y),
    "a dict": (TWO, lambda y: {"a": y, "b": NUMBERS}),
    "records": (TWO, lambda y: records(a=y, b=NUMBERS)),
    "one loss for all": ({**TWO, "loss": "mse"}, lambda y: {"a": y, "b": NUMBERS}),
}

CALLS = {
    "fit": lambda m, y: m.fit(X, y, shuffle=False, verbose=0).history["loss"],
    "fit on a dataset": lambda m, y: m.fit(batches((X, y)), verbose=0).history["loss"],
    "validation_data": lambda m, y: m.fit(
        X, tf.nest.map_structure(tf.zeros_like, m(X)), validation_data=(X, y), verbose=0
    ).history["val_loss"],
    "evaluate": lambda m, y: m.evaluate(X, y, verbose=0, return_dict=True)["loss"],
    "train_on_batch": lambda m, y: m.train_on_batch(X, y, return_dict=True)["loss"],
    "test_on_batch": lambda m, y: m.test_on_batch(X, y, return_dict=True)["loss"],
}


def model_of(targets):
    options, _ = TARGETS[targets]
    return model(**options)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("targets", TARGETS)
def test_labels_without_nulls_are_their_values(targets, call):
    _, make = TARGETS[targets]
    items = MaskedTensor(NUMBERS, tf.ones_like(NUMBERS, tf.bool))
    found, expected = (CALLS[call](reused(model_of, targets), make(y)) for y in (items, NUMBERS))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.whole("compiles a model a case; labels without nulls are quick")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("targets", TARGETS)
def test_labels_with_null_items_are_counted(targets, call):
    _, make = TARGETS[targets]
    mask, count = MASKS["each item"]
    y = make(MaskedTensor(NUMBERS, mask))
    assert_counts(count, lambda y: CALLS[call](reused(model_of, targets), y), y)


@pytest.mark.whole("compiles a model a case; the labels of one shape are quick")
def test_ragged_labels_without_nulls_are_their_values():
    found, expected = (
        model(of_ragged=True).evaluate(X, y, verbose=0) for y in (MaskedTensor(RAGGED), RAGGED)
    )
    assert found == pytest.approx(expected)
    y = MaskedTensor(RAGGED, [True, False, True, False])
    assert_counts(2, lambda y: model(of_ragged=True).evaluate(X, y, verbose=0), y)


@pytest.mark.whole("compiles a model a case; the labels of one shape are quick")
def test_masked_records_are_labels_too():
    fields = records(a=NUMBERS, b=NUMBERS)
    found, expected = (
        model(**TWO).evaluate(X, y, verbose=0) for y in (MaskedTensor(fields, [True] * 4), fields)
    )
    assert found == pytest.approx(expected)


STRING_TARGETS = {
    "strings": ({}, WORDS, "target"),
    "an array": ({}, WORDS.numpy(), "target"),
    "masked strings": ({}, MaskedTensor(WORDS), "target"),
    "a dict": (TWO, {"a": NUMBERS, "b": WORDS}, "target b"),
    "masked in a dict": (TWO, {"a": NUMBERS, "b": MaskedTensor(WORDS)}, "target b"),
    "records": (TWO, records(a=NUMBERS, b=WORDS), "target b"),
    "a loss for all": ({**TWO, "loss": "mae"}, {"a": NUMBERS, "b": WORDS}, "target b"),
    "a class": ({"loss": keras.losses.MeanAbsoluteError()}, WORDS, "target"),
    "ragged strings": ({"of_ragged": True}, tf.RaggedTensor.from_tensor(WORDS), "target"),
}


@pytest.mark.parametrize("call", ["fit", "evaluate", "test_on_batch"])
@pytest.mark.parametrize("case", STRING_TARGETS)
def test_string_labels_name_the_field_the_loss_and_the_layer(case, call):
    options, y, path = STRING_TARGETS[case]
    made = model(**options)
    with pytest.raises(errors.DTypeError) as caught:
        CALLS[call](made, y)
    assert caught.value.path == f"{made.name}: {path}"
    assert caught.value.expected.split()[-1] in ("mse", "mae", "MeanAbsoluteError")
    assert caught.value.received == "strings"
    assert "keras.layers.StringLookup(" in caught.value.fix
