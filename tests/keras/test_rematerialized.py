"""Layers of values in a keras.RematScope give the results and gradients of the same layers outside.

Layers of Keras that take `training` fail there in graphs, without values too, so the layers here
have own weights.
"""

import contextlib
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import sample_models as sample

pytestmark = pytest.mark.whole("traces models twice")

RECORDS = sample.recipes()
SPEC = sample.batches().element_spec[0]
RUNS = []  # the names of the layers whose `call` ran


class Scaled(xt.keras.Layer):
    """Returns records, some of whose tensors have no gradient."""

    def build(self, records):
        self.scale = self.add_weight(shape=[3], initializer="ones")

    def call(self, records, training=None):
        RUNS.append(self.name)
        return records.with_updates(taste=tf.sin(records["taste"] * self.scale))


class Joined(xt.keras.Layer):
    """Returns a tensor of records, from floats and from strings, which have no gradient."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.lookup = keras.layers.StringLookup(vocabulary=["Scones", "Soup"])
        self.activation = tf.tanh

    def build(self, records):
        self.kernel = self.add_weight(shape=[3, 1])
        self.offsets = self.add_weight(shape=[3, 1])

    def call(self, records):
        RUNS.append(self.name)
        offsets = tf.gather(self.offsets, self.lookup(records["title"]))
        return self.activation(records["taste"] @ self.kernel + offsets)


class Titles(xt.keras.Layer):
    """Returns a value without floats."""

    def call(self, records):
        RUNS.append(self.name)
        return records[["title"]]


class Offsets(Joined):
    """Takes a value without floats."""

    def build(self, titles):
        self.offsets = self.add_weight(shape=[3, 1])

    def call(self, titles):
        RUNS.append(self.name)
        return tf.gather(self.offsets, self.lookup(titles["title"]))


class Subclassed(xt.keras.Model):
    def __init__(self):
        super().__init__()
        self.scaled, self.joined = Scaled(name="scaled"), Joined(name="joined")
        self.titles, self.offsets = Titles(name="titles"), Offsets(name="offsets")

    def call(self, records, training=None):
        return self.joined(self.scaled(records)) + self.offsets(self.titles(records))


def functional():
    recipe = xt.keras.Input(SPEC)
    joined = Joined(name="joined")(Scaled(name="scaled")(recipe))
    offsets = Offsets(name="offsets")(Titles(name="titles")(recipe))
    return xt.keras.Model(
        recipe, xt.keras.Lambda(lambda pair: pair[0] + pair[1])([joined, offsets])
    )


SCOPES = {
    "none": contextlib.nullcontext,
    "full": lambda: keras.RematScope("full"),
    "activations": lambda: keras.RematScope("activations"),
    "larger": lambda: keras.RematScope("larger_than", output_size_threshold=0),
    "named": lambda: keras.RematScope("list_of_layers", layer_names=["scaled", "offsets"]),
}
AGAIN = {  # the layers whose `call` runs again for the gradient
    "none": set(),
    "full": {"scaled", "joined", "titles", "offsets"},
    "activations": set(),
    "named": {"scaled", "offsets"},
}


@functools.cache
def results(build, scope, eagerly):
    keras.utils.set_random_seed(1)
    with SCOPES[scope]():
        model = build()
        model(RECORDS)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(RECORDS) ** 2)
    RUNS.clear()
    gradients = tape.gradient(loss, model.trainable_weights)
    again = set(RUNS)
    model.compile("sgd", "mse", run_eagerly=eagerly)
    history = model.fit(RECORDS, np.ones([10, 1]), shuffle=False, verbose=0, epochs=2)
    numbers = [*map(tf.convert_to_tensor, gradients), *history.history["loss"]]
    return [*numbers, model.predict(RECORDS, verbose=0)], again


@pytest.mark.parametrize("eagerly", [False, True])
@pytest.mark.parametrize("scope", [scope for scope in SCOPES if scope != "none"])
@pytest.mark.parametrize("build", [Subclassed, functional])
def test_a_layer_that_is_run_again_for_its_gradient_has_the_same_gradient(build, scope, eagerly):
    expected, _ = results(build, "none", eagerly)
    received, again = results(build, scope, eagerly)
    for one, other in zip(received, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    if scope != "larger":  # which layers are larger is for Keras to say
        assert again == AGAIN[scope]
