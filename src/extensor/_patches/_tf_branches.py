"""Branches of tf.cond, tf.case and tf.switch_case that return values of different types."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.ops import cond_v2

from extensor._patches.common_type import (
    are_alike,
    are_tensors,
    common_spec,
    expect_alike,
    is_ours,
    is_value,
    may_cast,
)
from extensor._patches.patch import replaces
from extensor._protocol.casting import cast_value
from extensor._tf import CompositeTensor, Extension
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
                    continue
                if may_cast(specs):
                    expect_alike(specs, "tf.switch_case" if op_type == _CASE else "tf.cond")
                if op_type == _CASE and all(isinstance(value, _SHAPED) for value in values):
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


@replaces(
    "tensorflow.python.ops.cond._eager_cond_implementation",
    reason="An eager tf.cond returns what one branch returns; in a graph the same call returns a "
    "value of the common type of both branches.",
    probe="eager_branches",
)
def eager_cond(plain: Any) -> Any:
    def _eager_cond(pred: Any, true_fn: Any, false_fn: Any, strict: bool, name: Any) -> Any:
        """Calls TensorFlow's function; casts extension values to the type that a graph has.

        Only if the branch that runs returns a value that can be cast, the other branch is traced,
        without running its ops, for the types of what it would return.
        """
        result = plain(pred, true_fn, false_fn, strict, name)
        if isinstance(result, tf.Tensor):
            return result
        values = tf.nest.flatten(result)
        taken = (
            tf.get_static_value(tf.convert_to_tensor(pred)) if any(map(_casts, values)) else None
        )
        if taken is None:
            return result
        others = _specs_returned(false_fn if taken else true_fn, result)
        if others is None:
            return result
        specs = [_spec_of(value) for value in values]
        pairs = list(zip(specs, others, strict=True))
        common = [None if None in pair else common_spec(pair) for pair in pairs]
        for spec, pair in zip(common, pairs, strict=True):
            if spec is None and None not in pair and may_cast(pair):
                expect_alike(pair if taken else pair[::-1], "tf.cond")
        if not any(spec is not None for spec in common):
            return result
        return tf.nest.pack_sequence_as(
            result,
            [
                value if spec is None else cast_value(spec, value)
                for spec, value in zip(common, values, strict=True)
            ],
        )

    return _eager_cond


def _casts(value: Any) -> bool:
    """Returns whether a value is of a type that defines casts."""
    return isinstance(value, CompositeTensor) and is_ours(tf.type_spec_from_value(value))


def _spec_of(value: Any) -> Any:
    return tf.type_spec_from_value(value) if is_value(value) else None


def _specs_returned(function: Any, like: Any) -> list[Any] | None:
    """Returns the specs of what a function returns, in the order of `tf.nest.flatten`.

    Args:
        function: A branch of a tf.cond.
        like: The result of the other branch.

    Returns:
        A spec for each value, None for other objects. None if the structure is another one, or if
        the function cannot be traced: it may read `.numpy()`, which only runs eagerly.
    """
    try:
        graph = func_graph.func_graph_from_py_func("other_branch", function, [], {})
        returned = graph.structured_outputs
        return (
            list(map(_spec_of, tf.nest.flatten(returned))) if are_alike([like, returned]) else None
        )
    except Exception:
        return None


def _cast_outputs(graph: Any, values: list[Any], specs: dict[int, Any]) -> None:
    """Casts the outputs of a branch that have a spec in `specs`."""
    with graph.as_default():
        cast = [
            cast_value(specs[i], value) if i in specs else value for i, value in enumerate(values)
        ]
    graph.structured_outputs = tf.nest.pack_sequence_as(graph.structured_outputs, cast)
    tensors = func_graph.flatten(graph.structured_outputs)
    graph.outputs = [graph.capture(tensor) for tensor in tensors if tensor is not None]
