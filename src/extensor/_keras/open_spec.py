"""Specs with unknown sizes: for batches of any size, or for values of any size."""

# This file reads attributes of specs that are private to `_struct`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import component_specs
from extensor.errors import ExtensorError


def any_batch_size(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a spec with a first dimension of unknown size; a spec without it as it is."""
    return _any_batch_size(spec, ignored_parts(spec))


def any_sizes(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a spec with all sizes unknown, or the spec itself if that is not possible."""
    return _any_sizes(spec, ignored_parts(spec))


@functools.lru_cache(maxsize=1024)
def _any_sizes(spec: Any, order: Any) -> Any:
    if isinstance(spec, tf.RaggedTensorSpec):
        shape = _open(spec.shape)
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    try:
        return spec.deserialize(_open(spec.serialize()))
    except (AttributeError, ValueError, TypeError):
        return spec  # a type that requires its sizes


def _open(part: Any) -> Any:
    """Returns a part of a serialization with all sizes unknown."""
    if isinstance(part, tf.TensorShape):
        return tf.TensorShape(None if part.rank is None else [None] * part.rank)
    if isinstance(part, tf.TensorSpec):
        return tf.TensorSpec(_open(part.shape), part.dtype, part.name)
    if isinstance(part, tf.TypeSpec):
        return any_sizes(part)
    if isinstance(part, dict):
        return type(part)((name, _open(inner)) for name, inner in part.items())
    if isinstance(part, (list, tuple)):
        items = [_open(inner) for inner in part]
        return type(part)(*items) if hasattr(part, "_fields") else type(part)(items)
    return part


@functools.lru_cache(maxsize=1024)
def _any_batch_size(spec: Any, order: Any) -> tf.TypeSpec:
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank:
        shape = tf.TensorShape([None]).concatenate(spec.shape[1:])
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank:
        shape = tf.TensorShape([None]).concatenate(spec.shape[1:])
        return tf.TensorSpec(shape, spec.dtype, spec.name)
    if isinstance(spec, StackableTypeSpec):
        try:
            row = spec.unstacked()
            opened = row.stacked(None)
        except ExtensorError:
            return spec  # the spec of a single value, or of values that do not stack
        if spec.is_subtype_of(opened):
            return opened
        # `stacked` changes more than the size. For example, it names the axis of the batch.
        seven, eight = row.stacked(7), row.stacked(8)
        kept = _with_open_sizes(spec, seven, eight)
        return kept if spec.is_subtype_of(kept) else opened
    return spec


def _with_open_sizes(part: Any, seven: Any, eight: Any) -> Any:
    """Returns a part of a spec whose sizes that depend on the batch size are unknown.

    Args:
        part: A spec or a part of its serialization.
        seven: The same part of the spec of a batch of 7.
        eight: The same part of the spec of a batch of 8.
    """
    if isinstance(part, tf.TensorShape) and part.rank is not None:
        sizes = zip(part, seven, eight, strict=True)
        return tf.TensorShape([size if a == b else None for size, a, b in sizes])
    if isinstance(part, tf.TensorSpec):
        shape = _with_open_sizes(part.shape, seven.shape, eight.shape)
        return tf.TensorSpec(shape, part.dtype, part.name)
    if isinstance(part, tf.TypeSpec):
        inner = (one.serialize() for one in (part, seven, eight))
        return part.deserialize(_with_open_sizes(*inner))
    if isinstance(part, dict):
        return type(part)(
            (name, _with_open_sizes(item, seven[name], eight[name])) for name, item in part.items()
        )
    if isinstance(part, (list, tuple)):
        items = [_with_open_sizes(*each) for each in zip(part, seven, eight, strict=True)]
        return type(part)(*items) if hasattr(part, "_fields") else type(part)(items)
    return part


def ignored_parts(spec: Any) -> Any:
    """Returns what `==` of specs ignores: order and Arrow types of fields, names of dimensions.

    A cache of specs needs it as a second key. Otherwise it would return the parts of an earlier,
    equal spec.
    """
    if isinstance(spec, StructuredTensorSpec):
        record = spec._record
        types = tuple((name, kept.field) for name, kept in record._metadata.types.items())
        fields = record.field_specs
        return spec._dims, types, tuple((name, ignored_parts(s)) for name, s in fields.items())
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
        return None
    return tuple(ignored_parts(inner) for inner in tf.nest.flatten(component_specs(spec)))
