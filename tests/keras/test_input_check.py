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
    "missing field": (lambda r: r.without("taste"), "taste", "float32[3]", "no such field"),
    "missing inner field": (
        lambda r: r.without("ingredients.name"), "ingredients.name", "string", "no such field",
    ),
    "extra field": (
        lambda r: r.with_updates(more=r["taste"]), "more", "no such field", "float32[3]",
    ),
    "dtype": (lambda r: cast(r, "taste", tf.int32), "taste", "float32[3]", "int32[3]"),
    "inner dtype": (
        lambda r: r.with_updates({"ingredients.amount": r["ingredients.name"]}),
        "ingredients.amount", "float32", "string",
    ),
    "ragged for dense": (
        lambda r: r.with_updates(taste=r["minutes"]), "taste", "float32[3]", "float32[*]",
    ),
    "inner size": (
        lambda r: r.with_updates(taste=r["taste"][:, :2]), "taste", "float32[3]", "float32[2]",
    ),
    "a single record": (lambda r: r[0], "", "(None,)", "()"),
    "a plain tensor": (lambda r: r["taste"], "", "DenseStructuredTensorSpec", "TensorSpec"),
    "two of it": (lambda r: (r, r), "", "DenseStructuredTensorSpec", "[xt.DenseStructuredTensor"),
}  # fmt: skip
CAST = {
    "dense for ragged": lambda r: r.with_updates(minutes=r["taste"]),
    "row splits": with_int32_splits,
    "a narrow dtype": lambda r: cast(r, "taste", tf.float16),
}


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
    assert "spec.cast" in raised.value.fix or "records" in raised.value.fix


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("change", CAST.values(), ids=CAST)
def test_records_are_cast_where_that_loses_nothing(model, change, how):
    given = change(RECORDS)
    expected = model(SPEC.cast(given))
    np.testing.assert_allclose(CALLS[how](model, given), expected, rtol=1e-5)


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
        ({"recipe": RECORDS.without("taste"), "weight": WEIGHT}, "recipe.taste", "float32[3]",
         "no such field"),
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
