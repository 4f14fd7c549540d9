"""KerasTuner and the wrappers for scikit-learn take models of extensor as those of Keras."""

import keras
import numpy as np
import pytest

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample

pytestmark = pytest.mark.whole("searches hyperparameters, and needs other libraries")

RECORDS = sample.recipes()
SPEC = sample.batches().element_spec[0]
TARGETS = np.linspace(0.0, 1.0, sample.COUNT, dtype=np.float32)


class Subclassed(xt.keras.Model):
    def __init__(self, units):
        super().__init__()
        self.hidden, self.score = keras.layers.Dense(units), keras.layers.Dense(1)

    def call(self, records):
        return self.score(self.hidden(records["taste"]))


def functional(units):
    recipe = xt.keras.Input(SPEC)
    hidden = keras.layers.Dense(units)(recipe["taste"])
    return xt.keras.Model(recipe, keras.layers.Dense(1)(hidden))


def sequential(units):
    taste = xt.keras.Lambda(lambda records: records["taste"])
    layers = [taste, keras.layers.Dense(units), keras.layers.Dense(1)]
    return xt.keras.Sequential([xt.keras.Input(SPEC), *layers])


@pytest.mark.parametrize(
    ("build", "tuner", "limits"),
    [
        (functional, "RandomSearch", {"max_trials": 2}),
        (sequential, "GridSearch", {"max_trials": 2}),
        (Subclassed, "Hyperband", {"max_epochs": 2, "factor": 2}),
    ],
)
def test_keras_tuner_finds_the_best_of_models_of_records(tmp_path, build, tuner, limits):
    tuners = pytest.importorskip("keras_tuner", reason="KerasTuner is not installed")

    def compiled(choices):
        model = build(choices.Choice("units", [2, 4]))
        model.compile("sgd", "mse")
        return model

    search = getattr(tuners, tuner)(compiled, objective="val_loss", directory=tmp_path, **limits)
    search.search(RECORDS, TARGETS, validation_split=0.3, epochs=2, verbose=0)
    (best,) = search.get_best_models(1)
    assert type(best) is type(build(2))
    (values,) = search.get_best_hyperparameters(1)
    assert best.layers[-2].units == values.get("units")
    score = best.evaluate(RECORDS[7:], TARGETS[7:], verbose=0)
    np.testing.assert_allclose(score, search.oracle.get_best_trials(1)[0].score, rtol=1e-4)


def of_columns():
    row = keras.Input((3,))
    return xt.keras.Model(row, keras.layers.Dense(1)(row))


@pytest.mark.parametrize(
    "build", [of_columns, lambda: xt.keras.Sequential([keras.layers.Dense(1)])]
)
def test_the_regressor_for_scikit_learn_trains_a_model_of_matrices(build):
    selection = pytest.importorskip(
        "sklearn.model_selection", reason="scikit-learn is not installed"
    )
    x = np.random.default_rng(1).random([20, 3], np.float32)
    model = build()
    model.compile("sgd", "mse")
    regressor = keras.wrappers.SKLearnRegressor(model, fit_kwargs={"verbose": 0})
    regressor.fit(x, x.sum(axis=1))
    assert type(regressor.model_) is type(model)
    assert regressor.predict(x).shape == (20,)
    scores = selection.cross_val_score(regressor, x, x.sum(axis=1), cv=2)
    assert np.isfinite(scores).all()


def test_the_regressor_for_scikit_learn_refuses_records():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    model = functional(2)
    model.compile("sgd", "mse")
    regressor = keras.wrappers.SKLearnRegressor(model)
    with pytest.raises(errors.DTypeError, match="Use one of the fields"):
        regressor.fit(RECORDS, TARGETS)
