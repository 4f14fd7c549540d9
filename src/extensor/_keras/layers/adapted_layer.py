"""A layer of Keras that is adapted to a field, with the field's name in errors and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._count_text import count_text
from extensor._keras.layers.lists import valid_items
from extensor._keras.layers.time_buckets import TimeBuckets
from extensor._keras.layers.unions import field_at
from extensor.errors import ArgumentError, StructureError

_LOOKUPS = keras.layers.StringLookup, keras.layers.IntegerLookup, keras.layers.TextVectorization
_MANY_WORDS = 1000


def adapted_layer(layer: Any, path: str, data: tf.data.Dataset) -> keras.Layer:
    """Returns a layer that is adapted to a field, with what it learned in its configuration.

    So the layer is complete after `from_config`. The state of a layer of Keras is otherwise in the
    assets and weights of a saved model, and its size is not known before these are read.

    Args:
        layer: A layer of Keras. If it has no `adapt`, or is adapted, it is returned.
        path: The path of the field.
        data: A dataset of batches of records.

    Raises:
        StructureError: If there is no string, or the variance is too large (also a ValueError).
        ArgumentError: If Keras would change a string (also a ValueError).
    """
    config = layer.get_config()
    given = ("vocabulary", "mean", "bin_boundaries")
    if not hasattr(layer, "adapt") or any(config.get(name) is not None for name in given):
        return layer
    left_out = tf.Variable([0, 0], dtype=tf.int64, trainable=False)
    items = data.map(
        lambda records: _only_finite(*valid_items(field_at(records, path), path), left_out)
    )
    if isinstance(layer, keras.layers.Normalization):
        _normalize(layer, path, items)
    else:
        one_by_one = isinstance(layer, (*_LOOKUPS, keras.layers.Discretization, TimeBuckets))
        chosen = items.map(lambda batch, valid: _chosen(batch, valid, one_by_one))
        layer.adapt(chosen.filter(lambda batch: tf.shape(batch)[0] > 0))
    _warn_of_left_out(path, *left_out.numpy().tolist())
    if isinstance(layer, keras.layers.StringLookup):
        _expect_words(layer, path)
    state = _state(layer)
    return layer if state is None else type(layer).from_config({**layer.get_config(), **state})


def is_finite(numbers: tf.Tensor) -> tf.Tensor:
    """Returns where float numbers are finite in float32, in which layers compute."""
    return tf.math.is_finite(tf.cast(numbers, tf.float32))


def expect_no_nul(words: Iterable[str | bytes], path: str, fix: str) -> None:
    """Raises if Keras would change a word: it cuts NUL off the end.

    Args:
        words: The words of a vocabulary.
        path: The field or layer, for the error.
        fix: What to write instead of the vocabulary.

    Raises:
        ArgumentError: If a word ends in NUL (also a ValueError).
    """
    for word in words:
        text = word.decode(errors="replace") if isinstance(word, bytes) else word
        if isinstance(text, str) and text.endswith("\0"):
            expected = "strings that do not end in NUL, which Keras cuts off"
            raise ArgumentError(
                path, expected, f"{text[:40]!r}", f"Replace it, or hash the strings: {fix}."
            )


def warn_of_many_words(layers: Mapping[str, Any]) -> None:
    """Warns of fields of so many different strings that one column each is of little use."""
    for path, layer in layers.items():
        count = layer.vocabulary_size() if isinstance(layer, keras.layers.StringLookup) else 0
        if count > _MANY_WORDS:
            warnings.warn(
                f"{path}: {count} columns, one for each different string. Give max_tokens= for the "
                f"most frequent ones, hash the strings, RecordFeatures({{{path!r}: "
                "keras.layers.Hashing(100), ...}), or leave the field out: "
                f"records.without({path!r}).",
                UserWarning,
                stacklevel=3,
            )


def _only_finite(batch: tf.Tensor, valid: tf.Tensor, left_out: tf.Variable) -> tuple[Any, Any]:
    """Returns items, and which to use; adds how many are NaN and infinite to a variable."""
    if not batch.dtype.is_floating:
        return batch, valid
    finite, nan = is_finite(batch), tf.math.is_nan(batch)
    nans = tf.math.count_nonzero(valid & nan)
    left_out.assign_add(tf.stack([nans, tf.math.count_nonzero(valid & ~finite) - nans]))
    return batch, valid & finite


def _chosen(batch: tf.Tensor, valid: tf.Tensor, one_by_one: bool) -> tf.Tensor:
    """Returns the valid numbers, or the items, such as vectors, whose numbers are all valid."""
    if not one_by_one:
        valid = tf.reduce_all(valid, axis=tuple(range(1, batch.shape.rank)))
    return tf.boolean_mask(batch, valid)


def _normalize(layer: keras.layers.Normalization, path: str, batches: tf.data.Dataset) -> None:
    """Adapts a layer of Normalization, as its `adapt`, to the valid numbers of each column."""
    shape = batches.element_spec[0].shape
    shape = (None, 1) if shape.rank == 1 else tuple(shape)  # it needs a second axis
    if not layer.built:
        layer.build(shape)
    kept = [axis % len(shape) for axis in layer.axis]
    reduced = tuple(axis for axis in range(len(shape)) if axis not in kept)
    count = mean = squares = np.float64(0)
    for batch, valid in batches:
        valid = valid.numpy().reshape(
            [-1, *batch.shape[1:], *[1] * (len(shape) - len(batch.shape))]
        )
        numbers = np.where(valid, batch.numpy().reshape(valid.shape), 0).astype(np.float64)
        size = valid.sum(reduced)
        center = numbers.sum(reduced) / np.maximum(size, 1)
        inner = np.where(valid, numbers - np.expand_dims(center, reduced), 0)
        change, total = center - mean, count + size
        squares = squares + (inner**2).sum(reduced)
        squares = squares + change**2 * count * size / np.maximum(total, 1)
        mean, count = mean + change * size / np.maximum(total, 1), total
    variance = np.where(count, squares / np.maximum(count, 1), 1)
    if not (variance < np.finfo(np.float32).max).all():
        expected = "numbers whose variance float32 can hold"
        fix = f"Divide the numbers first, or give RecordFeatures a layer for {path!r}."
        raise StructureError(path, expected, f"a variance of {np.max(variance):.1e}", fix)
    layer.adapt_mean.assign(np.broadcast_to(mean, layer.adapt_mean.shape))
    layer.adapt_variance.assign(np.broadcast_to(variance, layer.adapt_variance.shape))
    layer.finalize_state()


def _warn_of_left_out(path: str, nans: int, infinite: int) -> None:
    """Warns of numbers that the statistics do not contain."""
    found = [f"{count_text(nans, 'values')} with NaN"] if nans else []
    found += [f"{count_text(infinite, 'values')} with infinity (in float32)"] if infinite else []
    if found:
        warnings.warn(
            f"{path}: {' and '.join(found)} left out of the statistics; the layer takes them for "
            "null. Give null in their place to avoid this warning.",
            UserWarning,
            stacklevel=5,
        )


def _expect_words(layer: keras.layers.StringLookup, path: str) -> None:
    """Raises if there is no word, or Keras would change one."""
    table: Any = layer.lookup_table
    try:
        words = table.export()[0].numpy().tolist()
    except tf.errors.OpError as error:
        fix = f"Give other data, or leave the field out: records.without({path!r})."
        raise StructureError(path, "at least one string", "none", fix) from error
    expect_no_nul(words, path, f"RecordFeatures({{{path!r}: keras.layers.Hashing(1000)}})")


def _state(layer: Any) -> dict[str, Any] | None:
    """Returns what a layer of Keras learned, as arguments of its constructor."""
    if isinstance(layer, keras.layers.Normalization):
        parts = {"mean": layer.adapt_mean, "variance": layer.adapt_variance}
        return {name: part.numpy().tolist() for name, part in parts.items()}
    if isinstance(layer, keras.layers.Discretization):
        return {"num_bins": None, "bin_boundaries": list(layer.bin_boundaries or ())}
    if isinstance(layer, _LOOKUPS) and layer.get_config().get("output_mode") != "tf_idf":
        return {"vocabulary": layer.get_vocabulary(include_special_tokens=False)}
    return None
