"""Models on records of static shapes that XLA compiles, against the same on ragged records."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import UnsupportedTypeError

L = xt.keras.layers

pytestmark = pytest.mark.whole("compiles models with XLA")


def orders(count=12):
    draw = np.random.default_rng(7)
    rows = [
        {
            "age": float(draw.normal()),
            "items": [
                {"id": int(draw.integers(10)), "price": float(draw.normal()), "day": day}
                for day in range(draw.integers(0, 5))
            ],
        }
        for _ in range(count)
    ]
    rows[0]["items"] = [{"id": 3, "price": 0.5, "day": 2}]
    return xt.struct.constant(rows)


ORDERS = orders()
LABELS = tf.constant(np.random.default_rng(1).normal(size=[12, 1]), tf.float32)
PADDED, PACKED = {"padded": {"items": 6}}, {"packed": {"items": 60}}


COMBINERS = ["mean", "sum", "max", "attention"]


class Net(xt.keras.Model):
    """A model of layers for lists: `function` takes the records and the layers."""

    def __init__(self, function, *own):
        super().__init__()
        self.function, self.own = function, list(own)
        self.head = keras.layers.Dense(1)

    def call(self, records):
        return self.head(self.function(records, *self.own))


def bags():
    def vectors(records, *own):
        return tf.concat([bag(records["items.id"]) for bag in own], 1)

    return Net(vectors, *[L.EmbeddingBag(3, input_dim=10, combiner=c) for c in COMBINERS])


def grouped_bags():
    def vectors(records, *own):
        return tf.concat([bags(records) for bags in own], 1)

    def fields(combiner):
        return {
            "items.id": L.EmbeddingBag(3, input_dim=10, combiner=combiner, empty=0.25),
            "items.day": L.EmbeddingBag(3, input_dim=5, combiner=combiner),
        }

    return Net(vectors, *[L.EmbeddingBags(fields(combiner)) for combiner in COMBINERS])


def pools():
    def numbers(records, *own):
        return tf.stack([pool(records["items.price"]) for pool in own], 1)

    return Net(numbers, *[L.ListPooling(c) for c in COMBINERS])


def days_and_records():
    def numbers(records, buckets, bag, pool):
        means = pool(records["items"])
        days = bag(buckets(records["items.day"]))
        return tf.concat([days, tf.stack([means["day"], means["price"]], 1)], 1)

    return Net(
        numbers,
        L.TimeBuckets(bin_boundaries=[1.0, 3.0]),
        L.EmbeddingBag(2, input_dim=4),
        L.ListPooling("mean"),
    )


def attention():
    def vectors(records, own, pool, of_records):
        steps = pool(own(records["items.price"]))
        return tf.concat([steps, of_records(records["items"], query=tf.ones([12, 2]))], 1)

    return Net(vectors, L.ListAttention(1, 2), L.ListPooling("mean"), L.ListAttention(1, 2))


def rnns():
    def vectors(records, of_records, own, pool):
        return tf.concat([of_records(records["items"]), pool(own(records["items.price"]))], 1)

    # Keras compiles no GRU that may use cuDNN.
    return Net(
        vectors,
        L.ListRNN(keras.layers.GRU(2, use_cudnn=False)),
        L.ListRNN(keras.layers.GRU(2, return_sequences=True, use_cudnn=False)),
        L.ListPooling("mean"),
    )


def losses(net, records, steps, **options):
    net.compile("sgd", "mse", **options)
    return [float(net.train_on_batch(records, LABELS)) for _ in range(steps)]


@functools.cache
def on_ragged_records(make):
    """Returns the first weights of a model, the losses of its training, and what it then returns.

    The model with padded lists and that with packed ones have the same reference.
    """
    model = make()
    model(ORDERS)
    weights = model.get_weights()
    wanted = losses(model, ORDERS, 100)
    return weights, wanted, model.predict_on_batch(ORDERS), model.test_on_batch(ORDERS, LABELS)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        *(
            (make, sizes)
            for make in (bags, grouped_bags, pools, days_and_records)
            for sizes in (PADDED, PACKED)
        ),
        *((make, PADDED) for make in (attention, rnns)),
    ],
)
def test_losses_are_those_of_ragged_records(make, sizes):
    weights, wanted, outputs, loss = on_ragged_records(make)
    static, records = make(), ORDERS.to_static(**sizes)
    static(ORDERS)
    static.set_weights(weights)
    found = losses(static, records, 100, jit_compile=True)
    assert static.jit_compile
    assert wanted[-1] < wanted[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(static.predict_on_batch(records), outputs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(static.test_on_batch(records, LABELS), loss, rtol=1e-5)


class Words(xt.keras.Model):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def call(self, records):
        return self.layer(records["tags"])


@pytest.mark.parametrize("combiner", ["mean", "sum", "max"])
def test_bools_and_infinity_are_those_of_ragged_records(combiner):
    items = [{"price": -np.inf, "sold": True}, {"price": -np.inf, "sold": False}]
    records = xt.struct.constant([{"tags": items}, {"tags": []}])
    net = Words(L.ListPooling(combiner))
    wanted = net(records)
    net.compile(jit_compile=True)
    found = net.predict_on_batch(records.to_static({"tags": 3}))
    # On a GPU, TensorFlow returns the smallest finite number.
    largest = tf.math.segment_max([-np.inf, -np.inf], [0, 0])[0] if combiner == "max" else -np.inf
    sold = 0.5 if combiner == "mean" else 1.0
    np.testing.assert_equal(wanted["price"].numpy(), [largest, 0.0])
    np.testing.assert_equal(found["price"].numpy(), [-np.inf, 0.0])
    for of_model in (wanted, found):
        np.testing.assert_equal(of_model["sold"].numpy(), [sold, 0.0])


@pytest.mark.parametrize("sizes", [{"padded": {"tags": 2}}, {"packed": {"tags": 4}}])
def test_fields_that_may_be_null_in_static_lists(sizes):
    rows = [{"tags": [{"id": 1}, {"id": None}]}, {"tags": []}, {"tags": [{"id": 3}]}]
    records = xt.struct.constant(rows, nulls="mask")
    net = xt.keras.Sequential([xt.keras.Lambda(lambda r: r["tags.id"]), L.ListPooling("sum")])
    net.compile(jit_compile=True)
    assert net.predict_on_batch(records.to_static(**sizes)).tolist() == [1.0, 0.0, 3.0]


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_packed_lists_have_no_size_for_attention():
    records = xt.struct.constant([{"tags": [1.0]}, {"tags": []}]).to_static(packed={"tags": 2})
    net = Words(L.ListRNN(keras.layers.GRU(2, use_cudnn=False), name="steps"))
    net.compile(jit_compile=True)
    with pytest.raises(UnsupportedTypeError) as raised:
        net.predict_on_batch(records)
    assert (
        "steps: expected padded lists, because of jit_compile=True, got ragged ones. Give"
        in str(raised.value)
    )


@pytest.mark.parametrize(
    ("layer", "path"),
    [
        (L.EmbeddingBag(2, vocabulary=["a", "b"], name="bag"), "bag/string_lookup"),
        (keras.layers.Hashing(9, name="hashes"), "hashes"),
    ],
)
def test_a_layer_that_looks_strings_up_is_named_with_a_way_out(layer, path):
    with pytest.raises(UnsupportedTypeError) as raised:
        Words(layer).compile("sgd", "mse", jit_compile=True)
    text = str(raised.value)
    assert raised.value.path.partition(": ")[2].startswith(path)
    assert "expected layers that XLA compiles, because of jit_compile=True, got" in text
    assert "Make ids in the dataset: dataset.map(" in text
    Words(layer).compile("sgd", "mse", jit_compile="auto")


def test_ids_that_a_lookup_makes_in_the_dataset_are_compiled():
    """The way out that the error names."""
    records = xt.struct.constant([{"tags": ["a", "b"]}, {"tags": []}, {"tags": ["b"]}])
    layer = keras.layers.StringLookup(vocabulary=["a", "b"])
    dataset = tf.data.Dataset.from_tensor_slices(records).batch(3)
    ids = dataset.map(lambda records: records.with_updates(tags=layer(records["tags"])))
    net = Words(L.EmbeddingBag(2, input_dim=3))
    net.compile(jit_compile=True)
    found = net.predict(ids.map(lambda records: records.to_static({"tags": 2})), verbose=0)
    [vectors] = net.get_weights()
    np.testing.assert_allclose(found, [vectors[1:].mean(0), [0, 0], vectors[2]], rtol=1e-6)


def metrics(kind, function):
    """Returns a mean, a metric that is no mean, and the name of a function."""
    return [
        keras.metrics.MeanAbsoluteError(f"{kind}_mae"),
        keras.metrics.RootMeanSquaredError(f"{kind}_rmse"),
        function,
    ]


def test_metrics_of_null_labels_are_those_of_ragged_records():
    known = np.arange(12)[:, np.newaxis] % 3 != 1
    hidden = tf.where(known, LABELS, np.nan)
    labels = xt.types.MaskedTensor(hidden, known)
    ragged, static, plain = pools(), pools(), pools()
    records = ORDERS.to_static(**PADDED)
    kept = tf.constant(np.flatnonzero(known))
    for net in (ragged, static, plain):
        net(ORDERS)
        net.set_weights(ragged.get_weights())
        plain_and_weighted = metrics("plain", "mean_squared_error"), metrics("weighted", "mse")
        own = dict(zip(("metrics", "weighted_metrics"), plain_and_weighted, strict=True))
        net.compile("sgd", "mse", jit_compile=net is static, **own)
    of_kept = tf.gather(ORDERS, kept), tf.gather(LABELS, kept)
    for _ in range(3):
        wanted = ragged.train_on_batch(ORDERS, labels)
        assert len(wanted) == 7  # the loss, and three metrics of each kind
        found = static.train_on_batch(records, labels)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(plain.train_on_batch(*of_kept), wanted, rtol=1e-5)
    found = static.evaluate(records, labels, verbose=0, return_dict=True)
    wanted = ragged.evaluate(ORDERS, labels, verbose=0, return_dict=True)
    assert found.keys() == wanted.keys()
    np.testing.assert_allclose(list(found.values()), list(wanted.values()), rtol=1e-5)
