"""A model that returns records, for the tests of losses, and its twin in plain Keras."""

import keras
import tensorflow as tf

import extensor as xt
from tests.keras.kinds import COUNT, KINDS, RATINGS

RECORDS = KINDS["records"].value


class Scores(xt.keras.Model):
    """Records of a score, one for each recipe, and of a chance, one for each minute."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.score, self.chance = keras.layers.Dense(1), keras.layers.Dense(1)

    def call(self, records):
        minutes = records["minutes"]
        chance = tf.sigmoid(self.chance(minutes.flat_values[:, tf.newaxis])[:, 0])
        score = self.score(records["taste"])[:, 0]
        steps = xt.RaggedStructuredTensor.from_row_splits(
            xt.DenseStructuredTensor([None], {"done": chance}), minutes.row_splits
        )
        return xt.DenseStructuredTensor([None], {"score": score, "steps": steps})


class BareScores(keras.Model):
    def __init__(self):
        super().__init__()
        self.score, self.chance = keras.layers.Dense(1), keras.layers.Dense(1)

    def call(self, x):
        return {
            "score": self.score(x["a_taste"]),
            "steps.done": tf.sigmoid(self.chance(x["minutes"][:, tf.newaxis])),
        }


def targets():
    done = tf.cast(RECORDS["minutes"].flat_values > 0.5, tf.float32)
    splits = RECORDS["minutes"].row_splits
    steps = xt.RaggedStructuredTensor.from_row_splits(
        xt.DenseStructuredTensor([None], {"done": done}), splits
    )
    return xt.DenseStructuredTensor([COUNT], {"score": RATINGS[:, 0], "steps": steps})


def bare_targets(y):
    return {
        "score": y["score"][:, tf.newaxis],
        "steps.done": y["steps.done"].flat_values[:, tf.newaxis],
    }


def scores(**options):
    model, bare = Scores(), BareScores()
    model(RECORDS)
    bare(KINDS["records"].bare(RECORDS))
    bare.set_weights(model.get_weights())
    for one in (model, bare):
        one.compile(keras.optimizers.Adam(0.1), **options)
    return model, bare
