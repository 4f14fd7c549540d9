"""Every type of `xt.types`, and classes made composite, as inputs and outputs of layers."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras.kinds import Net, numbers

COUNT, BATCH = 6, 4
_RANDOM = np.random.default_rng(5)
VALUES = _RANDOM.random((COUNT, 3), np.float32)
HOLDS = VALUES > 0.4
TARGETS = _RANDOM.random((COUNT, 1), np.float32)


@xt.auto_composite_tensor(omit_kwargs=("name",))
class Affine(xt.AutoCompositeTensor):
    """Computes with its arguments, as classes do that never heard of placeholders."""

    def __init__(self, scale, shift, name="affine"):
        self._scale = tf.convert_to_tensor(scale)
        self._shift = tf.convert_to_tensor(shift)
        self._name = name


def _digraphs():
    sizes = (2, 3, 2, 4, 5, 2)
    return xt.types.TensorDigraph.batch(
        xt.types.TensorDigraph(
            _RANDOM.integers(0, size, size + 1),
            _RANDOM.integers(0, size, size + 1),
            {"mass": _RANDOM.random((size, 2), np.float32)},
            {"cost": _RANDOM.random(size + 1, np.float32)},
        )
        for size in sizes
    )


def _alignments():
    rows = [[[0], [1, 0]], [[]], [[2], [0], [1]], [[0, 1]], [[1], []], [[0]]]
    return xt.types.DimensionAlignment.batch(
        xt.types.DimensionAlignment.from_ragged(
            tf.ragged.constant(row, tf.int64, ragged_rank=1, row_splits_dtype=tf.int64), 3
        )
        for row in rows
    )


@dataclasses.dataclass(frozen=True)
class Named:
    value: Any
    changed: Callable[[Any], Any]
    """Another value of the type."""
    features: Callable[[Any], Any]
    """A few numbers for each row, by the type's own methods."""
    by_hand: Any
    """The same numbers, by NumPy."""


def _masses():
    graphs = _digraphs()
    splits, mass = graphs.node_splits.numpy(), graphs.nodes["mass"].numpy()
    return graphs, np.stack([mass[a:b].sum(0) for a, b in itertools.pairwise(splits)])


_GRAPHS, _SUMS = _masses()
_CSR = xt.types.CSRSparseTensor.from_dense(np.where(HOLDS, VALUES, 0))
_ALIGNED = _alignments()

NAMED = {
    "MaskedTensor": Named(
        xt.types.MaskedTensor(VALUES, HOLDS),
        lambda masked: masked * 2.0,
        lambda masked: masked.fill(0.0),
        np.where(HOLDS, VALUES, 0),
    ),
    "LabeledTensor": Named(
        xt.types.LabeledTensor(VALUES, ["batch", "channel"]),
        lambda labeled: labeled * 2.0,
        lambda labeled: labeled.values,
        VALUES,
    ),
    "CSRSparseTensor": Named(
        _CSR,
        lambda csr: csr.with_values(csr.values * 2.0),
        lambda csr: csr.matmul(tf.eye(3)),
        np.where(HOLDS, VALUES, 0),
    ),
    "TensorDigraph": Named(
        _GRAPHS,
        lambda graphs: graphs.with_nodes(mass=graphs.nodes["mass"] * 2.0),
        lambda graphs: graphs.readout("mass"),
        _SUMS,
    ),
    "DimensionAlignment": Named(
        _ALIGNED,
        lambda aligned: aligned.invert(),
        lambda aligned: tf.cast(aligned.num_sources, tf.float32)[:, tf.newaxis],
        np.array([[2], [1], [3], [1], [2], [1]], np.float32),
    ),
    "auto_composite_tensor": Named(
        Affine(VALUES, VALUES + 1),
        lambda affine: Affine(affine._scale * 2, affine._shift, affine._name),
        lambda affine: affine._scale,
        VALUES,
    ),
}
EACH = pytest.mark.parametrize("named", NAMED.values(), ids=NAMED)


def test_each_named_type_is_here():
    # LabeledDigraph is another name of TensorDigraph. Unions are in test_arrow_records.py.
    assert {type(named.value) for named in NAMED.values()} == {
        *(
            getattr(xt.types, name)
            for name in xt.types.__all__
            if not name.endswith("Spec") and name != "UnionTensor"
        ),
        Affine,
    }


