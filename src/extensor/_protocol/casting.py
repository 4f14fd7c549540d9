"""Casting: converts values between types, and finds a common type for two specs.

This module has the rules between TensorFlow's own types. The spec of an extension type adds its
rules in its methods `cast` and `castable_type`, which the functions here call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._converter import converter
from extensor._count_text import count_text
from extensor._path import Path
from extensor._protocol.lossless import is_tensor_like, lossless
from extensor._protocol.row_splits import expect_splits_fit
from extensor._protocol.run_time_check import assert_op
from extensor._protocol.tree import supertype, with_items
from extensor._tf import (
    CAST_CONTEXT,
    BaseResourceVariable,
    DistributedVariableSpec,
    VariableSpec,
    component_specs,
    from_components,
    to_components,
)
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, ExtensorError, StructureError

_LENGTH = 300
"""How many characters of a spec an error shows."""


def castable_type(a: tf.TypeSpec, b: tf.TypeSpec) -> tf.TypeSpec | None:
    """Returns the spec of a type that values of both specs can be cast to, or None.

    Args:
        a: A spec of any type.
        b: Another spec. The order matters only if the two `castable_type` methods disagree.

    >>> from extensor._protocol.casting import castable_type
    >>> import tensorflow as tf
    >>> castable_type(tf.TensorSpec([2, 3]), tf.RaggedTensorSpec([2, None]))
    RaggedTensorSpec(TensorShape([2, None]), tf.float32, 1, tf.int64)
    """
    if isinstance(a, VariableSpec) or isinstance(b, VariableSpec):
        return _common_spec_with_variable(a, b)
    # Where the classes of both do the whole join, a supertype of all parts would only be tried in
    # vain at each level.
    joins = getattr(a, "_casts_with_fields", False) and getattr(b, "_casts_with_fields", False)
    found = None if joins else supertype(a, b)
    for spec, other in ((a, b),) if joins else ((a, b), (b, a)):
        if found is None and hasattr(spec, "castable_type"):
            found = spec.castable_type(other)  # pyright: ignore[reportAttributeAccessIssue]
    return _common_ragged_spec(a, b) if found is None else found


def cast_value(spec: tf.TypeSpec, value: object, path: str | None = None, **request: Any) -> Value:
    """Returns a value that is equivalent to `value` and has the type of a spec.

    Args:
        spec: A spec of any type.
        value: A value of a type that can be cast to the spec's type, or Python numbers, lists, or
            arrays.
        path: The name of the value in errors.
        **request: `extra` and `times` for the records in it, as in the `cast` of their spec.

    Raises:
        DTypeError: If the value cannot be cast (also a TypeError).
        StructureError: If the shape does not fit (also a ValueError). In a graph, the error may
            be raised only when the graph runs.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.cast_value(tf.RaggedTensorSpec([None, None]), tf.ones([1, 2]))
    <tf.RaggedTensor [[1.0, 1.0]]>
    """
    path = path or type(spec).__qualname__
    if type(spec) is tf.TensorSpec:
        return _tensor(spec, value, path)
    if isinstance(spec, tf.RaggedTensorSpec):
        return _ragged(spec, value, path)
    try:
        if request and _takes_request(type(spec).cast):
            return spec.cast(value, CAST_CONTEXT, **request)
        return spec.cast(value, CAST_CONTEXT)
    except ExtensorError:
        raise
    except (AttributeError, AssertionError, NotImplementedError, TypeError, ValueError) as error:
        # TensorFlow's own specs raise any of these for a value of another type.
        raise not_castable(spec, value, path) from error


@functools.lru_cache(maxsize=1024)
def _takes_request(cast: Callable[..., Any]) -> bool:
    """Returns whether a method `cast` takes `extra` and `times`."""
    parameters = inspect.signature(cast).parameters.values()
    return any(p.name == "extra" or p.kind is p.VAR_KEYWORD for p in parameters)


def _request_below(request: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the request for a component, whose paths begin with its name."""
    extra = request.get("extra")
    if extra is None or isinstance(extra, str):
        return request
    paths = map(Path.of, extra)
    inner = [Path(*path.names[1:]) for path in paths if path.names[:1] == (name.removeprefix("."),)]
    return {**request, "extra": inner}


