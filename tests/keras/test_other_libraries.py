"""KerasTuner and the wrappers for scikit-learn take models of extensor as those of Keras."""

import keras
import numpy as np
import pytest

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample

SPEC = sample.batches().element_spec[0]


def of_records(units=2):
    recipe = xt.keras.Input(SPEC)
    hidden = keras.layers.Dense(units)(sample.Totals()(recipe))
    model = xt.keras.Model(recipe, keras.layers.Dense(1)(hidden))
    model.compile("sgd", "mse")
    return model


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_keras_tuner_tunes_a_model_of_records(tmp_path):
    tuner_of = pytest.importorskip("keras_tuner", reason="KerasTuner is not installed")
    tuner = tuner_of.RandomSearch(
        lambda options: of_records(options.Choice("units", [2, 3])),
        objective="val_loss",
        max_trials=2,
        directory=tmp_path,
    )
    tuner.search(sample.batches(), validation_data=sample.batches(), epochs=1, verbose=0)
    (best,) = tuner.get_best_models(1)
    assert isinstance(best, xt.keras.Model)
    assert best.layers[-2].units == tuner.get_best_hyperparameters()[0].get("units")
    assert best.predict(sample.recipes(), verbose=0).shape == (sample.COUNT, 1)


def _functional():
    row = keras.Input((3,))
    return xt.keras.Model(row, keras.layers.Dense(1)(row))


@pytest.mark.parametrize(
    "model", [_functional, lambda: xt.keras.Sequential([keras.layers.Dense(1)])]
)
def test_the_regressor_for_scikit_learn_trains_a_model_of_matrices(model):
    selection = pytest.importorskip(
        "sklearn.model_selection", reason="scikit-learn is not installed"
    )
    x = np.random.default_rng(1).random([20, 3], np.float32)
    own = model()
    own.compile("sgd", "mse")
    regressor = keras.wrappers.SKLearnRegressor(own, fit_kwargs={"verbose": 0})
    regressor.fit(x, x.sum(axis=1))
    assert type(regressor.model_) is type(own)
    assert regressor.predict(x).shape == (20,)
    scores = selection.cross_val_score(regressor, x, x.sum(axis=1), cv=2)
    assert np.isfinite(scores).all()


def test_the_regressor_for_scikit_learn_refuses_records():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    regressor = keras.wrappers.SKLearnRegressor(of_records())
    with pytest.raises(errors.DTypeError, match="array"):
        regressor.fit(sample.recipes(), np.ones(sample.COUNT))
