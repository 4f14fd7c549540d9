"""Programs of our own like those that users asked for in public threads.

Comments mark the lines that differ from plain Keras and TensorFlow. The threads are in
docs/asked-programs.md, whose own programs run as the other pages do.
"""

import importlib.util
import re
from pathlib import Path

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt

pytestmark = pytest.mark.whole("trains models, and needs other libraries")


def test_structured_inputs_to_call():
    """keras-team/keras #18735: an ExtensionType, and a dataclass, as the input of a model."""

    class Measured(tf.experimental.BatchableExtensionType):
        value: tf.Tensor
        meta: int

    class Check(xt.keras.Model):  # changed: xt.keras.Model
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Dense(32)

        def call(self, inputs, training=None):
            return self.layer(inputs.value) * inputs.meta

    model = Check()
    inputs = Measured(value=tf.ones([4, 3]), meta=2)
    result = model(inputs)
    np.testing.assert_allclose(result, model.layer(tf.ones([4, 3])) * 2)
    model.compile("sgd", "mse")
    model.fit(inputs, np.zeros([4, 32]), verbose=0)
    assert model.predict(inputs, verbose=0).shape == (4, 32)

    @xt.extension_type  # changed: instead of @dataclasses.dataclass
    class Point:
        x: tf.Tensor
        label: str = "point"

    class Sum(xt.keras.Model):  # changed: xt.keras.Model
        def call(self, inputs):
            return tf.reduce_sum(inputs.x, axis=1)

    assert Sum().predict(Point(np.ones([2, 3], "f")), verbose=0).tolist() == [3.0, 3.0]


def test_a_cell_whose_inputs_and_states_are_extension_types():
    """keras-team/keras #20485, tensorflow #79709: a recurrent cell over MaskedTensors."""

    class MaskedTensor(tf.experimental.BatchableExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

    class Cell(xt.keras.Layer):  # changed: xt.keras.Layer
        def __init__(self, units):
            super().__init__()
            self.units = units
            self.kernel = keras.layers.Dense(units, use_bias=False)
            self.recurrent = keras.layers.Dense(units)

        def get_initial_state(self, batch_size=None):
            zeros = tf.zeros([batch_size, self.units])
            return MaskedTensor(zeros, tf.zeros_like(zeros, tf.bool))

        def call(self, inputs, states):
            (state,) = states
            known = tf.cast(inputs.mask, tf.float32)
            values = tf.tanh(self.kernel(inputs.values * known) + self.recurrent(state.values))
            seen = tf.reduce_any(inputs.mask, axis=1, keepdims=True)
            mask = tf.broadcast_to(seen, tf.shape(values)) | state.mask
            state = MaskedTensor(tf.where(seen, values, state.values), mask)
            return state, state

    values = np.random.default_rng(0).random([2, 3, 4], np.float32)
    mask = np.ones([2, 3, 4], bool)
    mask[0, 1:] = False  # the steps after the first are missing
    # changed: xt.keras.Sequential and xt.keras.RNN
    model = xt.keras.Sequential([xt.keras.RNN(Cell(5))])
    state = model(MaskedTensor(values, mask))
    assert type(state) is MaskedTensor
    alone = model(MaskedTensor(values[:1, :1], mask[:1, :1]))
    np.testing.assert_allclose(state.values[0], alone.values[0], rtol=1e-5)
    predicted = model.predict(MaskedTensor(values, mask), verbose=0)
    np.testing.assert_allclose(predicted.values, state.values, rtol=1e-5)


def test_ragged_inputs_of_a_functional_model():
    """keras-team/keras #20073: ragged inputs, symbolically, in a custom layer and in fit."""

    class Lengths(xt.keras.Layer):  # changed: xt.keras.Layer
        def call(self, ragged):
            assert isinstance(ragged, tf.RaggedTensor)
            return tf.cast(ragged.row_lengths()[:, tf.newaxis], tf.float32)

    spec = tf.RaggedTensorSpec([None, None], tf.float32)
    words = xt.keras.Input(spec)  # changed: instead of keras.Input((None,), ragged=True)
    outputs = keras.layers.Dense(1)(Lengths()(words))
    model = xt.keras.Model(words, outputs)  # changed: xt.keras.Model
    model.compile("sgd", "mse")
    x1 = tf.ragged.constant([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]], row_splits_dtype=tf.int64)
    model.fit(x1, np.zeros([3, 1]), verbose=0)
    weights, bias = model.get_weights()
    expected = np.array([[2.0], [1.0], [3.0]]) @ weights + bias
    np.testing.assert_allclose(model.predict(x1, verbose=0), expected, rtol=1e-5)
    both = xt.keras.Lambda(lambda pair: tf.concat(pair, axis=1))([x1, x1])
    assert both.to_list()[1] == [3.0, 3.0]


