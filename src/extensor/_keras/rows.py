"""Datasets of shuffled batches from values that are arguments of `fit`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._count_text import count_text
from extensor._keras.lowering import contains, is_extension
from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._protocol.box import box, unbox
from extensor._protocol.named_leaves import named_leaves
from extensor._struct.field import spec_of_field
from extensor._typing import Nest, TensorLike, Value
from extensor.errors import DTypeError, StructureError

DATA = ("x", "y", "sample_weight")
"""The arguments of `fit` that have one value for each row."""


class Rows:
    """Values with the same number of rows, cut into batches together.

    Args:
        data: A nest of extension values, tensors, arrays and None.

    Raises:
        StructureError: If the values have different numbers of rows (also a ValueError).
        DTypeError: If a value has no rows (also a TypeError).
    """

    def __init__(self, data: tuple[Any, ...]) -> None:
        named = dict(zip(DATA, data, strict=False))
        if named.get("y") is None:
            named.pop("sample_weight", None)  # as Keras, whose second part of a batch is targets
        parts = {name: as_tuples(part) for name, part in named.items() if part is not None}
        self._structure = tuple(parts.values())
        self._specs: list[Any] = []
        self._boxes: list[list[Any]] = []
        self._values: list[Any] | None = []  # None for a part of the rows
        self.count: int | None = None
        for name, part in parts.items():
            for names, value in named_leaves(part, (name,)):
                self._add(Path(*names), value)

    def _add(self, at: Path, value: Value) -> None:
        if not is_extension(value):
            value = _as_tensor(value)
        spec = any_batch_size(spec_of_field(value))
        if isinstance(spec, tf.TensorSpec) and not spec.shape.rank:
            fix = "Give arrays, tensors or extension values with a batch dimension."
            raise DTypeError(f"{at}", "one value for each row", "a scalar", fix)
        boxes = box(spec, value, 1)
        count = int(boxes[0].shape[0])
        if self.count is None:
            self.count = count
        if count != self.count:
            expected = count_text(self.count, "rows, the number of the first input")
            received = count_text(count, "rows")
            raise StructureError(f"{at}", expected, received, "Give one value for each row.")
        self._specs.append(spec)
        self._boxes.append(boxes)
        if self._values is not None:
            self._values.append(value)

    def split(self, share: float) -> tuple[Rows, Rows]:
        """Returns the first rows, and the last rows, which are the given share of all rows."""
        assert self.count is not None
        at = math.floor(self.count * (1.0 - share))
        if not 0 < at < self.count:
            expected = "a share that leaves rows for both training and validation"
            received = f"{share} of {count_text(self.count, 'rows')}"
            fix = "Give another share, or validation_data."
            raise StructureError("validation_split", expected, received, fix)
        return self._part(slice(None, at)), self._part(slice(at, None))

    def _part(self, rows: slice) -> Rows:
        part = Rows(())
        part._structure, part._specs = self._structure, list(self._specs)
        part._boxes = [[tensor[rows] for tensor in boxes] for boxes in self._boxes]
        part._values = None
        part.count = int(part._boxes[0][0].shape[0])
        return part

    def batches(self, batch_size: int, shuffle: bool | str = False) -> tf.data.Dataset:
        """Returns a dataset of batches. The last batch may be smaller.

        Args:
            batch_size: The number of rows in a batch.
            shuffle: Whether to shuffle the rows again in each epoch; "batch" shuffles only within
                each batch.
        """
        steps = math.ceil((self.count or 0) / batch_size)
        if steps == 1 and not shuffle and self._values is not None:
            dataset = self._one_batch(self._values)
        elif shuffle and steps > 0:
            dataset = self._shuffle(batch_size, shuffle).map(
                self._taken, num_parallel_calls=tf.data.AUTOTUNE
            )
        else:
            dataset = tf.data.Dataset.range(steps).map(
                lambda step: self._cut(step * batch_size, (step + 1) * batch_size),
                num_parallel_calls=tf.data.AUTOTUNE,
            )
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.DATA
        )
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(steps))
        dataset = dataset.with_options(options)
        return dataset.prefetch(tf.data.AUTOTUNE) if steps > 1 else dataset

    def _one_batch(self, values: list[Any]) -> tf.data.Dataset:
        """Returns a dataset of one batch of all rows, for which no function is traced."""
        dataset = tf.data.Dataset.from_tensors(self._pack(values))
        # The same types as of batches that are cut, so that no step is traced again.
        variant = tf.data.experimental.to_variant(dataset)
        return tf.data.experimental.from_variant(variant, self._pack(self._specs))

    def _shuffle(self, batch_size: int, shuffle: bool | str) -> tf.data.Dataset:
        """Returns a dataset of the numbers of the rows of each batch."""
        count = self.count or 0
        steps = math.ceil(count / batch_size)

        def shuffle_rows(rows: tf.Tensor, seed: tf.Tensor, step: tf.Tensor | int) -> tf.Tensor:
            return tf.random.experimental.stateless_shuffle(rows, tf.stack([seed, step]))

        def batches(seed: tf.Tensor) -> tf.data.Dataset:
            rows = tf.range(count, dtype=tf.int64)
            if shuffle != "batch":
                rows = shuffle_rows(rows, seed, 0)
            lengths = [batch_size] * (steps - 1) + [count - batch_size * (steps - 1)]
            ragged = tf.RaggedTensor.from_row_lengths(rows, lengths, validate=False)
            cut = tf.data.Dataset.from_tensor_slices(ragged)
            if shuffle != "batch":
                return cut
            return cut.enumerate(1).map(lambda step, rows: shuffle_rows(rows, seed, step))

        # One order of rows for all components, so that they stay together. Stateless ops, because
        # with a seed set by the user, a stateful op would repeat its order in each epoch.
        seeds = tf.data.Dataset.random(rerandomize_each_iteration=True).take(1)
        if steps == 1:
            return seeds.map(lambda seed: shuffle_rows(tf.range(count, dtype=tf.int64), seed, 1))
        return seeds.flat_map(batches)

    def _taken(self, rows: tf.Tensor) -> Nest:
        """Returns the values of the rows with the given numbers."""
        # The raw operations, because a function of Python per component takes most of the time.
        axis = tf.constant(0)
        return self._unbox(
            lambda tensor: tf.raw_ops.GatherV2(params=tensor, indices=rows, axis=axis)
        )

    def _cut(self, start: tf.Tensor, end: tf.Tensor) -> Nest:
        """Returns the values of the rows from a start to an end."""
        start, end, one = start[tf.newaxis], end[tf.newaxis], tf.ones([1], tf.int64)
        return self._unbox(
            lambda tensor: tf.raw_ops.StridedSlice(input=tensor, begin=start, end=end, strides=one)
        )

    def _unbox(self, change: Callable[[Any], Any]) -> Nest:
        """Returns values from changed boxes."""
        return self._pack(
            [
                unbox(spec, [change(tensor) for tensor in boxes])
                for spec, boxes in zip(self._specs, self._boxes, strict=True)
            ]
        )

    def _pack(self, leaves: list[Any]) -> Nest:
        return tf.nest.pack_sequence_as(self._structure, leaves)


def as_tuples(structure: Nest) -> Nest:
    """Returns a nest with lists replaced by tuples, because a dataset converts lists to tensors."""
    if isinstance(structure, dict):
        return {name: as_tuples(item) for name, item in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*map(as_tuples, structure))
    if isinstance(structure, tuple) or (
        isinstance(structure, list) and contains(structure, lambda item: hasattr(item, "shape"))
    ):
        return tuple(map(as_tuples, structure))
    return np.asarray(structure) if isinstance(structure, list) else structure


def _as_tensor(value: TensorLike) -> tf.Tensor:
    """Returns an array as a tensor, with floats cast to `keras.config.floatx()`."""
    tensor = tf.convert_to_tensor(value if isinstance(value, tf.Tensor) else np.asarray(value))
    floats = keras.config.floatx()
    return tf.cast(tensor, floats) if tensor.dtype.is_floating else tensor