def cast_components(specs: Nest, components: Nest, path: str, **request: Any) -> Nest:
    """Returns a nest of components, each cast to its spec.

    Args:
        specs: The nest of component specs.
        components: A nest of the same structure. Lists are converted to tensors.
        path: The name of the whole value in errors.
        **request: As in `cast_value`.

    Raises:
        DTypeError: If the structure differs, or a component cannot be cast (also a TypeError).
        StructureError: If the shape of a component does not fit (also a ValueError).
    """
    if isinstance(specs, Mapping):
        if not isinstance(components, Mapping) or set(components) != set(specs):
            named = ", ".join(sorted(map(str, specs)))
            raise _other_structure(f"a mapping with {named}", components, path)
        names = {key: f".{key}" for key in specs}
    elif isinstance(specs, (list, tuple)):
        if not isinstance(components, (list, tuple)) or len(components) != len(specs):
            raise _other_structure(count_text(len(specs), "components"), components, path)
        names = {i: f"[{i}]" for i in range(len(specs))}
    else:
        return cast_value(specs, components, path, **request)
    items = [
        cast_components(
            specs[key], components[key], path + name, **(request and _request_below(request, name))
        )
        for key, name in names.items()
    ]
    return with_items(specs, items)


def not_castable(
    spec: tf.TypeSpec, value: object, path: str | None = None, fix: str | None = None
) -> DTypeError:
    """Returns the error for a value that cannot be cast to the type of a spec.

    Args:
        spec: The spec.
        value: The value, or its spec.
        path: The name of the value in the error. Default: the spec's class.
        fix: How to correct the error.
    """
    name = type(spec).__qualname__
    given = tf.type_spec_from_value(value) if is_tensor_like(value) else value
    wrong = None if fix else difference_of_records(spec, given, path or name)
    return wrong or DTypeError(
        path or name,
        f"a value that can be cast to {short_text(spec)}",
        short_text(value) if isinstance(value, tf.TypeSpec) else type_text(value),
        fix or f"Convert the value first, or override {name}.cast.",
    )


def difference_of_records(want: object, have: object, path: str) -> DTypeError | None:
    """Returns the error for values of which the records do not cast, with a table of their paths.

    Args:
        want: The expected spec.
        have: The spec of the values.
        path: The name of the values in the error.

    Returns:
        The error; None unless both have records, and these do not cast.
    """
    return converter("mismatch_of_records")(want, have, path)


def type_text(value: object) -> str:
    """Returns the spec of a value, or the name of its type, as text."""
    if is_tensor_like(value):
        return short_text(tf.type_spec_from_value(value))
    return f"a {type(value).__name__}"


def short_text(spec: object) -> str:
    """Returns a spec as text for an error, without the end of one of many fields."""
    text = str(spec)
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."


def _other_structure(expected: str, components: Nest, path: str) -> DTypeError:
    received = type_text(components)
    if isinstance(components, Mapping):
        names = ", ".join(sorted(map(str, components)))
        received = f"a mapping with {names}" if names else "an empty mapping"
    elif isinstance(components, (list, tuple)):
        received = f"a {type(components).__name__} of {len(components)}"
    fix = "Give a value of the type, or one value for each of its components."
    return DTypeError(path, expected, received, fix)


def _common_spec_with_variable(a: tf.TypeSpec, b: tf.TypeSpec) -> tf.TypeSpec | None:
    """Returns a common spec of two specs, at least one of them a VariableSpec, or None."""
    if isinstance(a, DistributedVariableSpec) and isinstance(b, VariableSpec):
        return a if a == b else None
    if isinstance(a, VariableSpec) and isinstance(b, VariableSpec):
        # The variable's identity does not count: a function traced for one takes others.
        same = (a.shape, a.dtype, a.trainable) == (b.shape, b.dtype, b.trainable)
        return a if same else None
    # A variable is read where a tensor is needed.
    readable = (VariableSpec, tf.TensorSpec)
    if isinstance(a, readable) and isinstance(b, readable):
        read = tf.TensorSpec(a.shape, a.dtype)
        return read.most_specific_common_supertype([tf.TensorSpec(b.shape, b.dtype)])
    return None


