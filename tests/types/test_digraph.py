"""TensorDigraph against NetworkX, NumPy and finite differences."""

import copy
import pickle
import sys

import networkx as nx
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor.types import CSRSparseTensor, LabeledDigraph, TensorDigraph

Spec = TensorDigraph.Spec

FEATURES = Spec({"mass": tf.TensorSpec([None])}, {"cost": tf.TensorSpec([None, 2], tf.int32)})


@st.composite
def digraphs(draw, min_nodes=0):
    """Graphs with parallel edges, loops, and nodes without edges."""
    count = draw(st.integers(min_nodes, 4))
    nodes = st.integers(0, count - 1)
    edges = draw(st.lists(st.tuples(nodes, nodes), max_size=5)) if count else []
    numbers = st.integers(-9, 9)
    mass = draw(st.lists(numbers, min_size=count, max_size=count))
    cost = draw(st.lists(st.tuples(numbers, numbers), min_size=len(edges), max_size=len(edges)))
    return TensorDigraph(
        [source for source, _ in edges],
        [target for _, target in edges],
        {"mass": np.array(mass, np.float32)},
        {"cost": np.array(cost, np.int32).reshape(-1, 2)},
    )


def batches(min_size=1):
    return st.lists(digraphs(), min_size=min_size, max_size=3)


def recipe():
    """Flour and water make dough, dough and cheese a pizza."""
    return TensorDigraph(
        [0, 1, 2, 4],
        [2, 2, 3, 3],
        {
            "grams": [500.0, 300.0, 800.0, 900.0, 100.0],
            "words": tf.ragged.constant([["white", "flour"], ["water"], [], ["pizza"], ["cheese"]]),
            "record": xt.DenseStructuredTensor(
                [5], {"id": [1, 2, 3, 4, 5], "tags": tf.ragged.constant([["a"], [], [], ["b"], []])}
            ),
            "bag": CSRSparseTensor.from_dense(np.eye(5, 3, dtype=np.float32)),
        },
        {"step": [1, 1, 2, 2]},
    )


