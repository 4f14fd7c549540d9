"""The example of two models, chained and trained jointly."""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt
from examples import joint_model as example


def test_both_models_learn_through_the_records_between_them(tmp_path):
    keras.utils.set_random_seed(1)
    texts, ratings = example.raw_recipes(64)
    texts = tf.constant(texts)
    parser, rater, joint = example.models()
    before = [w.numpy() for w in joint.weights]
    assert len(before) == 3  # the parser's vectors, the rater's kernel and bias
    joint.compile(keras.optimizers.Adam(0.1), "mse")
    losses = joint.fit(texts, ratings, batch_size=16, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    for old, new in zip(before, joint.weights, strict=True):
        assert not np.array_equal(old, new)

    # Chained by hand they are the joint model.
    recipes = parser(texts)
    assert isinstance(recipes, xt.StructuredTensor)
    assert recipes["ingredients.amount"].to_list()[0] == [
        float(part.split()[0]) for part in texts[0].numpy().decode().split(": ")[1].split(", ")
    ]
    np.testing.assert_array_equal(rater(recipes), joint(texts))
    # A RaggedTensor of text cannot be joined by rows alone: records can.
    predicted = parser.predict(texts, batch_size=10, verbose=0)
    assert predicted.to_py() == recipes.to_py()
    np.testing.assert_allclose(rater.predict(predicted, verbose=0), joint(texts), rtol=1e-5)

    joint.save(tmp_path / "joint.keras")
    loaded = keras.saving.load_model(tmp_path / "joint.keras")
    np.testing.assert_array_equal(loaded(texts), joint(texts))


def test_the_example_runs(capsys):
    example.main()
    first, last = (float(word) for word in capsys.readouterr().out.split("\n")[0].split()[1::2])
    assert last < first / 10