@pytest.mark.parametrize("values", ["tensors", "ragged"])
def test_layers_of_keras_between_ragged_inputs(values):
    """keras-team/keras #20073: Keras's own layers that take ragged tensors, in our models."""
    x1, x2 = tf.ragged.constant([[1, 2], [3], [4, 5]]), tf.ragged.constant([[7], [8, 9], [11]])
    if values == "tensors":
        x1, x2 = x1.to_tensor(), x2.to_tensor()

    def models(sequential, functional):
        yield sequential([keras.layers.Concatenate(axis=0)])
        inputs = [keras.Input((None,)), keras.Input((None,))]
        yield functional(inputs, keras.layers.Concatenate(axis=0)(inputs))

    ours = models(xt.keras.Sequential, xt.keras.Model)  # changed
    for model, plain in zip(ours, models(keras.Sequential, keras.Model), strict=True):
        expected, received = plain([x1, x2]), model([x1, x2])
        assert received.dtype == expected.dtype
        assert lists(received) == lists(expected)
        assert lists(model.predict([x1, x2], verbose=0)) == lists(expected)


def lists(value):
    return value.to_list() if isinstance(value, tf.RaggedTensor) else np.asarray(value).tolist()


def test_ragged_shapes_between_layers_without_padding():
    """keras-team/keras #18414: graphs of different sizes, as ragged node features."""

    class Messages(xt.keras.Layer):  # changed: xt.keras.Layer
        def __init__(self, units):
            super().__init__()
            self.dense = keras.layers.Dense(units, "relu")

        def call(self, nodes, edges):
            first = tf.gather(nodes, edges[:, :, 0], batch_dims=1)
            count = tf.cast(nodes.row_starts()[:, tf.newaxis] + edges[:, :, 1], tf.int64)
            total = tf.shape(nodes.flat_values, tf.int64)[0]
            sums = tf.math.unsorted_segment_sum(first.flat_values, count.flat_values, total)
            both = tf.concat([nodes.flat_values, sums], axis=1)
            return nodes.with_flat_values(self.dense(both))

    nodes = tf.RaggedTensor.from_row_lengths(tf.random.normal([5, 2], seed=1), [2, 3])
    edges = tf.RaggedTensor.from_row_lengths(
        tf.constant([[0, 1], [0, 1], [1, 2]], tf.int64), [1, 2]
    )
    in_nodes = xt.keras.Input(tf.RaggedTensorSpec([None, None, 2], ragged_rank=1))  # changed
    in_edges = xt.keras.Input(tf.RaggedTensorSpec([None, None, 2], tf.int64, 1))  # changed
    hidden = Messages(4)(Messages(4)(in_nodes, in_edges), in_edges)
    outputs = keras.layers.Dense(1)(xt.keras.layers.ListPooling("mean")(hidden))
    model = xt.keras.Model([in_nodes, in_edges], outputs)
    both = model.predict([nodes, edges], verbose=0)
    alone = model.predict([nodes[1:], edges[1:]], verbose=0)
    np.testing.assert_allclose(both[1:], alone, rtol=1e-5)
    model.compile("adam", "mse")
    model.fit([nodes, edges], np.zeros([2, 1]), verbose=0)


