"""Specs with unknown sizes: for batches of any size, or for values of any size."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any

import tensorflow as tf

from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._protocol.tree import TreeComparison, map_shapes, merge
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
def _any_sizes(spec: Any, order: Hashable) -> tf.TypeSpec:
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
        return _with_shape(spec, _any_shape(spec.shape))
    try:
        return spec.deserialize(map_shapes(spec.serialize(), _any_shape, any_sizes))
    except (AttributeError, ValueError, TypeError):
        return spec  # a type that requires its sizes


def _any_shape(shape: tf.TensorShape) -> tf.TensorShape:
    return tf.TensorShape(None if shape.rank is None else [None] * shape.rank)


def _with_shape(
    spec: tf.TensorSpec | tf.RaggedTensorSpec, shape: tf.TensorShape
) -> tf.TensorSpec | tf.RaggedTensorSpec:
    if isinstance(spec, tf.TensorSpec):
        return tf.TensorSpec(shape, spec.dtype, spec.name)
    return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)


@functools.lru_cache(maxsize=1024)
def _any_batch_size(spec: Any, order: Hashable) -> tf.TypeSpec:
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)) and spec.shape.rank:
        return _with_shape(spec, tf.TensorShape([None]).concatenate(spec.shape[1:]))
    if isinstance(spec, StackableTypeSpec):
        try:
            row = spec.unstacked()
            opened = row.stacked(None)
        except ExtensorError:
            return spec  # the spec of a single value, or of values that do not stack
        if spec.is_subtype_of(opened):
            return opened
        # `stacked` changes more than the size. For example, it names the axis of the batch.
        kept = _with_common_sizes(_with_common_sizes(spec, row.stacked(7)), row.stacked(8))
        return kept if spec.is_subtype_of(kept) else opened
    return spec


# All other data is that of the first spec.
_OF_FIRST = TreeComparison(same_kind=lambda a, b: True, equal=lambda a, b: True)


def _with_common_sizes(spec: Any, other: Any) -> tf.TypeSpec:
    """Returns a spec in which a size is unknown if another spec has another one."""
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
        return _with_shape(spec, spec.shape.most_specific_compatible_shape(other.shape))
    parts = merge(spec.serialize(), other.serialize(), _with_common_sizes, _OF_FIRST)
    return spec.deserialize(parts)


def ignored_parts(spec: tf.TypeSpec) -> Hashable:
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
