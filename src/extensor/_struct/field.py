"""Field values: conversion, static shapes and specs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

import tensorflow as tf

from extensor._path import Path
from extensor._protocol.lossless import as_tensor, is_tensor_like
from extensor._protocol.stackable_spec import any_length, stacks_by_components
from extensor._protocol.symbolic import is_symbolic, symbolic_spec
from extensor._struct.parts import row_parts
from extensor._struct.records import RecordsBase
from extensor._tf import BaseResourceVariable, BatchableTypeSpec, CompositeTensor, VariableSpec
from extensor._typing import FieldValue
from extensor.errors import DTypeError, ProtocolError, StructureError


def expect_fields(fields: Any, path: str, of_what: str, example: str) -> None:
    """Raises unless `fields` is a mapping whose keys are strings.

    Args:
        fields: The value to validate.
        path: The path in errors.
        of_what: What the mapping's values are, in the plural, for errors.
        example: Code for the value of a field named title, for errors.

    Raises:
        DTypeError: If `fields` is not a mapping, or a name is not a string (also a TypeError).
    """
    expect_mapping(fields, path, f"from field names to {of_what}", f'{{"title": {example}}}')
    for name in fields:
        if not isinstance(name, str):
            fix = "Name fields by strings."
            raise DTypeError(f"field {name!r}", "a name of type str", type(name).__name__, fix)


def expect_mapping(value: Any, path: str, of_what: str, example: str) -> None:
    """Raises unless an argument is a mapping.

    Args:
        value: The argument.
        path: The path in errors.
        of_what: From what to what the mapping is, for errors.
        example: Code for a mapping, for errors.

    Raises:
        DTypeError: If it is not a mapping (also a TypeError).
    """
    if not isinstance(value, Mapping):
        raise DTypeError(path, f"a mapping {of_what}", type(value).__name__, f"Write {example}.")


def as_field(value: object, path: Path) -> FieldValue:
    """Returns a value that a field can hold: `value` itself, or its conversion to a tensor.

    Args:
        value: A Tensor, Variable, RaggedTensor, StructuredTensor or any extension value; or
            something that `tf.convert_to_tensor` takes (a number, a list, a NumPy array).
        path: The path of the field, for errors.

    Raises:
        StructureError: If the value is ragged and does not convert (also a ValueError).
        DTypeError: If the value does not convert, or would lose a mask (also a TypeError).
    """
    if is_tensor_like(value) or is_symbolic(value):
        return value
    if isinstance(value, Mapping) or _holds_dicts(value):
        expected = "a tensor, or a value that converts to a tensor"
        fix = (
            "Convert a dict to records: xt.DenseStructuredTensor(shape, fields)."
            if isinstance(value, Mapping)
            else f"Convert dicts to records: xt.struct.constant({{{path.names[-1]!r}: value}})."
        )
        raise StructureError(path, expected, type(value).__name__, fix)
    return as_tensor(cast("Any", value), str(path))


def _holds_dicts(value: object) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = cast("Any", value)[0]
    return isinstance(value, Mapping)


def shape_of(value: FieldValue) -> tf.TensorShape:
    """Returns the static shape of a field's value; its rank may be unknown.

    The `shape` attribute of a user's type may be anything. If it is not a TensorShape, the shape
    is that of the value's spec.
    """
    if isinstance(value, tf.Tensor):
        return value.shape
    if isinstance(value, CompositeTensor):
        shape = getattr(value, "shape", None)
        if not isinstance(shape, tf.TensorShape):
            shape = getattr(tf.type_spec_from_value(value), "shape", None)
        return shape if isinstance(shape, tf.TensorShape) else tf.TensorShape(None)
    return tf.TensorShape(getattr(value, "shape", None))


def spec_of_field(value: FieldValue, hint: tf.TypeSpec | None = None) -> tf.TypeSpec:
    """Returns the spec of a field's value.

    Args:
        value: The field's value.
        hint: A spec that describes the value, perhaps with fewer sizes. If it is a
            `RaggedTensorSpec` of ragged rank 0 (one row of a ragged tensor), so is the result:
            stacking such rows gives a ragged tensor. If it contains such a spec, it is the result.
    """
    if isinstance(value, tf.Tensor):
        if hint is not None and isinstance(hint, tf.RaggedTensorSpec):
            return tf.RaggedTensorSpec(value.shape, value.dtype, 0, hint.row_splits_dtype)
        return tf.TensorSpec(value.shape, value.dtype)
    if isinstance(value, BaseResourceVariable):
        return VariableSpec.from_value(value)
    if hint is not None and marks_rows(hint) and not isinstance(hint, tf.RaggedTensorSpec):
        return hint
    spec = symbolic_spec(value)
    return tf.type_spec_from_value(value) if spec is None else spec


def spec_of_items(value: FieldValue, name: str) -> tf.TypeSpec:
    """Returns the spec of a field's value without the number of its items.

    Raises:
        ProtocolError: If the values do not stack (also a TypeError).
    """
    if isinstance(value, tf.Tensor) and value.shape.rank == 1:
        return _vector_spec(value.dtype)
    if isinstance(value, RecordsBase):
        return value._describe_any_count()
    return any_length(batchable(spec_of_field(value), Path(name)))


@functools.cache
def _vector_spec(dtype: tf.DType) -> tf.TensorSpec:
    return tf.TensorSpec([None], dtype)


def marks_rows(spec: tf.TypeSpec) -> bool:
    """Returns whether a spec is, or contains, the spec of one row of a ragged tensor.

    False for records, which keep this information themselves.
    """
    if isinstance(spec, tf.RaggedTensorSpec):
        return spec.ragged_rank == 0
    if hasattr(spec, "_record"):
        return False
    return stacks_by_components(spec) and any(
        map(marks_rows, tf.nest.flatten(spec.component_specs))
    )


def batchable(spec: tf.TypeSpec, path: Path) -> tf.TypeSpec:
    """Returns the spec of a field as it is, if its values stack.

    Raises:
        ProtocolError: If the values do not stack (also a TypeError).
    """
    if isinstance(spec, BatchableTypeSpec):
        return spec
    if isinstance(spec, VariableSpec):
        fix = "Read it first, with with_updates and tf.convert_to_tensor(variable)."
        raise ProtocolError(path, "a field whose values stack", "a Variable", fix)
    fix = f"Derive {type(spec).__name__} from xt.StackableTypeSpec, or leave the field out."
    raise ProtocolError(path, "a field whose values stack", type(spec).__name__, fix)


def row_splits_dtypes(value: FieldValue) -> set[tf.DType]:
    """Returns the dtypes of the row splits inside a field's value."""
    if isinstance(value, tf.Tensor):
        return set()
    if isinstance(value, tf.RaggedTensor):
        return {value.row_splits.dtype}
    if isinstance(value, RecordsBase):
        return value._row_splits_dtypes()
    found: set[tf.DType] = set()
    if isinstance(value, CompositeTensor):
        for part in row_parts(value) or ():
            found |= row_splits_dtypes(part)
    return found
