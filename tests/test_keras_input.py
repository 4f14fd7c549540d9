"""What a model takes: placeholders, several inputs, and clear words about wrong ones."""

import copy
import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor._keras import placeholder_spec
from tests import sample_models as sample

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
    np.testing.assert_array_equal(model(records), model._graph.get_layer(index=-1)(tensors[name]))


@pytest.mark.parametrize(
    ("spec", "error", "builtin", "expected", "mend"),
    [
        (None, errors.DTypeError, TypeError, "a TypeSpec", "element_spec"),
        (RECORDS, errors.DTypeError, TypeError, "a TypeSpec", "element_spec"),
        ({"x": SPEC}, errors.DTypeError, TypeError, "a TypeSpec", "element_spec"),
        (tf.SparseTensorSpec([None, 3]), errors.DTypeError, TypeError, "a TypeSpec",
         "keras.Input"),
        (SPEC._unbatch(), errors.StructureError, ValueError, "the spec of a batch", "batch(n)"),
        (tf.TensorSpec([], tf.float32), errors.StructureError, ValueError, "the spec of a batch",
         "batch(n)"),
        (tf.TensorSpec(None, tf.float32), errors.StructureError, ValueError,
         "the spec of a batch", "batch(n)"),
    ],
)  # fmt: skip
def test_a_placeholder_is_made_of_the_spec_of_a_batch(spec, error, builtin, expected, mend):
    with pytest.raises(error) as raised:
        xt.keras.Input(spec)
    assert isinstance(raised.value, builtin)
    assert "xt.keras.Input" in raised.value.path
    assert expected in raised.value.expected
    assert mend in raised.value.mend


@pytest.fixture(scope="module")
def model():
    return sample.functional()


def cast(records, name, dtype):
    return records.with_updates({name: tf.cast(records[name], dtype)})


def with_int32_splits(records):
    return xt.from_arrow(sample.table(), row_splits_dtype=tf.int32).without("rating")


WRONG = {
    "missing field": (lambda r: r.without("taste"), "taste", "this field", "without it"),
    "missing inner field": (
        lambda r: r.without("ingredients.name"), "ingredients.name", "this field", "without it",
    ),
    "extra field": (
        lambda r: r.with_updates(more=r["taste"]), "more", "no such field", "this field",
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
    "two of it": (lambda r: (r, r), "", "DenseStructuredTensorSpec", "[DenseStructuredTensor"),
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


def test_a_sequential_that_declares_its_input_says_where_another_differs(tmp_path):
    layers = [sample.Totals(), keras.layers.Dense(1)]
    undeclared, model = (
        xt.keras.Sequential(layers),
        xt.keras.Sequential([xt.keras.Input(SPEC), *layers]),
    )
    more = RECORDS.with_updates(more=RECORDS["taste"])
    np.testing.assert_array_equal(undeclared(more), model(RECORDS))
    model.save(tmp_path / "model.keras")
    for one in (model, keras.saving.load_model(tmp_path / "model.keras")):
        np.testing.assert_array_equal(one(RECORDS[:3]), model(RECORDS[:3]))
        for records, path in ((more, "more"), (RECORDS.without("taste"), "taste")):
            with pytest.raises(errors.DTypeError) as raised:
                one(records)
            assert raised.value.path == f"{model.name}: input {path}"


@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_the_order_of_fields_does_not_matter(make):
    other = RECORDS.with_only("ingredients", "title", "minutes", "taste")
    assert other.field_names() != RECORDS.field_names()
    model = make()
    np.testing.assert_array_equal(model(RECORDS), model(other))


INPUTS = {
    "list": (lambda a, b: [a, b], lambda i: i),
    "tuple": (lambda a, b: (a, b), lambda i: i),
    "dict": (lambda a, b: {"second": b, "first": a}, lambda i: (i["first"], i["second"])),
}


@pytest.mark.parametrize("form", INPUTS)
def test_two_inputs_with_the_same_fields_are_told_apart_by_their_names(form):
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


def test_two_inputs_without_names_are_an_error_that_says_so():
    first, second = xt.keras.Input(SPEC), xt.keras.Input(SPEC)
    with pytest.raises(errors.StructureError) as raised:
        xt.keras.Model([first, second], dense_on(first["taste"]))
    assert isinstance(raised.value, ValueError)
    assert raised.value.expected == "inputs of different names"
    assert "name=" in raised.value.mend


def test_records_and_plain_tensors_are_inputs_beside_each_other():
    recipe, weight = xt.keras.Input(SPEC), keras.Input((3,), name="weight")
    product = keras.layers.Multiply()([recipe["taste"], weight])
    model = xt.keras.Model({"recipe": recipe, "weight": weight}, product)
    weights = np.full([10, 3], 2, np.float32)
    expected = RECORDS["taste"] * weights
    np.testing.assert_array_equal(model({"recipe": RECORDS, "weight": weights}), expected)
    dataset = tf.data.Dataset.from_tensor_slices({"recipe": RECORDS, "weight": weights}).batch(4)
    np.testing.assert_array_equal(model.predict(dataset, verbose=0), expected)


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
         "without it"),
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


@pytest.mark.parametrize("use", [tf.math.abs, keras.ops.sum])
def test_a_ragged_placeholder_in_an_operation_is_an_error_with_the_mend(use):
    with pytest.raises(errors.UnsupportedTypeError, match=r"xt\.keras\.Lambda"):
        use(xt.keras.Input(SPEC)["minutes"])


def test_a_functional_model_of_plain_tensors_keeps_their_precision():
    x = keras.Input((2,), dtype="float64")
    model = xt.keras.Model(x, keras.layers.Rescaling(2.0, dtype="float64")(x))
    value = tf.constant([[1 / 3, 2 / 3]], tf.float64)
    np.testing.assert_array_equal(model(value), value * 2)


class Range:
    """A type without weak references."""

    __slots__ = ("high", "low")

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __tf_type_spec__(self):
        return RangeSpec(self.low.shape, self.low.dtype)


@xt.register_type_spec
class RangeSpec(xt.StackableTypeSpec):
    value_type = Range

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tf.TensorShape(shape), tf.as_dtype(dtype)

    @property
    def component_specs(self):
        return [tf.TensorSpec(self.shape, self.dtype)] * 2

    def to_components(self, value):
        return [value.low, value.high]

    def from_components(self, components):
        return Range(*components)

    def serialize(self):
        return self.shape, self.dtype


def test_placeholders_of_a_class_without_weak_references_go_with_their_tensors():
    class Width(xt.keras.Layer):
        def call(self, taken):
            return taken.high - taken.low

    def build():
        taken = xt.keras.Input(RangeSpec([None, 2], tf.float32))
        return taken, xt.keras.Model(taken, Width()(taken))

    gc.collect()
    before = len(placeholder_spec._specs)
    taken, model = build()
    gc.collect()
    assert len(placeholder_spec._specs) > before
    value = Range(tf.zeros([3, 2]), tf.ones([3, 2]))
    assert model(value).numpy().tolist() == [[1.0, 1.0]] * 3
    assert copy.deepcopy(taken.low).shape == (None, 2)
    del taken, model
    keras.backend.clear_session()
    gc.collect()
    assert len(placeholder_spec._specs) == before
