"""The spec of TensorDigraphs, and the boxing of the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import tensorflow as tf

from extensor.authoring import (
    FrozenDict,
    box_rows,
    boxed_rows_specs,
    expect_unstacks,
    first_positions,
    known_arrays,
    row_splits_of,
    rows_spec,
    sizes_of,
    unbox_rows,
)
from extensor.errors import StructureError
from extensor.typing import ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self

    from extensor import StructuredTensor
    from extensor._types.digraph.value import TensorDigraph

Values = Union[tf.Tensor, tf.RaggedTensor, "StructuredTensor"]
"""A feature, with a row for each node or edge: a tensor, records, or another value that stacks."""

NUMBERS = tf.TensorSpec([None], tf.int64)
"""One number for each edge."""

COUNTS = tf.TensorSpec(None, tf.int64)
"""One number for each graph."""

_KINDS = ("nodes", "edges")


class DigraphSpec:
    """The spec of graphs with given features, and any number of nodes and edges.

    Args:
        nodes: The spec of each node feature by name, with one row for each node.
        edges: The spec of each edge feature by name, with one row for each edge.
        shape: The static shape of the batch; its rank must be known.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.types.TensorDigraph.Spec({"mass": tf.TensorSpec([None])})
    >>> graph = xt.types.TensorDigraph([0], [1], {"mass": [1.0, 2.0]})
    >>> spec.is_compatible_with(graph)
    True
    """

    nodes: Mapping[str, Any]
    edges: Mapping[str, Any]
    num_nodes: tf.TensorSpec
    value_type: type[TensorDigraph]

    def __init__(
        self,
        nodes: Mapping[str, Any] | None = None,
        edges: Mapping[str, Any] | None = None,
        shape: ShapeLike = (),
    ) -> None:
        static = tf.TensorShape(shape)
        if static.rank is None:
            expected = "a shape of known rank"
            fix = "Sizes may be None; a single graph has the shape []."
            raise StructureError("TensorDigraph.Spec", expected, f"shape {static}", fix)
        self.source = self.target = NUMBERS
        self.num_nodes = self.num_edges = tf.TensorSpec(static, tf.int64)
        self.nodes = _open_specs("nodes", nodes or {})
        self.edges = _open_specs("edges", edges or {})

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the batch."""
        return self.num_nodes.shape

    @classmethod
    def of(cls, value: TensorDigraph) -> tf.TypeSpec:
        """Returns the spec of a graph, for any number of nodes and edges."""
        nodes, edges = (
            {name: tf.type_spec_from_value(feature) for name, feature in features.items()}
            for features in (value.nodes, value.edges)
        )
        return cls(nodes, edges, value.shape)

    def stacked(self, num: int | None) -> Self:
        """Returns the spec of a batch."""
        shape = tf.TensorShape([num]).concatenate(self.shape)
        return type(self)(self.nodes, self.edges, shape)

    def unstacked(self) -> Self:
        """Returns the spec of one element of a batch: a graph or a smaller batch."""
        if self.shape.rank == 0:
            fix = "For values of its nodes, use the features in value.nodes."
            raise StructureError("TensorDigraph.Spec", "a batch to unstack", "a single graph", fix)
        return type(self)(self.nodes, self.edges, self.shape[1:])

    def joined(self, graphs: Sequence[Any]) -> TensorDigraph | None:
        """Returns a batch of single graphs of this spec, or None if only their boxes make one.

        The boxes would cost several ops for each graph; this costs few for all.
        """
        if self.shape.rank or not all(map(_has_tensors, graphs)):
            return None
        ends = [tf.concat([getattr(g, end) for g in graphs], 0) for end in ("source", "target")]
        counts = [tf.stack([getattr(g, f"num_{kind}") for g in graphs]) for kind in _KINDS]
        first = first_positions(counts[0].shape, counts[0], row_splits_of(counts[1]), ends[0])
        features = [_join([getattr(graph, kind) for graph in graphs]) for kind in _KINDS]
        return self._graph([end + first for end in ends], counts, features)

    def part(self, batch: TensorDigraph, index: int | slice | tf.Tensor) -> TensorDigraph | None:
        """Returns a graph of an eager batch, or a slice of it; None if only the boxes can.

        Each tensor is cut once: the boxes would cost several ops for each.
        """
        counts = known_arrays(batch.num_nodes, batch.num_edges)
        if counts is None or self.shape.rank != 1 or not _has_tensors(batch):
            return None
        size, is_slice = len(counts[0]), isinstance(index, slice)
        if isinstance(index, slice):
            begin, end, step = index.indices(size)
            if step != 1:
                return None
        elif type(index) is int:
            begin = index % size
            end = begin + 1
        else:
            return None
        end = max(begin, end)
        limits = [[of[:i].sum() for i in (begin, end)] for of in counts]
        nodes, edges = (tf.constant([[a], [b], [1]], tf.int64) for a, b in limits)
        graphs = tf.constant([[begin], [end], [1]], tf.int64)
        first = tf.constant(limits[0][0], tf.int64)
        cut, cut_nodes = _cut(edges), _cut(nodes)
        one = _cut(graphs, shrink=not is_slice)
        return self._graph(
            [cut(end) - first for end in (batch.source, batch.target)],
            [one(count) for count in (batch.num_nodes, batch.num_edges)],
            [
                {name: cut_nodes(feature) for name, feature in batch.nodes.items()},
                {name: cut(feature) for name, feature in batch.edges.items()},
            ],
        )

    def _graph(
        self,
        ends: Sequence[tf.Tensor],
        counts: Sequence[tf.Tensor],
        features: Sequence[Mapping[str, Any]],
    ) -> TensorDigraph:
        """Returns a graph from parts that match. Runs no op and checks nothing."""
        value = object.__new__(self.value_type)
        value.__dict__.update(
            source=ends[0],
            target=ends[1],
            num_nodes=counts[0],
            num_edges=counts[1],
            nodes=FrozenDict(features[0]),
            edges=FrozenDict(features[1]),
        )
        return value

    # The boxes are: the numbers of nodes and edges; the source and target of each edge, numbered
    # from 0 in each graph; node features; edge features.

    def _rows(self) -> list[tuple[str, str, Any]]:
        """Returns what is boxed in rows: "nodes" or "edges", the name, the spec."""
        return [
            ("edges", "source", NUMBERS),
            ("edges", "target", NUMBERS),
            *(("nodes", name, self.nodes[name]) for name in sorted(self.nodes)),
            *(("edges", name, self.edges[name]) for name in sorted(self.edges)),
        ]

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec]:
        """Returns the TensorSpecs of the boxes."""
        boxed = [part for _, _, spec in self._rows() for part in boxed_rows_specs(spec)]
        return [self.num_nodes, self.num_nodes, *boxed]

    def to_boxed_tensor(self, value: TensorDigraph, minimum_rank: int = 0) -> list[tf.Tensor]:
        """Returns the boxes of a graph, or of a batch."""
        expect_unstacks(self, value, minimum_rank)
        sizes = sizes_of(value.shape, tf.shape(value.num_nodes, tf.int64))
        splits = {"nodes": value.node_splits, "edges": value.edge_splits}
        first = first_positions(self.shape, value.num_nodes, splits["edges"], value.source)
        ends = {"source": value.source - first, "target": value.target - first}
        boxes = [value.num_nodes, value.num_edges]
        for i, (what, name, spec) in enumerate(self._rows()):
            part = ends[name] if i < 2 else getattr(value, what)[name]
            boxes += box_rows(spec, part, splits[what], sizes, minimum_rank)
        return boxes

    def from_boxed_tensor(self, boxed_tensor: list[tf.Tensor]) -> TensorDigraph:
        """Returns the graph, or the batch, that the boxes contain."""
        num_nodes, num_edges, *others = boxed_tensor
        boxes = iter(others)
        values = [
            (what, name, unbox_rows(spec, self.shape, boxes, tf.int64))
            for what, name, spec in self._rows()
        ]
        ends = [value for _, _, value in values[:2]]
        first = first_positions(self.shape, num_nodes, row_splits_of(num_edges), ends[0])
        features = [{n: value for what, n, value in values[2:] if what == kind} for kind in _KINDS]
        return self._graph([end + first for end in ends], [num_nodes, num_edges], features)


def _has_tensors(graph: TensorDigraph) -> bool:
    parts = (graph.source, graph.num_nodes, *graph.nodes.values(), *graph.edges.values())
    return all(isinstance(part, tf.Tensor) for part in parts)


def _cut(limits: tf.Tensor, shrink: bool = False) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function that takes rows of a tensor, or one row without its dimension."""
    begin, end, step = tf.unstack(limits)
    kernel = tf.raw_ops.StridedSlice
    return lambda tensor: kernel(
        input=tensor, begin=begin, end=end, strides=step, shrink_axis_mask=int(shrink)
    )


def _join(features: Sequence[Mapping[str, Any]]) -> dict[str, tf.Tensor]:
    return {n: tf.concat([of[n] for of in features], 0) for n in sorted(features[0])}


def _open_specs(kind: str, specs: Mapping[str, Any]) -> dict[str, Any]:
    return {n: rows_spec(spec, f"TensorDigraph.{kind}[{n!r}]") for n, spec in specs.items()}