def _common_ragged_spec(a: tf.TypeSpec, b: tf.TypeSpec) -> tf.RaggedTensorSpec | None:
    """Returns a RaggedTensorSpec for a ragged and a dense spec, or two ragged specs, or None."""
    if isinstance(b, tf.RaggedTensorSpec):
        a, b = b, a
    if not isinstance(a, tf.RaggedTensorSpec):
        return None
    if not isinstance(b, (tf.TensorSpec, tf.RaggedTensorSpec)) or a.dtype != b.dtype:
        return None
    if a.shape.rank is not None and b.shape.rank is not None and a.shape.rank != b.shape.rank:
        return None
    ragged = [spec for spec in (a, b) if isinstance(spec, tf.RaggedTensorSpec)]
    if any(spec.flat_values_spec is not None for spec in ragged):
        return None
    ragged_rank = max(spec.ragged_rank for spec in ragged)
    if isinstance(b, tf.TensorSpec) and 0 < ragged_rank >= (b.shape.rank or 0):
        return None  # the rank is too small for ragged rows, or unknown
    return tf.RaggedTensorSpec(
        a.shape.most_specific_compatible_shape(b.shape),
        a.dtype,
        ragged_rank,
        tf.int64 if any(spec.row_splits_dtype == tf.int64 for spec in ragged) else tf.int32,
    )


def _tensor(spec: tf.TensorSpec, value: Value, path: str) -> tf.Tensor:
    """Returns a value as a dense tensor that matches a spec."""
    if isinstance(value, tf.RaggedTensor):
        value = _uniform(value, path)
    elif not isinstance(value, (tf.Tensor, BaseResourceVariable)):
        value = lossless(value, spec.dtype, path)
        try:
            value = tf.convert_to_tensor(value, spec.dtype)
        except (TypeError, ValueError) as error:
            raise _conversion_error(spec, value, path, error) from error
        rank = value.shape.rank
        if spec.shape.rank is not None and rank < spec.shape.rank and 0 in value.shape:
            # An empty list lacks the inner sizes: take them from the spec.
            inner = [size or 0 for size in spec.shape[rank:]]
            value = tf.zeros([*value.shape, *inner], spec.dtype)
    if (
        isinstance(value, tf.Tensor)
        and not value.shape.is_subtype_of(spec.shape)
        and value.shape.is_compatible_with(spec.shape)
    ):
        # TensorFlow's own cast would not check, at run time, the sizes that are unknown now.
        value = tf.ensure_shape(value, spec.shape)
    if isinstance(value, tf.Tensor) and not value.shape.is_compatible_with(spec.shape):
        raise _other_shape(spec, value, path)
    try:
        return spec.cast(value, CAST_CONTEXT)
    except (TypeError, ValueError) as error:
        raise not_castable(spec, value, path, "Cast it before, with tf.cast.") from error


def _ragged(spec: tf.RaggedTensorSpec, value: Value, path: str) -> Value:
    """Returns a value as a RaggedTensor that matches a spec."""
    dense_spec = tf.TensorSpec(spec.shape, spec.dtype)
    if spec.ragged_rank <= 0 and spec.flat_values_spec is None:
        return _tensor(dense_spec, value, path)
    if isinstance(value, (tf.Tensor, BaseResourceVariable, np.ndarray)):
        value = tf.RaggedTensor.from_tensor(
            _tensor(dense_spec, value, path),
            ragged_rank=spec.ragged_rank,
            row_splits_dtype=spec.row_splits_dtype,
        )
    elif isinstance(value, (list, tuple)):
        value = _ragged_of_lists(spec, value, path)
    if not isinstance(value, tf.RaggedTensor) or value.dtype != spec.dtype:
        raise not_castable(spec, value, path, "Cast it before, with tf.cast.")
    if value.row_splits.dtype != spec.row_splits_dtype:
        if spec.row_splits_dtype == tf.int32:
            for splits in value.nested_row_splits:
                expect_splits_fit(splits[-1], path)
        value = value.with_row_splits_dtype(spec.row_splits_dtype)
    value = _with_ragged_rank(value, spec.ragged_rank, path)
    if not value.shape.is_compatible_with(spec.shape):
        raise _other_shape(spec, value, path)
    own = tf.type_spec_from_value(value)
    if own.is_subtype_of(spec):
        return value
    # The spec may know sizes that the value's static shape does not.
    value = _with_lengths(value, spec.shape, path)
    parts = cast_components(component_specs(spec), to_components(own, value), path)
    return from_components(spec, parts)


def _other_shape(spec: tf.TypeSpec, value: Value, path: str) -> StructureError:
    fits = f"a shape that fits {spec.shape}"
    return StructureError(path, fits, f"{value.shape}", "Slice, pad or reshape it before.")