def test_a_model_with_nested_inputs():
    """keras-team/keras #14904: a dict in a dict as the input of a functional model."""
    random = np.random.default_rng(0).random([10, 16], np.float32)
    a = keras.Input([16])
    model = xt.keras.Model({"a": {"b": a}}, keras.layers.Dense(3)(a))  # changed: xt.keras.Model
    assert model({"a": {"b": random}}).shape == (10, 3)
    assert model.predict({"a": {"b": random}}, verbose=0).shape == (10, 3)

    # The same as records: a spec has the form, and a list may be anywhere in it.
    records = xt.DenseStructuredTensor(
        [10], {"a": xt.DenseStructuredTensor([10], {"b": random, "c": tf.zeros([10, 2])})}
    )
    nested = xt.keras.Input(tf.data.Dataset.from_tensor_slices(records).batch(4).element_spec)
    again = xt.keras.Model(nested, model({"a": {"b": nested["a.b"]}}))
    np.testing.assert_allclose(
        again.predict(records, verbose=0), model({"a": {"b": random}}), rtol=1e-5
    )


def test_a_tensor_like_type_through_layers():
    """keras-team/keras #21574: layers that take and return a quantized tensor."""

    @xt.extension_type  # changed: instead of a subclass of Tensor
    class QuantizedTensor:
        values: tf.Tensor
        scale: tf.Tensor
        value_bits: int = 8

    def quantized(x, bits):
        largest = 2.0 ** (bits - 1) - 1
        scale = tf.reduce_max(tf.abs(x), axis=-1, keepdims=True) / largest
        scale = tf.where(scale > 0, scale, 1.0)
        values = x + tf.stop_gradient(tf.round(x / scale) * scale - x)
        return QuantizedTensor(values, tf.broadcast_to(scale, tf.shape(x)), bits)

    class QuantizedDense(xt.keras.Layer):  # changed: xt.keras.Layer
        def __init__(self, units):
            super().__init__()
            self.dense = keras.layers.Dense(units)

        def call(self, inputs):
            return quantized(self.dense(inputs.values), inputs.value_bits)

    x = np.random.default_rng(0).random([4, 3], np.float32)
    inputs = quantized(tf.constant(x), 4)
    model = xt.keras.Sequential([QuantizedDense(5), QuantizedDense(2)])  # changed
    result = model(inputs)
    assert type(result) is QuantizedTensor
    assert result.value_bits == 4
    ratio = result.values / result.scale
    np.testing.assert_allclose(ratio, np.round(ratio), atol=1e-4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs).values ** 2)
    assert all(g is not None for g in tape.gradient(loss, model.trainable_weights))
    assert type(model.predict(inputs, verbose=0)) is QuantizedTensor


class Network(tf.experimental.BatchableExtensionType):
    """A batchable type as in TensorFlow's guide: work to do at nodes, bandwidth between them."""

    shape: tf.TensorShape
    work: tf.Tensor
    bandwidth: tf.Tensor

    def __init__(self, work, bandwidth):
        self.work = tf.convert_to_tensor(work)
        self.bandwidth = tf.convert_to_tensor(bandwidth)
        self.shape = self.work.shape[:-1]

    class Spec:
        def __init__(self, work, bandwidth):
            self.work, self.bandwidth = work, bandwidth
            self.shape = work.shape[:-1]


def test_an_extension_type_as_input_since_tensorflow_2_16():
    """tensorflow #67334: Input(type_spec=...), layers and a model over a BatchableExtensionType."""

    class Balance(xt.keras.Layer):  # changed: xt.keras.Layer
        def call(self, network):
            share = tf.nn.softmax(network.bandwidth, axis=-1)
            work = tf.einsum("bn,bnm->bm", network.work, share)
            return Network(work, network.bandwidth)

    networks = Network(np.ones([3, 4], "f"), np.random.default_rng(0).random([3, 4, 4], np.float32))
    spec = tf.data.Dataset.from_tensor_slices(networks).batch(2).element_spec
    inputs = xt.keras.Input(spec)  # changed: instead of Input(type_spec=spec)
    work = xt.keras.Lambda(lambda network: network.work)(Balance()(inputs))
    model = xt.keras.Model(inputs, keras.layers.Dense(1)(work))  # changed: xt.keras.Model
    model.compile("sgd", "mse")
    model.fit(networks, np.zeros([3, 1]), batch_size=2, verbose=0)
    balanced = xt.keras.Model(inputs, Balance()(inputs)).predict(networks, verbose=0)
    assert type(balanced) is Network
    np.testing.assert_allclose(balanced.work, Balance()(networks).work, rtol=1e-5)


