"""What layers of Keras learn from a field: gathered batch by batch, and joined with other data's.

The statistics hold no layer, so that they can be sent to another process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras.layers.time_buckets import (
    Quantiles,
    TimeBuckets,
    TimeQuantiles,
    as_times,
    time_boundaries,
)
from extensor.errors import StructureError, UnsupportedTypeError

WORD_LAYERS = keras.layers.StringLookup, keras.layers.IntegerLookup
LOOKUPS = *WORD_LAYERS, keras.layers.TextVectorization
_OF_KERAS: tuple[Any, ...] = (*LOOKUPS, keras.layers.Discretization)
_STEPS = ("reset_state", "update_state", "finalize_state")  # what `adapt` of Keras calls


class FieldStatistics(ABC):
    """What a layer learns from a field."""

    @abstractmethod
    def of_batch(self, layer: Any, batch: tf.Tensor, valid: tf.Tensor) -> Any:
        """Returns the statistics of a batch, as tensors; it runs in a graph.

        Args:
            layer: The layer.
            batch: The values of the field.
            valid: For each number or string whether it is neither null nor infinite.
        """

    @abstractmethod
    def add(self, layer: Any, found: Any) -> None:
        """Adds what `of_batch` returned, as eager tensors."""

    @abstractmethod
    def merged(self, other: Any, path: str) -> FieldStatistics:
        """Returns the statistics of both; those of another object of this class are unchanged.

        Args:
            other: The statistics of other data, of a layer with the same settings.
            path: The path of the field, for errors.
        """

    @abstractmethod
    def finish(self, layer: Any, path: str) -> None:
        """Gives the layer what was learned.

        Args:
            layer: The layer.
            path: The path of the field, for errors.
        """


def statistics_of(layer: Any) -> FieldStatistics:
    """Returns the empty statistics for a layer, which must have `adapt`."""
    if isinstance(layer, keras.layers.Normalization):
        return NumberStatistics()
    if isinstance(layer, TimeBuckets):
        return QuantileStatistics(TimeQuantiles())
    kinds = [kind for kind in _OF_KERAS if isinstance(layer, kind)]
    if not kinds or type(layer).adapt is not kinds[0].adapt:
        return OwnPass(type(layer).__name__)
    if all(getattr(type(layer), name) is getattr(kinds[0], name) for name in _STEPS):
        if isinstance(layer, keras.layers.Discretization):
            return QuantileStatistics(Quantiles(layer.epsilon))
        if isinstance(layer, WORD_LAYERS) and layer.output_mode != "tf_idf":
            return WordStatistics()
    layer.reset_state()
    return OwnStatistics(type(layer).__name__)


def chosen_items(layer: Any, batch: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Returns the valid numbers, or the items, such as vectors, whose numbers are all valid."""
    if not isinstance(layer, (*LOOKUPS, keras.layers.Discretization, TimeBuckets)):
        valid = tf.reduce_all(valid, axis=tuple(range(1, batch.shape.rank)))
    return tf.boolean_mask(batch, valid)


def one_a_row(layer: Any, items: tf.Tensor) -> tf.Tensor:
    """Returns single items as rows, if the layer counts the categories of a row.

    Of a vector, Keras would count the categories of the whole batch together.
    """
    counts = getattr(layer, "output_mode", "int") in ("multi_hot", "count", "tf_idf")
    splits = isinstance(layer, keras.layers.TextVectorization)  # a string is a row for it
    return items[:, tf.newaxis] if counts and not splits and items.shape.rank == 1 else items


@dataclass(eq=False)
class NumberStatistics(FieldStatistics):
    """The count, mean and sum of squared differences of numbers, for `Normalization`."""

    count: Any = field(default_factory=lambda: np.float64(0))
    mean: Any = field(default_factory=lambda: np.float64(0))
    squares: Any = field(default_factory=lambda: np.float64(0))
    shape: tuple[int | None, ...] = (None, 1)
    """The shape of the batches."""

    def of_batch(self, layer: Any, batch: tf.Tensor, valid: tf.Tensor) -> Any:
        if batch.shape.rank == 1:  # the layer needs a second axis
            batch, valid = batch[:, tf.newaxis], valid[:, tf.newaxis]
        rank = batch.shape.rank
        self.shape = (None, *batch.shape[1:])
        kept = [axis % rank for axis in layer.axis]
        reduced = [axis for axis in range(rank) if axis not in kept]
        numbers = tf.where(valid, tf.cast(batch, tf.float64), tf.zeros([], tf.float64))
        size = tf.reduce_sum(tf.cast(valid, tf.float64), reduced, keepdims=True)
        center = tf.reduce_sum(numbers, reduced, keepdims=True) / tf.maximum(size, 1)
        inner = tf.where(valid, numbers - center, tf.zeros([], tf.float64))
        squares = tf.reduce_sum(tf.square(inner), reduced, keepdims=True)
        return tf.squeeze(tf.stack([size, center, squares]), [axis + 1 for axis in reduced])

    def build(self, layer: Any) -> None:
        """Creates the variables of the layer, if it has none, for batches as in `of_batch`."""
        if not layer.built:
            layer.build(self.shape)

    def add(self, layer: Any, found: Any) -> None:
        self._add(*found.numpy())

    def merged(self, other: NumberStatistics, path: str) -> NumberStatistics:
        both = replace(self)
        sizes = [np.shape(part.mean) for part in (self, other)]
        if () not in sizes and sizes[0] != sizes[1]:  # () is that of a shard without batches
            expected, received = f"vectors of shape {list(sizes[0])}", f"shape {list(sizes[1])}"
            fix = "Give all shards vectors of one size."
            raise StructureError(path, expected, received, fix)
        both._add(other.count, other.mean, other.squares)
        return both

    def _add(self, size: Any, center: Any, squares: Any) -> None:
        """Adds the statistics of other numbers."""
        change, total = center - self.mean, self.count + size
        self.squares = self.squares + squares
        self.squares = self.squares + change**2 * self.count * size / np.maximum(total, 1)
        self.mean = self.mean + change * size / np.maximum(total, 1)
        self.count = total

    def finish(self, layer: Any, path: str) -> None:
        variance = np.where(self.count, self.squares / np.maximum(self.count, 1), 1)
        if not (variance < np.finfo(np.float32).max).all():
            expected = "numbers whose variance float32 can hold"
            fix = f"Divide the numbers first, or give RecordFeatures a layer for {path!r}."
            raise StructureError(path, expected, f"a variance of {np.max(variance):.1e}", fix)
        self.build(layer)
        layer.adapt_mean.assign(np.broadcast_to(self.mean, layer.adapt_mean.shape))
        layer.adapt_variance.assign(np.broadcast_to(variance, layer.adapt_variance.shape))
        layer.finalize_state()


