"""`Model(inputs, outputs)` is what Keras calls Functional: for freezing, parts, clones, files."""

import typing

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import sample_models as sample
from tests.keras.kinds import KINDS

RECORDS = sample.recipes()
SPEC = sample.batches().element_spec[0]
X = keras.Input((1,), name="x")
FUNCTIONAL = type(keras.Model(X, keras.layers.Identity()(X)))


class Doubled(xt.keras.Layer):
    """Returns records. It is not registered."""

    def __init__(self, factor=2.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, records):
        return records.with_updates(taste=records["taste"] * self.factor)

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


class Minutes(xt.keras.Layer):
    def call(self, records):
        return tf.reduce_sum(records["minutes"], axis=1)[:, tf.newaxis]


def two_headed():
    """A model with a layer that returns records, fields in layers of Keras, and two outputs."""
    recipe = xt.keras.Input(SPEC, name="recipe")
    doubled = Doubled(name="doubled")(recipe)
    hidden = keras.layers.Dense(4, name="hidden")(doubled["taste"])
    joined = keras.layers.Concatenate(name="joined")([hidden, Minutes(name="minutes")(recipe)])
    a, b = keras.layers.Dense(1, name="a")(joined), keras.layers.Dense(1, name="b")(hidden)
    return xt.keras.Model(recipe, [a, b], name="two_headed")


