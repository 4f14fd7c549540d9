"""Checks that the parts of a TensorDigraph match each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor.authoring import Pairs, num_rows, static_num_rows
from extensor.errors import StructureError

if TYPE_CHECKING:
    from extensor._types.digraph.value import TensorDigraph

Array = np.ndarray[Any, Any]


EDGES = Pairs(
    "TensorDigraph",
    part="graph",
    pairs="edges",
    source="nodes",
    target="nodes",
    exist="nodes of the edge's own graph",
    fix_ends="Give both nodes of each edge: edge i goes from source[i] to target[i].",
    fix_counts="Give both for each graph of a batch.",
)


def shapes(graph: TensorDigraph) -> None:
    """Raises StructureError if static shapes do not match."""
    EDGES.check_shapes(graph)
    for kind, counts in (("nodes", graph.num_nodes), ("edges", graph.num_edges)):
        known = tf.get_static_value(counts) if isinstance(counts, tf.Tensor) else None
        for name, value in getattr(graph, kind).items():
            count = static_num_rows(value)
            if known is not None and count is not None and count != known.sum():
                expected = f"{_rows(known.sum())}, one for each of the {kind}"
                fix = f"Give each feature of the {kind} the same number of rows."
                raise StructureError(f"TensorDigraph.{kind}[{name!r}]", expected, _rows(count), fix)


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def numbers(source: Array, target: Array, num_nodes: Array, num_edges: Array) -> None:
    """Raises StructureError unless each edge connects nodes of its own graph."""
    EDGES.check_numbers(source, target, nodes=num_nodes, edges=num_edges)


def in_graph(graph: TensorDigraph) -> list[Any]:
    """Returns the checks of `numbers` and `shapes` as assertions for a graph."""
    features = [
        (
            tf.equal(tf.reduce_sum(counts), num_rows(value)),
            f"{kind}[{name!r}] must have a row for each of the {kind}",
        )
        for kind, counts in (("nodes", graph.num_nodes), ("edges", graph.num_edges))
        for name, value in getattr(graph, kind).items()
    ]
    return EDGES.assertions(graph, *features)
