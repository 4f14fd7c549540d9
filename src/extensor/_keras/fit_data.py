"""Conversion of the data for `fit`, `evaluate` and `predict` to data that Keras can iterate.

Keras accepts a dataset of extension values. Extension values as arguments become such a dataset
(`Rows`), because Keras cannot cut them into batches. Batches from generators and PyDatasets are
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

from extensor._count_text import count_text
from extensor._keras.lowering import contains, is_extension, to_lowered
from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._protocol.box import box, unbox
from extensor._protocol.named_leaves import named_leaves
from extensor._struct.field import spec_of_field
from extensor._tf import with_element_spec
from extensor._types.masked.value import MaskedTensor
from extensor._typing import Nest, TensorLike, Value
from extensor.errors import ArgumentError, DTypeError, StructureError, UnsupportedTypeError


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
    data, form = tuple(given.get(name) for name in _DATA), None
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


_DATA = ("x", "y", "sample_weight")
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
        named = dict(zip(_DATA, data, strict=False))
        if named.get("y") is None:
            named.pop("sample_weight", None)  # as Keras, whose second part of a batch is targets
        parts = {name: _as_tuples(part) for name, part in named.items() if part is not None}
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


def _as_tuples(structure: Nest) -> Nest:
    """Returns a nest with lists replaced by tuples, because a dataset converts lists to tensors."""
    if isinstance(structure, dict):
        return {name: _as_tuples(item) for name, item in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*map(_as_tuples, structure))
    if isinstance(structure, tuple) or (
        isinstance(structure, list) and contains(structure, lambda item: hasattr(item, "shape"))
    ):
        return tuple(map(_as_tuples, structure))
    return np.asarray(structure) if isinstance(structure, list) else structure


def _as_tensor(value: TensorLike) -> tf.Tensor:
    """Returns an array as a tensor, with floats cast to `keras.config.floatx()`."""
    tensor = tf.convert_to_tensor(value if isinstance(value, tf.Tensor) else np.asarray(value))
    floats = keras.config.floatx()
    return tf.cast(tensor, floats) if tensor.dtype.is_floating else tensor
