"""Functional models: of a user's own class too, and made of parts of others."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import kinds
from tests.keras.kinds import BATCH, KINDS, RATINGS

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


RECORDS = KINDS["records"].value


@keras.saving.register_keras_serializable("tests.keras.model")
class Counted(xt.keras.Model):
    """A class with a step of its own, for models of any layers."""

    def train_step(self, data):
        x, _ = data
        assert not isinstance(x, dict)
        return {**super().train_step(data), "rows": tf.shape(kinds.rows_of(x))[0]}


@keras.saving.register_keras_serializable("tests.keras.model")
class Rated(xt.keras.Model):
    """A class that puts its layers together itself."""

    def __init__(self, units, **kwargs):
        placeholder = xt.keras.Input(KINDS["records"].spec)
        outputs = keras.layers.Dense(units)(kinds.RecipeFeatures()(placeholder))
        super().__init__(inputs=placeholder, outputs=outputs, **kwargs)
        self.units = units

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def counted(kind):
    placeholder = xt.keras.Input(kind.spec)
    return Counted(placeholder, keras.layers.Dense(1)(kind.features()(placeholder)))


@pytest.mark.whole("trains models")
@EACH
def test_a_functional_model_has_the_steps_of_its_class(kind):
    model, bare = counted(kind), kinds.BareNet(kind.bare_features())
    assert type(model) is Counted
    bare(kind.bare(kind.value))
    bare.set_weights(model.get_weights())
    for one in (model, bare):
        one.compile("sgd", "mse")
    history = model.fit(kind.value, RATINGS, BATCH, shuffle=False, verbose=0).history
    plain = bare.fit(kind.bare_dataset(RATINGS), shuffle=False, verbose=0).history
    assert history == {**plain, "rows": [2]}
    clone = keras.models.clone_model(model)
    assert type(clone) is Counted
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(kind.value), model(kind.value))


LOADED = """
import keras
import numpy as np
from tests.keras import test_model as here

for name in ("Counted", "Rated"):
    model = keras.saving.load_model(f"{folder}/{{name}}.keras")
    assert type(model) is getattr(here, name)
    assert np.array_equal(model(here.RECORDS), np.load(f"{folder}/{{name}}.npy")), name
    model.compile("sgd", "mse")
    history = model.fit(here.RECORDS, here.RATINGS, verbose=0).history
    assert ("rows" in history) == (name == "Counted")
"""


@pytest.mark.whole("starts a process")
def test_functional_models_of_a_users_class_come_back_in_a_fresh_process(tmp_path, run_python):
    for model in (counted(KINDS["records"]), Rated(2)):
        name = type(model).__name__
        model.save(tmp_path / f"{name}.keras")
        np.save(tmp_path / f"{name}.npy", model(RECORDS))
    run_python(LOADED.format(folder=tmp_path))


@pytest.mark.whole("traces many functions")
@EACH
def test_a_class_may_add_to_the_call_of_the_layers(kind):
    class Doubled(xt.keras.Model):
        def call(self, value, training=None):
            outputs = super().call(value, training=training)
            assert type(outputs["same"]) is type(value) is type(kind.value)
            return {**outputs, "score": outputs["score"] * 2}

    model, placeholder = kinds.functional(kind), xt.keras.Input(kind.spec)
    same = xt.keras.Identity()(placeholder)
    doubled = Doubled(placeholder, {"same": same, "score": model(placeholder)})
    outputs = doubled.predict(kind.value, BATCH, verbose=0)
    np.testing.assert_array_equal(outputs["score"], 2 * model.predict(kind.value, BATCH, verbose=0))
    assert kinds.numbers(outputs["same"]) == kinds.numbers(kind.value)


def test_other_classes_of_the_same_base_stay_what_they_are():
    class Base(xt.keras.Model):
        def test_step(self, data):
            return {"of": tf.constant(3.0)}

    class Leaf(Base):
        pass

    class Other(Base):
        def call(self, records):
            return records["taste"]

    placeholder = xt.keras.Input(KINDS["records"].spec)
    leaf, other = Leaf(placeholder, placeholder["taste"]), Other()
    np.testing.assert_array_equal(leaf(RECORDS), other(RECORDS))
    for model in (leaf, other):
        model.compile("sgd", "mse")
        assert model.evaluate(RECORDS, RATINGS, verbose=0) == 3.0
    assert xt.keras.Sequential([kinds.RecipeFeatures()])(RECORDS).shape == [10, 6]


@pytest.mark.whole("saves and loads models")
@EACH
def test_a_part_of_a_model_is_a_model(kind, tmp_path):
    model = kinds.functional(kind)
    model.save(tmp_path / "model.keras")
    for whole in (model, keras.saving.load_model(tmp_path / "model.keras")):
        features = xt.keras.Model(whole.input, whole.get_layer(index=-2).output)
        np.testing.assert_array_equal(features(kind.value), kind.features()(kind.value))
        doubled = xt.keras.Model(whole.input, keras.layers.Rescaling(2.0)(whole.output))
        np.testing.assert_array_equal(doubled(kind.value), 2 * model(kind.value))


def test_the_output_of_a_model_that_returns_records_has_their_fields():
    placeholder = xt.keras.Input(KINDS["records"].spec)
    model = xt.keras.Model(placeholder, {"same": xt.keras.Identity()(placeholder)})
    names = model.output["same"]["ingredients.name"]
    part = xt.keras.Model(model.input, {"names": names, "taste": model.output["same"]["taste"]})
    outputs = part(RECORDS)
    assert outputs["names"].to_list() == RECORDS["ingredients.name"].to_list()
    np.testing.assert_array_equal(outputs["taste"], RECORDS["taste"])


def test_a_functional_model_of_plain_tensors_keeps_their_precision():
    x = keras.Input((2,), dtype="float64")
    model = xt.keras.Model(x, keras.layers.Rescaling(2.0, dtype="float64")(x))
    value = tf.constant([[1 / 3, 2 / 3]], tf.float64)
    np.testing.assert_array_equal(model(value), value * 2)


def test_a_functional_model_shows_its_layers():
    placeholder = xt.keras.Input(KINDS["records"].spec)
    features = kinds.RecipeFeatures(name="features")(placeholder)
    model = xt.keras.Model(placeholder, keras.layers.Dense(1, name="last")(features))
    assert isinstance(model.get_layer("features"), kinds.RecipeFeatures)
    assert isinstance(model.get_layer(index=-1), keras.layers.Dense)
    assert model.count_params() == 7
