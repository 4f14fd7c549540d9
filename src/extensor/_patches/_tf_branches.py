"""Branches of tf.cond, tf.case and tf.switch_case that return values of different types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from tensorflow.python.ops import cond_v2

from extensor._patches.common_type import (
    are_tensors,
    common_spec,
    has_casts,
    have_one_structure,
)
from extensor._patches.patch import overrides
from extensor._protocol.casting import cast_value
from extensor._protocol.lossless import is_tensor_like
from extensor._tf import CompositeTensor, Extension
from extensor._tf._tf_casting import func_graph
from extensor._typing import Nest, Value

_CASE = cond_v2._CASE

# TensorFlow rebuilds values of these types from a spec; a spec with other shapes is an error.
_SHAPED = (tf.RaggedTensor, tf.SparseTensor, Extension)


@overrides(
    "tensorflow.python.ops.cond_v2._make_indexed_slices_indices_types_match",
    reason="tf.cond, tf.case and tf.switch_case reject branches that return values of different "
    "types; this function makes the branches agree before TensorFlow compares them.",
    probe="branches",
)
def types_match(
    op_type: int, branch_graphs: Sequence[tf.Graph], *, plain: Callable[..., None]
) -> None:
    """Calls TensorFlow's function after casting the branch outputs to their common type."""
    returned = [graph.structured_outputs for graph in branch_graphs]
    branches = list(map(tf.nest.flatten, returned))
    common: dict[int, tf.TypeSpec] = {}
    replacements: dict[int, tf.TypeSpec | None] = {}
    if not all(map(are_tensors, branches)) and have_one_structure(returned):
        for i, values in enumerate(zip(*branches, strict=True)):
            if are_tensors(values) or not all(map(is_tensor_like, values)):
                continue
            specs = [tf.type_spec_from_value(value) for value in values]
            spec = common_spec(specs, "tf.switch_case" if op_type == _CASE else "tf.cond")
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
    if all(spec is None for spec in replacements.values()):
        return
    for graph in branch_graphs:
        flat = tf.nest.flatten(graph.structured_outputs)
        for i, spec in replacements.items():
            flat[i] = flat[i] if spec is None else spec
        graph.structured_outputs = tf.nest.pack_sequence_as(graph.structured_outputs, flat)


@overrides(
    "tensorflow.python.ops.cond._eager_cond_implementation",
    reason="An eager tf.cond returns what one branch returns; in a graph the same call returns a "
    "value of the common type of both branches.",
    probe="eager_branches",
)
def eager_cond(
    pred: Value,
    true_fn: Callable[[], Nest],
    false_fn: Callable[[], Nest],
    strict: bool,
    name: str | None,
    *,
    plain: Callable[..., Nest],
) -> Nest:
    """Calls TensorFlow's function; casts extension values to the type that a graph has.

    Only if the branch that runs returns a value that can be cast, the other branch is traced,
    without running its ops, for the types of what it would return.
    """
    result = plain(pred, true_fn, false_fn, strict, name)
    if isinstance(result, tf.Tensor):
        return result
    values = tf.nest.flatten(result)
    if not any(map(_can_be_cast, values)):
        return result
    taken = tf.get_static_value(tf.convert_to_tensor(pred))
    others = None if taken is None else _specs_returned(false_fn if taken else true_fn, result)
    if others is None:
        return result
    cast = list(values)
    for i, (value, other) in enumerate(zip(values, others, strict=True)):
        own = _spec_of(value)
        if own is None or other is None:
            continue
        spec = common_spec([own, other] if taken else [other, own], "tf.cond")
        if spec is not None:
            cast[i] = cast_value(spec, value)
    return tf.nest.pack_sequence_as(result, cast)


def _can_be_cast(value: object) -> bool:
    """Returns whether a value is of a type that defines casts."""
    return isinstance(value, CompositeTensor) and has_casts(tf.type_spec_from_value(value))


def _spec_of(value: object) -> tf.TypeSpec | None:
    return tf.type_spec_from_value(value) if is_tensor_like(value) else None


def _specs_returned(function: Callable[[], Nest], like: Nest) -> list[tf.TypeSpec | None] | None:
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
        if have_one_structure([like, returned]):
            return list(map(_spec_of, tf.nest.flatten(returned)))
    except Exception:  # of the user's function
        pass
    return None


def _cast_outputs(graph: tf.Graph, values: list[Value], specs: dict[int, tf.TypeSpec]) -> None:
    """Casts the outputs of a branch that have a spec in `specs`."""
    with graph.as_default():
        cast = [
            cast_value(specs[i], value) if i in specs else value for i, value in enumerate(values)
        ]
    graph.structured_outputs = tf.nest.pack_sequence_as(graph.structured_outputs, cast)
    tensors = func_graph.flatten(graph.structured_outputs)
    graph.outputs = [graph.capture(tensor) for tensor in tensors if tensor is not None]
