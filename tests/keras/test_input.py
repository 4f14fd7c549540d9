"""Placeholders: the fields of a spec, under names that Keras takes, for one input or several."""

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample

RECORDS = sample.recipes()


SPEC = sample.batches().element_spec[0]


def dense_on(value):
    return keras.layers.Dense(1)(value)


def test_a_placeholder_has_the_fields_of_the_spec():
    recipe = xt.keras.Input(SPEC)
    assert recipe.field_names() == SPEC.field_names()
    assert recipe.__tf_type_spec__() == SPEC
    assert isinstance(recipe["taste"], keras.KerasTensor)
    assert recipe["taste"].shape == (None, 3)
    amounts = recipe["ingredients", "amount"]
    assert amounts.shape.as_list() == [None, None]
    assert amounts.dtype == tf.float32
    assert amounts.ragged_rank == 1
    assert amounts.row_splits.dtype == "int64"
    assert amounts.values is amounts.flat_values


def test_a_placeholder_for_a_plain_tensor_is_one_of_keras():
    x = xt.keras.Input(tf.TensorSpec([None, 3], tf.float32, name="x"))
    assert isinstance(x, keras.KerasTensor)
    assert (x.shape, x.dtype, x.name) == ((None, 3), "float32", "x")


@pytest.mark.parametrize(
    "spec",
    [
        tf.RaggedTensorSpec([None, None], tf.string),
        tf.RaggedTensorSpec([None, None, None, 2], tf.float32, 2),
        tf.RaggedTensorSpec([None, None], tf.int64, row_splits_dtype=tf.int32),
    ],
)
def test_a_placeholder_for_a_ragged_tensor_goes_into_a_layer_as_one(spec):
    class Whole(xt.keras.Layer):
        def call(self, ragged):
            assert tf.type_spec_from_value(ragged).is_compatible_with(spec)
            return tf.cast(ragged.row_lengths(), tf.float32)[:, tf.newaxis]

    ragged = xt.keras.Input(spec)
    assert ragged.shape == spec.shape
    model = xt.keras.Model(ragged, Whole()(ragged))
    splits = tf.constant([0, 2, 2, 3], spec.row_splits_dtype)
    value = tf.zeros([3, 2] if spec.ragged_rank == 2 else [3], spec.dtype)
    if spec.ragged_rank == 2:
        inner = tf.constant([0, 1, 1, 3], spec.row_splits_dtype)
        value = tf.RaggedTensor.from_row_splits(value, inner)
    value = tf.RaggedTensor.from_row_splits(value, splits)
    np.testing.assert_array_equal(model(value), [[2.0], [0.0], [1.0]])


ODD = ["a/b", "a|b", "a b", "ä", 'a"', "", ".", "a\nb", "a.b", "training", "layers", "values"]


@pytest.mark.parametrize("name", ODD)
def test_a_field_may_have_any_name(name):
    tensors = {name: tf.reshape(tf.range(6.0), [3, 2]), "x/y": tf.zeros([3]), "x_y": tf.ones([3])}
    records = xt.DenseStructuredTensor([3], tensors)
    recipe = xt.keras.Input(records.__tf_type_spec__()._unbatch()._batch(None))
    model = xt.keras.Model(recipe, dense_on(recipe[xt.Path(name)]))
    np.testing.assert_array_equal(model(records), model.get_layer(index=-1)(tensors[name]))


@pytest.mark.parametrize(
    ("spec", "error", "builtin", "expected", "fix"),
    [
        (None, errors.DTypeError, TypeError, "a TypeSpec", "element_spec"),
        (RECORDS, errors.DTypeError, TypeError, "a TypeSpec", "element_spec"),
        ({"x": SPEC}, errors.DTypeError, TypeError, "a TypeSpec", "element_spec"),
        ((SPEC, tf.TensorSpec([None])), errors.DTypeError, TypeError, "a TypeSpec",
         "element_spec[0]"),
        (tf.data.Dataset.from_tensors(RECORDS), errors.DTypeError, TypeError, "a TypeSpec",
         "dataset.element_spec."),
        (tf.data.Dataset.from_tensors((RECORDS, 1)), errors.DTypeError, TypeError, "a TypeSpec",
         "dataset.element_spec[0]"),
        (tf.SparseTensorSpec([None, 3]), errors.DTypeError, TypeError, "a TypeSpec",
         "keras.Input"),
        (SPEC._unbatch(), errors.StructureError, ValueError, "the spec of a batch", "batch(n)"),
        (tf.TensorSpec([], tf.float32), errors.StructureError, ValueError, "the spec of a batch",
         "batch(n)"),
        (tf.TensorSpec(None, tf.float32), errors.StructureError, ValueError,
         "the spec of a batch", "batch(n)"),
    ],
)  # fmt: skip
def test_a_placeholder_is_made_of_the_spec_of_a_batch(spec, error, builtin, expected, fix):
    with pytest.raises(error) as raised:
        xt.keras.Input(spec)
    assert isinstance(raised.value, builtin)
    assert "xt.keras.Input" in raised.value.path
    assert expected in raised.value.expected
    assert fix in raised.value.fix


