"""What `fit`, `evaluate` and `predict` accept, as what Keras iterates by itself.

A dataset of extension values passes through Keras as it is. Values that are given directly become
such a dataset (`rows`), because Keras cannot cut them into batches. What generators and PyDatasets
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

from extensor._keras.lowering import contains, is_extension, lowered
from extensor._keras.rows import DATA, Rows, as_tuples
from extensor.errors import DTypeError, UnsupportedTypeError


def fit_arguments(
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
    given.update(given.pop("kwargs", {}))  # what Keras adds when it evaluates in `fit`
    batch_size = given.get("batch_size")
    validation = given.get("validation_data")
    data = tuple(given.get(name) for name in DATA)
    if contains(data, is_extension):
        rows = Rows(data)
        share = given.pop("validation_split", 0.0)
        if share and validation is None:
            rows, validation = rows.split(share)
        class_weight = given.pop("class_weight", None)
        if class_weight is not None:  # which the rows that validate do not have
            rows.add_weights(_weights_of_classes(class_weight, *data[1:])[: rows.count])
        steps = given.get("steps_per_epoch") or given.get("steps")
        shuffle = given.get("shuffle", True) if "shuffle" in signature.parameters else False
        batch_size = batch_size or (math.ceil(rows.count / steps) if steps else 32)
        given["x"] = rows.batches(batch_size, shuffle)
        for name in ("y", "sample_weight", "batch_size"):
            given.pop(name, None)
    else:
        given["x"] = _lowered_batches(data[0], replicas)
    if isinstance(validation, (tuple, list)) and contains(validation, is_extension):
        validation = Rows(tuple(validation))
    if isinstance(validation, Rows):
        size = given.pop("validation_batch_size", None) or batch_size or 32
        given["validation_data"] = validation.batches(size)
    elif validation is not None:
        given["validation_data"] = _lowered_batches(validation, replicas)
    if "shuffle" in signature.parameters and isinstance(
        given["x"], (tf.data.Dataset, types.GeneratorType)
    ):
        given["shuffle"] = False  # they shuffle themselves, or Keras warns
    return given


def _weights_of_classes(class_weight: dict[int, float], y: Any, sample_weight: Any) -> Any:
    """Returns a weight for each row, by its class, which is a number or a vector."""
    if sample_weight is not None or not hasattr(as_tuples(y), "shape") or is_extension(y):
        raise DTypeError(
            path="class_weight",
            expected="targets in one tensor, without sample_weight",
            received="sample_weight too" if sample_weight is not None else type(y).__name__,
            mend="Give sample_weight alone, one number for each row.",
        )
    classes = np.asarray(as_tuples(y))
    if classes.ndim > 1:
        classes = classes.argmax(-1) if classes.shape[-1] != 1 else classes.squeeze(-1)
    classes = np.round(classes.astype(np.float64)).astype(int)
    weights = [class_weight.get(number, 1.0) for number in classes.tolist()]
    return np.array(weights, keras.config.floatx())


def _lowered_batches(data: Any, replicas: int) -> Any:
    """Returns a source of batches in the form in which Keras takes them."""
    if isinstance(data, types.GeneratorType):
        return (_lowered(element, replicas) for element in data)
    if isinstance(data, keras.utils.PyDataset) and not isinstance(data, _LoweredPyDataset):
        return _LoweredPyDataset(data, replicas)
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
    return lowered(element)


class _LoweredPyDataset(keras.utils.PyDataset):
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
