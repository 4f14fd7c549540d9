"""Text classification over lists of names: from which language are the names of a place?

A place has one or more names, and some of them are borrowed from another language. The model reads
all names of a place as one ragged field, cut into runs of characters.

    $ python examples/lists_of_names.py
"""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt

SYLLABLES = {
    "north": ["berg", "dal", "fjor", "skog", "vik", "holm", "ska", "lund"],
    "south": ["villa", "mon", "rio", "cas", "tello", "san", "ra", "lon"],
    "east": ["gorod", "ov", "nov", "sk", "pol", "dom", "ra", "lin"],
}
LANGUAGES = list(SYLLABLES)


def places(count, seed=0):
    """Places with a list of names, and the number of their language."""
    random = np.random.default_rng(seed)
    records = []
    for _ in range(count):
        language = random.integers(len(LANGUAGES))
        names = []
        for _ in range(random.integers(1, 7)):
            borrowed = random.random() < 0.35
            own = random.integers(len(LANGUAGES)) if borrowed else language
            parts = random.choice(SYLLABLES[LANGUAGES[own]], size=random.integers(1, 4))
            names.append("".join(parts).capitalize())
        records.append({"names": names, "language": int(language)})
    return xt.struct.constant(records)


@keras.saving.register_keras_serializable("lists_of_names")
class Runs(xt.keras.Layer):
    """Cuts a list of names into one list of runs of one to three characters."""

    def call(self, names):
        letters = tf.strings.unicode_split(tf.strings.lower(names.flat_values), "UTF-8")
        runs = tf.strings.ngrams(letters, [1, 2, 3], separator="")
        return names.with_flat_values(runs).merge_dims(1, 2)


def accuracy(train, test):
    """Returns the accuracy on test places of a model that is trained on others."""
    keras.utils.set_random_seed(1)
    place = xt.keras.Input(xt.spec_of(train[:0]))
    vector = xt.keras.layers.EmbeddingBag(16, num_bins=2000)(Runs()(place["names"]))
    out = keras.layers.Dense(len(LANGUAGES), "softmax")(vector)
    model = xt.keras.Model(place, out)
    model.compile(
        keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(train, train["language"], batch_size=100, epochs=6, verbose=0)
    return model.evaluate(test, test["language"], verbose=0)[1]


def first_name(places):
    return places.with_updates(names=places["names"][:, :1])


def main():
    train, test = places(2000), places(1000, seed=1)
    print("names:", test["names"][0].numpy().tolist())
    one = accuracy(first_name(train), first_name(test))
    every = accuracy(train, test)
    print("accuracy from the first name:", round(one, 2))
    print("accuracy from the list of names:", round(every, 2))
    return one, every


if __name__ == "__main__":
    main()
