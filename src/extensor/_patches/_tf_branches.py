"""Branches of tf.cond, tf.case and tf.switch_case that return values of different types."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.ops import cond_v2

from extensor._patches.common_type import are_alike, are_tensors, common_spec, is_value
from extensor._patches.patch import replaces
from extensor._protocol.casting import cast_value
from extensor._tf import Extension
from extensor._tf._tf_casting import func_graph

_CASE = cond_v2._CASE

# TensorFlow rebuilds values of these types from a spec; a spec with other shapes is an error.
_SHAPED = (tf.RaggedTensor, tf.SparseTensor, Extension)


@replaces(
    "tensorflow.python.ops.cond_v2._make_indexed_slices_indices_types_match",
    reason="tf.cond, tf.case and tf.switch_case reject branches that return values of different "
    "types; this function makes the branches agree before TensorFlow compares them.",
    probe="branches",
)
def types_match(plain: Any) -> Any:
    def _types_match(op_type: Any, branch_graphs: Any) -> None:
        """Calls TensorFlow's function after casting the branch outputs to their common type."""
        returned = [graph.structured_outputs for graph in branch_graphs]
        branches = list(map(tf.nest.flatten, returned))
        common: dict[int, Any] = {}
        replacements: dict[int, Any] = {}
        if not all(map(are_tensors, branches)) and are_alike(returned):
            for i, values in enumerate(zip(*branches, strict=True)):
                if are_tensors(values) or not all(map(is_value, values)):
                    continue
                specs = [tf.type_spec_from_value(value) for value in values]
                spec = common_spec(specs)
                if spec is not None:
                    common[i] = replacements[i] = spec
                elif op_type == _CASE and all(isinstance(value, _SHAPED) for value in values):
                    replacements[i] = specs[0].most_specific_common_supertype(specs[1:])
        if common:
            for graph, branch in zip(branch_graphs, branches, strict=True):
                _cast_outputs(graph, branch, common)
        plain(op_type, branch_graphs)
        # `tf.switch_case` gives its result the type of the first branch's output, which may be more
        # specific than those of the others. So a spec replaces the value there.
        for graph in (
            branch_graphs if any(spec is not None for spec in replacements.values()) else ()
        ):
            flat = tf.nest.flatten(graph.structured_outputs)
            graph.structured_outputs = tf.nest.pack_sequence_as(
                graph.structured_outputs,
                [
                    value if replacements.get(i) is None else replacements[i]
                    for i, value in enumerate(flat)
                ],
            )

    return _types_match


def _cast_outputs(graph: Any, values: list[Any], specs: dict[int, Any]) -> None:
    """Casts the outputs of a branch that have a spec in `specs`."""
    with graph.as_default():
        cast = [
            cast_value(specs[i], value) if i in specs else value for i, value in enumerate(values)
        ]
    graph.structured_outputs = tf.nest.pack_sequence_as(graph.structured_outputs, cast)
    tensors = func_graph.flatten(graph.structured_outputs)
    graph.outputs = [graph.capture(tensor) for tensor in tensors if tensor is not None]