def test_graphs_as_composite_tensors_in_keras_3():
    """tensorflow/gnn #874: a type of many tensors between layers, in fit and in a saved model."""

    class Convolution(xt.keras.Layer):
        def __init__(self, units):
            super().__init__()
            self.dense = keras.layers.Dense(units, "relu")

        def call(self, graph):
            state = graph.nodes["state"]
            messages = graph.aggregate(state)
            return graph.with_nodes(state=self.dense(tf.concat([state, messages], axis=1)))

    def ring(size):
        ends = np.arange(size)
        return xt.types.TensorDigraph(ends, (ends + 1) % size, {"state": np.ones([size, 2], "f")})

    graphs = xt.types.TensorDigraph.batch([ring(3), ring(5), ring(4)])
    inputs = xt.keras.Input(tf.data.Dataset.from_tensor_slices(graphs).batch(2).element_spec)
    hidden = Convolution(8)(Convolution(8)(inputs))
    readout = xt.keras.Lambda(lambda graph: graph.readout("state"))(hidden)
    model = xt.keras.Model(inputs, keras.layers.Dense(1)(readout))
    model.compile("adam", "mse")
    model.fit(graphs, np.array([[3.0], [5.0], [4.0]]), batch_size=2, verbose=0)
    assert model.predict(graphs, batch_size=2, verbose=0).shape == (3, 1)


GRAPHS = """
import keras
import tensorflow as tf
import tensorflow_gnn as tfgnn

import extensor as xt

def ring(size):
    ends = tf.range(size)
    nodes = tfgnn.NodeSet.from_fields(features={"state": tf.ones([size, 2])}, sizes=[size])
    adjacency = tfgnn.Adjacency.from_indices(("nodes", ends), ("nodes", (ends + 1) % size))
    edges = tfgnn.EdgeSet.from_fields(features={}, sizes=[size], adjacency=adjacency)
    return tfgnn.GraphTensor.from_pieces(node_sets={"nodes": nodes}, edge_sets={"edges": edges})

class Convolution(xt.keras.Layer):
    def __init__(self, units):
        super().__init__()
        self.dense = keras.layers.Dense(units, "relu")

    def call(self, graph):
        state, ends = graph.node_sets["nodes"]["state"], graph.edge_sets["edges"].adjacency
        passed = tf.gather(state, ends.source)
        sums = tf.math.unsorted_segment_sum(passed, ends.target, tf.shape(state)[0])
        state = self.dense(tf.concat([state, sums], axis=1))
        return graph.replace_features(node_sets={"nodes": {"state": state}})

def pooled(graph):
    return tfgnn.pool_nodes_to_context(graph, "nodes", "sum", feature_name="state")

spec = ring(3).spec.relax(num_nodes=True, num_edges=True)
graphs = tf.data.Dataset.from_generator(lambda: map(ring, [3, 5, 4]), output_signature=spec)
graphs = graphs.apply(tf.data.experimental.assert_cardinality(3)).batch(2)
inputs = xt.keras.Input(graphs.element_spec)
merged = xt.keras.Lambda(lambda graph: graph.merge_batch_to_components())(inputs)
hidden = Convolution(8)(Convolution(8)(merged))
model = xt.keras.Model(inputs, keras.layers.Dense(1)(xt.keras.Lambda(pooled)(hidden)))
model.compile("adam", "mse")
model.fit(graphs.map(lambda graph: (graph, tf.zeros([tf.shape(graph.context.sizes)[0], 1]))))
assert model.predict(graphs).shape == (3, 1)
print("done")
"""


def test_graph_tensors_of_tf_gnn(run_python):
    """tensorflow/gnn #874: GraphTensor itself, in a model of Keras 3."""
    if importlib.util.find_spec("tensorflow_gnn") is None:
        pytest.skip("TF-GNN (tensorflow-gnn, without its dependencies) is not installed")
    # TF-GNN takes its own layers from the Keras of `tf.keras`.
    result = run_python(GRAPHS, env={"TF_USE_LEGACY_KERAS": "1"}, fresh=True)
    assert "done" in result.stdout