@keras.saving.register_keras_serializable("tests.keras.named")
class Features(xt.keras.Layer):
    """The features of one of the types, by its name."""

    def __init__(self, kind, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind

    def call(self, value):
        return NAMED[self.kind].features(value)

    def get_config(self):
        return {**super().get_config(), "kind": self.kind}


@keras.saving.register_keras_serializable("tests.keras.named")
class Changed(xt.keras.Layer):
    """Another value of one of the types, by its name."""

    def __init__(self, kind, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind

    def call(self, value):
        named = NAMED[self.kind]
        return {"value": named.changed(value), "features": named.features(value)}

    def get_config(self):
        return {**super().get_config(), "kind": self.kind}


def kind_of(named):
    return next(kind for kind, other in NAMED.items() if other is named)


@EACH
def test_a_layer_takes_and_returns_it(named):
    outputs = Changed(kind_of(named))(named.value)
    assert numbers(outputs["value"]) == numbers(named.changed(named.value))
    np.testing.assert_allclose(outputs["features"], named.by_hand, rtol=1e-6)


def spec_of(named):
    return tf.data.Dataset.from_tensor_slices(named.value).batch(BATCH).element_spec


@pytest.mark.whole("many cases")
@EACH
@pytest.mark.parametrize("source", ["value", "dataset"])
def test_predict_returns_it_as_one_call_does(named, source):
    value = xt.keras.Input(spec_of(named))
    model = xt.keras.Model(value, Changed(kind_of(named))(value))
    given = named.value
    if source == "dataset":
        given = tf.data.Dataset.from_tensor_slices(given).batch(BATCH)
    outputs = model.predict(given, batch_size=BATCH, verbose=0)
    expected = named.changed(named.value)
    assert type(outputs["value"]) is type(expected)
    assert numbers(outputs["value"]) == numbers(expected)
    np.testing.assert_allclose(outputs["features"], named.by_hand, rtol=1e-6)


@pytest.mark.whole("trains models")
@EACH
def test_it_trains_as_its_features_by_hand_do(named):
    model = Net(Features(kind_of(named)))
    bare = keras.Sequential([keras.layers.Dense(1)])
    model(named.value)
    bare(named.by_hand)
    bare.set_weights(model.get_weights())
    histories = []
    for one, x in ((model, named.value), (bare, named.by_hand)):
        one.compile("sgd", "mse")
        one_history = one.fit(x, TARGETS, BATCH, epochs=2, shuffle=False, verbose=0)
        histories.append(one_history.history["loss"])
    np.testing.assert_allclose(*histories, rtol=1e-5)
    for ours, theirs in zip(model.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


READ = """
import keras
import numpy as np
import tensorflow as tf
from tests.keras.test_named_types import NAMED, numbers

for kind, named in NAMED.items():
    path = f"{folder}/{{kind}}"
    model = keras.saving.load_model(path + ".keras")
    served = tf.saved_model.load(path)
    expected = np.load(path + ".npy")
    for outputs in (model(named.value), served.serve(named.value)):
        assert np.array_equal(outputs["score"], expected), kind
        changed = named.changed(named.value)
        assert type(outputs["value"]) is type(changed), kind
        assert numbers(outputs["value"]) == numbers(changed), kind
    print(kind)
"""


@pytest.mark.whole("starts a process")
def test_each_is_saved_and_exported_and_read_in_a_fresh_process(tmp_path, run_python):
    for kind, named in NAMED.items():
        value = xt.keras.Input(spec_of(named))
        outputs = Changed(kind)(value)
        score = keras.layers.Dense(1)(outputs["features"])
        model = xt.keras.Model(value, {"value": outputs["value"], "score": score})
        model.save(tmp_path / f"{kind}.keras")
        model.export(tmp_path / kind, verbose=False)
        np.save(tmp_path / f"{kind}.npy", model(named.value)["score"])
    done = run_python(READ.format(folder=tmp_path))
    assert done.stdout.split() == list(NAMED)


@pytest.mark.whole("starts a process")
def test_layers_take_and_return_classes_that_nobody_here_wrote(run_python):
    done = run_python("""
        import numpy as np
        import tensorflow as tf
        import extensor as xt
        from tests.samples.foreign import used, values

        class Used(xt.keras.Layer):
            def call(self, value):
                return {"value": value, "used": used(value)}

        for name, value in values().items():
            layer = Used()
            for call in (layer, tf.function(layer)):
                outputs = call(value)
                assert type(outputs["value"]) is type(value), name
                np.testing.assert_allclose(outputs["used"], used(value), rtol=1e-5, err_msg=name)
                np.testing.assert_allclose(used(outputs["value"]), used(value), rtol=1e-5)
            print(name)
    """)
    assert len(done.stdout.split()) >= 18


# The mask of a MaskedTensor.


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("form", ["eager", "functional", "model"])
@pytest.mark.parametrize(
    "last",
    [lambda: keras.layers.LSTM(3), keras.layers.GlobalAveragePooling1D],
    ids=["LSTM", "mean"],
)
def test_the_mask_of_a_masked_tensor_reaches_layers_that_use_masks(form, last):
    steps = _RANDOM.random((COUNT, 5, 2), np.float32)
    holds = np.arange(5) < np.array([5, 1, 3, 2, 4, 1])[:, np.newaxis]
    masked = xt.types.MaskedTensor(steps, np.broadcast_to(holds[..., np.newaxis], steps.shape))
    layer = last()
    expected = layer(np.where(holds[..., np.newaxis], steps, 0), mask=tf.constant(holds))
    without = layer(np.where(holds[..., np.newaxis], steps, 0))
    assert not np.allclose(expected, without)
    if form == "eager":
        outputs = layer(xt.keras.Masked()(masked))
    elif form == "functional":
        spec = tf.data.Dataset.from_tensor_slices(masked).batch(BATCH).element_spec
        value = xt.keras.Input(spec)
        outputs = xt.keras.Model(value, layer(xt.keras.Masked()(value))).predict(masked, verbose=0)
    else:
        outputs = xt.keras.Sequential([xt.keras.Masked(), layer]).predict(masked, BATCH, verbose=0)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)


# Message passing.


class Passing(xt.keras.Layer):
    """Nodes learn of those that lead to them, weighed by the cost of the edge."""

    def __init__(self, units):
        super().__init__()
        self.dense = keras.layers.Dense(units, "tanh")

    def call(self, graph):
        mass = graph.nodes["mass"]
        messages = graph.at_source(mass) * graph.edges["cost"][:, tf.newaxis]
        return graph.with_nodes(mass=self.dense(tf.concat([mass, graph.collect(messages)], 1)))


class BarePassing(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.dense = keras.layers.Dense(units, "tanh")

    def call(self, mass, source, target, cost):
        messages = tf.gather(mass, source) * cost[:, tf.newaxis]
        collected = tf.math.unsorted_segment_sum(messages, target, tf.shape(mass)[0])
        return self.dense(tf.concat([mass, collected], 1))


class Graphs(xt.keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = Passing(4), Passing(3)
        self.dense = keras.layers.Dense(1)

    def call(self, graphs):
        return self.dense(self.second(self.first(graphs)).readout("mass"))


class BareGraphs(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = BarePassing(4), BarePassing(3)
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        ends = x["source"], x["target"], x["cost"]
        mass = self.second(self.first(x["mass"], *ends), *ends)
        graph_of_node = tf.repeat(tf.range(tf.size(x["a_count"])), x["a_count"])
        return self.dense(tf.math.unsorted_segment_sum(mass, graph_of_node, tf.size(x["a_count"])))


def bare_graphs(graphs):
    return {
        "a_count": graphs.num_nodes,
        "source": graphs.source,
        "target": graphs.target,
        "mass": graphs.nodes["mass"],
        "cost": graphs.edges["cost"],
    }


@pytest.mark.whole("trains models")
def test_two_layers_of_message_passing_learn_as_over_bare_tensors():
    keras.utils.set_random_seed(0)  # of some weights it takes more epochs to learn
    model, bare = Graphs(), BareGraphs()
    model(_GRAPHS)
    bare(bare_graphs(_GRAPHS))
    bare.set_weights(model.get_weights())
    pairs = tf.data.Dataset.from_tensor_slices((_GRAPHS, TARGETS)).batch(BATCH)
    losses = []
    for one, data in ((model, pairs), (bare, pairs.map(lambda g, y: (bare_graphs(g), y)))):
        one.compile(keras.optimizers.Adam(0.01), "mse")
        losses.append(one.fit(data, epochs=8, shuffle=False, verbose=0).history["loss"])
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
    for ours, theirs in zip(model.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(
        model.predict(_GRAPHS, BATCH, verbose=0), bare.predict(
            pairs.map(lambda g, y: bare_graphs(g)), verbose=0)
    )  # fmt: skip


def test_graphs_whose_nodes_have_learned_come_out_of_predict():
    graphs = xt.keras.Input(tf.data.Dataset.from_tensor_slices(_GRAPHS).batch(BATCH).element_spec)
    model = xt.keras.Model(graphs, Passing(3)(Passing(4)(graphs)))
    outputs, expected = model.predict(_GRAPHS, BATCH, verbose=0), model(_GRAPHS)
    np.testing.assert_array_equal(outputs.num_nodes, _GRAPHS.num_nodes)
    np.testing.assert_array_equal(outputs.source, _GRAPHS.source)
    np.testing.assert_allclose(outputs.nodes["mass"], expected.nodes["mass"], 1e-5, 1e-6)
