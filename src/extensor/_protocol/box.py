"""Boxed tensors: values of any stackable spec, TensorFlow's or ours, as tensors that stack."""

# The boxes of TensorFlow's own types have no public name.

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import tensorflow as tf

from extensor import _tf
from extensor._protocol.box_ragged import box_ragged, box_sparse, unbox_ragged
from extensor._protocol.component_error import does_not_stack
from extensor._tf import BatchableTypeSpec, describes
from extensor._typing import Value
from extensor.errors import DTypeError, StructureError

_T = TypeVar("_T")


def stacked_spec(spec: tf.TypeSpec, num: int | None, path: str) -> tf.TypeSpec:
    """Returns the spec of `num` stacked values of any spec that stacks.

    Args:
        spec: Any TypeSpec, TensorFlow's or your own.
        num: The number of values; None if it is not known.
        path: Where the spec is used, for errors.

    Raises:
        ProtocolError: If values of the spec do not stack (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.stacked_spec(tf.TensorSpec([3]), None, "Recipe.Spec")
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    """
    if not isinstance(spec, BatchableTypeSpec):
        raise does_not_stack(spec, path)
    return _tf.stacked(spec, num)


def unstacked_spec(spec: tf.TypeSpec, path: str) -> tf.TypeSpec:
    """Returns the spec of one row of a value: the inverse of `stacked_spec`.

    Args:
        spec: Any TypeSpec, TensorFlow's or your own.
        path: Where the spec is used, for errors.

    Raises:
        ProtocolError: If values of the spec do not stack (also a TypeError).
        StructureError: If the spec has no dimension to unstack (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.unstacked_spec(tf.RaggedTensorSpec([2, None]), "Recipe.Spec")
    RaggedTensorSpec(TensorShape([None]), tf.float32, 0, tf.int64)
    """
    if not isinstance(spec, BatchableTypeSpec):
        raise does_not_stack(spec, path)
    if getattr(getattr(spec, "shape", None), "rank", None) == 0:
        raise _too_few_dimensions(spec, path, 1)
    return _tf.unstacked(spec)


def box(spec: tf.TypeSpec, value: object, minimum_rank: int = 0) -> list[tf.Tensor]:
    """Returns the boxed tensors of a value of any stackable spec.

    Args:
        spec: An `xt.StackableTypeSpec`, or the spec of a dense, ragged or sparse tensor or of a
            `tf.experimental.ExtensionType`.
        value: A value of this spec.
        minimum_rank: As in `StackableTypeSpec.to_boxed_tensor`.

    Raises:
        ProtocolError: If the spec does not stack (also a TypeError).
        DTypeError: If the value is of another type (also a TypeError).
        StructureError: If the value has fewer than `minimum_rank` leading dimensions of uniform
            size (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> spec = tf.type_spec_from_value(ragged)
    >>> boxes = xt.authoring.box(spec, ragged, minimum_rank=1)
    >>> [tensor.shape for tensor in boxes]
    [TensorShape([2])]
    >>> row = xt.authoring.unstacked_spec(spec, "rows")
    >>> xt.authoring.unbox(row, [boxes[0][1]]).numpy()
    array([3], dtype=int32)
    """
    if isinstance(spec, tf.TensorSpec):
        return [value]
    if is_stackable(spec):
        return list(as_list(spec.to_boxed_tensor(value, minimum_rank)))
    if not isinstance(spec, BatchableTypeSpec):
        raise does_not_stack(spec)
    # Not for every spec: a stack of datasets is not a Dataset.
    if isinstance(spec, _CHECKED_SPECS) or describes(spec, tf.experimental.ExtensionType):
        expect_type(spec, value)
    if minimum_rank == 0:
        return _tf.boxes(spec, value)
    if minimum_rank == 1:
        return _tf.boxes_to_unstack(spec, value)
    if isinstance(spec, tf.RaggedTensorSpec):
        return box_ragged(spec, value, minimum_rank)
    if isinstance(spec, tf.SparseTensorSpec):
        return box_sparse(spec, value, minimum_rank)
    if isinstance(value, tf.experimental.BatchableExtensionType):
        return _box_extension(spec, value, minimum_rank)
    raise _too_few_dimensions(spec, type(spec).__qualname__, minimum_rank)


_CHECKED_SPECS = (tf.RaggedTensorSpec, tf.SparseTensorSpec)


def unbox(spec: tf.TypeSpec, boxes: list[tf.Tensor]) -> Value:
    """Returns the value that boxed tensors hold: the inverse of `box`.

    Args:
        spec: Any stackable spec.
        boxes: The result of `box`, or of stacking or unstacking such tensors.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> spec = tf.type_spec_from_value(ragged)
    >>> xt.authoring.unbox(spec, xt.authoring.box(spec, ragged))
    <tf.RaggedTensor [[1, 2], [3]]>
    """
    if isinstance(spec, tf.TensorSpec):
        return boxes[0]
    if isinstance(spec, (tf.RaggedTensorSpec, tf.SparseTensorSpec)):
        return unbox_ragged(spec, boxes)
    return _tf.unbox(spec, boxes)


def boxed_specs(spec: tf.TypeSpec, minimum_rank: int = 0) -> list[tf.TensorSpec]:
    """Returns the TensorSpecs of the tensors that `box` returns.

    Args:
        spec: Any stackable spec.
        minimum_rank: As for `box`.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.boxed_specs(tf.TensorSpec([3]))
    [TensorSpec(shape=(3,), dtype=tf.float32, name=None)]
    """
    if isinstance(spec, tf.TensorSpec):
        return [spec]
    if is_stackable(spec) and minimum_rank:
        return list(as_list(spec.boxed_tensor_spec(minimum_rank)))
    return _tf.box_specs(spec)


def expect_type(spec: tf.TypeSpec, value: object) -> None:
    """Raises DTypeError unless a value has the type that a spec describes."""
    if not isinstance(value, spec.value_type):
        expected = f"a {spec.value_type.__qualname__}, because values of two types do not stack"
        fix = "Make all values of one type first."
        raise DTypeError(type(spec).__qualname__, expected, f"a {type(value).__qualname__}", fix)


def _too_few_dimensions(spec: tf.TypeSpec, path: str, minimum_rank: int) -> StructureError:
    fix = "Unstack only values whose components share leading dimensions."
    return StructureError(path, f"at least {minimum_rank} dimension(s) to unstack", str(spec), fix)


def _box_extension(spec: tf.TypeSpec, value: Value, minimum_rank: int) -> list[tf.Tensor]:
    """Returns the boxes of a `BatchableExtensionType` value, as encoded by its batch encoder."""
    encoder = spec.__batch_encoder__
    boxes: list[tf.Tensor] = []
    tf.nest.map_structure(
        lambda inner, part: boxes.extend(box(inner, part, minimum_rank)),
        encoder.encoding_specs(spec),
        encoder.encode(spec, value, minimum_rank),
    )
    return boxes


def is_stackable(spec: object) -> bool:
    # True for an `xt.StackableTypeSpec`, whose module imports this one.
    return hasattr(spec, "to_boxed_tensor")


def as_list(boxed: tf.Tensor | Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    """Returns boxes as a list or tuple; a single tensor becomes a list of one."""
    return boxed if isinstance(boxed, (list, tuple)) else [boxed]


def alone_or_list(boxes: list[_T]) -> _T | list[_T]:
    """Returns the only item of a list of boxes, or the list: the inverse of `as_list`."""
    return boxes[0] if len(boxes) == 1 else boxes
