"""TensorDigraph: a directed graph with features of its nodes and edges, or a batch of graphs."""

# Type checkers do not know that __init__ may assign the fields.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tensorflow as tf

from extensor._types.digraph import check, conversion
from extensor._types.digraph.spec import DigraphSpec, Values
from extensor._types.pairs_spec import COUNTS, NUMBERS
from extensor.authoring import (
    as_tensor,
    batch_item,
    batch_of,
    cut_rows,
    extension_type,
    integers,
    is_tensor_like,
    known_arrays,
    num_rows,
    reduce_rows,
    replace,
    row_ids,
    row_splits_of,
    sizes_of,
    take_rows,
)
from extensor.errors import DTypeError, FieldError, RowError, StructureError
from extensor.typing import TensorLike

if TYPE_CHECKING:
    import networkx as nx


@extension_type(name="extensor.types.TensorDigraph")
class TensorDigraph:
    """A directed graph with features of its nodes and edges, or a batch of such graphs.

    A batch stores its graphs as one disconnected graph: nodes and edges are numbered through all
    graphs. `num_nodes` and `num_edges` have the shape of the batch; `node_splits` and `edge_splits`
    contain the limits of each graph. One op computes for the nodes or edges of all graphs.

    Args:
        source: The node that each edge comes from: a vector or list.
        target: The node that each edge goes to. Parallel edges and loops are allowed.
        nodes: The node features by name, each with one row for each node: a tensor, RaggedTensor,
            StructuredTensor, or a value of any type that stacks.
        edges: The edge features by name, each with one row for each edge.
        num_nodes: The number of nodes; for a batch, of each graph. Default: the number of rows of
            the node features, in one graph.
        num_edges: The number of edges of each graph in a batch. Default: all edges, in one graph.
        validate: Whether a graph of TensorFlow gets assertions that check the arguments. Eager
            arguments are always checked, in NumPy.

    Raises:
        StructureError: If the arguments do not match each other (also a ValueError).
        DTypeError: If `source`, `target` or a count is not of integers (also a TypeError).

    >>> import extensor as xt
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
    """The number of nodes: a scalar; for a batch, a tensor of its shape."""
    num_edges: Annotated[tf.Tensor, COUNTS]
    """The number of edges, in the same form."""
    nodes: Mapping[str, Any]
    """The features of the nodes: `[nodes, ...]` each."""
    edges: Mapping[str, Any]
    """The features of the edges: `[edges, ...]` each."""

    def __init__(
        self,
        source: TensorLike,
        target: TensorLike,
        nodes: Mapping[str, Any] | None = None,
        edges: Mapping[str, Any] | None = None,
        *,
        num_nodes: TensorLike | None = None,
        num_edges: TensorLike | None = None,
        validate: bool = False,
    ) -> None:
        self.source = tf.cast(integers(source, "TensorDigraph.source", rank=1), tf.int64)
        self.target = tf.cast(integers(target, "TensorDigraph.target", rank=1), tf.int64)
        self.nodes = _features(nodes or {})
        self.edges = _features(edges or {})
        if num_nodes is None:
            if not self.nodes:
                expected = "num_nodes or a node feature"
                received = "num_nodes=None and 0 node features"
                fix = "Give num_nodes: the edges do not show nodes without edges."
                raise StructureError("TensorDigraph.num_nodes", expected, received, fix)
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
        """Returns a batch of graphs with the same features.

        Args:
            graphs: One or more graphs, or batches of the same shape.

        Raises:
            StructureError: If `graphs` is empty, or the features differ (also a ValueError).

        >>> import extensor as xt
        >>> path = xt.types.TensorDigraph([0], [1], num_nodes=2)
        >>> point = xt.types.TensorDigraph([], [], num_nodes=1)
        >>> xt.types.TensorDigraph.batch([path, point, path]).source.numpy()
        array([0, 3])
        """
        return batch_of(cls, list(graphs))

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph[Any],
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
    ) -> TensorDigraph:
        """Returns the graph of a NetworkX graph, with the nodes numbered in their order.

        Args:
            graph: Any graph of NetworkX. An undirected edge becomes two directed edges.
            nodes: The node attributes that become features. Default: all.
            edges: The edge attributes that become features. Default: all.

        Raises:
            StructureError: If a node or edge lacks an attribute (also a ValueError).

        >>> import extensor as xt
        >>> import networkx as nx
        >>> graph = nx.DiGraph()
        >>> graph.add_node("flour", grams=500.0)
        >>> graph.add_node("dough", grams=800.0)
        >>> graph.add_edge("flour", "dough", step=1)
        >>> xt.types.TensorDigraph.from_networkx(graph)
        <TensorDigraph 2 nodes {grams: float32}, 1 edges {step: int32}>
        """
        return conversion.from_networkx(cls, graph, nodes, edges)

    def to_networkx(self, multigraph: bool = False) -> nx.Graph[Any]:
        """Returns a NetworkX graph with numbers as nodes and features as attributes.

        Strings become `bytes`, and features that are not scalars NumPy arrays.

        Args:
            multigraph: Whether to return a `MultiDiGraph`, which supports parallel edges, instead
                of a `DiGraph`.

        Raises:
            StructureError: If this is a batch, or a `DiGraph` would get parallel edges (also a
                ValueError).
            MissingDependencyError: If NetworkX is not installed (also an ImportError).

        >>> import extensor as xt
        >>> xt.types.TensorDigraph([0, 1], [1, 0], num_nodes=2).to_networkx().edges
        OutEdgeView([(0, 1), (1, 0)])
        """
        return conversion.to_networkx(self, multigraph)

    # Batches.

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the batch; `[]` for a single graph."""
        return tf.TensorShape(self.num_nodes.shape)  # of a KerasTensor, it is a tuple

    @property
    def node_splits(self) -> tf.Tensor:
        """The limits of the nodes of each graph: `[graphs + 1]`."""
        return row_splits_of(self.num_nodes)

    @property
    def edge_splits(self) -> tf.Tensor:
        """The limits of the edges of each graph: `[graphs + 1]`."""
        return row_splits_of(self.num_edges)

    def __getitem__(self, index: int | slice | tf.Tensor) -> TensorDigraph:
        """Returns one graph of a batch, or a slice of the batch.

        Args:
            index: A number or slice, or a scalar tensor.

        Raises:
            RowError: If the index is out of range, or this is a single graph (also an IndexError).
        """
        return batch_item(self, index)

    def by_graph(self, values: object) -> Any:
        """Returns values of the nodes split by graph: a RaggedTensor; unchanged for a single graph.

        Args:
            values: A tensor with one row for each node, or the name of a node feature.

        >>> import extensor as xt
        >>> path = xt.types.TensorDigraph([0], [1], {"mass": [1.0, 2.0]})
        >>> point = xt.types.TensorDigraph([], [], {"mass": [4.0]})
        >>> xt.types.TensorDigraph.batch([path, point]).by_graph("mass")
        <tf.RaggedTensor [[1.0, 2.0], [4.0]]>
        """
        sizes = sizes_of(self.shape, tf.shape(self.num_nodes, tf.int64))
        return cut_rows(self._of_nodes(values), self.node_splits, sizes)

    def readout(self, values: TensorLike, reduction: str = "sum") -> tf.Tensor:
        """Returns the sum, mean, maximum or minimum over the nodes of each graph.

        Args:
            values: A tensor of shape `[nodes, ...]`, or the name of a node feature.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"`; zero for a graph without nodes.

        Returns:
            A tensor of shape `[*batch, ...]`.

        >>> import extensor as xt
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

    # Neighbors.

    def out_degree(self) -> tf.Tensor:
        """Returns the number of edges that come from each node: int64 `[nodes]`."""
        return self._degree(self.source)

    def in_degree(self) -> tf.Tensor:
        """Returns the number of edges that go to each node: int64 `[nodes]`."""
        return self._degree(self.target)

    def _degree(self, ends: tf.Tensor) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(tf.ones_like(ends), ends, self._count)

    @property
    def _count(self) -> tf.Tensor:
        return tf.reduce_sum(self.num_nodes)

    def at_source(self, values: object) -> Any:
        """Returns the value of the source node of each edge.

        Args:
            values: A value with one row for each node, or the name of a node feature.
        """
        return take_rows(self._of_nodes(values), self.source)

    def at_target(self, values: object) -> Any:
        """Returns the value of the target node of each edge; see `at_source`."""
        return take_rows(self._of_nodes(values), self.target)

    def collect(self, messages: TensorLike, reduction: str = "sum") -> tf.Tensor:
        """Returns the sum, mean, maximum or minimum over the edges that go to each node.

        Args:
            messages: A tensor of shape `[edges, ...]`, or the name of an edge feature.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"`; zero for a node without such edges.

        Returns:
            A tensor of shape `[nodes, ...]`.

        >>> import extensor as xt
        >>> graph = xt.types.TensorDigraph([0, 1], [2, 2], edges={"cost": [3, 4]}, num_nodes=3)
        >>> graph.collect("cost", "max").numpy()
        array([0, 0, 4], dtype=int32)
        """
        if isinstance(messages, str):
            messages = _feature(self.edges, messages, "edges")
        elif not is_tensor_like(messages):
            messages = as_tensor(messages, "TensorDigraph.collect")
        return reduce_rows(messages, self.target, self._count, reduction)

    def aggregate(self, values: TensorLike, reduction: str = "sum") -> tf.Tensor:
        """Returns the sum, mean, maximum or minimum over the source nodes of each node's edges.

        A source node counts once for each edge. For target nodes, call `reverse().aggregate`.

        Args:
            values: A tensor of shape `[nodes, ...]`, or the name of a node feature.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"`; zero for a node without such edges.

        Returns:
            A tensor of shape `[nodes, ...]`.
        """
        return self.collect(self.at_source(values), reduction)

    # Changed graphs.

    def with_nodes(self, **features: object) -> TensorDigraph:
        """Returns the graph with node features added or replaced."""
        return replace(self, nodes={**self.nodes, **_features(features)})

    def with_edges(self, **features: object) -> TensorDigraph:
        """Returns the graph with edge features added or replaced."""
        return replace(self, edges={**self.edges, **_features(features)})

    def reverse(self) -> TensorDigraph:
        """Returns the graph with every edge reversed."""
        return replace(self, source=self.target, target=self.source)

    def subgraph(self, nodes: TensorLike) -> TensorDigraph:
        """Returns the graph of some nodes and the edges between them.

        Nodes and edges keep their order, and get new numbers.

        Args:
            nodes: A bool tensor, True for the nodes to keep, or a vector of node numbers.

        >>> import extensor as xt
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

    def edge_subgraph(self, edges: TensorLike) -> TensorDigraph:
        """Returns the graph of all nodes and some edges.

        Args:
            edges: A bool tensor, True for the edges to keep, or a vector of edge numbers.
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

    def _of_nodes(self, values: object) -> Values:
        if isinstance(values, str):
            return _feature(self.nodes, values, "nodes")
        return values if is_tensor_like(values) else as_tensor(values, "values of the nodes")

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
"""Another name of TensorDigraph."""


def _features(features: Mapping[str, Any]) -> dict[str, Any]:
    for name in features:
        if not isinstance(name, str):
            fix = 'Give a dict such as {"mass": ...}.'
            raise DTypeError("TensorDigraph", "strings as names of features", repr(name), fix)
    return {
        name: value
        if is_tensor_like(value) and not isinstance(value, tf.Variable)
        else as_tensor(value, f"TensorDigraph, feature {name!r}")
        for name, value in features.items()
    }


def _feature(features: Mapping[str, Any], name: str, kind: str) -> Values:
    if name not in features:
        listed = ", ".join(sorted(features)) or "none"
        expected = f"the name of a feature ({listed})"
        raise FieldError(f"TensorDigraph.{kind}", expected, repr(name), "Check the spelling.")
    return features[name]


def _brief(value: Values) -> str:
    return value.dtype.name if isinstance(value, tf.Tensor) else type(value).__name__


def _mask(which: TensorLike, count: tf.Tensor, path: str) -> tf.Tensor:
    """Returns a bool vector, True for the chosen nodes or edges."""
    if not isinstance(which, tf.Tensor):
        array = np.asarray(which)
        which = tf.convert_to_tensor(array if array.size else array.astype(np.int64))
    known = tf.get_static_value(count)
    if which.dtype == tf.bool:
        if known is not None and not which.shape.is_compatible_with([int(known)]):
            expected = f"shape ({known},), one value for each"
            fix = "For a batch, give values for the nodes or edges of all graphs."
            raise StructureError(f"TensorDigraph.{path}", expected, f"{which.shape}", fix)
        return which
    numbers = tf.cast(integers(which, f"TensorDigraph.{path}", rank=1), tf.int64)
    chosen = tf.get_static_value(numbers)
    if known is not None and chosen is not None and chosen.size:
        wrong = chosen[(chosen < 0) | (chosen >= known)]
        if wrong.size:
            expected = f"numbers from 0 to {known - 1}" if known else "0 numbers"
            fix = "In a batch, nodes and edges are numbered through all graphs."
            raise RowError(f"TensorDigraph.{path}", expected, str(wrong[0]), fix)
    ones = tf.ones_like(numbers)
    return tf.scatter_nd(numbers[:, tf.newaxis], ones, tf.reshape(count, [1])) > 0


def _kept(stays: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns the number of nodes or edges that are kept in each graph."""
    before = row_splits_of(tf.cast(stays, tf.int64))
    at = tf.gather(before, row_splits_of(counts))
    return tf.reshape(at[1:] - at[:-1], tf.shape(counts))
