"""What `fit`, `evaluate` and `predict` read from, in a form that Keras iterates by itself.

A dataset of extension values passes through Keras as it is. Values that are given directly become
such a dataset here, because Keras cannot cut them into batches. What generators and PyDatasets
yield is lowered, because Keras asks each leaf of it for its shape and dtype.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras.lowering import contains, for_keras, is_extension
from extensor._keras.spec_key import any_batch_size
from extensor._path import Path
from extensor._protocol.box import box, unbox
from extensor._struct.field import spec_of_field
from extensor.errors import DTypeError, StructureError, UnsupportedTypeError

_DATA = ("x", "y", "sample_weight")


def with_sources(
    method: Callable[..., Any], args: Any, kwargs: Any, replicas: int = 1
) -> dict[str, Any]:
    """Returns the arguments for a method of Keras, with data that Keras can iterate.

    Args:
        method: `fit`, `evaluate` or `predict` of a model.
        args: The arguments that the caller gave it.
        kwargs: Those given by name.
        replicas: Over how many replicas Keras cuts each batch.

    Raises:
        StructureError: If values differ in how many rows they have (also a ValueError).
        DTypeError: If something cannot be cut into rows (also a TypeError).
    """
    signature = inspect.signature(method)
    given = signature.bind(*args, **kwargs).arguments
    given.update(given.pop("kwargs", {}))  # what Keras tells itself when it evaluates in `fit`
    batch_size = given.get("batch_size")
    validation = given.get("validation_data")
    data = tuple(given.get(name) for name in _DATA)
    if contains(data, is_extension):
        rows = Rows(data)
        share = given.pop("validation_split", 0.0)
        if share and validation is None:
            rows, validation = rows.split(share)
        class_weight = given.pop("class_weight", None)
        if class_weight is not None:  # which the rows that validate do not have
            rows.weigh(_weights_of_classes(class_weight, *data[1:])[: rows.count])
        steps = given.get("steps_per_epoch") or given.get("steps")
        shuffle = given.get("shuffle", True) if "shuffle" in signature.parameters else False
        batch_size = batch_size or (math.ceil(rows.count / steps) if steps else 32)
        given["x"] = rows.batches(batch_size, shuffle)
        for name in ("y", "sample_weight", "batch_size"):
            given.pop(name, None)
    else:
        given["x"] = _iterable(data[0], replicas)
    if isinstance(validation, (tuple, list)) and contains(validation, is_extension):
        validation = Rows(tuple(validation))
    if isinstance(validation, Rows):
        size = given.pop("validation_batch_size", None) or batch_size or 32
        given["validation_data"] = validation.batches(size)
    elif validation is not None:
        given["validation_data"] = _iterable(validation, replicas)
    if "shuffle" in signature.parameters and isinstance(
        given["x"], (tf.data.Dataset, types.GeneratorType)
    ):
        given["shuffle"] = False  # they shuffle themselves, or Keras warns
    return given


class Rows:
    """Values that are cut into batches together, row by row.

    Args:
        data: A nest of extension values, tensors, arrays and None, all of as many rows.

    Raises:
        StructureError: If they differ in the number of rows (also a ValueError).
        DTypeError: If one has no rows (also a TypeError).
    """

    def __init__(self, data: tuple[Any, ...]) -> None:
        named = dict(zip(_DATA, data, strict=False))
        parts = {name: _tuples(part) for name, part in named.items() if part is not None}
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
                received="a single number",
                mend="Give arrays, tensors or extension values with the batch in front.",
            )
        boxes = box(spec, value, 1)
        count = int(boxes[0].shape[0])
        if self.count is None:
            self.count = count
        if count != self.count:
            raise StructureError(
                path=f"{at}",
                expected=f"{self.count} rows, as many as the first input has",
                received=f"{count}",
                mend="Give one value for each row.",
            )
        self._specs.append(spec)
        self._boxes.append(boxes)

    def weigh(self, weights: Any) -> None:
        """Puts a sample weight beside each row."""
        self._structure = (*self._structure, weights)
        self._add(Path("sample_weight"), weights)

    def split(self, share: float) -> tuple[Rows, Rows]:
        """Returns the first rows, and the last, of which there is the given share."""
        assert self.count is not None
        at = math.floor(self.count * (1.0 - share))
        if not 0 < at < self.count:
            raise StructureError(
                path="validation_split",
                expected="a share that leaves rows on both sides",
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
        """Returns a dataset of batches, of the last of which may be smaller.

        Args:
            batch_size: How many rows a batch has.
            shuffle: Whether the rows are in another order in each epoch; "batch": only within
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

        # One order for all components, so that they are shuffled in step. With a seed that the
        # user has set, an operation that keeps its own state would begin anew in each epoch.
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
    """Yields the leaves of a nest, in the order of tf.nest, with where they stand."""
    if isinstance(part, dict):
        for name in sorted(part):
            yield from _leaves(part[name], at / str(name))
    elif isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from _leaves(item, at / str(i))
    else:
        yield at, part


