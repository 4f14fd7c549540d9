"""Conversion of the data for `fit`, `evaluate` and `predict` to data that Keras can iterate.

Keras accepts a dataset of extension values. Extension values as arguments become such a dataset
(`rows`), because Keras cannot cut them into batches. Batches from generators and PyDatasets are
lowered, because Keras reads the shape and dtype of each leaf.
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

from extensor._keras.lowering import contains, is_extension, to_lowered
from extensor._keras.rows import DATA, Rows
from extensor._tf import with_element_spec
from extensor._types.masked.value import MaskedTensor
from extensor._typing import Nest
from extensor.errors import ArgumentError, DTypeError, UnsupportedTypeError


def fit_arguments(
    method: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    replicas: int = 1,
    as_input: Callable[[Any], Any] = lambda x: x,
    with_fields_read: Callable[[Any], tuple[Any, Any]] = lambda x: (x, None),
) -> dict[str, Any]:
    """Returns the arguments for a method of Keras, with data that Keras can iterate.

    Args:
        method: `fit`, `evaluate` or `predict` of a model.
        args: The positional arguments of the caller.
        kwargs: The keyword arguments of the caller.
        replicas: The number of replicas over which Keras splits each batch.
        as_input: Converts the inputs of the model first.
        with_fields_read: Returns records with the fields that the model reads, and the form of a
            batch of them; or the inputs as they are, and None.

    Raises:
        ArgumentError: If the size of batches is not a positive int (also a ValueError).
        StructureError: If values have different numbers of rows (also a ValueError).
        DTypeError: If a value cannot be cut into rows (also a TypeError).
    """
    signature = inspect.signature(method)
    given = signature.bind(*args, **kwargs).arguments
    given.update(given.pop("kwargs", {}))  # Keras adds some when `fit` calls `evaluate`
    batch_size = given.get("batch_size")
    given["x"] = as_input(given.get("x"))
    validation = given.get("validation_data")
    if isinstance(validation, (tuple, list)) and validation:
        validation = (as_input(validation[0]), *validation[1:])
    data, form = tuple(given.get(name) for name in DATA), None
    if contains((data, validation), is_extension):
        for name in ("batch_size", "validation_batch_size"):
            _check_size(name, given.get(name))
    if contains(data, is_extension):
        x, form = with_fields_read(data[0])
        rows = Rows((x, *data[1:]))
        share = given.pop("validation_split", 0.0)
        if share and validation is None:
            rows, validation = rows.split(share)
        steps = given.get("steps_per_epoch") or given.get("steps")
        shuffle = given.get("shuffle", True) if "shuffle" in signature.parameters else False
        batch_size = batch_size or (math.ceil(rows.count / steps) if steps else 32)
        given["x"] = _with_form(rows.batches(batch_size, shuffle), form)
        for name in ("y", "sample_weight", "batch_size"):
            given.pop(name, None)
    else:
        given["x"] = _lowered_batches(data[0], replicas)
    is_weighted = given.get("class_weight") is not None
    if is_weighted and (contains(data, is_extension) or _has_masked_targets(data[0])):
        given["x"] = _with_class_weights(given["x"], given.pop("class_weight"))
    if isinstance(validation, (tuple, list)) and contains(validation, is_extension):
        validation, form = Rows(tuple(validation)), None
    if isinstance(validation, Rows):
        size = given.pop("validation_batch_size", None) or batch_size or 32
        given["validation_data"] = _with_form(validation.batches(size), form)
    elif validation is not None:
        given["validation_data"] = _lowered_batches(validation, replicas)
    if "shuffle" in signature.parameters and isinstance(
        given["x"], (tf.data.Dataset, types.GeneratorType)
    ):
        given["shuffle"] = False  # Keras warns if `shuffle` is set for these
    return given


def _with_form(dataset: tf.data.Dataset, form: Nest) -> tf.data.Dataset:
    """Returns a dataset whose inputs have another form, which is of the same tensors."""
    if form is None:
        return dataset
    spec = dataset.element_spec
    return with_element_spec(dataset, (form, *spec[1:]) if isinstance(spec, tuple) else form)


def _check_size(name: str, size: object) -> None:
    """Raises unless a size of batches is a positive int, or is not given; 0 is not, as in Keras."""
    if size and (not isinstance(size, (int, np.integer)) or size < 0):
        fix = "Give the number of rows in a batch, or leave the argument out for 32."
        raise ArgumentError(name, "a positive int", repr(size), fix)


def _has_masked_targets(data: Nest) -> bool:
    """Returns whether data are a dataset of inputs and targets that may be null, in one tensor."""
    spec: Any = data.element_spec if isinstance(data, tf.data.Dataset) else None
    return isinstance(spec, tuple) and len(spec) == 2 and _is_masked_tensor(spec[1])


def _is_masked_tensor(spec: Any) -> bool:
    return isinstance(spec, MaskedTensor.Spec) and isinstance(spec.values, tf.TensorSpec)


def _with_class_weights(data: tf.data.Dataset, class_weight: dict[int, float]) -> tf.data.Dataset:
    """Returns a dataset with weights from the classes of targets, as Keras makes them."""
    _, *targets = data.element_spec
    is_one = len(targets) == 1 and (
        isinstance(targets[0], tf.TensorSpec) or _is_masked_tensor(targets[0])
    )
    if not is_one:
        expected = "targets in one tensor, without sample_weight"
        received = "no targets"
        if targets:
            is_weighted = len(targets) > 1
            received = "both class_weight and sample_weight" if is_weighted else repr(targets[0])
        fix = "Give sample_weight only, one number for each row."
        raise DTypeError("class_weight", expected, received, fix)
    weights = [class_weight.get(number, 1.0) for number in range(max(class_weight, default=-1) + 1)]
    table = tf.constant([*weights, 1.0], keras.config.floatx())  # the last is that of others

    def add_weights(x: Nest, y: Any) -> tuple[Any, Any, tf.Tensor]:
        # A null has class 0: its weight does not count.
        classes = tf.cast(y, keras.config.floatx())
        classes = classes.fill(0.0) if isinstance(classes, MaskedTensor) else classes
        if classes.shape.rank > 1:
            is_vector = classes.shape[-1] != 1
            classes = tf.argmax(classes, -1) if is_vector else tf.squeeze(classes, -1)
        classes = tf.cast(tf.round(classes), tf.int32)
        is_known = (classes >= 0) & (classes < len(weights))
        return x, y, tf.gather(table, tf.where(is_known, classes, len(weights)))

    return data.map(add_weights)


def _lowered_batches(data: Nest, replicas: int) -> Nest:
    """Returns a source of batches whose extension values are lowered."""
    if isinstance(data, types.GeneratorType):
        return (_to_lowered(element, replicas) for element in data)
    if isinstance(data, keras.utils.PyDataset) and not isinstance(data, _LoweredPyDataset):
        return _LoweredPyDataset(data, replicas)
    return data


def _to_lowered(element: Nest, replicas: int) -> Nest:
    if replicas > 1 and contains(element, is_extension):
        # Keras would split each component tensor separately, also row splits.
        expected = "a batch from a tf.data.Dataset, or values as arguments"
        received = "extension values from a generator or PyDataset"
        fix = "Use tf.data.Dataset.from_generator(..., output_signature=spec)."
        raise UnsupportedTypeError(f"a batch for {replicas} replicas", expected, received, fix)
    return to_lowered(element)


class _LoweredPyDataset(keras.utils.PyDataset):
    """A PyDataset with the batches of another PyDataset, lowered."""

    def __init__(self, source: keras.utils.PyDataset, replicas: int) -> None:
        super().__init__(
            workers=source.workers,
            use_multiprocessing=source.use_multiprocessing,
            max_queue_size=source.max_queue_size,
        )
        self.source, self.replicas = source, replicas

    @property
    def num_batches(self) -> Any:
        return self.source.num_batches

    def __getitem__(self, index: int) -> Nest:
        return _to_lowered(self.source[index], self.replicas)

    def on_epoch_begin(self) -> None:
        self.source.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self.source.on_epoch_end()
