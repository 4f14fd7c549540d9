"""Where values of different types meet: branches, loops, datasets and restored functions.

| name | why |
| --- | --- |
| `trace_type.InternalCastContext` | What TensorFlow hands to `TypeSpec.cast`, which its own specs ask for. |
| `cond_v2` | `tf.cond`, `tf.case` and `tf.switch_case` refuse branches that return values of different types. `_make_indexed_slices_indices_types_match` is the step in which they make the branches agree, before they are compared. `tf.switch_case` (`_CASE`) then packs the result of all branches as what the first returned. |
| `while_v2` | `tf.while_loop` refuses a body that returns a value of another type than it got. |
| `convert_variables_to_tensors` | `tf.while_loop` reads the variables in its values before it compares them. Types can be compared only after the same step. |
| `concatenate_op` | `Dataset.concatenate` refuses elements of different types. |
| `function_deserialization` | A function from a SavedModel takes values whose specs are those it was traced for. `_concrete_function_callable_with` says whether it takes some, `_call_concrete_function` hands them over. |
| `func_graph` | To try a cast without leaving ops behind, and to flatten what a branch returns, as TensorFlow does in these places. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.core.function import trace_type
from tensorflow.python.data.ops import concatenate_op
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import cond_v2, while_v2
from tensorflow.python.saved_model import function_deserialization
from tensorflow.python.util.variable_utils import convert_variables_to_tensors

from extensor._tf._tf_protocol import CompositeTensor, Extension
from extensor.errors import DTypeError

CAST_CONTEXT = trace_type.InternalCastContext()

_cast: Callable[[Any, Any], Any]
_castable_type: Callable[[Any, Any], Any]


def install_casting(
    cast: Callable[[Any, Any], Any], castable_type: Callable[[Any, Any], Any]
) -> None:
    """Gives the APIs below what they cast by.

    Args:
        cast: Takes a spec and a value, and returns the value cast to the spec's type.
        castable_type: Takes two specs, and returns one to which values of both can be cast, or
            None.
    """
    global _cast, _castable_type
    _cast, _castable_type = cast, castable_type


def _meeting(specs: Any) -> Any:
    """Returns the spec to which to cast values of some specs.

    It is None where they are of one type as TensorFlow has it, and where no cast helps.
    """
    if not _may_meet(specs):
        return None
    met, needs_cast = specs[0], False
    for spec in specs[1:]:
        merged = met.most_specific_common_supertype([spec])
        if merged is None:
            needs_cast = True
            merged = _castable_type(met, spec)
            if merged is None:
                return None
        met = merged
    return met if needs_cast else None


def _is_value(value: Any) -> bool:
    return isinstance(value, (tf.Tensor, CompositeTensor))


def _is_ours(spec: Any) -> bool:
    """Whether a type says itself what it is cast from. TensorFlow's own types do not."""
    return hasattr(spec, "castable_type")


def _may_meet(specs: Any) -> bool:
    """Whether one of some types may be cast. Of TensorFlow's own, RaggedTensor alone is."""
    return any(_is_ours(spec) or isinstance(spec, tf.RaggedTensorSpec) for spec in specs)


def _are_alike(structures: list[Any]) -> bool:
    """Whether nests are of one structure, down to the values."""
    try:
        for structure in structures[1:]:
            tf.nest.assert_same_structure(structures[0], structure, check_types=False)
    except (TypeError, ValueError):
        return False
    return True


def _are_tensors(values: Any) -> bool:
    return all(isinstance(value, tf.Tensor) for value in values)


_plain_types_match = cond_v2._make_indexed_slices_indices_types_match


def _types_match(op_type: Any, branch_graphs: Any) -> None:
    """As TensorFlow's own; what the branches return is cast to the type where they meet."""
    returned = [graph.structured_outputs for graph in branch_graphs]
    branches = list(map(tf.nest.flatten, returned))
    met: dict[int, Any] = {}
    shown: dict[int, Any] = {}
    if not all(map(_are_tensors, branches)) and _are_alike(returned):
        for i, values in enumerate(zip(*branches, strict=True)):
            if _are_tensors(values) or not all(map(_is_value, values)):
                continue
            specs = [tf.type_spec_from_value(value) for value in values]
            spec = _meeting(specs)
            if spec is not None:
                met[i] = shown[i] = spec
            elif op_type == _CASE and all(isinstance(value, _SHAPED) for value in values):
                shown[i] = specs[0].most_specific_common_supertype(specs[1:])
    if met:
        for graph, branch in zip(branch_graphs, branches, strict=True):
            _cast_outputs(graph, branch, met)
    _plain_types_match(op_type, branch_graphs)
    # `tf.switch_case` gives its result the type of what the first branch returned, which may show
    # more than those of the others. So a spec takes the place of the value there.
    for graph in branch_graphs if any(spec is not None for spec in shown.values()) else ():
        flat = tf.nest.flatten(graph.structured_outputs)
        graph.structured_outputs = tf.nest.pack_sequence_as(
            graph.structured_outputs,
            [value if shown.get(i) is None else shown[i] for i, value in enumerate(flat)],
        )