def _tuples(structure: Any) -> Any:
    """Returns a nest with its lists as tuples, because a dataset takes lists for tensors."""
    if isinstance(structure, dict):
        return {name: _tuples(item) for name, item in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*map(_tuples, structure))
    if isinstance(structure, tuple) or (
        isinstance(structure, list) and contains(structure, lambda item: hasattr(item, "shape"))
    ):
        return tuple(map(_tuples, structure))
    return np.asarray(structure) if isinstance(structure, list) else structure


def _as_tensor(value: Any) -> Any:
    """Returns an array as a tensor, its floats as Keras has them."""
    tensor = tf.convert_to_tensor(value if isinstance(value, tf.Tensor) else np.asarray(value))
    floats = keras.config.floatx()
    return tf.cast(tensor, floats) if tensor.dtype.is_floating else tensor


def _weights_of_classes(class_weight: dict[int, float], y: Any, sample_weight: Any) -> Any:
    """Returns a weight for each row, by its class, as Keras tells it from numbers or vectors."""
    if sample_weight is not None or not hasattr(_tuples(y), "shape") or is_extension(y):
        raise DTypeError(
            path="class_weight",
            expected="targets in one tensor, without sample_weight",
            received="sample_weight too" if sample_weight is not None else type(y).__name__,
            mend="Give sample_weight alone, one number for each row.",
        )
    classes = np.asarray(_tuples(y))
    if classes.ndim > 1:
        classes = classes.argmax(-1) if classes.shape[-1] != 1 else classes.squeeze(-1)
    classes = np.round(classes.astype(np.float64)).astype(int)
    weights = [class_weight.get(number, 1.0) for number in classes.tolist()]
    return np.array(weights, keras.config.floatx())


def _iterable(data: Any, replicas: int) -> Any:
    """Returns a source of batches in the form in which Keras takes them."""
    if isinstance(data, types.GeneratorType):
        return (_lowered(element, replicas) for element in data)
    if isinstance(data, keras.utils.PyDataset) and not isinstance(data, _Lowered):
        return _Lowered(data, replicas)
    return data


def _lowered(element: Any, replicas: int) -> Any:
    if replicas > 1 and contains(element, is_extension):
        # Keras would cut each component tensor by itself, row splits too.
        raise UnsupportedTypeError(
            path=f"a batch for {replicas} replicas",
            expected="one out of a tf.data.Dataset, or out of values that are given directly",
            received="extension values from a generator or PyDataset",
            mend="Give a tf.data.Dataset.from_generator(..., output_signature=spec).",
        )
    return for_keras(element)


class _Lowered(keras.utils.PyDataset):
    """A PyDataset whose batches are those of another one in the form that Keras takes."""

    def __init__(self, source: Any, replicas: int) -> None:
        super().__init__(
            workers=source.workers,
            use_multiprocessing=source.use_multiprocessing,
            max_queue_size=source.max_queue_size,
        )
        self.source, self.replicas = source, replicas

    @property
    def num_batches(self) -> Any:
        return self.source.num_batches

    def __getitem__(self, index: int) -> Any:
        return _lowered(self.source[index], self.replicas)

    def on_epoch_begin(self) -> None:
        self.source.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self.source.on_epoch_end()
