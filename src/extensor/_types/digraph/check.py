"""Whether the parts of a TensorDigraph fit each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types import numbering, rows
from extensor.errors import StructureError


def shapes(graph: Any) -> None:
    """Raises StructureError unless the shapes fit, as far as they are known statically."""
    if not graph.source.shape.is_compatible_with(graph.target.shape):
        raise StructureError(
            path="TensorDigraph.target",
            expected=f"shape {graph.source.shape}, as the source",
            received=f"{graph.target.shape}",
            mend="Edge i goes from node source[i] to node target[i].",
        )
    if not graph.num_edges.shape.is_compatible_with(graph.num_nodes.shape):
        raise StructureError(
            path="TensorDigraph.num_edges",
            expected=f"shape {graph.num_nodes.shape}, as num_nodes",
            received=f"{graph.num_edges.shape}",
            mend="Give both for each graph of a batch.",
        )
    if graph.shape.rank is None:
        raise StructureError(
            path="TensorDigraph.num_nodes",
            expected="a tensor of known rank",
            received="one of unknown rank",
            mend="Use tf.ensure_shape.",
        )
    for kind, counts in (("nodes", graph.num_nodes), ("edges", graph.num_edges)):
        known = tf.get_static_value(counts) if isinstance(counts, tf.Tensor) else None
        for name, value in getattr(graph, kind).items():
            count = rows.static_count(value)
            if known is not None and count is not None and count != known.sum():
                raise StructureError(
                    path=f"TensorDigraph.{kind}[{name!r}]",
                    expected=f"{known.sum()} rows, one for each of the {kind}",
                    received=f"{count}",
                    mend=f"Give each feature of the {kind} the same number of rows.",
                )


def numbers(source: Any, target: Any, num_nodes: Any, num_edges: Any) -> None:
    """Raises StructureError unless all edges are between nodes of their own graph."""
    counts = {"nodes": num_nodes, "edges": num_edges}
    numbering.expect_counts("TensorDigraph", "graph", counts, "edges", len(source))
    graphs = numbering.parts_of(num_edges)
    first, end = numbering.ranges(num_nodes, graphs)
    for name, nodes in (("source", source), ("target", target)):
        wrong = np.flatnonzero((nodes < first) | (nodes >= end))
        if wrong.size:
            edge = wrong[0]
            where = f" of graph {graphs[edge]}" if num_nodes.ndim else ""
            span = f"a node from {first[edge]} to {end[edge] - 1}{where}"
            raise StructureError(
                path=f"TensorDigraph.{name}",
                expected=span if first[edge] < end[edge] else f"no edges, for no nodes{where}",
                received=f"{nodes[edge]}, of edge {edge}",
                mend="In a batch, nodes are numbered through all graphs."
                if num_nodes.ndim
                else "num_nodes, or the rows of the node features, say how many nodes there are.",
            )


def assertions(graph: Any) -> list[Any]:
    """Returns what `numbers` checks, as assertions in a graph."""
    counts = {"nodes": graph.num_nodes, "edges": graph.num_edges}
    checks = numbering.counts_hold(counts, "edges", graph.source, graph.target)
    for kind, features in (("nodes", graph.nodes), ("edges", graph.edges)):
        for name, value in features.items():
            fits = tf.equal(tf.reduce_sum(counts[kind]), rows.count_values(value))
            checks.append((fits, f"{kind}[{name!r}] must have a row for each of the {kind}"))
    for name, nodes in (("source", graph.source), ("target", graph.target)):
        inside = numbering.inside(nodes, graph.num_nodes, graph.num_edges)
        checks.append((inside, f"{name} must be nodes of the edge's own graph"))
    return [tf.debugging.Assert(holds, [f"TensorDigraph: {text}"]) for holds, text in checks]
