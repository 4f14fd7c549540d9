"""The lists of a batch as one tensor of their items.

Each layer for lists works on this form. So null items, null lists and outer dimensions are handled
in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from extensor._authoring.rows import cut_rows
from extensor._keras.compiled_step import is_compiling
from extensor._keras.layer import LayerWithConfig
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.inside import map_inside
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.reshape import merge_dims
from extensor._types.masked.value import MaskedTensor
from extensor._typing import Value
from extensor.errors import UnsupportedTypeError


class ListLayer(LayerWithConfig):
    """A layer for lists, which takes masks of Keras. Its results have no padding and no mask."""

    _takes_static_lists = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        # In a model of Keras: on a GPU it compiles what does not refuse. `compile` of a model of
        # extensor turns it on.
        self.supports_jit = False

    def compute_mask(self, inputs: object, previous_mask: object | None = None) -> None:
        """Returns None, because the results have no padding."""


@dataclass(frozen=True, eq=False)
class ListItems:
    """The items of the innermost lists of a field, without null items."""

    items: Value
    """The items of all lists, one after another: a tensor or records."""

    row_ids: tf.Tensor
    """The number of the list of each item, ascending."""

    count: tf.Tensor
    """The number of lists."""

    outer: tuple[tf.Tensor, ...] = ()
    """The row splits of the dimensions around the lists, outermost first."""

    sizes: tuple[int | None, int | None] = (None, None)
    """The static number of lists and the static number of items in each, or None."""

    row_splits: tf.Tensor | None = None
    """The row splits of the lists, if they are known."""

    is_static: bool = False
    """Whether null items and free places are among the items, because XLA compiles the step."""

    valid: tf.Tensor | None = None
    """Of static lists: True for the items that are not null. None if none may be null."""

    @classmethod
    def of_field(cls, value: Value, path: str, mask: tf.Tensor | None = None) -> ListItems:
        """Returns the innermost lists of a field.

        Args:
            value: A ragged tensor, or records in ragged rows, with any number of ragged
                dimensions; or a dense tensor, whose lists are along its second dimension; or such a
                value in a MaskedTensor. An item that is null is left out. A null list is empty.
            path: The name of the layer, for the error.
            mask: The mask that Keras keeps for a dense tensor, or None: True for the items.

        Raises:
            UnsupportedTypeError: If the value has no lists (also a TypeError).
        """
        if mask is not None and isinstance(value, tf.Tensor):
            value = MaskedTensor(value, tf.cast(mask, tf.bool))
        value, masks = without_masks(value)
        if isinstance(value, (tf.RaggedTensor, RaggedStructuredTensor)):
            return cls._of_ragged(value, masks)
        if isinstance(value, (tf.Tensor, DenseStructuredTensor)) and (value.shape.rank or 0) > 1:
            return cls._of_dense(value, masks)
        shape = f" of shape {value.shape}" if hasattr(value, "shape") else ""
        expected = "a field of lists: ragged, records in ragged rows, or a tensor of rank 2 or more"
        received = f"{type(value).__name__}{shape}"
        raise UnsupportedTypeError(path, expected, received, "Give a single field of lists.")

    @classmethod
    def _of_ragged(cls, value: Value, masks: list[Any]) -> ListItems:
        outer: list[Any] = []
        valid: Any = None  # of the rows of `value`
        is_static = is_compiling()
        while True:
            row_ids, count = _static_rows(value, masks) if is_static else _rows(value.row_splits)
            # Null lists at this level, whose items are all left out.
            valid = _both(valid, *(mask for mask in masks if mask.shape.rank == 1))
            valid = None if valid is None else tf.gather(valid, row_ids)
            masks = [_below(mask) for mask in masks if mask.shape.rank != 1]
            if not isinstance(value.values, (tf.RaggedTensor, RaggedStructuredTensor)):
                break
            outer.append(value.row_splits)
            value = value.values
        sizes = (None if outer else value.shape[0], None)
        lists = cls(value.values, row_ids, count, tuple(outer), sizes, value.row_splits, is_static)
        return lists._only(valid, masks)

    @classmethod
    def _of_dense(cls, value: Value, masks: list[Any]) -> ListItems:
        count, size = tf.unstack(tf.shape(value, tf.int64)[:2])
        items = merge_dims(value, 0, 1)
        row_ids = tf.repeat(tf.range(count), size)
        sizes = (value.shape[0], value.shape[1])
        lists = cls(items, row_ids, count, sizes=sizes, is_static=is_compiling())
        whole = [mask for mask in masks if mask.shape.rank == 1]
        inner = [mask for mask in masks if mask.shape.rank != 1]
        valid = None if not whole else tf.gather(_both(None, *whole), row_ids)
        return lists._only(valid, [merge_dims(mask, 0, 1) for mask in inner])

    def _only(self, valid: tf.Tensor | None, masks: list[Any]) -> ListItems:
        """Returns the lists with valid items only.

        Args:
            valid: True for the items of lists that are not null; None for all.
            masks: Masks of the items. A mask of the numbers in an item, such as the numbers of a
                vector, makes those zero that are not valid; an item without any valid number is
                left out.
        """
        items = self.items
        for mask in masks:
            inner = tuple(range(1, mask.shape.rank))
            if inner:
                items = MaskedTensor._of_parts(items, mask).fill(tf.zeros([], items.dtype))
            valid = _both(valid, tf.reduce_any(mask, inner) if inner else mask)
        if valid is None:
            return self
        if self.is_static:
            if isinstance(items, tf.Tensor):  # what is hidden may be NaN
                items = MaskedTensor._of_parts(items, valid).fill(tf.zeros([], items.dtype))
            return replace(self, items=items, valid=_both(self.valid, valid))
        # TensorFlow needs the rank of a mask.
        valid = tf.ensure_shape(valid, [None])
        items = tf.boolean_mask(items, valid)
        row_ids = tf.boolean_mask(self.row_ids, valid)
        sizes = (self.sizes[0], None)
        return replace(self, items=items, row_ids=row_ids, sizes=sizes, row_splits=None)

    def with_items(self, items: Value) -> ListItems:
        """Returns the same lists with other items."""
        return replace(self, items=items)

    def of_vectors(self, path: str, dtype: str) -> ListItems:
        """Returns the lists with a vector in place of each number or record of numbers.

        Args:
            path: The name of the layer, for the error.
            dtype: The dtype of the vectors of records.

        Raises:
            UnsupportedTypeError: If an item has something else than numbers (also a TypeError).
        """
        items = self.items
        if isinstance(items, DenseStructuredTensor):
            parts = [
                _numbers(items[name], path, f" with a field {name}") for name in items.field_names()
            ]
            sizes = [part.shape[1:].num_elements() or 1 for part in parts]
            columns = [
                tf.reshape(tf.cast(part, dtype), [-1, size])
                for part, size in zip(parts, sizes, strict=True)
            ]
            vectors = tf.concat(columns, 1)
            return self.with_items(self.only_valid(vectors, 0))
        items = _numbers(items, path)
        return self if items.shape.rank > 1 else self.with_items(items[:, tf.newaxis])

    def where(self, valid: tf.Tensor) -> ListItems:
        """Returns the lists with only those items for which a mask is True."""
        return self._only(valid, [])

    def of_records(self) -> ListItems:
        """Returns one list for each record, of the items of all lists in it."""
        row_ids, count = self.row_ids, self.count
        if not self.outer:
            return self
        for row_splits in reversed(self.outer):
            rows, count = _rows(row_splits)
            row_ids = tf.gather(rows, row_ids)
        sizes = (self.sizes[0], None)
        return ListItems(
            self.items, row_ids, count, (), sizes, is_static=self.is_static, valid=self.valid
        )

    def lengths(self) -> tf.Tensor:
        """Returns the number of items in each list."""
        if self.valid is not None:
            return self.total(tf.cast(self.valid, self.row_ids.dtype))
        if self.row_splits is not None:
            return self.row_splits[1:] - self.row_splits[:-1]
        ones = tf.ones_like(self.row_ids)
        return tf.math.unsorted_segment_sum(ones, self.row_ids, self.count)

    def total(self, numbers: tf.Tensor) -> tf.Tensor:
        """Returns the sum of numbers, one for each item, in each list."""
        if self._is_dense():
            return tf.reduce_sum(self._in_rows(numbers), 1)
        if self.is_static:  # XLA has no op for sorted segments
            return tf.math.unsorted_segment_sum(numbers, self.row_ids, self.count)
        return self._segments(tf.math.segment_sum, numbers)

    def largest(self, numbers: tf.Tensor) -> tf.Tensor:
        """Returns the largest of numbers, one for each item, in each list."""
        if self._is_dense():
            return tf.reduce_max(self._in_rows(numbers), 1)
        if self.is_static:
            return tf.math.unsorted_segment_max(numbers, self.row_ids, self.count)
        return self._segments(tf.math.segment_max, numbers)

    def _segments(
        self, reduce: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], numbers: tf.Tensor
    ) -> tf.Tensor:
        # Faster than tf.math.unsorted_segment_sum and the like. It ends with the last list that has
        # an item.
        found = reduce(numbers, self.row_ids)
        missing = tf.cast(self.count, tf.int32) - tf.shape(found)[0]
        found = tf.pad(found, [[0, missing], *[[0, 0]] * (numbers.shape.rank - 1)])
        found.set_shape([None, *numbers.shape[1:]])
        return found

    def only_valid(self, numbers: tf.Tensor, neutral: float) -> tf.Tensor:
        """Returns numbers, one for each item, with another one in place of those of nulls."""
        if self.valid is None:
            return numbers
        valid = tf.reshape(self.valid, [-1] + [1] * (numbers.shape.rank - 1))
        return tf.where(valid, numbers, tf.constant(neutral, numbers.dtype))

    def is_valid(self) -> tf.Tensor:
        """Returns for each item whether it is not null."""
        return tf.ones_like(self.row_ids, tf.bool) if self.valid is None else self.valid

    def _is_dense(self) -> bool:
        return self.row_splits is None and not self.outer and bool(self.sizes[1])

    def _in_rows(self, numbers: tf.Tensor) -> tf.Tensor:
        """Returns numbers, one for each item, in rows of the static size of all lists."""
        outer = [-1 if self.sizes[0] is None else self.sizes[0], self.sizes[1]]
        inner = numbers.shape[1:]
        if inner.is_fully_defined():
            return tf.reshape(numbers, [*outer, *inner])
        return tf.reshape(numbers, tf.concat([outer, tf.shape(numbers)[1:]], 0))

    def padded(self, path: str = "lists") -> tuple[Any, Any]:
        """Returns the items with padding to the longest list, and the mask of the items.

        There is padding for one item if all lists are empty, because layers such as LSTM need it.

        Args:
            path: The name of the layer, for the error.

        Raises:
            UnsupportedTypeError: If XLA compiles the step, and the lists have no static size (also
                a TypeError).
        """
        if self.is_static:
            if not self._is_dense():
                expected = "padded lists, because of jit_compile=True"
                fix = "Give each list a size: records.to_static({path: size}), in the dataset."
                raise UnsupportedTypeError(path, expected, "ragged ones", fix)
            return self._in_rows(self.items), self._in_rows(self.is_valid())
        ragged = self.ragged(self.items)
        longest = tf.maximum(ragged.bounding_shape(axis=1), 1)
        inner = self.items.shape[1:]
        values = ragged.to_tensor(shape=tf.stack([-1, longest, *[-1] * inner.rank]))
        mask = tf.sequence_mask(ragged.row_lengths(), longest)
        values.set_shape([mask.shape[0], None, *inner])
        return values, mask

    def ragged(self, items: Value) -> tf.RaggedTensor:
        """Returns items, one for each item of the lists, as a ragged tensor of all lists."""
        if self.row_splits is not None:
            return tf.RaggedTensor.from_row_splits(items, self.row_splits, validate=False)
        return tf.RaggedTensor.from_value_rowids(items, self.row_ids, self.count, validate=False)

    def of_padded(self, results: tf.Tensor, valid: tf.Tensor) -> Value:
        """Returns results, one for each place of `padded`, in the rows of the field.

        They are a masked tensor if XLA compiles the step.
        """
        if self.is_static:
            return MaskedTensor._of_parts(results, valid)
        return self.cut(tf.boolean_mask(results, tf.ensure_shape(valid, [None, None])))

    def cut(self, items: Value) -> Value:
        """Returns items, one for each item of the lists, in the rows of the field."""
        return self.one_each(self.ragged(items))

    def one_each(self, results: Value) -> Value:
        """Returns results, one for each list, in the rows around the lists."""
        if not self.outer and isinstance(results, tf.Tensor):
            results.set_shape([self.sizes[0], *results.shape[1:]])
        for row_splits in reversed(self.outer):
            results = cut_rows(results, row_splits)
        return results


def _numbers(items: Value, path: str, place: str = "") -> Any:
    """Returns the tensor of items that are numbers or vectors, with zeros in place of nulls."""
    plain, masks = without_masks(items)
    is_tensor = isinstance(plain, tf.Tensor)
    if not is_tensor or not (plain.dtype.is_floating or plain.dtype.is_integer):
        kind = plain.dtype.name if is_tensor else type(plain).__name__
        received = f"lists of records{place} of {kind}" if place else f"lists of {kind}"
        fix = "Make a vector of each item first: xt.keras.TimeDistributed(layer)."
        raise UnsupportedTypeError(path, "lists of vectors or numbers", received, fix)
    for mask in masks:
        plain = MaskedTensor._of_parts(plain, mask).fill(0)
    return plain


def without_masks(value: Value) -> tuple[Any, list[Any]]:
    """Returns a value or a spec without the masks around it, and these masks, outermost first."""
    masks: list[Any] = []
    while isinstance(value, (MaskedTensor, MaskedTensor.Spec)):
        masks.append(value.mask)
        value = value.values
    return value, masks


def in_flat(value: Value, change: Callable[[Any], Any]) -> Value:
    """Returns a field with a function applied to the tensor of its values."""
    if isinstance(value, tf.Tensor):
        return change(value)
    return map_inside(value, lambda part, _: in_flat(part, change))


def valid_items(value: Value, path: str) -> tuple[Any, Any]:
    """Returns the tensor of the values of a field, and for each number whether it is not null.

    Args:
        value: A tensor, dense or ragged, in a MaskedTensor or not.
        path: The path of the field, for the error.

    Raises:
        UnsupportedTypeError: If the field has other values (also a TypeError).
    """
    plain, _ = without_masks(value)
    if not isinstance(plain, (tf.Tensor, tf.RaggedTensor)):
        expected = "a tensor, dense or ragged"
        raise UnsupportedTypeError(path, expected, type(plain).__name__, "Select a field.")
    valid = in_flat(value, lambda flat: tf.ones_like(flat, tf.bool))
    valid = valid.fill(False) if isinstance(valid, MaskedTensor) else valid
    return _flat(plain), _flat(valid)


def _flat(value: Value) -> tf.Tensor:
    return value.flat_values if isinstance(value, tf.RaggedTensor) else value


def _rows(row_splits: tf.Tensor) -> tuple[Any, Any]:
    """Returns the number of the row of each value, and the number of rows."""
    rows = tf.RaggedTensor.from_row_splits(tf.range(row_splits[-1]), row_splits, validate=False)
    return rows.value_rowids(), rows.nrows()


def _static_rows(value: Any, masks: list[Any]) -> tuple[Any, Any]:
    """Returns what `_rows` returns, by ops whose sizes XLA knows."""
    splits, inner = value.row_splits, value.values
    count = tf.shape(splits, splits.dtype)[0] - 1
    if isinstance(inner, (tf.RaggedTensor, RaggedStructuredTensor)):
        size = tf.shape(inner.row_splits, splits.dtype)[0] - 1
    else:
        flat = [mask.values for mask in masks if isinstance(mask, tf.RaggedTensor)]
        flat.append(inner)
        size = tf.shape(flat[0], splits.dtype)[0]
    # XLA compares each number with all splits for tf.searchsorted.
    ends = tf.scatter_nd(splits[1:, tf.newaxis], tf.ones_like(splits[1:]), [size + 1])
    return tf.cumsum(ends)[:-1], count


def _below(mask: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
    """Returns a mask for the values of ragged rows."""
    if isinstance(mask, tf.RaggedTensor):
        return mask.values
    return merge_dims(mask, 0, 1)  # rows of one length


def _both(*masks: tf.Tensor | None) -> tf.Tensor | None:
    """Returns where all masks are True; None if there is no mask."""
    found = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else tf.logical_and(found, mask)
    return found
