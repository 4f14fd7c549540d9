"""Conversion between TensorDigraphs and graphs of NetworkX."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._types.digraph.spec import Values
from extensor.authoring import box, unbox, unstacked_spec
from extensor.errors import MissingDependencyError, StructureError

if TYPE_CHECKING:
    import networkx as nx

    from extensor._types.digraph.value import TensorDigraph


def from_networkx(
    cls: type[TensorDigraph],
    graph: nx.Graph[Any],
    nodes: Sequence[str] | None,
    edges: Sequence[str] | None,
) -> TensorDigraph:
    """Returns a graph of NetworkX as a value of `cls`."""
    directed = graph.to_directed()
    numbers = {node: number for number, node in enumerate(directed.nodes)}
    ends = [(numbers[source], numbers[target]) for source, target in directed.edges()]
    return cls(
        [source for source, _ in ends],
        [target for _, target in ends],
        _columns([data for _, data in directed.nodes(data=True)], nodes, "nodes"),
        _columns([data for _, _, data in directed.edges(data=True)], edges, "edges"),
        num_nodes=len(numbers),
    )


def _columns(records: list[Any], names: Sequence[str] | None, kind: str) -> dict[str, tf.Tensor]:
    """Returns the attributes as tensors with one row for each node or edge."""
    if names is None:
        names = list(dict.fromkeys(name for record in records for name in record))
    columns: dict[str, tf.Tensor] = {}
    for name in names:
        path = f"TensorDigraph.from_networkx: {kind}[{name!r}]"
        missing = sum(name not in record for record in records)
        if missing:
            expected = f"the attribute on each of the {len(records)} {kind}"
            fix = f"Set it on all {kind}, or name the attributes to convert: {kind}=[...]."
            raise StructureError(path, expected, f"the attribute on {len(records) - missing}", fix)
        try:
            columns[name] = tf.convert_to_tensor([record[name] for record in records])
        except (TypeError, ValueError) as error:
            expected = "values of the same dtype and shape"
            received = "values of different dtypes or shapes"
            fix = f"Convert them, or name the attributes to convert: {kind}=[...]."
            raise StructureError(path, expected, received, fix) from error
    return columns


def to_networkx(graph: TensorDigraph, multigraph: bool) -> nx.Graph[Any]:
    """Returns a single graph as a graph of NetworkX."""
    if graph.shape.rank:
        received = f"a batch of shape {graph.shape}"
        fix = "Convert each graph: graphs[i].to_networkx()."
        raise StructureError("TensorDigraph.to_networkx", "a single graph", received, fix)
    try:
        networkx = importlib.import_module("networkx")
    except ModuleNotFoundError as error:
        received = "no module networkx"
        raise MissingDependencyError(
            "TensorDigraph.to_networkx", "NetworkX", received, 'pip install "extensor[networkx]"'
        ) from error
    result = networkx.MultiDiGraph() if multigraph else networkx.DiGraph()
    count = int(graph.num_nodes)
    result.add_nodes_from(zip(range(count), _records(graph.nodes, count), strict=True))
    sources, targets = graph.source.numpy().tolist(), graph.target.numpy().tolist()
    records = _records(graph.edges, len(sources))
    result.add_edges_from(zip(sources, targets, records, strict=True))
    if result.number_of_edges() != len(sources):
        expected = "no parallel edges in a DiGraph"
        received = f"{len(sources) - result.number_of_edges()} parallel edges"
        fix = "Create a MultiDiGraph: to_networkx(multigraph=True)."
        raise StructureError("TensorDigraph.to_networkx", expected, received, fix)
    return result


def _records(features: Mapping[str, Values], count: int) -> list[dict[str, Any]]:
    """Returns the features of each node or edge."""
    columns = {name: _rows(value) for name, value in features.items()}
    return [{name: column[i] for name, column in columns.items()} for i in range(count)]


def _rows(value: Any) -> list[Any]:
    if isinstance(value, tf.Tensor):
        array = value.numpy()
        return array.tolist() if array.ndim == 1 else list(array)
    spec: Any = tf.type_spec_from_value(value)
    boxes = [tf.unstack(part) for part in box(spec, value, 1)]
    found = [unbox(unstacked_spec(spec, "features"), list(row)) for row in zip(*boxes, strict=True)]
    return [row.numpy() if isinstance(row, tf.Tensor) else row for row in found]
