"""Specs as code: an expression that makes the spec again, with `tf` and `xt` in scope."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

_TYPES = "extensor._types."


def code_of(spec: tf.TypeSpec) -> str:
    """Returns an expression that makes a spec. For other libraries' specs, their repr.

    >>> from extensor._struct.code import code_of
    >>> import tensorflow as tf
    >>> code_of(tf.RaggedTensorSpec([None, None], tf.int32))
    'tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64)'
    """
    if isinstance(spec, tf.TensorSpec) and type(spec) is tf.TensorSpec:
        name = "" if spec.name is None else f", {spec.name!r}"
        return f"tf.TensorSpec({shape_code(spec.shape)}, {dtype_code(spec.dtype)}{name})"
    if isinstance(spec, tf.RaggedTensorSpec):
        flat = spec.flat_values_spec
        parts = [shape_code(spec.shape), dtype_code(spec.dtype), str(spec.ragged_rank)]
        parts.append(dtype_code(spec.row_splits_dtype))
        if flat is not None:
            parts[1] = "None"
            parts.append(f"flat_values_spec={code_of(flat)}")
        return f"tf.RaggedTensorSpec({', '.join(parts)})"
    if isinstance(spec, tf.SparseTensorSpec):
        return f"tf.SparseTensorSpec({shape_code(spec.shape)}, {dtype_code(spec.dtype)})"
    if isinstance(spec, tf.TypeSpec) and type(spec).__module__.startswith(_TYPES):
        return _code_of_type(spec)
    return repr(spec)


def shape_code(shape: tf.TensorShape) -> str:
    """Returns an expression for a shape: `[2, None]`, or `None` for an unknown rank."""
    return "None" if shape.rank is None else repr(shape.as_list())


def dtype_code(dtype: tf.DType) -> str:
    """Returns an expression for a dtype."""
    return f"tf.{dtype.name}" if hasattr(tf, dtype.name) else f"tf.as_dtype({dtype.name!r})"


def _code_of_type(spec: tf.TypeSpec) -> str:
    """Returns an expression for the spec of a type of `xt.types`, from its attributes."""
    names = inspect.signature(type(spec)).parameters
    arguments = {name: getattr(spec, name) for name in names if hasattr(spec, name)}
    for name in reversed(list(arguments)):
        # What follows from the other arguments is left out, such as a shape beside codes.
        others = {other: value for other, value in arguments.items() if other != name}
        try:
            is_implied = type(spec)(**others) == spec
        except (TypeError, ValueError):  # an argument that is required
            continue
        arguments = others if is_implied else arguments
    pairs = [f"{name}={_code(value)}" for name, value in arguments.items()]
    return f"xt.types.{spec.value_type.__name__}.Spec({', '.join(pairs)})"


def _code(value: object) -> str:
    if isinstance(value, tf.TypeSpec):
        return code_of(value)
    if isinstance(value, tf.TensorShape):
        return shape_code(value)
    if isinstance(value, tf.DType):
        return dtype_code(value)
    if isinstance(value, Mapping):
        items: Any = value
        return "{" + ", ".join(f"{k!r}: {_code(v)}" for k, v in items.items()) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_code, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)