def expect_same(a, b):
    """Fails unless two graphs have the same edges and features."""
    for name in ("source", "target", "num_nodes", "num_edges"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for kind in ("nodes", "edges"):
        ours, theirs = getattr(a, kind), getattr(b, kind)
        assert ours.keys() == theirs.keys()
        for x, y in zip(
            tf.nest.flatten(dict(ours), expand_composites=True),
            tf.nest.flatten(dict(theirs), expand_composites=True),
            strict=True,
        ):
            np.testing.assert_array_equal(x, y)


# What it holds.


def test_laws_of_a_graph():
    xt.testing.check_extension_type([recipe(), recipe().subgraph([0, 2])])


@pytest.mark.whole("checks all laws of several types")
def test_laws_of_a_batch():
    plain = recipe()
    plain = xt.replace(plain, nodes={"grams": plain.nodes["grams"]})
    xt.testing.check_extension_type(TensorDigraph.batch([plain, plain.subgraph([1])]))


def test_laws_of_a_graph_without_features():
    xt.testing.check_extension_type(TensorDigraph([0], [0], num_nodes=2))


@pytest.mark.slow
def test_laws_of_generated_graphs():
    xt.testing.check_spec(FEATURES, values=digraphs(), max_examples=5)


def test_a_labeled_digraph_is_the_same():
    assert LabeledDigraph is TensorDigraph


def test_the_number_of_nodes_is_known_from_features():
    graph = TensorDigraph([0], [1], {"mass": [1.0, 2.0, 3.0]})
    assert graph.num_nodes.numpy() == 3
    assert graph.num_edges.numpy() == 1
    assert TensorDigraph([], [], num_nodes=2).num_nodes.numpy() == 2
    ragged = TensorDigraph([], [], {"words": tf.ragged.constant([["a"], []])})
    assert ragged.num_nodes.numpy() == 2
    assert (
        TensorDigraph([], [], {"bag": CSRSparseTensor.from_dense([[1.0]])}).num_nodes.numpy() == 1
    )


def test_a_function_is_traced_once_for_graphs_of_all_sizes():
    traces = []

    @tf.function
    def total(graph):
        traces.append(graph)
        return tf.reduce_sum(graph.aggregate("mass"))

    small = TensorDigraph([0], [1], {"mass": [1.0, 2.0]})
    large = TensorDigraph([0, 1, 2], [1, 2, 2], {"mass": [1.0, 2.0, 4.0]})
    assert total(small).numpy() == 1
    assert total(large).numpy() == 7
    assert len(traces) == 1
    assert small.__tf_type_spec__() == Spec({"mass": tf.TensorSpec([None])})


def test_it_is_copied_and_pickled():
    graph = recipe()
    expect_same(copy.deepcopy(graph), graph)
    expect_same(pickle.loads(pickle.dumps(graph)), graph)


# NetworkX.


def to_nx(graph):
    return graph.to_networkx(multigraph=True)


def edges_of(theirs):
    """Returns the edges of a graph of NetworkX, sorted, with their costs."""
    return sorted((s, t, tuple(data["cost"])) for s, t, data in theirs.edges(data=True))


@given(digraphs(min_nodes=1))
def test_networkx_round_trip(graph):
    theirs = to_nx(graph)
    pairs = zip(graph.source.numpy(), graph.target.numpy(), strict=True)
    assert sorted(theirs.edges()) == sorted(pairs)
    names = ["cost"] if theirs.number_of_edges() else []  # of no edges the dtype is not known
    again = to_nx(TensorDigraph.from_networkx(theirs, nodes=["mass"], edges=names))
    assert list(again.nodes(data=True)) == list(theirs.nodes(data=True))
    assert edges_of(again) == edges_of(theirs)


def test_every_kind_of_graph_is_converted_from_networkx():
    for kind in (nx.DiGraph, nx.MultiDiGraph):
        theirs = kind([("a", "b"), ("b", "c")])
        ours = TensorDigraph.from_networkx(theirs)
        assert ours.source.numpy().tolist() == [0, 1]
        assert ours.target.numpy().tolist() == [1, 2]
    undirected = TensorDigraph.from_networkx(nx.path_graph(3))
    assert undirected.in_degree().numpy().tolist() == [1, 2, 1]
    assert undirected.out_degree().numpy().tolist() == [1, 2, 1]
    assert TensorDigraph.from_networkx(nx.DiGraph()).num_nodes.numpy() == 0


def test_attributes_of_networkx_are_features():
    theirs = nx.DiGraph()
    theirs.add_node("flour", grams=500.0, name="flour", place=[1.0, 2.0])
    theirs.add_node("dough", grams=800.0, name="dough", place=[0.0, 1.0])
    theirs.add_edge("flour", "dough", step=1)
    ours = TensorDigraph.from_networkx(theirs)
    assert ours.nodes["name"].numpy().tolist() == [b"flour", b"dough"]
    assert ours.nodes["place"].shape == [2, 2]
    assert ours.edges["step"].numpy().tolist() == [1]
    assert TensorDigraph.from_networkx(theirs, nodes=["grams"], edges=[]).nodes.keys() == {"grams"}
    back = ours.to_networkx()
    assert back.nodes[0]["grams"] == 500.0
    assert back.nodes[0]["name"] == b"flour"
    assert back.nodes[1]["place"].tolist() == [0.0, 1.0]
    assert back.edges[0, 1] == {"step": 1}


def test_features_of_every_type_are_attributes():
    back = recipe().to_networkx()
    assert back.nodes[0]["words"].tolist() == [b"white", b"flour"]
    assert back.nodes[3]["record"]["id"].numpy() == 4
    assert back.nodes[1]["bag"].to_dense().numpy().tolist() == [0, 1, 0]


# Degrees and neighbours.


@given(digraphs())
def test_degrees(graph):
    theirs = to_nx(graph)
    assert graph.in_degree().numpy().tolist() == [d for _, d in theirs.in_degree()]
    assert graph.out_degree().numpy().tolist() == [d for _, d in theirs.out_degree()]


REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(graph=digraphs())
def test_aggregate(graph, reduction):
    theirs = to_nx(graph)
    mass = graph.nodes["mass"].numpy()
    expected = [
        REDUCTIONS[reduction]([mass[s] for s, _ in edges] or [0])
        for edges in (list(theirs.in_edges(node)) for node in theirs.nodes)
    ]
    np.testing.assert_allclose(graph.aggregate("mass", reduction), expected, rtol=1e-6)
    back = graph.reverse().aggregate(graph.nodes["mass"], reduction)
    expected = [
        REDUCTIONS[reduction]([mass[t] for _, t in edges] or [0])
        for edges in (list(theirs.out_edges(node)) for node in theirs.nodes)
    ]
    np.testing.assert_allclose(back, expected, rtol=1e-6)


@given(digraphs())
def test_collect(graph):
    cost, target = graph.edges["cost"].numpy(), graph.target.numpy()
    expected = [cost[target == node].sum(0) for node in range(int(graph.num_nodes))]
    np.testing.assert_array_equal(graph.collect("cost"), np.reshape(expected, [-1, 2]))
    weighted = graph.collect(
        graph.at_source("mass")[:, None] * tf.cast(graph.edges["cost"], tf.float32)
    )
    mass = graph.nodes["mass"].numpy()[graph.source.numpy()]
    expected = [(mass[:, None] * cost)[target == n].sum(0) for n in range(int(graph.num_nodes))]
    np.testing.assert_array_equal(weighted, np.reshape(expected, [-1, 2]))


@given(digraphs())
def test_values_at_the_ends_of_edges(graph):
    mass = graph.nodes["mass"].numpy()
    np.testing.assert_array_equal(graph.at_source("mass"), mass[graph.source])
    np.testing.assert_array_equal(graph.at_target("mass"), mass[graph.target])


def test_values_of_every_type_at_the_ends_of_edges():
    graph = recipe()
    assert graph.at_source("words").to_list() == [[b"white", b"flour"], [b"water"], [], [b"cheese"]]
    assert graph.at_source("record")["id"].numpy().tolist() == [1, 2, 3, 5]
    assert graph.at_target("bag").to_dense().numpy().tolist() == [
        [0, 0, 1],
        [0, 0, 1],
        [0] * 3,
        [0] * 3,
    ]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_are_finite_differences(reduction):
    graph = TensorDigraph([0, 0, 1, 1, 3], [1, 2, 2, 2, 3], num_nodes=4)
    values = tf.constant([[1.0, 2.5], [3.0, 4.5], [-5.0, 6.0], [0.5, 1.0]], tf.float64)
    for function in (
        lambda x: graph.aggregate(x, reduction) ** 2,
        lambda x: graph.readout(x, reduction) ** 2,
        lambda x: graph.subgraph([0, 2, 3]).with_nodes(x=tf.gather(x, [0, 2, 3])).aggregate("x"),
    ):
        theoretical, numerical = tf.test.compute_gradient(function, [values], delta=1e-5)
        np.testing.assert_allclose(theoretical[0], numerical[0], rtol=1e-5, atol=1e-6)


# Other graphs.


@given(st.data())
def test_subgraph(data):
    graph = data.draw(digraphs())
    count = int(graph.num_nodes)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    kept = np.flatnonzero(mask)
    theirs = nx.convert_node_labels_to_integers(to_nx(graph).subgraph(kept), ordering="sorted")
    for nodes in (mask, kept, kept[::-1].tolist(), tf.constant(mask)):
        ours = graph.subgraph(nodes)
        assert ours.num_nodes.numpy() == len(kept)
        np.testing.assert_array_equal(ours.nodes["mass"], graph.nodes["mass"].numpy()[mask])
        assert edges_of(to_nx(ours)) == edges_of(theirs)


@given(st.data())
def test_edge_subgraph(data):
    graph = data.draw(digraphs())
    count = int(graph.num_edges)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    for edges in (mask, np.flatnonzero(mask)):
        ours = graph.edge_subgraph(edges)
        np.testing.assert_array_equal(ours.source, graph.source.numpy()[mask])
        np.testing.assert_array_equal(ours.target, graph.target.numpy()[mask])
        np.testing.assert_array_equal(ours.edges["cost"], graph.edges["cost"].numpy()[mask])
        assert ours.num_nodes.numpy() == graph.num_nodes.numpy()


@given(digraphs())
def test_reverse(graph):
    assert sorted(to_nx(graph.reverse()).edges()) == sorted(to_nx(graph).reverse().edges())
    expect_same(graph.reverse().reverse(), graph)


def test_features_are_added_and_replaced():
    graph = TensorDigraph([0], [1], {"mass": [1.0, 2.0]})
    more = graph.with_nodes(mass=[3.0, 4.0], name=["a", "b"]).with_edges(cost=[7])
    assert more.nodes["mass"].numpy().tolist() == [3.0, 4.0]
    assert more.nodes.keys() == {"mass", "name"}
    assert more.edges["cost"].numpy().tolist() == [7]
    assert graph.nodes.keys() == {"mass"}


def test_a_subgraph_of_features_of_every_type():
    part = recipe().subgraph([4, 3, 0])
    assert part.nodes["words"].to_list() == [[b"white", b"flour"], [b"pizza"], [b"cheese"]]
    assert part.nodes["record"]["tags"].to_list() == [[b"a"], [b"b"], []]
    assert part.nodes["bag"].to_dense().numpy().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert part.source.numpy().tolist() == [2]
    assert part.target.numpy().tolist() == [1]


# Batches.


@given(batches())
def test_a_batch_is_a_disjoint_union(graphs):
    batch = TensorDigraph.batch(graphs)
    assert batch.shape == [len(graphs)]
    union = nx.disjoint_union_all([to_nx(graph) for graph in graphs])
    edges = sorted(zip(batch.source.numpy().tolist(), batch.target.numpy().tolist(), strict=True))
    assert edges == sorted(union.edges())
    mass = np.concatenate([graph.nodes["mass"] for graph in graphs])
    np.testing.assert_array_equal(batch.nodes["mass"], mass)
    np.testing.assert_array_equal(np.diff(batch.node_splits), batch.num_nodes)
    np.testing.assert_array_equal(np.diff(batch.edge_splits), [len(g.source) for g in graphs])
    for i, graph in enumerate(graphs):
        expect_same(batch[i], graph)
        expect_same(batch[i - len(graphs)], graph)
    expect_same(batch[::-1], TensorDigraph.batch(graphs[::-1]))


@pytest.mark.whole("draws many values")
@given(batches())
def test_results_for_a_batch_equal_results_for_each_graph(graphs):
    batch = TensorDigraph.batch(graphs)
    for compute in (
        lambda g: g.in_degree(),
        lambda g: g.aggregate("mass", "max"),
        lambda g: g.collect("cost"),
    ):
        np.testing.assert_array_equal(compute(batch), np.concatenate([compute(g) for g in graphs]))
    for reduction in REDUCTIONS:
        expected = [graph.readout("mass", reduction) for graph in graphs]
        np.testing.assert_allclose(batch.readout("mass", reduction), expected)
    assert batch.by_graph("mass").to_list() == [g.nodes["mass"].numpy().tolist() for g in graphs]
    mask = batch.nodes["mass"] > 0
    expected = [graph.subgraph(graph.nodes["mass"] > 0) for graph in graphs]
    expect_same(batch.subgraph(mask), TensorDigraph.batch(expected))


def dataset_of(graphs, spec=FEATURES):
    return tf.data.Dataset.from_generator(lambda: iter(graphs), output_signature=spec)


@settings(max_examples=settings.default.max_examples // 4)  # a dataset takes its time
@given(batches(min_size=2))
def test_datasets_batch_and_unbatch(graphs):
    batches = list(dataset_of(graphs).batch(2))
    expect_same(batches[0], TensorDigraph.batch(graphs[:2]))
    for ours, graph in zip(dataset_of(graphs).batch(2).unbatch(), graphs, strict=True):
        expect_same(ours, graph)


@pytest.mark.whole("traces many datasets")
def test_batches_of_batches():
    graphs = [recipe().subgraph(range(i)) for i in range(1, 5)]
    dataset = dataset_of(graphs, graphs[0].__tf_type_spec__()).batch(2).batch(2)
    [whole] = dataset
    assert whole.shape == [2, 2]
    pairs = TensorDigraph.batch([TensorDigraph.batch(graphs[:2]), TensorDigraph.batch(graphs[2:])])
    expect_same(whole, pairs)
    for ours, graph in zip(dataset.unbatch().unbatch(), graphs, strict=True):
        expect_same(ours, graph)
    assert whole.readout("grams").shape == [2, 2]
    assert whole.by_graph("grams").shape.as_list() == [2, 2, None]


def test_map_fn_takes_and_returns_graphs():
    graphs = [TensorDigraph([0], [1], {"mass": [1.0, 2.0]}), TensorDigraph([], [], {"mass": [4.0]})]
    doubled = tf.map_fn(
        lambda graph: graph.with_nodes(mass=graph.nodes["mass"] * 2).reverse(),
        TensorDigraph.batch(graphs),
        fn_output_signature=Spec({"mass": tf.TensorSpec([None])}),
    )
    assert doubled.by_graph("mass").to_list() == [[2, 4], [8]]
    assert doubled.source.numpy().tolist() == [1]


def test_gradients_pass_through_map_fn():
    graphs = TensorDigraph.batch([TensorDigraph([0], [1], {"mass": [1.0, 2.0]})] * 2)
    with tf.GradientTape() as tape:
        tape.watch(graphs)
        sums = tf.map_fn(
            lambda graph: tf.reduce_sum(graph.aggregate("mass") ** 2),
            graphs,
            fn_output_signature=tf.float32,
        )
    assert tape.gradient(sums, graphs).nodes["mass"].numpy().tolist() == [2, 0, 2, 0]


@pytest.mark.whole("starts a process")
@pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type extensor.types:UserWarning:tensorflow"
)
def test_a_saved_model_takes_graphs_in_a_fresh_process(run_python, tmp_path):
    batch_spec = FEATURES.stacked(None)

    @tf.function(input_signature=[batch_spec])
    def step(graphs):
        return graphs.with_nodes(mass=graphs.aggregate("mass")).subgraph(graphs.in_degree() > 0)

    module = tf.Module()
    module.step = step
    folder = str(tmp_path / "model")
    tf.saved_model.save(module, folder)
    run_python(f"""
        import numpy as np
        import tensorflow as tf
        import extensor as xt

        model = tf.saved_model.load({folder!r})
        one = xt.types.TensorDigraph(
            [0, 1], [1, 1], {{"mass": [1.0, 2.0]}}, {{"cost": [[1, 2], [3, 4]]}}
        )
        none = xt.types.TensorDigraph(
            [], [], {{"mass": tf.zeros([0])}}, {{"cost": tf.zeros([0, 2], tf.int32)}}
        )
        result = model.step(xt.types.TensorDigraph.batch([none, one]))
        assert type(result) is xt.types.TensorDigraph and result.shape == [2]
        assert result.by_graph("mass").to_list() == [[], [3.0]]
        assert result.edges["cost"].numpy().tolist() == [[3, 4]]
    """)


# Bad input.


BAD = {
    "a target that is not there": (
        lambda: TensorDigraph([0, 1], [1, 2], num_nodes=2),
        r"target: expected positions from 0 to 1, got 2, of pair 1",
    ),
    "a negative source": (
        lambda: TensorDigraph([-1], [1], num_nodes=2),
        r"source: expected positions from 0 to 1, got -1, of pair 0",
    ),
    "no nodes": (
        lambda: TensorDigraph([0], [0], num_nodes=0),
        r"source: expected no position, got 0, of pair 0. num_nodes is",
    ),
    "an edge between two graphs": (
        lambda: TensorDigraph([0, 2], [1, 1], num_nodes=[2, 2], num_edges=[1, 1]),
        r"target: expected positions from 2 to 3 of graph 1, got 1, of pair 1",
    ),
    "ends that do not pair": (
        lambda: TensorDigraph([0, 1], [1], num_nodes=2),
        r"target: expected shape \(2,\), the shape of the source, got \(1,\)",
    ),
    "edges that do not add up": (
        lambda: TensorDigraph([0], [1], num_nodes=[2, 1], num_edges=[1, 1]),
        r"num_edges: expected numbers that add up to 1, the number of edges, got 2",
    ),
    "numbers of different batches": (
        lambda: TensorDigraph([0], [1], num_nodes=[2, 1]),
        r"num_edges: expected shape \(2,\), the shape of num_nodes, got \(\)",
    ),
    "a negative number": (lambda: TensorDigraph([], [], num_nodes=-1), r"num_nodes: .* got -1"),
    "no number of nodes": (
        lambda: TensorDigraph([0], [0]),
        r"num_nodes: expected num_nodes or a node feature",
    ),
    "a node feature of another length": (
        lambda: TensorDigraph([], [], {"mass": [1.0], "words": tf.ragged.constant([["a"], []])}),
        r"nodes\['words'\]: expected 1 row, one for each of the nodes, got 2 rows",
    ),
    "an edge feature of another length": (
        lambda: TensorDigraph([], [], edges={"cost": [1]}, num_nodes=1),
        r"edges\['cost'\]: expected 0 rows, one for each of the edges, got 1 row",
    ),
    "a feature of another type, of another length": (
        lambda: TensorDigraph(
            [], [], {"mass": [1.0], "bag": CSRSparseTensor.from_dense([[1.0], [2.0]])}
        ),
        r"nodes\['bag'\]: expected 1 row,",
    ),
    "a mask of another length": (
        lambda: TensorDigraph([], [], num_nodes=2).subgraph([True]),
        r"subgraph: expected shape \(2,\), one value for each, got \(1,\)",
    ),
    "graphs of different features": (
        lambda: TensorDigraph.batch([recipe(), TensorDigraph([], [], num_nodes=1)]),
        r"batch: expected values of .* Give all of them the same features",
    ),
    "no graphs": (lambda: TensorDigraph.batch([]), r"batch: expected at least one value"),
    "parallel edges": (
        lambda: TensorDigraph([0, 0], [1, 1], num_nodes=2).to_networkx(),
        r"expected no parallel edges in a DiGraph, got 1",
    ),
    "a batch for networkx": (
        lambda: TensorDigraph.batch([recipe()]).to_networkx(),
        r"to_networkx: expected a single graph",
    ),
    "an attribute that some lack": (
        lambda: TensorDigraph.from_networkx(nx.DiGraph([(0, 1, {"step": 1}), (1, 2)])),
        r"edges\['step'\]: expected the attribute on each of the 2 edges, got the attribute on 1",
    ),
    "attributes of no tensor": (
        lambda: TensorDigraph.from_networkx(nx.DiGraph([(0, 1, {"x": 1}), (1, 2, {"x": "a"})])),
        r"edges\['x'\]: expected values of the same dtype",
    ),
    "a spec of unknown rank": (lambda: Spec(shape=None), r"expected a shape of known rank"),
    "unstacking one graph": (lambda: Spec().unstacked(), r"expected a batch to unstack"),
    "unstacking a batch twice": (
        lambda: Spec(shape=[1]).to_boxed_tensor(
            TensorDigraph.batch([TensorDigraph([], [], num_nodes=0)]), 2
        ),
        r"expected a batch to unstack, got a single graph",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_an_error_with_four_parts(case):
    make, message = BAD[case]
    with pytest.raises(xt.ExtensorError, match=message) as info:
        make()
    assert isinstance(info.value, ValueError)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: TensorDigraph([0.5], [0], num_nodes=1), TypeError, r"source: expected int64"),
        (lambda: TensorDigraph([0], [0], num_nodes=1.0), TypeError, r"num_nodes: expected int64"),
        (lambda: TensorDigraph([0], [0], {1: [2]}), TypeError, r"expected strings .*, got 1"),
        (lambda: recipe().aggregate("grams", "median"), TypeError, r"one of sum, mean, max, min"),
        (lambda: recipe().aggregate("words"), TypeError, r"expected a numeric tensor"),
        (lambda: recipe().collect("step", "mean"), TypeError, r"a floating-point tensor"),
        (lambda: recipe().aggregate("gram"), KeyError, r"the name of a feature \(bag, grams"),
        (lambda: recipe().collect("gram"), KeyError, r"the name of a feature \(step\), got 'gram'"),
        (lambda: recipe().subgraph([5]), IndexError, r"expected numbers from 0 to 4, got 5"),
        (lambda: recipe()[0], IndexError, r"expected a batch, got a single value. This"),
        (lambda: TensorDigraph.batch([recipe()])[1], IndexError, r"from -1 to 0, got 1"),
        (lambda: TensorDigraph.batch([recipe(), 3]), TypeError, r"of type TensorDigraph, got int"),
        (
            lambda: TensorDigraph.batch([TensorDigraph([], [], {"s": tf.sparse.eye(2)})]),
            TypeError,
            r"expected a type that boxes into one tensor",
        ),
    ],
)
def test_other_errors_are_the_builtin_that_fits(make, kind, message):
    with pytest.raises(xt.ExtensorError, match=message) as info:
        make()
    assert isinstance(info.value, kind)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(
    ("source", "target", "num_nodes", "num_edges", "message"),
    [
        ([0, 1], [1, 2], [2], [2], "target must be nodes of"),
        ([0, -1], [1, 1], [2], [2], "source must be nodes of"),
        ([0, 2], [1, 1], [2, 2], [1, 1], "target must be nodes of"),
        ([0], [1], [2], [2], "num_edges must add up"),
        ([0], [1], [2], [-1], "num_edges must not be negative"),
        ([0], [1], [3], [1], "must have a row for each of the nodes"),
    ],
)
def test_bad_input_is_an_error_in_a_graph_if_validated(
    source, target, num_nodes, num_edges, message
):
    vector = tf.TensorSpec([None], tf.int64)

    def make(validate):
        @tf.function(input_signature=[vector, vector, vector, vector])
        def made(source, target, num_nodes, num_edges):
            nodes = {"mass": tf.zeros([len(num_nodes_given) * 2])}
            return TensorDigraph(
                source, target, nodes, num_nodes=num_nodes, num_edges=num_edges, validate=validate
            ).source

        return made

    num_nodes_given = num_nodes
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        make(True)(source, target, num_nodes, num_edges)
    assert make(False)(source, target, num_nodes, num_edges).numpy().tolist() == source
    operations = make(False).get_concrete_function().graph.get_operations()
    assert not any(op.type == "Assert" for op in operations)


def test_networkx_is_needed_only_for_its_conversions(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(xt.ExtensorError, match=r"pip install .*\[networkx\]\"") as info:
        TensorDigraph([0], [0], num_nodes=1).to_networkx()
    assert isinstance(info.value, ImportError)