INPUTS = {
    "list": (lambda a, b: [a, b], lambda i: i),
    "tuple": (lambda a, b: (a, b), lambda i: i),
    "dict": (lambda a, b: {"second": b, "first": a}, lambda i: (i["first"], i["second"])),
}


@pytest.mark.parametrize("form", INPUTS)
def test_two_inputs_with_the_same_fields_are_matched_by_their_names(form):
    nest, parts = INPUTS[form]
    first, second = xt.keras.Input(SPEC, name="first"), xt.keras.Input(SPEC, name="second")
    difference = keras.layers.Subtract()([first["taste"], second["taste"]])
    model = xt.keras.Model(nest(first, second), difference)
    other = RECORDS.with_updates(taste=RECORDS["taste"] ** 2)
    expected = RECORDS["taste"] - other["taste"]
    np.testing.assert_array_equal(model(nest(RECORDS, other)), expected)
    np.testing.assert_array_equal(model(nest(other, RECORDS)), -expected)
    assert parts(nest(RECORDS, other))[0] is RECORDS
    # A dataset knows tuples and dicts; lists it takes for tensors.
    element = nest(RECORDS, other)
    element = tuple(element) if form == "list" else element
    dataset = tf.data.Dataset.from_tensor_slices((element,)).batch(4)
    np.testing.assert_array_equal(model.predict(dataset, verbose=0), expected)


def test_two_inputs_without_names_get_names_of_keras():
    first, second = xt.keras.Input(SPEC), xt.keras.Input(SPEC)
    difference = keras.layers.Subtract()([first["taste"], second["taste"]])
    model = xt.keras.Model([first, second], difference)
    other = RECORDS.with_updates(taste=RECORDS["taste"] ** 2)
    expected = RECORDS["taste"] - other["taste"]
    np.testing.assert_array_equal(model([RECORDS, other]), expected)


def test_two_inputs_of_one_name_are_an_error_that_names_it():
    first, second = xt.keras.Input(SPEC, name="recipe"), xt.keras.Input(SPEC, name="recipe")
    difference = keras.layers.Subtract()([first["taste"], second["taste"]])
    with pytest.raises(ValueError, match=r'name "recipe.* is used 2 times'):
        xt.keras.Model([first, second], difference)


def test_records_and_plain_tensors_are_inputs_beside_each_other():
    recipe, weight = xt.keras.Input(SPEC), keras.Input((3,), name="weight")
    product = keras.layers.Multiply()([recipe["taste"], weight])
    model = xt.keras.Model({"recipe": recipe, "weight": weight}, product)
    weights = np.full([10, 3], 2, np.float32)
    expected = RECORDS["taste"] * weights
    np.testing.assert_array_equal(model({"recipe": RECORDS, "weight": weights}), expected)
    dataset = tf.data.Dataset.from_tensor_slices({"recipe": RECORDS, "weight": weights}).batch(4)
    np.testing.assert_array_equal(model.predict(dataset, verbose=0), expected)


KERAS = tuple(map(int, keras.__version__.split(".")[:2]))
SPECS = [
    xt.spec_of(xt.struct.constant([{"a": 1, "b": ["x"], "c": [{"d": 2.0}]}])).unstacked(),
    xt.spec_of(xt.types.MaskedTensor(2.0, True)),
    tf.RaggedTensorSpec([None], tf.int32, 0, row_splits_dtype=tf.int32),
    pytest.param(
        tf.TensorSpec([3], tf.float32),
        marks=pytest.mark.skipif(
            KERAS < (3, 14), reason="Keras before 3.14 has no model whose output is its input"
        ),
    ),
]


@pytest.mark.parametrize("row", SPECS, ids=lambda row: type(row).__name__)
def test_the_spec_of_a_placeholder_and_of_the_input_of_a_model(row):
    batch = xt.spec_of(row).stacked(None)
    placeholder = xt.keras.Input(batch)
    assert xt.spec_of(placeholder) == batch
    model = xt.keras.Model(placeholder, placeholder)
    assert xt.spec_of(model.input) == batch
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model))
    assert xt.spec_of(again.input) == batch


def test_the_input_of_a_loaded_model_casts_raw_records(tmp_path):
    schema = pa.schema({"when": pa.timestamp("s", "UTC"), "tags": pa.list_(pa.string())})
    records = xt.spec_from_schema(schema, nulls={"when": "mask"})
    record = xt.keras.Input(records)
    features = xt.keras.layers.RecordFeatures.from_spec(records, num_bins=4)
    path = tmp_path / "model.keras"
    xt.keras.Model(record, features(record)).save(path)
    again = keras.models.load_model(path)
    raw = [{"when": "2026-05-01T02:00:00+02:00", "tags": ["a"]}, {"when": None, "tags": []}]
    cast = xt.spec_of(again.input).cast(raw, times="text")
    assert cast["when"].to_py() == [1777593600, None]
    assert again.predict(cast, verbose=0).shape[0] == 2