def test_ragged_batches_of_a_dataset_of_hugging_face():
    """huggingface/datasets #7534: a Dataset itself; its own batches of this are an error."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    boxes = datasets.Sequence(datasets.Sequence(datasets.Value("float32"), length=4))
    classes = datasets.Sequence(datasets.ClassLabel(names=["cat", "dog", "cow"]))
    images = datasets.Dataset.from_dict(
        {"boxes": [[[0, 0, 1, 1], [2, 2, 3, 3]], [], [[0, 0, 2, 2]]], "classes": [[1, 2], [], [0]]},
        features=datasets.Features({"boxes": boxes, "classes": classes}),
    )
    records = xt.from_arrow(images.with_format("arrow")[:])  # changed: instead of to_tf_dataset
    assert records["classes"].to_list() == [[1, 2], [], [0]]
    assert records["boxes"].shape == (3, None, 4)
    shuffled = images.select([2, 0]).with_format("arrow")[:]
    assert xt.from_arrow(shuffled)["classes"].to_list() == [[0], [1, 2]]


@pytest.mark.parametrize("batch_size", [2, 3])
def test_ragged_batches_of_boxes_and_classes(batch_size):
    """huggingface/datasets #7534: batches of images with different numbers of boxes."""
    rows = [
        {
            "image": [0.0, 1.0],
            "boxes": [[0.0, 0.0, 1.0, 1.0], [0.5, 0.5, 1.0, 1.0]],
            "classes": [1, 2],
        },
        {"image": [1.0, 0.0], "boxes": [], "classes": []},
        {"image": [1.0, 1.0], "boxes": [[0.0, 0.0, 0.5, 0.5]], "classes": [0]},
    ]
    schema = pa.schema(
        {
            "image": pa.list_(pa.float32(), 2),
            "boxes": pa.list_(pa.list_(pa.float32(), 4)),
            "classes": pa.list_(pa.int64()),
        }
    )
    table = pa.Table.from_pylist(rows, schema)  # the `.data.table` of a Dataset of Hugging Face
    records = xt.from_arrow(table)  # changed: instead of to_tf_dataset
    dataset = tf.data.Dataset.from_tensor_slices(records).batch(batch_size)  # changed
    batch = next(iter(dataset))
    assert isinstance(batch["boxes"], tf.RaggedTensor)
    assert batch["boxes"].shape[2] == 4
    assert batch["classes"].to_list() == [row["classes"] for row in rows[:batch_size]]
    image = xt.keras.Input(dataset.element_spec)
    pooled = xt.keras.layers.ListPooling("sum")(image["boxes"])
    classes = xt.keras.layers.EmbeddingBag(3, input_dim=3)(image["classes"])
    joined = keras.layers.Concatenate()([image["image"], pooled, classes])
    model = xt.keras.Model(image, keras.layers.Dense(1)(joined))
    model.compile("adam", "mse")
    model.fit(dataset.map(lambda r: (r, tf.reduce_sum(r["image"], axis=1))), verbose=0)
    assert model.predict(dataset, verbose=0).shape == (3, 1)


def test_each_thread_of_the_page_has_a_program():
    """A program in its part of docs/asked-programs.md, which runs as all pages do, or one above."""
    page = (Path(__file__).parents[2] / "docs" / "asked-programs.md").read_text()
    programs = page[: page.index("## Threads that could not be read")]
    here = Path(__file__).read_text()
    threads = 0
    for section in programs.split("\n## ")[1:]:
        # The part of a thread reaches to the next paragraph that begins with a thread.
        for part in re.split(r"\n\n(?=\[[\w/ -]+ #\d+\]\()", section)[1:]:
            for number in re.findall(r"\[(?:[\w/ -]+ )?#(\d+)\]\(https://github.com/", part):
                assert "\n>>> " in part or f"#{number}" in here, number
                threads += 1
    assert threads == programs.count("](https://github.com/") > 30
