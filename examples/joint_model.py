"""Two models, chained and trained jointly: one parses raw recipes, the other rates them.

What passes between the two is a StructuredTensor: each works, and is tested and saved, on its own.

    $ python examples/joint_model.py
"""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt

WORDS = ["flour", "sugar", "butter", "salt", "oats"]
SWEETNESS = {"flour": 0.1, "sugar": 1.0, "butter": 0.4, "salt": -0.5, "oats": 0.2}


def raw_recipes(count, seed=0):
    """Recipes as people write them, `title: amount word, amount word`, and their ratings."""
    random = np.random.default_rng(seed)
    texts, ratings = [], []
    for i in range(count):
        names = random.choice(WORDS, size=random.integers(1, 5), replace=False)
        amounts = random.integers(1, 9, size=len(names)) / 2
        listed = ", ".join(f"{a:g} {n}" for a, n in zip(amounts, names, strict=True))
        texts.append(f"recipe {i}: {listed}")
        ratings.append(sum(a * SWEETNESS[n] for a, n in zip(amounts, names, strict=True)))
    return np.array(texts), np.array(ratings, np.float32)[:, np.newaxis]


@keras.saving.register_keras_serializable("joint_model")
class Parser(xt.keras.Layer):
    """Cuts texts into records of a title and a list of ingredients.

    Cutting has nothing to learn, but what an ingredient is like has: each gets a vector.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.lookup = keras.layers.StringLookup(vocabulary=WORDS)
        self.vectors = keras.layers.Embedding(len(WORDS) + 1, 2)

    def call(self, texts):
        title, listed = tf.unstack(tf.strings.split(texts, ": ").to_tensor(shape=[None, 2]), axis=1)
        entries = tf.strings.split(listed, ", ")
        parts = tf.strings.split(entries.flat_values, " ").to_tensor(shape=[None, 2])
        name = parts[:, 1]
        ingredient = xt.DenseStructuredTensor(
            [None],
            {
                "name": name,
                "amount": tf.strings.to_number(parts[:, 0]),
                "vector": self.vectors(self.lookup(name)),
            },
        )
        ingredients = xt.RaggedStructuredTensor.from_row_splits(ingredient, entries.row_splits)
        return xt.DenseStructuredTensor([None], {"title": title, "ingredients": ingredients})


@keras.saving.register_keras_serializable("joint_model")
class Portions(xt.keras.Layer):
    """Adds up the vectors of a recipe's ingredients, each as often as its amount says."""

    def call(self, recipes):
        ingredients = recipes["ingredients"]
        portions = ingredients.values["vector"] * ingredients.values["amount"][:, tf.newaxis]
        rows = tf.RaggedTensor.from_row_splits(portions, ingredients.row_splits)
        return tf.reduce_sum(rows, axis=1)


def models():
    """Returns the parser, the rater, and both as one model."""
    text = keras.Input((), dtype="string", name="text")
    parser = xt.keras.Model(text, Parser()(text), name="parser")

    recipe = xt.keras.Input(spec_of_recipes())
    rater = xt.keras.Model(recipe, keras.layers.Dense(1)(Portions()(recipe)), name="rater")

    raw = keras.Input((), dtype="string", name="raw")
    return parser, rater, xt.keras.Model(raw, rater(parser(raw)), name="joint")


def spec_of_recipes():
    """The type that the first model returns and the second takes."""
    ingredient = xt.DenseStructuredTensorSpec(
        [None],
        {
            "name": tf.TensorSpec([None], tf.string),
            "amount": tf.TensorSpec([None], tf.float32),
            "vector": tf.TensorSpec([None, 2], tf.float32),
        },
    )
    ingredients = xt.RaggedStructuredTensorSpec([None, None], ingredient)
    title = tf.TensorSpec([None], tf.string)
    return xt.DenseStructuredTensorSpec([None], {"title": title, "ingredients": ingredients})


def main():
    keras.utils.set_random_seed(1)
    texts, ratings = raw_recipes(256)
    parser, rater, joint = models()
    joint.compile(keras.optimizers.Adam(0.05), "mse")
    losses = joint.fit(tf.constant(texts), ratings, batch_size=32, epochs=12, verbose=0).history
    print("loss", round(losses["loss"][0], 3), "->", round(losses["loss"][-1], 3))
    # Each of the two is a model of its own, with what it learned with the other.
    recipes = parser.predict(tf.constant(texts[:3]), verbose=0)
    print(recipes.without("ingredients.vector").to_py()[0])
    print("ratings", np.round(rater.predict(recipes, verbose=0)[:, 0], 2), "of", ratings[:3, 0])
    return parser, rater, joint


if __name__ == "__main__":
    main()
