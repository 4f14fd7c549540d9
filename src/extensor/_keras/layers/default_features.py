"""The preprocessing of each field that follows from the spec of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import item_type, variant_types
from extensor._keras.layers.lists import without_masks
from extensor._keras.layers.time_buckets import TimeBuckets
from extensor._keras.layers.unions import variant_specs
from extensor._path import Path
from extensor._struct.meaning import Unit, are_decimals, meaning_of
from extensor._struct.spec import StructuredTensorSpec
from extensor._types.union.value import UnionTensor
from extensor.errors import UnsupportedTypeError

_YEAR = 365.2425 * 86_400  # seconds


def adapted_layers(
    spec: tf.TypeSpec, num_bins: int, max_tokens: int | None, dtype: str
) -> dict[str, Any]:
    """Returns a layer for each field, to adapt to data.

    Args:
        spec: The spec of records.
        num_bins: The number of buckets for times.
        max_tokens: The size of the vocabularies, or None.
        dtype: The dtype in which numbers are computed.
    """
    layers: dict[str, Any] = {}
    for path, leaf, kind in fields(spec):
        if leaf.dtype == tf.string:
            layers[str(path)] = keras.layers.StringLookup(max_tokens=max_tokens)
        elif _is_time(kind):
            layers[str(path)] = TimeBuckets(num_bins)
        elif leaf.dtype == tf.bool:
            layers[str(path)] = keras.layers.Rescaling(1.0, dtype=dtype)
        else:
            axis = _feature_axis(leaf)
            layers[str(path)] = keras.layers.Normalization(axis=axis, dtype=dtype)
    return layers


def spec_layers(spec: tf.TypeSpec, num_bins: int, dtype: str) -> dict[str, Any]:
    """Returns a layer for each field that needs no data.

    Args:
        spec: The spec of records.
        num_bins: The number of bins for strings.
        dtype: The dtype in which numbers are computed.
    """
    layers: dict[str, Any] = {}
    for path, leaf, kind in fields(spec):
        if leaf.dtype == tf.string:
            layers[str(path)] = keras.layers.Hashing(num_bins)
        else:
            layers[str(path)] = keras.layers.Rescaling(_scale(kind), dtype=dtype)
    return layers


def fields(spec: tf.TypeSpec, above: Path | None = None) -> Iterator[tuple[Path, Any, Any]]:
    """Yields the path, the spec of the tensor and the Arrow type, or None, of each field.

    Args:
        spec: The spec of records, in lists and in masks or not.
        above: The path of the records. Default: they are the root.

    Raises:
        UnsupportedTypeError: If a field is no tensor and no record (also a TypeError).
    """
    (spec, _), above = without_masks(spec), above or Path()
    if not isinstance(spec, StructuredTensorSpec):
        fix = "Give dataset.element_spec of a dataset of records."
        raise UnsupportedTypeError(str(above) or "records", "the spec of records", repr(spec), fix)
    for name, field in spec._record.field_specs.items():
        yield from _fields_of(field, above / name, spec._record.arrow_types.get(name))


def _fields_of(
    field: tf.TypeSpec, path: Path, kind: pa.DataType | None
) -> Iterator[tuple[Path, Any, Any]]:
    """Yields the fields in a field, which may be one tensor.

    Args:
        field: The spec of the field.
        path: The path of the field.
        kind: The Arrow type of the field, or None.
    """
    inner, _ = without_masks(field)
    if isinstance(inner, StructuredTensorSpec):
        yield from fields(inner, path)
    elif isinstance(inner, UnionTensor.Spec):
        kinds = variant_types(kind)
        for name, variant in variant_specs(inner).items():
            yield from _fields_of(variant, path / name, kinds.get(name))
    elif isinstance(inner, (tf.TensorSpec, tf.RaggedTensorSpec)) and not _has_words(kind):
        yield path, inner, kind
    else:
        expected = "numbers, strings, times, or records or unions of these"
        received = str(item_type(kind)) if _has_words(kind) else type(inner).__qualname__
        fix = "Leave the field out: records.without(...), or give the layers of all fields."
        raise UnsupportedTypeError(str(path), expected, received, fix)


def _feature_axis(leaf: tf.TypeSpec) -> Any:
    """Returns -1 if the field has vectors of a static size, else None."""
    ragged_rank = leaf.ragged_rank if isinstance(leaf, tf.RaggedTensorSpec) else 0
    inner = leaf.shape[1 + ragged_rank :]
    return -1 if inner.rank and inner[-1] is not None else None


def _is_time(kind: pa.DataType | None) -> bool:
    item = item_type(kind)
    return item is not None and pa.types.is_temporal(item)


def _has_words(kind: pa.DataType | None) -> bool:
    """Returns whether each value is a vector of integers: a wide decimal, or an interval."""
    item = item_type(kind)
    if item is None:
        return False
    is_wide = pa.types.is_decimal(item) and item.precision > 18
    return is_wide or pa.types.is_interval(item)


def _scale(kind: pa.DataType | None) -> float:
    """Returns the factor from a time to years, a duration to days, a decimal to its value."""
    unit = None if kind is None else meaning_of(kind)
    if not isinstance(unit, Unit):
        return 1.0
    if are_decimals(unit):
        return 10.0**-unit.size
    item = item_type(kind)
    is_point = pa.types.is_timestamp(item) or pa.types.is_date(item)
    return unit.size / 1e9 / (_YEAR if is_point else 86_400)
