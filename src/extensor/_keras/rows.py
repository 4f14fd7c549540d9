"""Datasets of shuffled batches from values that are arguments of `fit`."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras.lowering import contains, is_extension
from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._protocol.box import box, unbox
from extensor._struct.field import spec_of_field
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
        parts = {name: as_tuples(part) for name, part in named.items() if part is not None}
        self._structure = tuple(parts.values())
        self._specs: list[Any] = []
        self._boxes: list[list[Any]] = []
        self.count: int | None = None
        for name, part in parts.items():
            for at, value in _leaves(part, Path(name)):
                self._add(at, value)

    def _add(self, at: Path, value: Any) -> None:
        if not is_extension(value):
            value = _as_tensor(value)
        spec = any_batch_size(spec_of_field(value))
        if isinstance(spec, tf.TensorSpec) and not spec.shape.rank:
            raise DTypeError(
                path=f"{at}",
                expected="one value for each row",
                received="a scalar",
                mend="Give arrays, tensors or extension values with a batch dimension.",
            )
        boxes = box(spec, value, 1)
        count = int(boxes[0].shape[0])
        if self.count is None:
            self.count = count
        if count != self.count:
            raise StructureError(
                path=f"{at}",
                expected=f"{self.count} rows, the number of the first input",
                received=f"{count} rows",
                mend="Give one value for each row.",
            )
        self._specs.append(spec)
        self._boxes.append(boxes)

    def add_weights(self, weights: Any) -> None:
        """Adds a sample weight for each row."""
        self._structure = (*self._structure, weights)
        self._add(Path("sample_weight"), weights)

    def split(self, share: float) -> tuple[Rows, Rows]:
        """Returns the first rows, and the last rows, which are the given share of all rows."""
        assert self.count is not None
        at = math.floor(self.count * (1.0 - share))
        if not 0 < at < self.count:
            raise StructureError(
                path="validation_split",
                expected="a share that leaves rows for both training and validation",
                received=f"{share} of {self.count} rows",
                mend="Give another share, or validation_data.",
            )
        return self._part(slice(None, at)), self._part(slice(at, None))

    def _part(self, rows: slice) -> Rows:
        part = Rows(())
        part._structure, part._specs = self._structure, list(self._specs)
        part._boxes = [[tensor[rows] for tensor in boxes] for boxes in self._boxes]
        part.count = int(part._boxes[0][0].shape[0])
        return part

    def batches(self, batch_size: int, shuffle: bool | str = False) -> tf.data.Dataset:
        """Returns a dataset of batches. The last batch may be smaller.

        Args:
            batch_size: The number of rows in a batch.
            shuffle: Whether to shuffle the rows again in each epoch; "batch" shuffles only within
                each batch.
        """
        count, steps = self.count, math.ceil((self.count or 0) / batch_size)

        def order(seed: Any) -> Any:
            rows = tf.range(count, dtype=tf.int64)
            return shuffled(rows, seed, 0) if shuffle and shuffle != "batch" else rows

        def cut(rows: Any, seed: Any) -> Any:
            return tf.data.Dataset.range(steps).map(
                lambda step: in_batch(
                    rows[step * batch_size : (step + 1) * batch_size], seed, step + 1
                )
            )

        def in_batch(rows: Any, seed: Any, step: Any) -> Any:
            return shuffled(rows, seed, step) if shuffle == "batch" else rows

        def shuffled(rows: Any, seed: Any, step: Any) -> Any:
            return tf.random.experimental.stateless_shuffle(rows, tf.stack([seed, step]))

        # One order of rows for all components, so that they stay together. Stateless ops, because
        # with a seed set by the user, a stateful op would repeat its order in each epoch.
        seeds = tf.data.Dataset.random(rerandomize_each_iteration=True).take(1)
        dataset = seeds.map(lambda seed: (order(seed), seed)).prefetch(1).flat_map(cut)
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.DATA
        )
        return (
            dataset.map(self._taken, num_parallel_calls=tf.data.AUTOTUNE)
            .apply(tf.data.experimental.assert_cardinality(steps))
            .with_options(options)
            .prefetch(tf.data.AUTOTUNE)
        )

    def _taken(self, rows: Any) -> tuple[Any, ...]:
        values = [
            unbox(spec, [tf.gather(tensor, rows) for tensor in boxes])
            for spec, boxes in zip(self._specs, self._boxes, strict=True)
        ]
        return tf.nest.pack_sequence_as(self._structure, values)


def _leaves(part: Any, at: Path) -> Any:
    """Yields the leaves of a nest, in the order of tf.nest, with their paths."""
    if isinstance(part, dict):
        for name in sorted(part):
            yield from _leaves(part[name], at / str(name))
    elif isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from _leaves(item, at / str(i))
    else:
        yield at, part


def as_tuples(structure: Any) -> Any:
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


def _as_tensor(value: Any) -> Any:
    """Returns an array as a tensor, with floats cast to `keras.config.floatx()`."""
    tensor = tf.convert_to_tensor(value if isinstance(value, tf.Tensor) else np.asarray(value))
    floats = keras.config.floatx()
    return tf.cast(tensor, floats) if tensor.dtype.is_floating else tensor