def assert_same(model, other):
    for expected, got in zip(model(RECORDS), other(RECORDS), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_functional_model_is_one_of_keras():
    model = two_headed()
    assert isinstance(model, xt.keras.Model)
    assert isinstance(model, keras.Model)
    assert isinstance(model, FUNCTIONAL)
    names = [layer.name for layer in model.layers]
    assert sorted(names) == ["a", "b", "doubled", "hidden", "joined", "minutes", "recipe"]
    operations = {operation.name for operation in model.operations}
    assert operations == {*names, "doubled.taste"}
    assert model.get_layer("hidden") is model.layers[names.index("hidden")]
    assert [tensor.name for tensor in model.inputs] == ["recipe"]
    assert model.output_names == ["a", "b"]
    assert (model.input_shape, model.output_shape) == ((None,), [(None, 1), (None, 1)])


def test_layers_are_frozen_by_a_slice():
    model = two_headed()
    for layer in model.layers[:-2]:
        layer.trainable = False
    frozen = {layer.name for layer in model.layers[:-2]}
    kept = {variable.path.split("/")[0] for variable in model.trainable_variables}
    assert kept == {"a", "b", "hidden"} - frozen
    assert kept


def test_parts_of_a_model_are_models():
    model = two_headed()
    hidden = xt.keras.Model(model.inputs, model.get_layer("hidden").output)
    expected = model.get_layer("hidden")(RECORDS["taste"] * 2)
    np.testing.assert_array_equal(hidden(RECORDS), expected)
    np.testing.assert_array_equal(hidden([RECORDS]), expected)
    # From records in the middle.
    middle = model.get_layer("doubled").output
    tail = xt.keras.Model(middle, {"b": model.output[1], "title": middle["title"]})
    outputs = tail(RECORDS.with_updates(taste=RECORDS["taste"] * 2))
    np.testing.assert_array_equal(outputs["b"], model(RECORDS)[1])
    np.testing.assert_array_equal(outputs["title"], RECORDS["title"])
    last = xt.keras.Model(model.inputs, model.layers[-2].output)
    assert last(RECORDS).shape == [10, 1]


def test_a_part_that_begins_in_the_middle_is_saved(tmp_path):
    model = two_headed()
    records = model.get_layer("doubled").output
    xt.keras.Model(records, model.get_layer("hidden").output).save(tmp_path / "part.keras")
    loaded = keras.saving.load_model(tmp_path / "part.keras")
    expected = model.get_layer("hidden")(RECORDS["taste"])
    np.testing.assert_array_equal(loaded(RECORDS), expected)


CUSTOM = {"Doubled": Doubled, "Minutes": Minutes}


def test_a_configuration_gives_the_model_again():
    model = two_headed()
    for cls in (xt.keras.Model, type(model)):
        with keras.saving.custom_object_scope(CUSTOM):
            again = cls.from_config(model.get_config())
        assert type(again) is type(model)
        assert again.name == "two_headed"
        again.set_weights(model.get_weights())
        assert_same(model, again)
    again = keras.models.model_from_json(model.to_json(), CUSTOM)
    again.set_weights(model.get_weights())
    assert_same(model, again)
    assert again.inputs[0]["title"].dtype == "string"


def test_a_clone_has_the_layers_of_the_model_even_if_they_are_not_registered():
    model = two_headed()
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert_same(model, clone)
    assert clone.get_layer("doubled") is not model.get_layer("doubled")
    assert clone.inputs[0]["title"].dtype == "string"


def test_a_clone_function_changes_layers():
    def clone_layer(layer):
        config = layer.get_config()
        return type(layer).from_config({**config, "factor": 0.0} if "factor" in config else config)

    model = two_headed()
    clone = keras.models.clone_model(model, clone_function=clone_layer)
    clone.set_weights(model.get_weights())
    zeros = RECORDS.with_updates(taste=tf.zeros_like(RECORDS["taste"]))
    np.testing.assert_array_equal(clone(RECORDS)[1], model(zeros)[1])


def test_a_model_in_a_model_returns_records(tmp_path):
    recipe = xt.keras.Input(KINDS["records"].spec, name="recipe")
    parser = xt.keras.Model(recipe, {"one": recipe, "two": xt.keras.Identity()(recipe)})
    parts = parser(parser(recipe)["two"])
    outer = xt.keras.Model(recipe, [parts["one"]["taste"], parts["two"]["title"]])
    outer.save(tmp_path / "outer.keras")
    loaded = keras.saving.load_model(tmp_path / "outer.keras")
    for model in (outer, keras.models.clone_model(outer), loaded):
        taste, title = model(KINDS["records"].value)
        np.testing.assert_array_equal(taste, KINDS["records"].value["taste"])
        np.testing.assert_array_equal(title, KINDS["records"].value["title"])


def test_call_and_stateless_call_take_and_return_values():
    recipe = xt.keras.Input(SPEC)
    dropped = keras.layers.Dropout(0.5, seed=1)(recipe["taste"])
    model = xt.keras.Model(recipe, {"records": Doubled()(recipe), "dropped": dropped})
    for outputs in (
        model.call(RECORDS),
        model.stateless_call([], model.non_trainable_variables, RECORDS)[0],
        model.call(RECORDS, training=False),
    ):
        np.testing.assert_array_equal(outputs["records"]["taste"], RECORDS["taste"] * 2)
        np.testing.assert_array_equal(outputs["dropped"], RECORDS["taste"])
    dropped = model.call(RECORDS, training=True)["dropped"]
    assert np.any(dropped.numpy() == 0)
    layer = Doubled()
    layer(RECORDS)
    np.testing.assert_array_equal(layer.call(RECORDS)["taste"], RECORDS["taste"] * 2)
    outputs, _ = layer.stateless_call([], [], RECORDS)
    np.testing.assert_array_equal(outputs["taste"], RECORDS["taste"] * 2)


def test_the_specs_of_outputs_are_computed():
    model = two_headed()
    shapes = [tensor.shape for tensor in model.compute_output_spec(xt.keras.Input(SPEC))]
    assert shapes == [(None, 1), (None, 1)]
    assert [tensor.shape for tensor in model.compute_output_spec(RECORDS)] == shapes
    records = Doubled().compute_output_spec(xt.keras.Input(SPEC))
    assert records["taste"].shape == (None, 3)


LOSSES = {
    "list": ["mse", "mae"],
    "dict": {"a": "mse", "b": "mae"},
}


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("form", LOSSES)
def test_losses_metrics_and_history_have_the_names_of_keras(form):
    x = keras.Input((3,))
    hidden = keras.layers.Dense(4, name="hidden")(x)
    outputs = [keras.layers.Dense(1, name="a")(hidden), keras.layers.Dense(1, name="b")(hidden)]
    plain = keras.Model(x, outputs)
    recipe = xt.keras.Input(SPEC)
    hidden = keras.layers.Dense(4, name="hidden")(recipe["taste"])
    outputs = [keras.layers.Dense(1, name="a")(hidden), keras.layers.Dense(1, name="b")(hidden)]
    model = xt.keras.Model(recipe, outputs)
    model.set_weights(plain.get_weights())
    targets = [np.ones([10, 1], "f"), np.zeros([10, 1], "f")]
    weights, metrics = [0.25, 0.75], [["mae"], ["mse"]]
    if form == "dict":
        weights, metrics = (dict(zip("ab", part, strict=True)) for part in (weights, metrics))
        targets = dict(zip("ab", targets, strict=True))
    histories = []
    for one, data in ((plain, RECORDS["taste"].numpy()), (model, RECORDS)):
        one.compile("sgd", LOSSES[form], loss_weights=weights, metrics=metrics)
        histories.append(one.fit(data, targets, shuffle=False, verbose=0).history)
    assert histories[0].keys() == histories[1].keys()
    assert {"a_loss", "b_loss", "a_mae", "b_mse"} < histories[1].keys()
    for name, values in histories[0].items():
        np.testing.assert_allclose(histories[1][name], values, rtol=1e-6)


class Pair(typing.NamedTuple):
    a: typing.Any
    b: typing.Any


@pytest.mark.whole("trains models")
def test_outputs_and_losses_may_be_named_tuples():
    recipe = xt.keras.Input(SPEC)
    heads = [keras.layers.Dense(1, name=name)(recipe["taste"]) for name in "ab"]
    model = xt.keras.Model(recipe, Pair(*heads))
    assert isinstance(model(RECORDS), Pair)
    model.compile("sgd", Pair(keras.losses.MeanSquaredError(), "mae"))
    targets = Pair(np.ones([10, 1], "f"), np.zeros([10, 1], "f"))
    history = model.fit(RECORDS, targets, verbose=0).history
    assert {"a_loss", "b_loss"} < history.keys()


def test_the_format_of_an_export_is_checked_by_keras_if_there_are_no_values(tmp_path):
    with pytest.raises(ValueError, match="Unrecognized format=odd"):
        xt.keras.Model(X, keras.layers.Dense(1)(X)).export(tmp_path, format="odd")


def test_an_input_that_is_an_output_keeps_the_fields_that_no_layer_reads():
    records = xt.struct.constant([{"x": 1.5, "tags": [1, 2]}, {"x": 2.5, "tags": []}])
    record = xt.keras.Input(xt.spec_of(records).unstacked().stacked(None))
    total = xt.keras.layers.ListPooling("sum")(record["tags"])
    found = xt.keras.Model(record, [total, record]).predict(records, verbose=0)
    assert found[0].tolist() == [3.0, 0.0]
    assert found[1].to_py() == records.to_py()


def test_a_field_with_a_slash_in_its_name_is_read():
    records = xt.struct.constant([{"a/b": 1.0, "c": 2.0}, {"a/b": 3.0, "c": 4.0}])
    record = xt.keras.Input(xt.spec_of(records).unstacked().stacked(None))
    found = xt.keras.Model(record, record["a/b"] * 2.0).predict(records, verbose=0)
    assert found.tolist() == [2.0, 6.0]