_CASE = cond_v2._CASE

# A value of these that is made for a spec of other shapes is an error.
_SHAPED = (tf.RaggedTensor, tf.SparseTensor, Extension)


def _cast_outputs(graph: Any, values: list[Any], specs: dict[int, Any]) -> None:
    """Casts what a branch returns, in the places of some specs."""
    with graph.as_default():
        cast = [_cast(specs[i], value) if i in specs else value for i, value in enumerate(values)]
    graph.structured_outputs = tf.nest.pack_sequence_as(graph.structured_outputs, cast)
    tensors = func_graph.flatten(graph.structured_outputs)
    graph.outputs = [graph.capture(tensor) for tensor in tensors if tensor is not None]


cond_v2._make_indexed_slices_indices_types_match = _types_match


class _WiderError(Exception):
    """The body of a loop returned a value that does not fit its variable, but meets it."""

    def __init__(self, place: int, spec: Any) -> None:
        super().__init__(place, spec)
        self.place, self.spec = place, spec

    ag_pass_through = True


_plain_while_loop = while_v2.while_loop


def _while_loop(
    cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """As TensorFlow's own; what the body returns is cast to the type where it meets its variable.

    Where that is another type than the variable's, the loop is built again with the variable
    cast to it, unless the caller gave `shape_invariants`.
    """
    loop_vars = convert_variables_to_tensors(loop_vars)
    flat = tf.nest.flatten(loop_vars)
    may_widen = shape_invariants is None
    invariants: list[Any] = [None] * len(flat)
    if shape_invariants is not None:
        if not _are_alike([loop_vars, shape_invariants]):
            return _plain_while_loop(cond, body, loop_vars, shape_invariants, *args, **kwargs)
        invariants = tf.nest.flatten(shape_invariants)
        for i, (spec, value) in enumerate(zip(invariants, flat, strict=True)):
            if isinstance(spec, tf.TypeSpec) and _meets(spec, value):
                flat[i] = _cast_or_leave(spec, value)
                loop_vars = tf.nest.pack_sequence_as(loop_vars, flat)

    def cast_body(*variables: Any) -> Any:
        outputs = body(*variables)
        outputs = outputs if tf.nest.is_nested(outputs) else [outputs]
        values = tf.nest.flatten(outputs)
        if _are_tensors((*values, *flat)) or not _are_alike([loop_vars, outputs]):
            return outputs
        changed = False
        for i, (value, variable) in enumerate(zip(values, flat, strict=True)):
            if not (_is_value(value) and _is_value(variable)) or _are_tensors((value, variable)):
                continue
            spec = invariants[i]
            if not isinstance(spec, tf.TypeSpec):
                shape, spec = spec, tf.type_spec_from_value(variable)
                if shape is not None and isinstance(spec, tf.TensorSpec):
                    spec = tf.TensorSpec(shape, spec.dtype)
            if not _may_meet([spec, tf.type_spec_from_value(value)]):
                continue
            value = convert_variables_to_tensors(value)
            returned = tf.type_spec_from_value(value)
            if spec.most_specific_common_supertype([returned]) is not None:
                continue
            met = _castable_type(spec, returned)
            if met is None:
                if not (_is_ours(spec) or _is_ours(returned)):
                    continue  # TensorFlow has an error of its own
                raise DTypeError(
                    path=f"tf.while_loop, variable {i}",
                    expected=f"a body that returns what can be cast to {spec}",
                    received=str(returned),
                    mend="Let the body return the type that it gets.",
                )
            if may_widen and not met.is_subtype_of(spec):
                raise _WiderError(i, met)
            values[i] = _cast_or_leave(spec, value)
            changed = True
        return tf.nest.pack_sequence_as(outputs, values) if changed else outputs

    while True:
        try:
            return _plain_while_loop(cond, cast_body, loop_vars, shape_invariants, *args, **kwargs)
        except _WiderError as wider:
            flat[wider.place] = _cast(wider.spec, flat[wider.place])
            invariants[wider.place] = wider.spec
            loop_vars = tf.nest.pack_sequence_as(loop_vars, flat)
            shape_invariants = tf.nest.pack_sequence_as(loop_vars, invariants)


def _meets(spec: Any, value: Any) -> bool:
    """Whether a value is of another type than a spec, but can be cast to one that both meet."""
    return _is_value(value) and _meeting([spec, tf.type_spec_from_value(value)]) is not None


def _cast_or_leave(spec: Any, value: Any) -> Any:
    """Returns a value cast to a type.

    A value of TensorFlow's own that does not fit comes back as it is: TensorFlow raises an error
    of its own.
    """
    try:
        return _cast(spec, value)
    except (TypeError, ValueError):
        if _is_ours(spec) or _is_ours(tf.type_spec_from_value(value)):
            raise
        return value


while_v2.while_loop = _while_loop


_plain_concatenate: Any = concatenate_op._concatenate


def _concatenate(input_dataset: Any, dataset_to_concatenate: Any, name: Any = None) -> Any:
    """As TensorFlow's own; the elements are cast to the type where they meet."""
    return _plain_concatenate(*cast_together([input_dataset, dataset_to_concatenate]), name)


def cast_together(datasets: list[Any]) -> list[Any]:
    """Returns datasets with their elements cast to the type where those of all meet.

    Args:
        datasets: They come back as they are where TensorFlow can join them, and where no cast
            helps.
    """
    structures = [dataset.element_spec for dataset in datasets]
    if not _are_alike(structures):
        return datasets
    met = list(map(_meeting, zip(*map(tf.nest.flatten, structures), strict=True)))
    if not any(spec is not None for spec in met):
        return datasets
    return [_with_elements_cast(dataset, met) for dataset in datasets]


def _with_elements_cast(dataset: Any, specs: list[Any]) -> Any:
    def cast(*element: Any) -> Any:
        # Dataset.map hands a tuple over item by item.
        whole = element if type(dataset.element_spec) is tuple else element[0]
        values = zip(specs, tf.nest.flatten(whole), strict=True)
        return tf.nest.pack_sequence_as(
            whole, [value if spec is None else _cast(spec, value) for spec, value in values]
        )

    return dataset.map(cast)


concatenate_op._concatenate = _concatenate


_plain_callable_with = function_deserialization._concrete_function_callable_with
_plain_call = function_deserialization._call_concrete_function


def _callable_with(function: Any, inputs: Any, allow_conversion: bool) -> bool:
    """As TensorFlow's own; where it may convert numbers to tensors, values are cast too."""
    if _plain_callable_with(function, inputs, allow_conversion):
        return True
    if not allow_conversion or not _has_castable(function, inputs):
        return False
    try:
        with func_graph.FuncGraph("try_cast").as_default():
            cast = _cast_inputs(function, inputs)
    except (TypeError, ValueError):
        return False
    return _plain_callable_with(function, cast, allow_conversion)


def _call(function: Any, inputs: Any) -> Any:
    """As TensorFlow's own, of values cast to the types that the function was traced for."""
    if _has_castable(function, inputs):
        inputs = _cast_inputs(function, inputs)
    return _plain_call(function, inputs)


def _has_castable(function: Any, inputs: Any) -> bool:
    expected = function.graph.structured_input_signature
    specs, values = tf.nest.flatten(expected), tf.nest.flatten(inputs)
    return _are_alike([expected, inputs]) and any(map(_is_castable, specs, values))


def _cast_inputs(function: Any, inputs: Any) -> Any:
    expected = function.graph.structured_input_signature
    pairs = zip(tf.nest.flatten(expected), tf.nest.flatten(inputs), strict=True)
    cast = [_cast(spec, value) if _is_castable(spec, value) else value for spec, value in pairs]
    return tf.nest.pack_sequence_as(inputs, cast)


def _is_castable(spec: Any, value: Any) -> bool:
    """Whether a restored function may cast an argument to a spec."""
    if not isinstance(spec, tf.TypeSpec):
        return False
    if isinstance(value, Extension) or _is_ours(spec):
        return isinstance(spec, tf.TensorSpec) or not spec.is_compatible_with(value)
    # Of TensorFlow's own types those alone whose cast cannot fail when the function runs.
    if not isinstance(spec, tf.RaggedTensorSpec) or type(value) is not tf.RaggedTensor:
        return False
    met = (
        None if spec.is_compatible_with(value) else _meeting([spec, tf.type_spec_from_value(value)])
    )
    return met is not None and met.is_subtype_of(spec)


function_deserialization._concrete_function_callable_with = _callable_with
function_deserialization._call_concrete_function = _call
