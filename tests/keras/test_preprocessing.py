"""Feature extraction inside the model: trained and served alike."""

import keras
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import sample_models as sample

SERVED = """
import numpy as np
import tensorflow as tf
import extensor as xt

records = xt.read_parquet({parquet!r}).without("rating")
served = tf.saved_model.load({path!r})
np.testing.assert_allclose(served.serve(records), np.load({out!r}), rtol=1e-6)
one_by_one = [served.serve(records[i : i + 1]) for i in range(10)]
np.testing.assert_allclose(np.concatenate(one_by_one), np.load({out!r}), rtol=1e-5, atol=1e-6)
"""


@pytest.mark.whole("starts a process")
def test_stock_layers_adapt_to_fields_and_serve_raw_records_as_trained(tmp_path, run_python):
    parquet = tmp_path / "recipes.parquet"
    pq.write_table(sample.table(), parquet)
    raw = xt.data.parquet(parquet, 4)

    words = keras.layers.StringLookup()
    words.adapt(raw.map(lambda r: r["title"]))
    names = keras.layers.StringLookup(output_mode="int")
    names.adapt(raw.map(lambda r: r["ingredients.name"].flat_values))
    scaled = keras.layers.Normalization()
    scaled.adapt(raw.map(lambda r: r["taste"]))
    assert set(words.get_vocabulary()) == {"[UNK]", *sample.WORDS}
    assert set(names.get_vocabulary()) == {"[UNK]", "salt", *sample.WORDS}
    np.testing.assert_allclose(
        np.ravel(scaled.mean), np.mean(sample.recipes()["taste"], axis=0), rtol=1e-5
    )

    def features(records):
        """The training pipeline: the same layers, outside of the model."""
        ingredient = records["ingredients.name"]
        one_hot = tf.one_hot(names(ingredient.flat_values), 5)
        return {
            "taste": scaled(records["taste"]),
            "title": words(records["title"]),
            "names": tf.reduce_sum(ingredient.with_flat_values(one_hot), axis=1),
        }

    # Trained on features that the pipeline makes ...
    x = {
        "taste": keras.Input((3,), name="taste"),
        "title": keras.Input((), dtype="int64", name="title"),
        "names": keras.Input((5,), name="names"),
    }
    title = keras.layers.Embedding(4, 2)(x["title"])
    parts = keras.layers.Concatenate()([x["taste"], title, x["names"]])
    core = keras.Model(x, keras.layers.Dense(1)(parts))
    core.compile("adam", "mse")
    pipeline = raw.map(lambda r: (features(r), r["rating"][:, tf.newaxis]))
    core.fit(pipeline, shuffle=False, verbose=0)
    trained = core.predict(pipeline.map(lambda f, _: f), verbose=0)

    # ... and served on raw records, with the same layers in front.
    spec = raw.map(lambda r: r.without("rating")).element_spec
    recipe = xt.keras.Input(spec)
    ingredient = recipe["ingredients.name"]
    one_hot = xt.keras.Lambda(lambda n: tf.one_hot(n, 5))(names(ingredient.flat_values))
    summed = xt.keras.Lambda(lambda r: tf.reduce_sum(r, axis=1))(
        ingredient.with_flat_values(one_hot)
    )
    served = xt.keras.Model(
        recipe,
        core({"taste": scaled(recipe["taste"]), "title": words(recipe["title"]), "names": summed}),
    )
    records = sample.recipes()
    np.testing.assert_allclose(served.predict(records, 4, verbose=0), trained, rtol=1e-6)
    out = str(tmp_path / "trained.npy")
    np.save(out, trained)
    served.export(tmp_path / "served", verbose=False)
    run_python(SERVED.format(parquet=str(parquet), path=str(tmp_path / "served"), out=out))
