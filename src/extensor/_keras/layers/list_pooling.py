"""ListPooling: one value for each list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.layers.combine import attention_scores, checked_combiner, combine
from extensor._keras.layers.lists import ListItems, ListLayer
from extensor._struct.dense import DenseStructuredTensor
from extensor._types.masked.value import MaskedTensor
from extensor._typing import Nest, Value
from extensor.errors import UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class ListPooling(ListLayer):
    """A layer that returns one value for each list: the sum, mean, maximum, or an attention mean.

    The items are numbers, vectors or records. Of a list of records, the result is one record, whose
    fields are those of the items, combined. Null items are left out, and so are null fields. Of
    lists in lists, each innermost list gets a value: the result is ragged.

    A dense tensor may have a mask of Keras. As in `keras.layers.GlobalAveragePooling1D`, the items
    where it is False are left out, and the result has no mask. But a list without any item has the
    value `empty`, where that layer returns NaN.

    Args:
        combiner: "mean", "sum", "max", or "attention": a mean weighted by the softmax of learned
            scores, one for each item.
        empty: The value of a list without items, or with null or masked items only.
        **kwargs: Options of `keras.layers.Layer`.

    Raises:
        ArgumentError: If `combiner` is another word (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> minutes = tf.ragged.constant([[5.0, 20.0], [], [8.0]])
    >>> xt.keras.layers.ListPooling("max", empty=-1.0)(minutes).numpy()
    array([20., -1.,  8.], dtype=float32)
    >>> steps = xt.RaggedStructuredTensor.from_row_splits(
    ...     xt.DenseStructuredTensor([3], {"minutes": [5.0, 20.0, 8.0]}), [0, 2, 3])
    >>> xt.keras.layers.ListPooling("mean")(steps)["minutes"].numpy()
    array([12.5,  8. ], dtype=float32)
    """

    _config_values = ("combiner", "empty")
    _config_policies = ("score",)

    def __init__(self, combiner: str = "mean", empty: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.combiner, self.empty = checked_combiner(combiner, self.name), empty
        self.score = attention_scores(combiner, self.dtype_policy)

    def call(self, inputs: Value, mask: tf.Tensor | tf.RaggedTensor | None = None) -> Value:
        """Returns the values of the lists.

        Args:
            inputs: A field of lists.
            mask: The mask that Keras keeps for a dense tensor: True for the items to combine.
        """
        lists = ListItems.of_field(inputs, self.name, mask)
        leaves: dict[str, tuple[Any, Any]] = {}
        shape = self._numbers(lists.items, self.name, leaves)
        scores = None
        if self.score is not None:
            parts = [tf.reshape(part, [tf.shape(part)[0], -1]) for part, _ in leaves.values()]
            for part, (leaf, _) in zip(parts, leaves.values(), strict=True):
                part.set_shape([None, leaf.shape[1:].num_elements()])
            scores = self.score(tf.concat(parts, axis=1))[:, 0]
        own = replace(lists, outer=())
        results = {
            path: self._combine(own, items, valid, scores)
            for path, (items, valid) in leaves.items()
        }
        return lists.one_each(_pack(shape, results, lists.count))

    def _combine(
        self, lists: ListItems, items: tf.Tensor, valid: tf.Tensor | None, scores: tf.Tensor | None
    ) -> Value:
        lists = lists.with_items(items)
        if valid is not None:
            lists = lists.where(valid)
            if scores is not None and not lists.is_static:
                scores = tf.boolean_mask(scores, valid)
        return combine(lists, self.combiner, self.empty, scores)

    def _numbers(self, items: Value, path: str, leaves: dict[str, tuple[Any, Any]]) -> Nest:
        """Returns the paths of the fields, in the form of the records.

        Args:
            items: A tensor or records, in a MaskedTensor or not.
            path: The path of the items.
            leaves: Gets the tensor of each field with its mask, or None, by path.
        """
        if isinstance(items, DenseStructuredTensor):
            return {
                name: self._numbers(items[name], f"{path}.{name}", leaves)
                for name in items.field_names()
            }
        plain, valid = items, None
        while isinstance(plain, MaskedTensor) and plain.mask.shape.rank == 1:
            valid = plain.mask if valid is None else valid & plain.mask
            plain = plain.values
        if not isinstance(plain, tf.Tensor) or plain.dtype == tf.string:
            dtype = f" of {plain.dtype.name}" if isinstance(plain, tf.Tensor) else ""
            expected = "numbers, one tensor for each item"
            fix = "Select other fields, or make vectors first: xt.keras.TimeDistributed(layer)."
            raise UnsupportedTypeError(path, expected, f"{type(plain).__name__}{dtype}", fix)
        plain = tf.cast(plain, self.compute_dtype)
        if valid is not None:
            plain = MaskedTensor._of_parts(plain, valid).fill(0)
        leaves[path] = plain, valid
        return path


def _pack(shape: Nest, results: dict[str, Any], count: tf.Tensor) -> Value:
    if not isinstance(shape, dict):
        return results[shape]
    fields = {name: _pack(inner, results, count) for name, inner in shape.items()}
    return DenseStructuredTensor([None], fields, validate=False)
