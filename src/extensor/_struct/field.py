"""What may be the value of a field, and how it is described."""

# The methods of records that are called here are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._protocol.lossless import is_tensor_like, lossless
from extensor._struct.records import Records
from extensor._struct.symbolic import is_symbolic, symbolic_spec
from extensor._tf import BaseResourceVariable, BatchableTypeSpec, CompositeTensor, VariableSpec
from extensor.errors import DTypeError, ProtocolError, StructureError


def expect_fields(fields: Any, path: str, of_what: str, example: str) -> None:
    """Raises unless fields are a mapping from names.

    Args:
        fields: What is given.
        path: What to call it.
        of_what: What the names lead to.
        example: Code of one such, for a field named title.

    Raises:
        DTypeError: If it is no mapping, or a name is no string (also a TypeError).
    """
    if not isinstance(fields, Mapping):
        raise DTypeError(
            path=path,
            expected=f"a mapping from field names to {of_what}",
            received=type(fields).__name__,
            mend=f'Write {{"title": {example}}}.',
        )
    for name in fields:
        if not isinstance(name, str):
            raise DTypeError(
                path=f"field {name!r}",
                expected="a name of type str",
                received=type(name).__name__,
                mend="Name fields by strings.",
            )


def as_field(value: Any, path: Path) -> Any:
    """Returns a value as it is kept in a field: as it is, or converted to a tensor.

    Args:
        value: A Tensor, Variable, RaggedTensor, StructuredTensor or any extension value; or
            something that `tf.convert_to_tensor` takes (a number, a list, a NumPy array).
        path: Where it is going to stand, for errors.

    Raises:
        StructureError: If it cannot be converted because it is ragged (also a ValueError).
        DTypeError: If it cannot be converted at all, or would lose a mask (also a TypeError).
    """
    if is_tensor_like(value) or is_symbolic(value):
        return value
    value = lossless(value, None, str(path))
    try:
        return tf.convert_to_tensor(value)
    except ValueError as error:
        raise StructureError(
            path=path,
            expected="a tensor, or something that converts to one",
            received=f"{type(value).__name__} that does not",
            mend="Make records of a dict: xt.DenseStructuredTensor(shape, fields)."
            if isinstance(value, Mapping)
            else "Give all values one dtype, and make lists of different lengths a "
            f"tf.ragged.constant. TensorFlow says: {_first_line(error)}",
        ) from error
    except TypeError as error:
        raise DTypeError(
            path=path,
            expected="a tensor, or something that converts to one",
            received=f"{type(value).__name__} that does not",
            mend=f"Give all values of a field one dtype. TensorFlow says: {_first_line(error)}",
        ) from error


def shape_of(value: Any) -> tf.TensorShape:
    """Returns the static shape of a field's value, of unknown rank where nothing tells it.

    A type of the user's own may mean anything by `shape`, so its spec is asked.
    """
    if isinstance(value, tf.Tensor):
        return value.shape
    if isinstance(value, CompositeTensor):
        shape = getattr(value, "shape", None)
        if not isinstance(shape, tf.TensorShape):
            shape = getattr(tf.type_spec_from_value(value), "shape", None)
        return shape if isinstance(shape, tf.TensorShape) else tf.TensorShape(None)
    return tf.TensorShape(getattr(value, "shape", None))


def spec_of_field(value: Any, hint: Any = None) -> tf.TypeSpec:
    """Returns the spec of a field's value.

    Args:
        value: What stands in the field.
        hint: A spec that describes the value, perhaps with fewer sizes. Where it says that a
            plain tensor is one row of a ragged tensor (`RaggedTensorSpec` of ragged rank 0), the
            result says so too: stacking such rows gives a ragged tensor.
    """
    if isinstance(value, tf.Tensor):
        if isinstance(hint, tf.RaggedTensorSpec):
            return tf.RaggedTensorSpec(value.shape, value.dtype, 0, hint.row_splits_dtype)
        return tf.TensorSpec(value.shape, value.dtype)
    if isinstance(value, BaseResourceVariable):
        return VariableSpec.from_value(value)
    spec = symbolic_spec(value)
    return tf.type_spec_from_value(value) if spec is None else spec


def batchable(spec: tf.TypeSpec, path: Path) -> Any:
    """Returns the spec of a field, whose values stack.

    Raises:
        ProtocolError: If they do not (also a TypeError).
    """
    if isinstance(spec, BatchableTypeSpec):
        return spec
    if isinstance(spec, VariableSpec):
        raise ProtocolError(
            path=path,
            expected="a field whose values stack",
            received="a Variable",
            mend="Read it first, with with_updates and tf.convert_to_tensor(variable).",
        )
    raise ProtocolError(
        path=path,
        expected="a field whose values stack",
        received=type(spec).__name__,
        mend=f"Derive {type(spec).__name__} from xt.StackableTypeSpec, or leave the field out.",
    )


def row_splits_dtypes(value: Any) -> set[tf.DType]:
    """Returns the dtypes of the row splits inside a field's value."""
    if isinstance(value, tf.RaggedTensor):
        return {value.row_splits.dtype}
    return value._row_splits_dtypes() if isinstance(value, Records) else set()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200]