@dataclass(eq=False)
class WordStatistics(FieldStatistics):
    """How often each string or integer occurs, for `StringLookup` and `IntegerLookup`."""

    counts: dict[Any, int] = field(default_factory=dict)

    def of_batch(self, layer: Any, batch: tf.Tensor, valid: tf.Tensor) -> Any:
        words = tf.cast(tf.boolean_mask(batch, valid), layer.vocabulary_dtype)
        different, _, counts = tf.unique_with_counts(words, tf.int64)
        return different, counts

    def add(self, layer: Any, found: Any) -> None:
        words, counts = found
        self._add(zip(words.numpy().tolist(), counts.numpy().tolist(), strict=True))

    def merged(self, other: WordStatistics, path: str) -> WordStatistics:
        both = WordStatistics(dict(self.counts))
        both._add(other.counts.items())
        return both

    def _add(self, counts: Any) -> None:
        known = self.counts
        for word, count in counts:
            known[word] = known.get(word, 0) + count

    def finish(self, layer: Any, path: str) -> None:
        layer.reset_state()
        special = {layer.mask_token, layer.oov_token}
        special |= {token.encode() for token in special if isinstance(token, str)}
        if self.counts.keys() - special:  # else the layer has no table
            words = tf.constant(list(self.counts), layer.vocabulary_dtype)
            layer.token_counts.insert(words, tf.constant(list(self.counts.values()), tf.int64))
        layer.finalize_state()


@dataclass(eq=False)
class QuantileStatistics(FieldStatistics):
    """Quantiles of numbers, for `Discretization`, or of times, for `TimeBuckets`."""

    quantiles: Any
    """Quantiles or TimeQuantiles."""

    @property
    def _are_times(self) -> bool:
        return isinstance(self.quantiles, TimeQuantiles)

    def of_batch(self, layer: Any, batch: tf.Tensor, valid: tf.Tensor) -> Any:
        numbers = tf.boolean_mask(batch, valid)
        return as_times(numbers, layer.name) if self._are_times else numbers

    def add(self, layer: Any, found: Any) -> None:
        if found.shape[0]:
            self.quantiles.add(found.numpy())

    def merged(self, other: QuantileStatistics, path: str) -> QuantileStatistics:
        return QuantileStatistics(self.quantiles.merged(other.quantiles))

    def finish(self, layer: Any, path: str) -> None:
        if self._are_times:
            layer.bin_boundaries = time_boundaries(self.quantiles, layer.num_bins, path)
        else:
            layer.summary = self.quantiles.summary
            layer.finalize_state()


@dataclass(eq=False)
class OwnStatistics(FieldStatistics):
    """The layer keeps its statistics itself, in `update_state`."""

    kind: str
    """The class of the layer, for the error."""

    def of_batch(self, layer: Any, batch: tf.Tensor, valid: tf.Tensor) -> Any:
        return one_a_row(layer, chosen_items(layer, batch, valid))

    def add(self, layer: Any, found: Any) -> None:
        if found.shape[0]:
            layer.update_state(found)

    def merged(self, other: Any, path: str) -> FieldStatistics:
        expected = (
            "a layer whose statistics can be merged: Normalization, StringLookup, IntegerLookup, "
            "Discretization or TimeBuckets"
        )
        fix = f"Adapt the layer for {path!r} to all data first, and give it to all features."
        raise UnsupportedTypeError(path, expected, self.kind, fix)

    def finish(self, layer: Any, path: str) -> None:
        layer.finalize_state()


@dataclass(eq=False)
class OwnPass(OwnStatistics):
    """The layer's `adapt` is its own, and reads the data itself."""

    def of_batch(self, layer: Any, batch: tf.Tensor, valid: tf.Tensor) -> Any:
        return ()

    def add(self, layer: Any, found: Any) -> None:
        pass

    def finish(self, layer: Any, path: str) -> None:
        pass
