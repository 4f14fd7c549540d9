"""A recommender over users' histories, which are lists of records, without padding.

Each user has watched a list of films; the model learns which film a user likes next. The history
has a different length for each user, and each film in it has fields (`film`, `minutes`).

    $ python examples/recommender.py
"""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt

FILMS, GENRES = 60, 4


def users(count, seed=0):
    """Users with their history, a film that was shown to them, and whether they liked it."""
    random = np.random.default_rng(seed)
    records = []
    for _ in range(count):
        taste = random.integers(GENRES)
        history = []
        for _ in range(random.integers(3, 15)):
            # A user opens films of all genres, and watches the genre of their taste to the end.
            film = int(random.integers(FILMS))
            liked = film % GENRES == taste
            minutes = float(random.uniform(60, 120) if liked else random.uniform(1, 30))
            history.append({"film": film, "minutes": minutes})
        shown = int(random.integers(FILMS // GENRES) * GENRES + random.integers(GENRES))
        if random.random() < 0.5:  # half of the shown films are of the user's taste
            shown = int(random.integers(FILMS // GENRES) * GENRES + taste)
        liked = float(shown % GENRES == taste)
        records.append({"history": history, "shown": shown, "liked": liked})
    return xt.struct.constant(records)


@keras.saving.register_keras_serializable("recommender")
class Match(xt.keras.Layer):
    """Compares the shown film with the mean of the watched films, weighted by the minutes."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.films = keras.layers.Embedding(FILMS, 8, embeddings_initializer="normal")
        self.out = keras.layers.Dense(1, "sigmoid")

    def call(self, users):
        watched = users["history"]  # rows of records
        vectors = self.films(watched.values["film"])
        weights = watched.values["minutes"][:, tf.newaxis] / 60
        weighted = tf.RaggedTensor.from_row_splits(vectors * weights, watched.row_splits)
        taste = tf.reduce_mean(weighted, axis=1)
        likeness = tf.reduce_sum(taste * self.films(users["shown"]), axis=1, keepdims=True)
        return self.out(likeness)


def main():
    keras.utils.set_random_seed(1)
    train, test = users(3000), users(500, seed=1)
    user = xt.keras.Input(xt.spec_of(train.without("liked")[:0]))
    model = xt.keras.Model(user, Match()(user))
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
    model.fit(train.without("liked"), train["liked"], batch_size=100, epochs=12, verbose=0)
    liked = test["liked"].numpy()
    _, accuracy = model.evaluate(test.without("liked"), liked, verbose=0)
    # Without the history, the best guess is the more frequent answer.
    baseline = max(liked.mean(), 1 - liked.mean())
    print(xt.struct.tree(test))
    print("accuracy without the history:", round(float(baseline), 2))
    print("accuracy with the history:", round(float(accuracy), 2))
    return float(baseline), float(accuracy)


if __name__ == "__main__":
    main()
