"""Records with nulls, unions, times and maps, through models of Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras.kinds import reused
from tests.samples.arrow_records import features, records, spec

pytestmark = pytest.mark.whole("trains, saves and exports models")

PARTS = ("when", "price", "author", "words", "tags", "steps", "kind")


@keras.saving.register_keras_serializable("tests.arrow_records")
class Features(xt.keras.Layer):
    def call(self, recipe):
        return features(recipe)


@keras.saving.register_keras_serializable("tests.arrow_records")
class Parts(xt.keras.Layer):
    def call(self, recipe):
        return recipe.with_only(*PARTS)


def scored():
    inputs = xt.keras.Input(spec())
    assert "StructuredTensor" in repr(inputs)
    scaled = keras.layers.Rescaling(1e-3)(Features()(inputs))
    model = xt.keras.Model(inputs, keras.layers.Dense(1)(scaled))
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize("with_dataset", [False, True])
def test_a_model_trains_and_predicts(with_dataset):
    model, value, y = reused(scored), records(), np.arange(6, dtype=np.float32)
    data = (value, y)
    if with_dataset:
        data = (tf.data.Dataset.from_tensor_slices(data).batch(4),)
    history = model.fit(*data, verbose=0, shuffle=False, epochs=2)
    losses = history.history["loss"]
    assert losses[1] < losses[0]
    assert np.isfinite(model.evaluate(*data, verbose=0))
    np.testing.assert_allclose(model.predict(value, verbose=0, batch_size=4), model(value), 1e-5)


def test_predict_returns_them_with_their_arrow_types():
    inputs, value = xt.keras.Input(spec()), records()
    found = xt.keras.Model(inputs, Parts()(inputs)).predict(value, verbose=0, batch_size=4)
    assert found.to_py() == value.to_py()
    assert xt.to_arrow(found).schema == xt.to_arrow(value).schema


def test_a_model_is_saved_and_exported(tmp_path):
    model, value = reused(scored), records()
    expected = model.predict(value, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(value, verbose=0), expected)
    model.export(str(tmp_path / "exported"), verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    np.testing.assert_allclose(exported.serve(value), expected, 1e-5)


def test_a_saved_model_takes_and_returns_them_in_a_fresh_process(tmp_path, run_python):
    class Module(tf.Module):
        @tf.function(input_signature=[spec()])
        def call(self, recipe):
            return recipe

    with pytest.warns(UserWarning, match="Encoding a StructuredValue"):
        tf.saved_model.save(Module(), str(tmp_path))
    run_python(f"""
        import tensorflow as tf
        import extensor as xt
        from tests.samples.arrow_records import records
        value = records()
        found = tf.saved_model.load({str(tmp_path)!r}).call(value)
        assert found.to_py() == value.to_py()
        assert xt.to_arrow(found).schema == xt.to_arrow(value).schema
    """)
