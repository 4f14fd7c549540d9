"""Crosses: categories of several fields that are hashed together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.compiled_step import mark_apart
from extensor._keras.layers.lists import without_masks
from extensor._path import Path
from extensor._types.masked.value import MaskedTensor
from extensor._typing import Value
from extensor.errors import ArgumentError, FieldError, UnsupportedTypeError


class Cross:
    """The fields of a cross, and the layer of Keras that hashes their categories.

    Args:
        paths: The paths of the fields.
        num_bins: The number of bins.
    """

    def __init__(self, paths: tuple[str, ...], num_bins: int) -> None:
        self.paths, self.num_bins = paths, num_bins
        self._layer = keras.layers.HashedCrossing(num_bins)

    @property
    def name(self) -> str:
        """The name of the field that has the numbers of the bins."""
        return "_X_".join("_".join(Path.of(path).names) for path in self.paths)

    def get_config(self) -> dict[str, Any]:
        """Returns the cross as `crosses_of` takes it, of values that JSON can store."""
        return {"feature_names": list(self.paths), "crossing_dim": self.num_bins}

    def check(self, layers: Mapping[str, Any]) -> None:
        """Raises if a field has no layer, or one that returns no categories.

        Args:
            layers: The layers of the fields, by path.

        Raises:
            FieldError: If a field has no layer (also a KeyError).
            UnsupportedTypeError: If a layer returns no categories (also a TypeError).
        """
        for path in self.paths:
            if path not in layers:
                expected = f"a field with a layer, to cross: {', '.join(layers)}"
                raise FieldError(path, expected, path, "Check the spelling.")
            if isinstance(layers[path], (keras.layers.Normalization, keras.layers.Rescaling)):
                raise _no_categories(path, type(layers[path]).__name__)

    def bins(self, categories: Mapping[str, Value]) -> Value:
        """Returns the number of the bin for each record.

        Args:
            categories: The numbers or strings of each field, one for each record, masked or not.

        Returns:
            A tensor of int64; a MaskedTensor if a field is one.

        Raises:
            UnsupportedTypeError: If a field has lists, or no categories (also a TypeError).
        """
        columns, valid = [], None
        shape = tf.TensorShape([None])
        for path in self.paths:
            column, masks = without_masks(categories[path])
            if not isinstance(column, tf.Tensor) or column.shape.rank != 1:
                received = "lists" if isinstance(column, tf.RaggedTensor) else "vectors"
                fix = "Cross fields that are not in lists, or make one value of each list first."
                expected = "a field of one value for each record, to cross"
                raise UnsupportedTypeError(path, expected, received, fix)
            if not column.dtype.is_integer and column.dtype != tf.string:
                raise _no_categories(path, column.dtype.name)
            shape = shape.merge_with(column.shape)
            columns.append(column)
            for mask in masks:
                valid = mask if valid is None else valid & mask
        bins = mark_apart(self._hash([tf.ensure_shape(column, shape) for column in columns]))
        if valid is None:
            return bins
        return MaskedTensor._of_parts(tf.where(valid, bins, tf.zeros([], bins.dtype)), valid)

    def _hash(self, columns: list[tf.Tensor]) -> tf.Tensor:
        """Returns the number of the bin for each row of columns."""
        count = tf.size(columns[0])
        # Without a row, the crosses of TensorFlow have no columns, and the layer of Keras fails.
        missing = [tf.cast(tf.equal(count, 0), tf.int32)]
        longer = [
            tf.concat([column, tf.fill(missing, tf.zeros([], column.dtype))], 0)
            for column in columns
        ]
        return tf.ensure_shape(self._layer(longer)[:count], columns[0].shape)


def crosses_of(crosses: Iterable[Any], crossing_dim: int) -> tuple[Cross, ...]:
    """Returns crosses.

    Args:
        crosses: Tuples of paths, or crosses of `keras.utils.FeatureSpace`, or what `get_config`
            returns.
        crossing_dim: The number of bins, where a cross has none of its own.

    Raises:
        ArgumentError: If one is something else, or has no bins (also a ValueError).
    """
    return tuple(_cross_of(cross, crossing_dim) for cross in crosses)


def _cross_of(cross: Any, crossing_dim: int) -> Cross:
    given = cross
    if isinstance(cross, dict):
        cross, crossing_dim = cross.get("feature_names"), cross.get("crossing_dim", crossing_dim)
    elif hasattr(cross, "feature_names"):  # keras.utils.FeatureSpace.cross
        cross, crossing_dim = cross.feature_names, cross.crossing_dim
    if not isinstance(cross, (tuple, list)) or len(set(map(str, cross))) < 2:
        fix = 'Write crosses=[("city", "kind")].'
        raise ArgumentError("crosses", "tuples of two paths or more", f"{given!r:.60}", fix)
    if not isinstance(crossing_dim, int) or isinstance(crossing_dim, bool) or crossing_dim < 1:
        fix = "Give the number of bins."
        raise ArgumentError("crossing_dim", "1 or more", repr(crossing_dim), fix)
    return Cross(tuple(str(Path.of(path)) for path in cross), crossing_dim)


def _no_categories(path: str, received: str) -> UnsupportedTypeError:
    expected = "a layer that returns numbers of categories, to cross"
    layer = "keras.layers.Discretization(num_bins=10)"
    fix = f"Give one, such as RecordFeatures({{{path!r}: {layer}, ...}})."
    return UnsupportedTypeError(path, expected, received, fix)
