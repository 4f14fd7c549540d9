"""The spec of TensorDigraphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

import tensorflow as tf

from extensor._types.digraph import check
from extensor._types.pairs_spec import PairsSpec
from extensor.authoring import rows_spec
from extensor.typing import ShapeLike

if TYPE_CHECKING:
    from extensor import StructuredTensor
    from extensor._types.digraph.value import TensorDigraph  # noqa: F401

Values = Union[tf.Tensor, tf.RaggedTensor, "StructuredTensor"]
"""A feature, with a row for each node or edge: a tensor, records, or another value that stacks."""


class DigraphSpec(PairsSpec["TensorDigraph"]):
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

    _pairs = check.EDGES
    _features = ("nodes", "edges")

    def __init__(
        self,
        nodes: Mapping[str, Any] | None = None,
        edges: Mapping[str, Any] | None = None,
        shape: ShapeLike = (),
    ) -> None:
        self._assign(shape)
        self.nodes = _open_specs("nodes", nodes or {})
        self.edges = _open_specs("edges", edges or {})


def _open_specs(kind: str, specs: Mapping[str, Any]) -> dict[str, Any]:
    return {n: rows_spec(spec, f"TensorDigraph.{kind}[{n!r}]") for n, spec in specs.items()}
