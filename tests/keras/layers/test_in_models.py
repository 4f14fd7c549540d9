"""All layers in one model of records: trained, saved, exported, served, with nulls and lists."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras.layers import samples
from tests.keras.layers.samples import COUNT, WORDS

pytestmark = pytest.mark.whole("trains, saves and exports models")

BATCH = 5
TARGETS = np.random.default_rng(0).random([COUNT, 1], np.float32)


def batches(*others):
    return tf.data.Dataset.from_tensor_slices((samples.records(), *others)).batch(BATCH)


def blocks():
    """The layers of both forms of the model."""
    steps, whole = xt.keras.layers.RecordFeatures(), xt.keras.layers.RecordFeatures(num_bins=3)
    data = batches().map(lambda records: records)
    steps.adapt(data.map(lambda records: records["steps"]))
    whole.adapt(data)
    return {
        "whole": whole,
        "tags": xt.keras.layers.EmbeddingBag(4, vocabulary=WORDS, combiner="attention"),
        "ids": xt.keras.layers.EmbeddingBag(4, num_bins=5),
        "steps": steps,
        "attention": xt.keras.layers.ListAttention(1, 3),
        "query": xt.keras.layers.ListAttention(1, 3),
        "pool": xt.keras.layers.ListPooling("attention", empty=0.5),
        "rnn": xt.keras.layers.ListRNN(keras.layers.GRU(3)),
        "dense": keras.layers.Dense(1),
        "joined": keras.layers.Concatenate(),
    }


def output(layers, records):
    steps = layers["steps"](records["steps"])
    features = layers["whole"](records)
    parts = [
        features,
        layers["tags"](records["tags"]),
        layers["ids"](records["ids"]),
        layers["pool"](layers["attention"](steps)),
        layers["query"](steps, query=features),
        layers["rnn"](steps),
        records["taste"],
    ]
    return layers["dense"](layers["joined"](parts))


@keras.saving.register_keras_serializable("tests.keras.layers")
class Rating(xt.keras.Model):
    def __init__(self, blocks, **kwargs):
        super().__init__(**kwargs)
        self.names = list(blocks)
        for name, block in blocks.items():
            setattr(self, f"{name}_block", block)

    def own_blocks(self):
        return {name: getattr(self, f"{name}_block") for name in self.names}

    def call(self, records):
        return output(self.own_blocks(), records)

    def get_config(self):
        blocks = {n: keras.saving.serialize_keras_object(b) for n, b in self.own_blocks().items()}
        return {"blocks": blocks, "name": self.name}

    @classmethod
    def from_config(cls, config):
        parts = config["blocks"].items()
        return cls({n: keras.saving.deserialize_keras_object(b) for n, b in parts})


def functional():
    placeholder = xt.keras.Input(batches().element_spec[0])
    return xt.keras.Model(placeholder, output(blocks(), placeholder))


MODELS = {"functional": functional, "subclassed": lambda: Rating(blocks())}


@pytest.fixture(scope="module", params=MODELS)
def trained(request):
    keras.utils.set_random_seed(0)  # also where other tests ran before in this process
    model = MODELS[request.param]()
    model.compile(keras.optimizers.Adam(0.05), "mse")
    history = model.fit(batches(TARGETS), epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    return model


def predicted(model):
    return model.predict(samples.records(), batch_size=BATCH, verbose=0)


def test_each_weight_has_a_gradient(trained):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(trained(samples.records()) ** 2)
    gradients = tape.gradient(loss, trained.trainable_weights)
    assert len(gradients) > 15
    assert all(gradient is not None for gradient in gradients)


def test_predictions_are_those_of_a_call(trained):
    expected = trained(samples.records())
    np.testing.assert_allclose(predicted(trained), expected, rtol=1e-4, atol=1e-5)
    one_by_one = [trained(samples.records()[i : i + 1]) for i in range(COUNT)]
    np.testing.assert_allclose(np.concatenate(one_by_one), expected, rtol=1e-4, atol=1e-5)


def test_a_saved_model_predicts_the_same(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    # Called without tracing, which takes most of the time of this file.
    expected = trained(samples.records())
    np.testing.assert_allclose(loaded(samples.records()), expected, rtol=1e-5, atol=1e-6)
    if isinstance(trained, Rating):
        return
    clone = keras.models.clone_model(trained)
    clone.set_weights(trained.get_weights())
    np.testing.assert_allclose(clone(samples.records()), expected, rtol=1e-5, atol=1e-6)


SERVED = """
import numpy as np
import tensorflow as tf
import extensor as xt
from tests.keras.layers import samples

model = tf.saved_model.load({path!r})
served = model.serve(samples.records())
np.testing.assert_allclose(served, np.load({out!r}), rtol=1e-4, atol=1e-5)
"""


def test_an_exported_model_predicts_the_same(trained, tmp_path, run_python):
    np.save(tmp_path / "expected.npy", trained(samples.records()))
    trained.export(tmp_path / "model", verbose=False)
    paths = {"path": str(tmp_path / "model"), "out": str(tmp_path / "expected.npy")}
    run_python(SERVED.format(**paths))


def test_a_flat_signature_predicts_the_same(trained, tmp_path):
    signature = xt.serving.flat_signature(trained, batches().element_spec[0])
    xt.serving.save(trained, tmp_path / "model", signature)
    server = tf.saved_model.load(tmp_path / "model").signatures["serving_default"]
    result = signature.decode(server(**signature.encode(samples.records())))
    np.testing.assert_allclose(result, trained(samples.records()), rtol=1e-4, atol=1e-5)
