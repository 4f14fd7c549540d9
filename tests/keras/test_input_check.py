"""A model that was built for one type names where its input differs."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample

RECORDS = sample.recipes()


SPEC = sample.batches().element_spec[0]


@pytest.fixture(scope="module")
def model():
    return sample.functional()


def cast(records, name, dtype):
    return records.with_updates({name: tf.cast(records[name], dtype)})


def with_int32_splits(records):
    return xt.from_arrow(sample.table(), row_splits_dtype=tf.int32).without("rating")


WRONG = {
    "missing field": (lambda r: r.without("taste"), "taste", "this field", "without this field"),
    "missing inner field": (
        lambda r: r.without("ingredients.name"), "ingredients.name", "this field",
        "without this field",
    ),
    "extra field": (
        lambda r: r.with_updates(more=r["taste"]), "more", "without this field", "of this name",
    ),
    "dtype": (lambda r: cast(r, "taste", tf.int32), "taste", "tf.float32", "tf.int32"),
    "inner dtype": (
        lambda r: r.with_updates({"ingredients.amount": r["ingredients.name"]}),
        "ingredients.amount", "tf.float32", "tf.string",
    ),
    "ragged for dense": (
        lambda r: r.with_updates(taste=r["minutes"]), "taste", "TensorSpec", "RaggedTensorSpec",
    ),
    "dense for ragged": (
        lambda r: r.with_updates(minutes=r["taste"]), "minutes", "RaggedTensorSpec", "TensorSpec",
    ),
    "inner size": (
        lambda r: r.with_updates(taste=r["taste"][:, :2]), "taste", "(None, 3)", "(None, 2)",
    ),
    "row splits": (with_int32_splits, "minutes", "tf.int64", "tf.int32"),
    "a single record": (lambda r: r[0], "", "(None,)", "()"),
    "a plain tensor": (lambda r: r["taste"], "", "DenseStructuredTensorSpec", "TensorSpec"),
    "two of it": (lambda r: (r, r), "", "DenseStructuredTensorSpec", "[xt.DenseStructuredTensor"),
}  # fmt: skip


CALLS = {
    "called": lambda model, records: model(records),
    "called by keyword": lambda model, records: model(inputs=records),
    "predicting": lambda model, records: model.predict(
        tf.data.Dataset.from_tensors((records,)), verbose=0
    ),
}


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("case", WRONG)
def test_a_functional_model_says_where_its_input_differs(model, case, how):
    change, path, expected, received = WRONG[case]
    with pytest.raises(errors.DTypeError) as raised:
        CALLS[how](model, change(RECORDS))
    assert isinstance(raised.value, TypeError)
    assert raised.value.path == f"{model.name}: input {path}".strip()
    assert expected in raised.value.expected
    assert received in raised.value.received
    assert "with_only" in raised.value.mend


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_the_order_of_fields_does_not_matter(make):
    other = RECORDS.with_only("ingredients", "title", "minutes", "taste")
    assert other.field_names() != RECORDS.field_names()
    model = make()
    np.testing.assert_array_equal(model(RECORDS), model(other))


def beside():
    recipe, weight = xt.keras.Input(SPEC, "recipe"), keras.Input((3,), name="weight")
    product = keras.layers.Multiply()([recipe["taste"], weight])
    return xt.keras.Model({"recipe": recipe, "weight": weight}, product)


WEIGHT = np.full([10, 3], 2, np.float32)


@pytest.mark.parametrize(
    ("inputs", "path", "expected", "received"),
    [
        ({"recipe": RECORDS}, "", "inputs recipe, weight", "inputs recipe"),
        ({"recipe": RECORDS, "weigth": WEIGHT}, "weight", "this input", "inputs recipe, weigth"),
        ({"recipe": RECORDS, "weight": WEIGHT[:, :2]}, "weight", "(None, 3)", "(None, 2)"),
        ({"recipe": RECORDS, "weight": WEIGHT > 1}, "weight", "tf.float32", "tf.bool"),
        ({"recipe": RECORDS.without("taste"), "weight": WEIGHT}, "recipe.taste", "this field",
         "without this field"),
    ],
)  # fmt: skip
def test_a_model_of_several_inputs_names_the_one_that_differs(inputs, path, expected, received):
    model = beside()
    with pytest.raises(errors.DTypeError) as raised:
        model(inputs)
    assert raised.value.path == f"{model.name}: input {path}".strip()
    assert expected in raised.value.expected
    assert received in raised.value.received


def test_plain_floats_beside_records_are_cast_as_keras_does():
    np.testing.assert_array_equal(
        beside()({"recipe": RECORDS, "weight": WEIGHT.astype(np.float64)}), RECORDS["taste"] * 2
    )
