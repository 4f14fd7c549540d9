"""Layers of Keras that are adapted to fields, with the field's name in errors and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._count_text import count_text
from extensor._keras._keras_private import is_closed
from extensor._keras.layers.field_statistics import (
    LOOKUPS,
    WORD_LAYERS,
    FieldStatistics,
    NumberStatistics,
    OwnPass,
    chosen_items,
    statistics_of,
)
from extensor._keras.layers.lists import valid_items, without_masks
from extensor._keras.layers.time_buckets import TimeBuckets
from extensor._keras.layers.unions import field_at
from extensor._keras.lowering import is_extension
from extensor._struct.spec import StructuredTensorSpec
from extensor._typing import Value
from extensor.errors import ArgumentError, DTypeError, StructureError, UnsupportedTypeError

_MANY_WORDS = 1000
_OF_TEXT = keras.layers.StringLookup, keras.layers.TextVectorization
_OF_NUMBERS = (
    *(keras.layers.Normalization, keras.layers.Rescaling, keras.layers.Discretization),
    *(keras.layers.IntegerLookup, TimeBuckets),
)


@dataclass(frozen=True, eq=False)
class LearnedField:
    """What a layer learned from a field, without the layer."""

    kind: str
    """The class of the layer."""

    config: dict[str, Any]
    """The configuration before `adapt`, without functions."""

    statistics: FieldStatistics | None
    """None if the layer was complete before `adapt`."""

    def is_as(self, other: LearnedField, path: str) -> None:
        """Raises a StructureError if another layer has other settings.

        Args:
            other: What the other layer learned.
            path: The path of the field.
        """
        differing = [self.kind, other.kind] if self.kind != other.kind else []
        for name in sorted(self.config.keys() | other.config.keys()):
            values = [repr(field.config.get(name)) for field in (self, other)]
            if not differing and name != "name" and values[0] != values[1]:
                differing = [f"{name}={value[:40]}" for value in values]
        if differing:
            fix = "Adapt the features of all shards with the same arguments."
            raise StructureError(path, "layers of the same settings", " and ".join(differing), fix)


@dataclass(frozen=True, eq=False)
class Learned:
    """What the layers of all fields learned. It can be sent to another process."""

    fields: dict[str, LearnedField]

    def merged(self, other: Learned, name: str) -> Learned:
        """Returns what was learned from the data of both.

        Args:
            other: What was learned from other data.
            name: The name of the layer, for the error.

        Raises:
            StructureError: If the fields or settings differ (also a ValueError).
            UnsupportedTypeError: If a layer's statistics cannot be merged (also a TypeError).
        """
        if self.fields.keys() != other.fields.keys():
            path = min(self.fields.keys() ^ other.fields.keys())
            received, fix = f"{path!r} in one of them", "Adapt all to shards of the same fields."
            raise StructureError(name, "features of the same fields", received, fix)
        fields = {}
        for path, field in self.fields.items():
            field.is_as(other.fields[path], path)
            both = field.statistics
            if both is not None:
                both = both.merged(other.fields[path].statistics, path)
            fields[path] = LearnedField(field.kind, field.config, both)
        return Learned(fields)

    def layers(self, layers: Mapping[str, Any]) -> dict[str, Any]:
        """Returns new layers with what was learned, in place of those that have learned less.

        Args:
            layers: The layers of the fields. Those that had nothing to learn are returned.
        """
        found = dict(layers)
        for path, field in self.fields.items():
            if field.statistics is not None:
                layer = type(layers[path]).from_config(dict(field.config))
                found[path] = _finish(layer, field.statistics, path)
        return found


def batches_of_records(data: Any, steps: int | None, name: str) -> tuple[Value, Any]:
    """Returns a dataset of batches of records, or the records that were given; and their spec.

    Args:
        data: A dataset of batches of records, or of tuples that begin with records; or records.
        steps: The number of batches. Default: all.
        name: The name of the layer, for the error.

    Raises:
        UnsupportedTypeError: If the data has no records (also a TypeError).
        StructureError: If the records are single ones (also a ValueError).
    """
    given: Any = data[0] if isinstance(data, tuple) and data else data
    if not isinstance(given, tf.data.Dataset):
        spec = tf.type_spec_from_value(given) if is_extension(given) else None
        _expect_batches(name, spec, type(given).__name__)
        return given if steps is None else tf.data.Dataset.from_tensors(given).take(steps), spec
    if isinstance(given.element_spec, tuple):
        given = given.map(lambda records, *_: records)
    spec = given.element_spec
    _expect_batches(name, spec, f"a dataset of {spec}")
    return given if steps is None else given.take(steps), spec


def word_lookups(data: Value, paths: Iterable[str], max_tokens: int | None) -> dict[str, Any]:
    """Returns layers to adapt, which look up the strings or integers of fields.

    Args:
        data: A dataset of batches of records, or records.
        paths: The paths of the fields.
        max_tokens: The size of the vocabularies, or None.

    Raises:
        DTypeError: If a field has neither strings nor integers (also a TypeError).
    """

    @tf.autograph.experimental.do_not_convert
    def items(records: Any) -> dict[str, Any]:
        return {path: valid_items(field_at(records, path), path)[0] for path in paths}

    is_dataset = isinstance(data, tf.data.Dataset)
    found: Any = data.map(items).element_spec if is_dataset else items(data)
    lookups: dict[str, Any] = {}
    for path, item in found.items():
        if item.dtype != tf.string and not item.dtype.is_integer:
            fix = f"Make ids of the field first, or leave it out: records.without({path!r})."
            raise DTypeError(path, "strings or integers", item.dtype.name, fix)
        is_text = item.dtype == tf.string
        kind = keras.layers.StringLookup if is_text else keras.layers.IntegerLookup
        lookups[path] = kind(max_tokens=max_tokens)
    return lookups


def adapted_to(
    layers: Mapping[str, Any], data: tf.data.Dataset | Value
) -> tuple[dict[str, Any], Learned]:
    """Returns layers that are adapted to fields, and what they learned; in one pass over the data.

    What a layer learned is in its configuration, so that it is complete after `from_config`. The
    state of a layer of Keras is otherwise in the assets and weights of a saved model, and its size
    is not known before these are read.

    Args:
        layers: A layer of Keras for each field, by path. If it has no `adapt`, or is adapted, it is
            returned. If its `adapt` is its own, this reads the data once more.
        data: A dataset of batches of records, or records.

    Raises:
        StructureError: If there is no string, or the variance is too large (also a ValueError).
        ArgumentError: If Keras would change a string, or it is not UTF-8 (also a ValueError).
    """
    open_layers = {path: layer for path, layer in layers.items() if _is_open(layer)}
    statistics = {path: statistics_of(layer) for path, layer in open_layers.items()}
    fields = {
        path: LearnedField(type(layer).__name__, _settings(layer), statistics.get(path))
        for path, layer in layers.items()
    }
    left_out = _read(data, open_layers, statistics)
    adapted = dict(layers)
    for path, layer in open_layers.items():
        if isinstance(statistics[path], OwnPass):
            _adapt(layer, path, data)
        _warn_of_left_out(path, *left_out[path])
        adapted[path] = _finish(layer, statistics[path], path)
    return adapted, Learned(fields)


def expect_open(layer: keras.Layer) -> None:
    """Raises if a layer was called: models and functions have the layers in it that it had."""
    if is_closed(layer):
        fix = f"Adapt first, or make a new {type(layer).__name__}."
        raise StructureError(layer.name, "a layer that was not called yet", "a built one", fix)


def is_finite(numbers: tf.Tensor) -> tf.Tensor:
    """Returns where float numbers are finite in float32, in which layers compute."""
    return tf.math.is_finite(tf.cast(numbers, tf.float32))


def expect_text_or_numbers(layer: Any, dtype: tf.DType, path: str) -> None:
    """Raises a DTypeError if a layer of Keras takes only text, or only numbers, and gets others."""
    is_text = dtype == tf.string
    if isinstance(layer, _OF_NUMBERS if is_text else _OF_TEXT):
        expected, received = ("numbers", "strings") if is_text else ("strings", dtype.name)
        fix = f"Cast the field, or give another layer for {path!r}."
        raise DTypeError(path, f"{expected}, which {type(layer).__name__} takes", received, fix)


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
                stacklevel=4,
            )


def _expect_batches(name: str, spec: Any, received: str) -> None:
    """Raises unless a spec is that of a batch of records.

    Args:
        name: The name of the layer.
        spec: The spec of the data, or None.
        received: The data, for the error.
    """
    records, _ = without_masks(spec)
    fix = "Give a dataset of records, after batch(32); or records, of rank 1 or more."
    if not isinstance(records, StructuredTensorSpec):
        raise UnsupportedTypeError(name, "batches of records", received[:80], fix)
    if records.shape.rank == 0:
        raise StructureError(name, "batches of records", "single records", fix)


def _is_open(layer: Any) -> bool:
    """Returns whether a layer has something to learn."""
    if not hasattr(layer, "adapt"):
        return False
    config = layer.get_config()
    return all(config.get(name) is None for name in ("vocabulary", "mean", "bin_boundaries"))


def _settings(layer: Any) -> dict[str, Any]:
    """Returns the configuration of a layer without functions, which no other process may have."""
    return {name: value for name, value in layer.get_config().items() if not callable(value)}


def _read(
    data: Value, layers: Mapping[str, Any], statistics: Mapping[str, FieldStatistics]
) -> dict[str, list[int]]:
    """Adds data to statistics, in one pass.

    Args:
        data: A dataset of batches of records, or records: no function is traced for these.
        layers: The layers of fields, by path.
        statistics: The statistics of the same fields.

    Returns:
        For each field how many NaN and infinite numbers were left out.
    """
    if not layers:
        return {}

    @tf.autograph.experimental.do_not_convert
    def of_batch(records: Any) -> Any:
        found, left_out = {}, []
        for path, layer in layers.items():
            batch, valid, missing = _only_finite(*valid_items(field_at(records, path), path))
            expect_text_or_numbers(layer, batch.dtype, path)
            found[path] = statistics[path].of_batch(layer, batch, valid)
            left_out.append(missing)
        return found, tf.stack(left_out)

    if isinstance(data, tf.data.Dataset):
        batches = data.map(of_batch, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        batches = (of_batch(data),)
    for path, layer in layers.items():
        known = statistics[path]
        if isinstance(known, NumberStatistics):
            # Not in `of_batch`: TensorFlow traces a function twice that creates variables.
            known.build(layer)
    total = np.zeros([len(layers), 2], np.int64)
    for found, left_out in batches:
        total += left_out.numpy()
        for path, layer in layers.items():
            statistics[path].add(layer, found[path])
    return dict(zip(layers, total.tolist(), strict=True))


def _adapt(layer: Any, path: str, data: Value) -> None:
    """Lets a layer read a field of a dataset, or of records, by its own `adapt`."""
    if not isinstance(data, tf.data.Dataset):
        data = tf.data.Dataset.from_tensors(data)

    @tf.autograph.experimental.do_not_convert
    def of_batch(records: Any) -> Any:
        batch, valid, _ = _only_finite(*valid_items(field_at(records, path), path))
        return chosen_items(layer, batch, valid)

    layer.adapt(data.map(of_batch).filter(lambda batch: tf.shape(batch)[0] > 0))


def _finish(layer: Any, statistics: FieldStatistics, path: str) -> Any:
    """Returns a layer with what was learned, in its configuration."""
    statistics.finish(layer, path)
    if isinstance(layer, WORD_LAYERS):
        _expect_words(layer, path)
    state = _state(layer)
    return layer if state is None else type(layer).from_config({**layer.get_config(), **state})


def _only_finite(batch: tf.Tensor, valid: tf.Tensor) -> tuple[Any, Any, Any]:
    """Returns items, which to use, and how many are NaN and infinite."""
    if not batch.dtype.is_floating:
        return batch, valid, tf.zeros([2], tf.int64)
    finite, nan = is_finite(batch), tf.math.is_nan(batch)
    found = [tf.reduce_sum(tf.cast(valid & part, tf.int64)) for part in (nan, ~(finite | nan))]
    return batch, valid & finite, tf.stack(found)


def _warn_of_left_out(path: str, nans: int, infinite: int) -> None:
    """Warns of numbers that the statistics do not contain."""
    found = [f"{count_text(nans, 'values')} with NaN"] if nans else []
    found += [f"{count_text(infinite, 'values')} with infinity (in float32)"] if infinite else []
    if found:
        warnings.warn(
            f"{path}: {' and '.join(found)} left out of the statistics; the layer takes them for "
            "null. Give null in their place to avoid this warning.",
            UserWarning,
            stacklevel=4,
        )


def _expect_words(layer: Any, path: str) -> None:
    """Raises if there is no string or integer, or Keras would change a string."""
    table: Any = layer.lookup_table
    try:
        words = table.export()[0].numpy().tolist()
    except tf.errors.OpError:  # there is no table
        words = []
    if not words:
        kind = "string" if isinstance(layer, keras.layers.StringLookup) else "integer"
        fix = f"Give other data, or leave the field out: records.without({path!r})."
        raise StructureError(path, f"at least one {kind}", "none", fix)
    hashed = f"RecordFeatures({{{path!r}: keras.layers.Hashing(1000)}})"
    expect_no_nul(words, path, hashed)
    odd = next((word for word in words if isinstance(as_text(word), bytes)), None)
    if odd is not None:
        expected = "strings of UTF-8, which a vocabulary of Keras has"
        fix = f"Leave the field out, or hash the bytes: {hashed}."
        raise ArgumentError(path, expected, f"{odd[:40]!r}", fix)


def as_text(word: str | bytes) -> str | bytes:
    """Returns a word as text; bytes that are no UTF-8 as they are."""
    try:
        return word.decode() if isinstance(word, bytes) else word
    except UnicodeDecodeError:
        return word


def _state(layer: Any) -> dict[str, Any] | None:
    """Returns what a layer of Keras learned, as arguments of its constructor."""
    if isinstance(layer, keras.layers.Normalization):
        parts = {"mean": layer.adapt_mean, "variance": layer.adapt_variance}
        return {name: part.numpy().tolist() for name, part in parts.items()}
    if isinstance(layer, keras.layers.Discretization):
        return {"num_bins": None, "bin_boundaries": list(layer.bin_boundaries or ())}
    if isinstance(layer, LOOKUPS) and layer.get_config().get("output_mode") != "tf_idf":
        return {"vocabulary": layer.get_vocabulary(include_special_tokens=False)}
    return None
