"""RecordFeatures in models that XLA compiles: lookups run in the dataset, or before the step."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import UnsupportedTypeError

L = xt.keras.layers

pytestmark = pytest.mark.whole("compiles models with XLA")

COUNT, BATCH, LONGEST = 24, 6, 4


def orders():
    draw = np.random.default_rng(3)
    return [
        {
            "city": str(draw.choice(["Oslo", "Rome", "Bern"])),
            "kind": str(draw.choice(["web", "app"])),
            "zip": int(draw.integers(5)),
            "age": float(draw.normal()),
            "items": [
                {"brand": str(draw.choice(["a", "b", "c"])), "price": float(draw.normal())}
                for _ in range(draw.integers(0, LONGEST + 1))
            ],
        }
        for _ in range(COUNT)
    ]


RECORDS = xt.struct.constant(orders())
LABELS = tf.constant(np.random.default_rng(1).normal(size=[COUNT, 1]), tf.float32)
RAGGED = tf.data.Dataset.from_tensor_slices((RECORDS, LABELS)).batch(BATCH)


def static(dataset, **sizes):
    return dataset.map(lambda records, *labels: (records.to_static(**sizes), *labels))


PADDED = static(RAGGED, padded={"items": LONGEST})
PACKED = static(RAGGED, packed={"items": BATCH * LONGEST})
DATA = {"padded": PADDED, "packed": PACKED}


def chosen():
    layers = {
        "city": keras.layers.StringLookup(vocabulary=["Oslo", "Rome"]),
        "kind": keras.layers.StringLookup(vocabulary=["web", "app"], num_oov_indices=0),
        "zip": keras.layers.IntegerLookup(vocabulary=[1, 2, 3]),
        "age": keras.layers.Normalization(mean=0.5, variance=2.0),
        "items.brand": keras.layers.Hashing(4),
        "items.price": keras.layers.Discretization([-1.0, 0.0, 1.0]),
    }
    return L.RecordFeatures(layers, crosses=[("city", "kind")], crossing_dim=5)


def adapted():
    features = L.RecordFeatures()
    features.adapt(RECORDS)
    return features


def hashed():
    return L.RecordFeatures.from_spec(xt.spec_of(RECORDS), num_bins=4)


FEATURES = {"chosen": chosen, "adapted": adapted, "hashed": hashed}


@keras.saving.register_keras_serializable("tests_lookups_apart")
class Net(xt.keras.Model):
    def __init__(self, features, **kwargs):
        super().__init__(**kwargs)
        self.features, self.head = features, keras.layers.Dense(1)

    def call(self, records):
        return self.head(self.features(records))

    def get_config(self):
        return {
            **super().get_config(),
            "features": keras.saving.serialize_keras_object(self.features),
        }

    @classmethod
    def from_config(cls, config):
        features = keras.saving.deserialize_keras_object(config.pop("features"))
        return cls(features, **config)


class Stepping(Net):
    """A model with a step of its own."""

    def train_step(self, data):
        assert isinstance(data[0], xt.StructuredTensor)
        return super().train_step(data)


class Embedded(Net):
    """A model that embeds the ids of lists."""

    def __init__(self, features):
        super().__init__(features)
        self.bag = L.EmbeddingBag(3, input_dim=9)

    def call(self, records):
        ids = self.features(records)
        return self.head(tf.concat([self.bag(ids["items.brand"]), tf.one_hot(ids["city"], 9)], 1))


def functional(features):
    record = xt.keras.Input(PADDED.element_spec[0])
    return xt.keras.Model(record, keras.layers.Dense(1)(features(record)))


def sequential(features):
    return xt.keras.Sequential([features, keras.layers.Dense(1)])


def built(make, features, batches, *, jit_compile):
    """Returns a model with variables, of which XLA compiles the steps or not."""
    model = make(features())
    [(records, _)] = batches.take(1) if make is not functional else PADDED.take(1)
    model(records)
    model.compile("sgd", "mse", metrics=["mae"], jit_compile=jit_compile)
    assert model.jit_compile is jit_compile
    return model


class Steps(keras.callbacks.Callback):
    """Keeps the logs of each step of `fit`, and of each validation."""

    def __init__(self):
        super().__init__()
        self.logs = []

    def on_train_batch_end(self, batch, logs=None):
        self.logs.append(dict(logs))

    def on_epoch_end(self, epoch, logs=None):
        self.logs.append({name: number for name, number in logs.items() if "val_" in name})


def trained(model, data, epochs, passes):
    """Returns the logs of each step. A pass over the data costs less than an epoch."""
    steps = Steps()
    options = {"epochs": epochs, "shuffle": False, "verbose": 0, "callbacks": [steps]}
    history = model.fit(data.repeat(passes), validation_data=data, **options).history
    assert history["loss"][-1] < history["loss"][0]
    assert len(steps.logs) == epochs * (passes * COUNT // BATCH + 1)
    return steps.logs


def assert_same_training(make, features, *datasets, epochs=2, passes=13):
    plain = RAGGED if make is not functional else PADDED
    reference = built(make, features, plain, jit_compile=False)
    weights = reference.get_weights()
    wanted = trained(reference, plain, epochs, passes)
    metrics = reference.evaluate(plain, verbose=0)
    outputs = reference.predict(plain, verbose=0)
    for data in datasets:
        compiled = built(make, features, data, jit_compile=True)
        compiled.set_weights(weights)
        found = trained(compiled, data, epochs, passes)
        for logs, expected in zip(found, wanted, strict=True):
            assert logs.keys() == expected.keys()
            for name, number in expected.items():
                np.testing.assert_allclose(logs[name], number, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(compiled.evaluate(data, verbose=0), metrics, rtol=1e-5)
        only = data.map(lambda records, _: records)
        for batches in (data, only):
            predicted = compiled.predict(batches, verbose=0)
            np.testing.assert_allclose(predicted, outputs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "features", "data"),
    [
        (Net, "chosen", "padded"),
        (Net, "hashed", "packed"),
        (Stepping, "adapted", "packed"),
        (functional, "chosen", "padded"),
        (sequential, "adapted", "padded"),
    ],
)
def test_training_is_that_without_xla(make, features, data):
    assert_same_training(make, FEATURES[features], DATA[data])


def test_ids_of_records_are_embedded():
    def features():
        layers = {"city": keras.layers.Hashing(9), "items.brand": keras.layers.Hashing(9)}
        return L.RecordFeatures(layers, output_mode="records")

    def make(features):
        return Embedded(features)

    assert_same_training(make, features, *DATA.values(), epochs=2, passes=2)


@pytest.mark.parametrize("name", FEATURES)
def test_features_of_padded_and_packed_lists_are_those_of_ragged_ones(name):
    features = FEATURES[name]()
    wanted = features(RECORDS).numpy()
    for sizes in ({"padded": {"items": LONGEST}}, {"packed": {"items": COUNT * LONGEST}}):
        found = features(RECORDS.to_static(**sizes))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_features_of_padded_records_are_vectors_in_lists():
    features = L.RecordFeatures({"brand": keras.layers.Hashing(4)})
    items = features(RECORDS.to_static({"items": LONGEST})["items"])
    ragged = features(RECORDS["items"]).to_tensor(shape=[None, LONGEST, 4])
    np.testing.assert_array_equal(items.fill(0), ragged)
    np.testing.assert_array_equal(tf.reduce_any(ragged > 0, 2), items.mask[:, :])


def op_types(function):
    graphs = [function.graph.as_graph_def()]
    nodes = [graphs[0].node, *(each.node_def for each in graphs[0].library.function)]
    return {node.op for each in nodes for node in each}


LOOKUPS = {"LookupTableFindV2", "StringToHashBucketFast", "AsString"}


def test_a_dataset_looks_up_and_a_compiled_step_does_not(monkeypatch):
    """The step that `fit` runs has the ids already: no lookup is in any part of its graph."""
    model = built(Net, chosen, PADDED, jit_compile=True)
    model.fit(PADDED, verbose=0)
    traced = []
    plain = tf.function

    def kept(*args, **kwargs):
        made = plain(*args, **kwargs)
        if kwargs.get("jit_compile"):
            traced.append(made)
        return made

    monkeypatch.setattr(tf, "function", kept)
    model.make_test_function(force=True)
    model.evaluate(PADDED, verbose=0)
    assert traced
    for function in traced:
        concrete = function.get_concrete_function()
        assert not LOOKUPS & op_types(concrete)


def calls_of_the_model(monkeypatch):
    """Returns a list to which each call, and so each trace, of a Net adds."""
    calls, plain = [], Net.call

    def counted(self, records):
        calls.append(self)
        return plain(self, records)

    monkeypatch.setattr(Net, "call", counted)
    return calls


def test_the_next_calls_on_the_same_batches_trace_nothing(monkeypatch):
    calls = calls_of_the_model(monkeypatch)
    model = built(Net, chosen, PADDED, jit_compile=True)
    found = []
    for _ in range(2):
        model.fit(PADDED, validation_data=PADDED, verbose=0)
        model.evaluate(PADDED, verbose=0)
        outputs = model.predict(PADDED, verbose=0)
        found.append(len(calls))
    assert found[0] == found[1] > 0
    # Batches of another spec, a forced function and `compile` do.
    np.testing.assert_allclose(model.predict(PACKED, verbose=0), outputs, rtol=1e-5, atol=1e-6)
    for again in (model.make_predict_function, lambda force: model.compile(jit_compile=True)):
        before = len(calls)
        again(force=True)
        np.testing.assert_allclose(model.predict(PADDED, verbose=0), outputs, rtol=1e-5, atol=1e-6)
        assert len(calls) > before


def test_a_layer_with_other_words_looks_them_up_without_compile():
    lookup = keras.layers.StringLookup(vocabulary=["Oslo", "Rome"])
    model = Net(L.RecordFeatures({"city": lookup}))
    model.compile("sgd", "mse", jit_compile=True)
    before = model.predict(PADDED, verbose=0)
    lookup.set_vocabulary(["Rome", "Oslo"])
    kernel, bias = model.head.get_weights()
    twin = {b"Rome": 1, b"Oslo": 2}
    ids = [twin.get(city, 0) for city in RECORDS["city"].numpy()]
    after = model.predict(PADDED, verbose=0)
    np.testing.assert_allclose(after, kernel[ids] + bias, rtol=1e-5, atol=1e-6)
    assert not np.allclose(before, after)


WAYS = {
    "records in memory": lambda m, x, y: m.fit(x, y, batch_size=6, shuffle=False, verbose=0),
    "weights of classes": lambda m, x, y: m.fit(
        PADDED.map(lambda r, y: (r, tf.cast(y > 0, tf.int32)[:, 0])),
        class_weight={0: 0.5, 1: 2.0}, verbose=0,
    ),
    "a generator": lambda m, x, y: m.fit(iter_of(PADDED), verbose=0, steps_per_epoch=4),
    "one batch": lambda m, x, y: [m.train_on_batch(*each) for each in PADDED],
    "validation in memory": lambda m, x, y: m.fit(
        PADDED, validation_data=(x, y), validation_batch_size=6, verbose=0
    ),
}  # fmt: skip


def iter_of(dataset):
    yield from dataset


def trained_in(way, jit_compile):
    keras.utils.set_random_seed(4)
    model = Net(chosen())
    model.compile("sgd", "mse", jit_compile=jit_compile)
    WAYS[way](model, RECORDS.to_static({"items": LONGEST}), LABELS)
    return model.get_weights()


@functools.cache
def trained_without_xla(way):
    return trained_in(way, jit_compile=False)


@pytest.mark.filterwarnings("ignore:.*ran out of data")
@pytest.mark.parametrize("way", WAYS)
def test_all_ways_to_give_data_train_as_without_xla(way):
    # All ways but one give the same batches in the same order.
    plain = way if way == "weights of classes" else "one batch"
    for weight, twin in zip(trained_in(way, True), trained_without_xla(plain), strict=True):
        np.testing.assert_allclose(weight, twin, rtol=1e-5, atol=1e-6)


def test_several_steps_in_one_execution_look_up():
    found = []
    for jit_compile in (False, True):
        keras.utils.set_random_seed(4)
        model = Net(chosen())
        model.compile("sgd", "mse", jit_compile=jit_compile, steps_per_execution=2)
        model.fit(PADDED, verbose=0)
        found.append([*model.get_weights(), model.predict(PADDED, verbose=0)])
    for weight, twin in zip(*found, strict=True):
        np.testing.assert_allclose(weight, twin, rtol=1e-5, atol=1e-6)


def test_a_saved_model_takes_records_of_strings(tmp_path):
    model = built(Net, adapted, PADDED, jit_compile=True)
    model.fit(PADDED, verbose=0)
    expected = model.predict(PADDED, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.jit_compile
    np.testing.assert_allclose(loaded.predict(PADDED, verbose=0), expected, atol=1e-6)
    [(records, _)] = RAGGED.take(1)
    np.testing.assert_allclose(loaded(records), expected[:BATCH], atol=1e-6)


def test_a_file_of_which_a_model_reads_some_fields(tmp_path):
    xt.write_parquet(RECORDS, tmp_path / "orders.parquet")
    batches = xt.data.parquet(tmp_path / "orders.parquet", BATCH)
    labeled = static(batches.map(lambda r: (r, r["age"])), padded={"items": LONGEST})

    class City(Net):
        def call(self, records):
            return self.head(self.features(records.with_only("city", "zip")))

    found = []
    for jit_compile in (False, True):
        keras.utils.set_random_seed(4)
        layers = {"city": keras.layers.Hashing(3), "zip": keras.layers.Hashing(3)}
        model = City(L.RecordFeatures(layers))
        model.compile("sgd", "mse", jit_compile=jit_compile)
        model.fit(labeled, epochs=2, verbose=0)
        found.append([*model.get_weights(), model.predict(labeled, verbose=0)])
    for weight, twin in zip(*found, strict=True):
        np.testing.assert_allclose(weight, twin, rtol=1e-5, atol=1e-6)


def test_a_strategy_of_one_replica_looks_up_in_the_step():
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model = Net(chosen())
        model.compile("sgd", "mse", jit_compile=True)
    history = model.fit(PADDED, epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]


def test_a_model_is_compiled_once_for_each_spec(tmp_path, run_python):
    dump = tmp_path / "dump"
    code = f"""
