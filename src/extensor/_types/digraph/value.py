"""TensorDigraph: a directed graph with features of its nodes and edges, or a batch of graphs."""

# While a value is made its fields may be assigned, which type checkers do not know.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import tensorflow as tf

from extensor import extension_type, replace
from extensor._types.digraph import check, conversion
from extensor._types.digraph.spec import COUNTS, NUMBERS, DigraphSpec
from extensor.authoring import (
    batch_item,
    batch_of,
    cut_rows,
    integers,
    is_tensor_like,
    known_arrays,
    num_rows,
    reduce_rows,
    row_ids,
    row_splits_of,
    sizes_of,
    take_rows,
)
from extensor.errors import DTypeError, FieldError, RowError, StructureError


@extension_type(name="extensor.types.TensorDigraph")
class TensorDigraph:
    """A directed graph with features of its nodes and edges, or a batch of such graphs.

    A batch is one graph of many parts: the nodes of all graphs are numbered one after another, and
    so are their edges. `num_nodes` and `num_edges`, which have the shape of the batch, tell which
    belong to which graph; so do `node_splits` and `edge_splits`. What is computed for each node or
    edge is computed for those of all graphs at once.

    Args:
        source: The number of the node that each edge comes from: a vector or list.
        target: The number of the node that each edge goes to. Edges may be parallel, and loops.
        nodes: For each node feature its name and a value with a row a node: a tensor, RaggedTensor,
            StructuredTensor, or a value of any type that stacks.
        edges: For each edge feature its name and a value with a row an edge.
        num_nodes: How many nodes there are; of a batch, how many in each graph. Default: as many as
            the node features have rows, in one graph.
        num_edges: How many edges there are in each graph of a batch.
        validate: Whether assertions that all these fit each other are added to a graph. Outside a
            graph that is always checked, in NumPy.

    Raises:
        StructureError: If they do not fit each other (also a ValueError).
        DTypeError: If nodes are numbered by anything else than integers (also a TypeError).

    >>> graph = xt.types.TensorDigraph([0, 0, 1], [1, 2, 2], nodes={"mass": [1.0, 2.0, 4.0]})
    >>> graph
    <TensorDigraph 3 nodes {mass: float32}, 3 edges>
    >>> graph.in_degree().numpy()
    array([0, 1, 2])
    >>> graph.aggregate("mass").numpy()
    array([0., 1., 3.], dtype=float32)
    """

    Spec = DigraphSpec

    source: Annotated[tf.Tensor, NUMBERS]
    """The node that each edge comes from: `[edges]`."""
    target: Annotated[tf.Tensor, NUMBERS]
    """The node that each edge goes to: `[edges]`."""
    num_nodes: Annotated[tf.Tensor, COUNTS]
    """How many nodes there are: a scalar; of a batch, of its shape."""
    num_edges: Annotated[tf.Tensor, COUNTS]
    """How many edges there are, likewise."""
    nodes: Mapping[str, Any]
    """The features of the nodes: `[nodes, ...]` each."""
    edges: Mapping[str, Any]
    """The features of the edges: `[edges, ...]` each."""

    def __init__(
        self,
        source: Any,
        target: Any,
        nodes: Mapping[str, Any] | None = None,
        edges: Mapping[str, Any] | None = None,
        *,
        num_nodes: Any = None,
        num_edges: Any = None,
        validate: bool = False,
    ) -> None:
        self.source = tf.cast(integers(source, "TensorDigraph.source", rank=1), tf.int64)
        self.target = tf.cast(integers(target, "TensorDigraph.target", rank=1), tf.int64)
        self.nodes = _features(nodes or {})
        self.edges = _features(edges or {})
        if num_nodes is None:
            if not self.nodes:
                raise StructureError(
                    path="TensorDigraph.num_nodes",
                    expected="how many nodes there are",
                    received="neither that nor a node feature",
                    mend="Give num_nodes: some may have no edge.",
                )
            num_nodes = num_rows(next(iter(self.nodes.values())))
        self.num_nodes = tf.cast(integers(num_nodes, "TensorDigraph.num_nodes"), tf.int64)
        if num_edges is None:
            num_edges = tf.size(self.source, tf.int64)
        self.num_edges = tf.cast(integers(num_edges, "TensorDigraph.num_edges"), tf.int64)
        if validate and not tf.executing_eagerly():
            with tf.control_dependencies(check.in_graph(self)):
                self.source = tf.identity(self.source)

    def __post_init__(self) -> None:
        check.shapes(self)
        arrays = known_arrays(self.source, self.target, self.num_nodes, self.num_edges)
        if arrays is not None:
            check.numbers(*arrays)

    @classmethod
    def batch(cls, graphs: Iterable[TensorDigraph]) -> TensorDigraph:
        """Returns a batch of graphs, which have the same features.

        Args:
            graphs: One graph or more; or batches of one shape.

        Raises:
            StructureError: If there is none, or features differ (also a ValueError).

        >>> path = xt.types.TensorDigraph([0], [1], num_nodes=2)
        >>> point = xt.types.TensorDigraph([], [], num_nodes=1)
        >>> xt.types.TensorDigraph.batch([path, point, path]).source.numpy()
        array([0, 3])
        """
        return batch_of(cls, list(graphs))

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
    ) -> TensorDigraph:
        """Returns a graph of NetworkX, its nodes numbered in their order.

        Args:
            graph: Any graph of NetworkX's. Edges without a direction go both ways.
            nodes: The names of the node attributes that become features. Default: all.
            edges: The names of the edge attributes that become features. Default: all.

        Raises:
            StructureError: If a node or edge lacks an attribute (also a ValueError).

        >>> import networkx as nx
        >>> graph = nx.DiGraph()
        >>> graph.add_node("flour", grams=500.0)
        >>> graph.add_node("dough", grams=800.0)
        >>> graph.add_edge("flour", "dough", step=1)
        >>> xt.types.TensorDigraph.from_networkx(graph)
        <TensorDigraph 2 nodes {grams: float32}, 1 edges {step: int32}>
        """
        return conversion.from_networkx(cls, graph, nodes, edges)

    def to_networkx(self, multigraph: bool = False) -> Any:
        """Returns the graph as one of NetworkX, its nodes numbers, its features attributes.

        A string is one of bytes there, and a feature that is no scalar a NumPy array.

        Args:
            multigraph: Whether to return a `MultiDiGraph`, which can hold parallel edges, rather
                than a `DiGraph`.

        Raises:
            StructureError: If this is a batch, or edges are parallel in a `DiGraph` (also a
                ValueError).
            MissingDependencyError: If NetworkX is not installed (also an ImportError).

        >>> xt.types.TensorDigraph([0, 1], [1, 0], num_nodes=2).to_networkx().edges
        OutEdgeView([(0, 1), (1, 0)])
        """
        return conversion.to_networkx(self, multigraph)

    # The graphs of a batch.

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the batch; of a single graph, that of a scalar."""
        return self.num_nodes.shape

    @property
    def node_splits(self) -> tf.Tensor:
        """Where the nodes of each graph begin and end: `[graphs + 1]`."""
        return row_splits_of(self.num_nodes)

    @property
    def edge_splits(self) -> tf.Tensor:
        """Where the edges of each graph begin and end: `[graphs + 1]`."""
        return row_splits_of(self.num_edges)

    def __getitem__(self, index: Any) -> TensorDigraph:
        """Returns a graph of a batch, or a batch of some.

        Args:
            index: A number or slice, or a scalar tensor.

        Raises:
            RowError: If it points outside, or this is a single graph (also an IndexError).
        """
        return batch_item(self, index)

    def by_graph(self, values: Any) -> Any:
        """Returns values of the nodes cut by graph: a RaggedTensor; of one graph, as they are.

        Args:
            values: A tensor with a row a node, or the name of a node feature.

        >>> path = xt.types.TensorDigraph([0], [1], {"mass": [1.0, 2.0]})
        >>> point = xt.types.TensorDigraph([], [], {"mass": [4.0]})
        >>> xt.types.TensorDigraph.batch([path, point]).by_graph("mass")
        <tf.RaggedTensor [[1.0, 2.0], [4.0]]>
        """
        sizes = sizes_of(self.shape, tf.shape(self.num_nodes, tf.int64))
        return cut_rows(self._of_nodes(values), self.node_splits, sizes)

    def readout(self, values: Any, reduction: str = "sum") -> tf.Tensor:
        """Returns for each graph the sum, mean or extreme of values of its nodes.

        Args:
            values: A tensor of shape `[nodes, ...]`, or the name of a node feature.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"`; of no nodes it is zero.

        Returns:
            A tensor of the shape of the batch and `[...]`.

        >>> path = xt.types.TensorDigraph([0], [1], {"mass": [1.0, 2.0]})
        >>> path.readout("mass", "mean").numpy().item()
        1.5
        """
        values = self._of_nodes(values)
        splits = self.node_splits
        ids = row_ids(splits, tf.range(splits[-1]))
        result = reduce_rows(values, ids, tf.size(splits, tf.int64) - 1, reduction)
        shape = tf.concat([tf.shape(self.num_nodes), tf.shape(result)[1:]], 0)
        return tf.ensure_shape(tf.reshape(result, shape), self.shape.concatenate(values.shape[1:]))

    # Nodes and their neighbours.

    def out_degree(self) -> tf.Tensor:
        """Returns how many edges come from each node: int64 `[nodes]`."""
        return self._degree(self.source)

    def in_degree(self) -> tf.Tensor:
        """Returns how many edges go to each node: int64 `[nodes]`."""
        return self._degree(self.target)

    def _degree(self, ends: tf.Tensor) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(tf.ones_like(ends), ends, self._count)

    @property
    def _count(self) -> tf.Tensor:
        return tf.reduce_sum(self.num_nodes)

    def at_source(self, values: Any) -> Any:
        """Returns for each edge the value at the node that it comes from.

        Args:
            values: A value with a row a node, or the name of a node feature.
        """
        return take_rows(self._of_nodes(values), self.source)

    def at_target(self, values: Any) -> Any:
        """Returns for each edge the value at the node that it goes to; as `at_source`."""
        return take_rows(self._of_nodes(values), self.target)

    def collect(self, messages: Any, reduction: str = "sum") -> tf.Tensor:
        """Returns for each node the sum, mean or extreme of values of the edges that go to it.

        Args:
            messages: A tensor of shape `[edges, ...]`, or the name of an edge feature.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"`; of no edges it is zero.

        Returns:
            A tensor of shape `[nodes, ...]`.

        >>> graph = xt.types.TensorDigraph([0, 1], [2, 2], edges={"cost": [3, 4]}, num_nodes=3)
        >>> graph.collect("cost", "max").numpy()
        array([0, 0, 4], dtype=int32)
        """
        if isinstance(messages, str):
            messages = _named(self.edges, messages, "edges")
        elif not is_tensor_like(messages):
            messages = tf.convert_to_tensor(messages)
        return reduce_rows(messages, self.target, self._count, reduction)

    def aggregate(self, values: Any, reduction: str = "sum") -> tf.Tensor:
        """Returns for each node the sum, mean or extreme of values of the nodes that lead to it.

        A node counts once for each edge. For the nodes that a node leads to, aggregate in
        `reverse()`.

        Args:
            values: A tensor of shape `[nodes, ...]`, or the name of a node feature.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"`; of no neighbours it is zero.

        Returns:
            A tensor of shape `[nodes, ...]`.
        """
        return self.collect(self.at_source(values), reduction)

    # Other graphs.

    def with_nodes(self, **features: Any) -> TensorDigraph:
        """Returns the graph with more node features, or others of the same names."""
        return replace(self, nodes={**self.nodes, **_features(features)})

    def with_edges(self, **features: Any) -> TensorDigraph:
        """Returns the graph with more edge features, or others of the same names."""
        return replace(self, edges={**self.edges, **_features(features)})

    def reverse(self) -> TensorDigraph:
        """Returns the graph with every edge turned around."""
        return replace(self, source=self.target, target=self.source)

    def subgraph(self, nodes: Any) -> TensorDigraph:
        """Returns some of the nodes, with the edges between them.

        Nodes and edges keep their order, and are numbered anew.

        Args:
            nodes: A bool tensor that tells which nodes stay, or a vector of their numbers.

        >>> graph = xt.types.TensorDigraph([0, 0, 1], [1, 2, 2], num_nodes=3)
        >>> graph.subgraph([True, False, True])
        <TensorDigraph 2 nodes, 1 edges>
        """
        stays = _mask(nodes, self._count, "subgraph")
        between = tf.gather(stays, self.source) & tf.gather(stays, self.target)
        number = tf.cumsum(tf.cast(stays, tf.int64), exclusive=True)
        positions = tf.where(stays)[:, 0]
        kept = self.edge_subgraph(between)
        return replace(
            kept,
            source=tf.gather(number, kept.source),
            target=tf.gather(number, kept.target),
            num_nodes=_kept(stays, self.num_nodes),
            nodes={name: take_rows(value, positions) for name, value in self.nodes.items()},
        )

    def edge_subgraph(self, edges: Any) -> TensorDigraph:
        """Returns all of the nodes, with some of the edges.

        Args:
            edges: A bool tensor that tells which edges stay, or a vector of their numbers.
        """
        stays = _mask(edges, tf.size(self.source, tf.int64), "edge_subgraph")
        positions = tf.where(stays)[:, 0]
        return replace(
            self,
            source=tf.gather(self.source, positions),
            target=tf.gather(self.target, positions),
            num_edges=_kept(stays, self.num_edges),
            edges={name: take_rows(value, positions) for name, value in self.edges.items()},
        )

    def _of_nodes(self, values: Any) -> Any:
        if isinstance(values, str):
            return _named(self.nodes, values, "nodes")
        return values if is_tensor_like(values) else tf.convert_to_tensor(values)

    def __repr__(self) -> str:
        parts: list[str] = []
        for what, counts, features in (
            ("nodes", self.num_nodes, self.nodes),
            ("edges", self.num_edges, self.edges),
        ):
            known = tf.get_static_value(counts) if isinstance(counts, tf.Tensor) else None
            names = ", ".join(f"{n}: {_brief(v)}" for n, v in features.items())
            count = f"{'?' if known is None else known.sum()} {what}"
            parts.append(f"{count} {{{names}}}" if names else count)
        shape = f"shape={self.shape} " if self.shape.rank else ""
        return f"<TensorDigraph {shape}{', '.join(parts)}>"


LabeledDigraph = TensorDigraph
"""The same: a graph without features is one with none."""


def _features(features: Mapping[str, Any]) -> dict[str, Any]:
    for name in features:
        if not isinstance(name, str):
            raise DTypeError(
                path="TensorDigraph",
                expected="features named by strings",
                received=repr(name),
                mend='Give a dict such as {"mass": ...}.',
            )
    return {
        name: value
        if is_tensor_like(value) and not isinstance(value, tf.Variable)
        else tf.convert_to_tensor(value)
        for name, value in features.items()
    }


def _named(features: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in features:
        listed = ", ".join(sorted(features)) or "none"
        raise FieldError(
            path=f"TensorDigraph.{kind}",
            expected=f"one of the features {listed}",
            received=repr(name),
            mend="Check the spelling.",
        )
    return features[name]


def _brief(value: Any) -> str:
    return value.dtype.name if isinstance(value, tf.Tensor) else type(value).__name__


def _mask(which: Any, count: tf.Tensor, path: str) -> tf.Tensor:
    """Returns which of some nodes or edges are meant, as a bool vector."""
    if not isinstance(which, tf.Tensor):
        array = np.asarray(which)
        which = tf.convert_to_tensor(array if array.size else array.astype(np.int64))
    known = tf.get_static_value(count)
    if which.dtype == tf.bool:
        if known is not None and not which.shape.is_compatible_with([int(known)]):
            raise StructureError(
                path=f"TensorDigraph.{path}",
                expected=f"shape ({known},), one value for each",
                received=f"{which.shape}",
                mend="In a batch, nodes and edges of all graphs are counted.",
            )
        return which
    numbers = tf.cast(integers(which, f"TensorDigraph.{path}", rank=1), tf.int64)
    chosen = tf.get_static_value(numbers)
    if known is not None and chosen is not None and chosen.size:
        wrong = chosen[(chosen < 0) | (chosen >= known)]
        if wrong.size:
            raise RowError(
                path=f"TensorDigraph.{path}",
                expected=f"numbers from 0 to {known - 1}" if known else "no number",
                received=str(wrong[0]),
                mend="In a batch, nodes and edges of all graphs are counted.",
            )
    ones = tf.ones_like(numbers)
    return tf.scatter_nd(numbers[:, tf.newaxis], ones, tf.reshape(count, [1])) > 0


def _kept(stays: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns how many nodes or edges stay in each graph."""
    before = row_splits_of(tf.cast(stays, tf.int64))
    at = tf.gather(before, row_splits_of(counts))
    return tf.reshape(at[1:] - at[:-1], tf.shape(counts))
