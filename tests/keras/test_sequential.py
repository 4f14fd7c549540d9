"""Sequential is a keras.Sequential, also of values."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample

RECORDS = sample.recipes()
SPEC = sample.batches().element_spec[0]


class Doubled(xt.keras.Layer):
    """Returns records. It is not registered."""

    def call(self, records):
        return records.with_updates(taste=records["taste"] * 2)


class Taste(xt.keras.Layer):
    def call(self, records):
        return records["taste"]


def chain(*layers):
    return xt.keras.Sequential([xt.keras.Input(SPEC, name="recipe"), *layers])


def of_records():
    return chain(Doubled(name="doubled"), Taste(), keras.layers.Dense(2, name="dense"))


def of_tensors():
    return keras.Sequential(
        [
            keras.Input((3,), name="recipe"),
            keras.layers.Rescaling(2.0, name="doubled"),
            keras.layers.Identity(),
            keras.layers.Dense(2, name="dense"),
        ]
    )


def test_a_sequential_that_declares_its_input_says_where_another_differs(tmp_path):
    layers = [sample.Totals(), keras.layers.Dense(1)]
    undeclared, model = xt.keras.Sequential(layers), chain(*layers)
    more = RECORDS.with_updates(more=RECORDS["taste"])
    np.testing.assert_array_equal(undeclared(more), model(RECORDS))
    model.save(tmp_path / "model.keras")
    for one in (model, keras.saving.load_model(tmp_path / "model.keras")):
        np.testing.assert_array_equal(one(RECORDS[:3]), model(RECORDS[:3]))
        for records, path in ((more, "more"), (RECORDS.without("taste"), "taste")):
            with pytest.raises(errors.DTypeError) as raised:
                one(records)
            assert raised.value.path == f"{model.name}: input {path}"


def test_it_looks_as_the_sequential_of_keras():
    model, plain = of_records(), of_tensors()
    assert isinstance(model, keras.Sequential)
    assert isinstance(model, xt.keras.Model)
    for name in ("doubled", "dense"):
        assert model.get_layer(name).name == name
    assert [layer.name for layer in model.layers][::2] == ["doubled", "dense"]
    assert len(model.layers) == len(plain.layers) == 3
    assert model.built
    assert model.output_shape == plain.output_shape
    assert model.input_shape == (None,)
    assert model.inputs[0].name == plain.inputs[0].name == "recipe"
    assert model.inputs[0]["title"].dtype == "string"
    assert model.outputs[0].shape == plain.outputs[0].shape
    assert model.compute_output_shape((None,)) == plain.compute_output_shape((None, 3)) == (None, 2)
    assert sorted(model.get_config()) == sorted(plain.get_config())
    assert [layer["class_name"] for layer in model.get_config()["layers"]][::3] == [
        "InputLayer",
        "Dense",
    ]
    with pytest.raises(AttributeError, match="reserved"):
        model.layers = []
    with pytest.raises(AttributeError, match="no defined input shape yet"):
        _ = xt.keras.Sequential([Doubled()]).input_shape


@pytest.mark.whole("trains models")
def test_it_trains_as_the_sequential_of_keras():
    histories = []
    for build, data in ((of_records, RECORDS), (of_tensors, RECORDS["taste"].numpy())):
        keras.utils.set_random_seed(1)
        model = build()
        model.compile("sgd", "mse", metrics=["mae"])
        histories.append(model.fit(data, np.ones([10, 2]), shuffle=False, verbose=0).history)
        histories[-1]["weights"] = model.get_weights()[0]
    assert histories[0].keys() == histories[1].keys()
    for name, values in histories[1].items():
        np.testing.assert_allclose(histories[0][name], values, rtol=1e-6)


def test_layers_are_added_and_removed_before_and_after_a_call():
    model = xt.keras.Sequential()
    model.add(xt.keras.Input(SPEC))
    model.add(Doubled())
    np.testing.assert_array_equal(model(RECORDS)["taste"], RECORDS["taste"] * 2)
    model.add(Taste())
    np.testing.assert_array_equal(model(RECORDS), RECORDS["taste"] * 2)
    model.add(keras.layers.Dense(5))
    assert model(RECORDS).shape == model.predict(RECORDS, verbose=0).shape == (10, 5)
    assert model.pop().units == 5
    np.testing.assert_array_equal(model(RECORDS), RECORDS["taste"] * 2)
    # Without an Input.
    model = xt.keras.Sequential([Doubled()])
    np.testing.assert_array_equal(model(RECORDS)["taste"], RECORDS["taste"] * 2)
    model.add(Taste())
    np.testing.assert_array_equal(model(RECORDS), RECORDS["taste"] * 2)
    # Of tensors.
    model = xt.keras.Sequential([keras.layers.Dense(2)])
    model(np.ones([1, 3]))
    model.add(keras.layers.Dense(4))
    assert model(np.ones([1, 3])).shape == (1, 4)
    model = xt.keras.Sequential()
    model.add(keras.Input((3,)))
    model.add(keras.layers.Dense(4))
    assert model.input_shape == (None, 3)


def test_what_is_no_layer_is_not_added():
    for item in (tf.reduce_sum, Doubled, [xt.keras.Input(SPEC)]):
        with pytest.raises(ValueError, match=r"Only instances of `keras\.Layer`"):
            xt.keras.Sequential([item])
    with pytest.raises(ValueError, match="different Input layer"):
        chain(Doubled()).add(xt.keras.Input(SPEC))


def test_a_layer_that_takes_tensors_cannot_be_first():
    for layer in (keras.layers.Identity(name="first"), keras.layers.Dropout(0.5, name="first")):
        with pytest.raises(errors.DTypeError, match="is an extension value") as raised:
            chain(layer)
        assert raised.value.path.endswith(": layer first")


def test_parts_of_a_sequential_are_models():
    model = of_records()
    features = xt.keras.Model(model.inputs, model.layers[-2].output)
    np.testing.assert_array_equal(features(RECORDS), RECORDS["taste"] * 2)
    middle = xt.keras.Model(model.inputs, model.get_layer("doubled").output)
    np.testing.assert_array_equal(middle(RECORDS)["taste"], RECORDS["taste"] * 2)
    for layer in model.layers[:-1]:
        layer.trainable = False
    assert [variable.path for variable in model.trainable_variables] == [
        f"{model.name}/dense/kernel",
        f"{model.name}/dense/bias",
    ]


NESTED = {
    "declared": lambda: xt.keras.Sequential([chain(Doubled()), chain(Doubled(), Taste())]),
    "declared inside": lambda: xt.keras.Sequential([chain(Doubled()), Doubled(), Taste()]),
    "declared outside": lambda: chain(
        xt.keras.Sequential([Doubled()]), xt.keras.Sequential([Doubled(), Taste()])
    ),
    "not declared": lambda: xt.keras.Sequential([xt.keras.Sequential([Doubled()]), of_records()]),
    "a functional model": lambda: xt.keras.Sequential([functional(), Doubled(), Taste()]),
}


def functional():
    recipe = xt.keras.Input(SPEC)
    return xt.keras.Model(recipe, Doubled()(recipe))


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("case", NESTED)
def test_sequentials_are_nested(case):
    model = NESTED[case]()
    expected = RECORDS["taste"] * 4
    outputs = model(RECORDS)
    if case == "not declared":
        dense = model.layers[-1].layers[-1]
        expected = dense(expected)
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(model.predict(RECORDS, verbose=0), expected)
    recipe = xt.keras.Input(SPEC)
    outer = xt.keras.Model(recipe, model(recipe))
    np.testing.assert_array_equal(outer(RECORDS), expected)


def test_a_sequential_in_a_graph_has_its_variables_after_the_call():
    model = xt.keras.Sequential([Taste(), keras.layers.Dense(2)])
    outputs = model(xt.keras.Input(SPEC))
    assert outputs.shape == (None, 2)
    assert len(model.weights) == 2
    for one in (model, chain(Taste(), keras.layers.Dense(2))):
        for value in (xt.keras.Input(SPEC), RECORDS):
            assert one.compute_output_spec(value).shape[1:] == (2,)


def clones():
    deferred = xt.keras.Sequential([Doubled(), Taste(), keras.layers.Dense(2)])
    deferred(RECORDS)
    return {"declared": of_records(), "deferred": deferred}


@pytest.mark.parametrize("case", clones())
def test_a_clone_takes_values(case):
    model = clones()[case]
    model.compile("sgd", "mae")
    made = []

    def cloned(layer):
        made.append(layer.name)
        return type(layer).from_config(layer.get_config())

    for clone in (
        keras.models.clone_model(model),
        keras.models.clone_model(model, clone_function=cloned),
        keras.models.clone_model(model, input_tensors=model.inputs[0])
        if case == "declared"
        else keras.models.clone_model(model),
    ):
        assert type(clone) is xt.keras.Sequential
        assert clone.name == model.name
        assert clone.loss == "mae"
        assert clone.layers[0] is not model.layers[0]
        clone(RECORDS)
        clone.set_weights(model.get_weights())
        np.testing.assert_array_equal(clone(RECORDS), model(RECORDS))
    assert made == [layer.name for layer in model.layers]
    with pytest.raises(ValueError, match="call_function"):
        keras.models.clone_model(model, call_function=lambda layer, *args: layer(*args))


def test_a_sequential_of_keras_is_cloned_by_keras():
    clone = keras.models.clone_model(of_tensors())
    assert type(clone) is keras.Sequential


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("case", clones())
def test_a_sequential_is_saved_and_exported(case, tmp_path):
    model = clones()[case]
    model.compile("sgd", "mse")
    model.fit(RECORDS, np.ones([10, 2]), verbose=0)
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "export", verbose=False)
    custom = {"Doubled": Doubled, "Taste": Taste}
    loaded = keras.saving.load_model(tmp_path / "model.keras", custom)
    assert type(loaded) is xt.keras.Sequential
    np.testing.assert_array_equal(loaded(RECORDS), model(RECORDS))
    loaded.fit(RECORDS, np.ones([10, 2]), verbose=0)
    again = keras.models.model_from_json(model.to_json(), custom)
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(RECORDS), model(RECORDS))
    served = tf.saved_model.load(str(tmp_path / "export"))
    np.testing.assert_allclose(served.serve(RECORDS), model(RECORDS), rtol=1e-6)


def test_a_sequential_of_tensors_that_was_never_called_is_exported(tmp_path):
    model = xt.keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.export(tmp_path / "export", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "export"))
    np.testing.assert_allclose(served.serve(np.ones([1, 3], "f")), model(np.ones([1, 3])))


def test_layers_get_training_and_masks():
    model = xt.keras.Sequential(
        [
            xt.keras.Input(tf.RaggedTensorSpec([None, None, 1], tf.float32, 1)),
            xt.keras.Masked(),
            keras.layers.LSTM(3),
            keras.layers.Dropout(0.9, seed=1),
        ]
    )
    rows = tf.ragged.constant([[[1.0]], [[2.0], [3.0], [4.0]]], ragged_rank=1)
    np.testing.assert_allclose(model(rows)[:1], model(rows[:1]), rtol=1e-6)
    assert np.any(model(rows, training=True) == 0)


def test_the_summary_of_a_sequential_lists_its_fields():
    lines = []
    of_records().summary(print_fn=lines.append)
    text = "\n".join(lines)
    assert "doubled (Doubled)" in text
    assert "recipe.title: string (None,)" in text


def test_a_sequential_has_the_precision_of_its_policy():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = of_records()
    finally:
        keras.config.set_dtype_policy("float32")
    assert model(RECORDS).dtype == tf.bfloat16


def test_a_sequential_knows_its_inputs_after_fit():
    model = xt.keras.Sequential([Doubled(), Taste(), keras.layers.Dense(2)])
    with pytest.raises(AttributeError, match="no defined inputs"):
        _ = model.inputs
    model.compile("sgd", "mse")
    model.fit(RECORDS, np.zeros([len(RECORDS), 2]), verbose=0)
    weights = len(model.weights)
    (inputs,) = model.inputs
    assert inputs["taste"].shape == (None, 3)
    assert [tensor.shape for tensor in model.outputs] == [(None, 2)]
    assert (model.input_shape, model.output_shape) == ((None,), (None, 2))
    features = xt.keras.Model(model.inputs[0], model.layers[-2].output)
    np.testing.assert_array_equal(features(RECORDS), RECORDS["taste"] * 2)
    assert len(model.weights) == weights
    assert len(model.layers) == 3
    more = RECORDS.with_updates(more=RECORDS["taste"])
    np.testing.assert_array_equal(model(more), model(RECORDS))  # it declares no input
    model.add(keras.layers.Dense(1))
    assert model.output_shape == (None, 1)