import os
# XLA reads it when it first compiles.
os.environ["XLA_FLAGS"] = "--xla_dump_to={dump} --xla_dump_hlo_as_text"
from tests.keras.layers import test_lookups_apart as tests
model = tests.Net(tests.chosen())
model.compile("sgd", "mse", jit_compile=True)
model.fit(tests.PADDED, epochs=3, verbose=0)
"""
    run_python(code)
    modules = list(dump.glob("module_*.before_optimizations.txt"))
    assert len(modules) == 1, modules


# Bad input.


def test_a_word_that_is_in_no_vocabulary_is_an_error_of_the_lookup():
    layers = {"city": keras.layers.StringLookup(vocabulary=["Oslo"], num_oov_indices=0)}
    model = Net(L.RecordFeatures(layers))
    model.compile("sgd", "mse", jit_compile=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"out-of-vocabulary|OOV|oov"):
        model.fit(PADDED, verbose=0)


def test_strings_that_variables_change_are_an_error_that_names_the_field():
    class Lengths(keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=())

        def call(self, words):
            return tf.cast(tf.strings.length(words), tf.float32) * self.scale

    model = Net(L.RecordFeatures({"city": Lengths()}))
    model.compile("sgd", "mse", jit_compile=True)
    with pytest.raises(UnsupportedTypeError) as raised:
        model.fit(PADDED, verbose=0)
    assert "city: expected tensors and operations of XLA" in str(raised.value)


def test_several_replicas_are_an_error_of_compile(run_python):
    code = """
import tensorflow as tf
[cpu] = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.keras.layers import test_lookups_apart as tests
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    model = tests.Net(tests.chosen())
    try:
        model.compile("sgd", "mse", jit_compile=True)
    except tests.UnsupportedTypeError as error:
        print(error)
"""
    text = run_python(code).stdout
    assert "expected layers that XLA compiles, because of jit_compile=True, got" in text