def _ragged_of_lists(spec: tf.RaggedTensorSpec, value: Sequence[Any], path: str) -> tf.RaggedTensor:
    inner = spec.shape[spec.ragged_rank + 1 :]
    value = lossless(value, spec.dtype, path)
    try:
        ragged = tf.ragged.constant(
            value,
            spec.dtype,
            ragged_rank=spec.ragged_rank,
            inner_shape=tuple(inner) if inner.is_fully_defined() else None,
            row_splits_dtype=spec.row_splits_dtype,
        )
    except (TypeError, ValueError) as error:
        raise _conversion_error(spec, value, path, error) from error
    if ragged.flat_values.shape[0] == 0 and ragged.flat_values.shape.rank <= inner.rank:
        # Empty lists lack the inner sizes: take them from the spec.
        flat = tf.zeros([0, *(size or 0 for size in inner)], spec.dtype)
        ragged = ragged.with_flat_values(flat)
    return ragged


def _with_ragged_rank(value: tf.RaggedTensor, ragged_rank: int, path: str) -> tf.RaggedTensor:
    """Returns a RaggedTensor with exactly `ragged_rank` row partitions."""
    if value.ragged_rank < ragged_rank:
        flat = tf.RaggedTensor.from_tensor(
            value.flat_values,
            ragged_rank=ragged_rank - value.ragged_rank,
            row_splits_dtype=value.row_splits.dtype,
        )
        return value.with_flat_values(flat)
    if value.ragged_rank > ragged_rank:
        inner = value
        for _ in range(ragged_rank):
            inner = inner.values
        return tf.RaggedTensor.from_nested_row_splits(
            _uniform(inner, path), value.nested_row_splits[:ragged_rank], validate=False
        )
    return value


def _uniform(value: tf.RaggedTensor, path: str) -> tf.Tensor:
    """Returns the dense tensor of a RaggedTensor whose rows all have the same length.

    Raises:
        StructureError: If the lengths differ; in a graph, an InvalidArgumentError when it runs.
    """
    dense = value.to_tensor()
    # The counts are equal only if `to_tensor` padded nothing.
    ragged_count = tf.shape(value.flat_values)[0]
    dense_count = tf.reduce_prod(tf.shape(dense)[: value.ragged_rank + 1])
    expected = "rows of the same length, for a dense tensor"
    fix = "Pad them first, with to_tensor()."
    wrong = StructureError(path, expected, "rows of different lengths", fix)
    with tf.control_dependencies(required(ragged_count == dense_count, wrong)):
        return tf.identity(dense)


def _with_lengths(value: tf.RaggedTensor, shape: tf.TensorShape, path: str) -> tf.RaggedTensor:
    """Returns a RaggedTensor, with a check that its rows have the static lengths of a shape."""
    for axis in range(1, value.ragged_rank + 1):
        if shape[axis] is None or value.shape[axis] is not None:
            continue
        lengths = value.row_lengths(axis)
        lengths = lengths.flat_values if isinstance(lengths, tf.RaggedTensor) else lengths
        expected = f"rows of length {shape[axis]} in dimension {axis}"
        wrong = StructureError(path, expected, "rows of another length", "Slice or pad them first.")
        same = tf.reduce_all(lengths == tf.cast(shape[axis], lengths.dtype))
        with tf.control_dependencies(required(same, wrong)):
            value = value.with_flat_values(tf.identity(value.flat_values))
    return value


def required(holds: tf.Tensor | bool, error: StructureError) -> list[tf.Operation]:
    """Returns the ops that check a condition in a graph; in eager mode, raises if it is False.

    Args:
        holds: The condition: a scalar bool tensor.
        error: The error to raise. A graph op fails with its text.

    Returns:
        A list for `tf.control_dependencies`. Empty in eager mode.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> wrong = xt.errors.StructureError(path="Recipe.steps", expected="steps", received="0 steps")
    >>> xt.authoring.required(tf.constant(True), wrong)
    []
    """
    return assert_op(holds, error)


def _conversion_error(spec: tf.TypeSpec, value: object, path: str, error: Exception) -> DTypeError:
    """Returns the error for a value that TensorFlow cannot convert."""
    fix = getattr(error, "fix", None)
    fix = fix or "Give numbers or strings of that dtype, in evenly nested lists."
    return DTypeError(path, f"a value that converts to {spec}", type_text(value), fix)
