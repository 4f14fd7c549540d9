"""EmbeddingBags: the vectors of many fields of lists, with one table for many fields."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras.layer import Layer
from extensor._keras.layers.combine import combine, rows_of_table
from extensor._keras.layers.embedding_bag import EmbeddingBag
from extensor._keras.layers.lists import ListItems
from extensor._keras.layers.unions import field_at
from extensor._path import Path
from extensor._struct.dense import DenseStructuredTensor
from extensor._typing import Value
from extensor.errors import ArgumentError, DTypeError, StructureError, UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class EmbeddingBags(Layer):
    """A layer that returns the vectors of many fields of lists, as an EmbeddingBag for each field.

    It takes records. All bags of one `output_dim` and `combiner` keep their vectors in one table:
    there is one lookup and one reduction for all of them, and one variable for the optimizer. With
    many fields and small tables, a train step takes about half the time. Bags with
    `combiner="attention"` stay separate. A bag that has weights already keeps their values.
    Fields that have the same bag share its vectors.

    Saved files have the vectors by the path of the field.

    Args:
        bags: An EmbeddingBag for each field, by path.
        output_mode: "concat" for one vector each record: those of its fields, side by side. "dict"
            for a dict of the results, by path.
        **kwargs: Options of `keras.layers.Layer`. The `dtype` is that of all bags.

    Raises:
        ArgumentError: If `bags` is empty or has another layer, or `output_mode` is another word
            (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([2], {
    ...     "tags": tf.ragged.constant([["sweet", "quick"], []]),
    ...     "ids": tf.ragged.constant([[1, 2], [0]])})
    >>> bags = xt.keras.layers.EmbeddingBags({
    ...     "tags": xt.keras.layers.EmbeddingBag(4, vocabulary=["sweet", "quick"]),
    ...     "ids": xt.keras.layers.EmbeddingBag(4, input_dim=3)})
    >>> bags(recipes).shape
    TensorShape([2, 8])
    >>> len(bags.weights), bags.embeddings["ids"].shape
    (1, TensorShape([3, 4]))
    """

    def __init__(
        self, bags: Mapping[str, EmbeddingBag], output_mode: str = "concat", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if output_mode not in ("concat", "dict"):
            fix = 'Write output_mode="concat" for one vector each record.'
            expected = 'output_mode="concat" or "dict"'
            raise ArgumentError(self.name, expected, repr(output_mode), fix)
        self.output_mode = output_mode
        by_path = {str(Path.of(path)): bag for path, bag in bags.items()}
        if not by_path:
            fix = "Write EmbeddingBags({path: EmbeddingBag(...)})."
            raise ArgumentError(self.name, "an EmbeddingBag for at least one field", "none", fix)
        for path, bag in by_path.items():
            if not isinstance(bag, EmbeddingBag):
                fix = "Call other layers on the field."
                raise ArgumentError(path, "an EmbeddingBag", type(bag).__name__, fix)
        # Keras does not look into a tuple of these objects: the weights of the bags are not those
        # of this layer.
        self._features = tuple(_Feature(path, bag) for path, bag in by_path.items())
        grouped = [each for each in self._features if each.bag.score is None]
        kinds = dict.fromkeys(each.kind for each in grouped)
        self._groups = tuple(
            self._group(number, [each for each in grouped if each.kind == kind])
            for number, kind in enumerate(kinds)
        )
        for number, each in enumerate(self._features):
            if each.bag.score is not None:
                setattr(self, f"bag_{number}", each.bag)
            elif each.bag.lookup is not None:  # TensorFlow finds its table in an attribute
                setattr(self, f"lookup_{number}", each.bag.lookup)

        # All weights exist, except those of bags that stay separate: no call has to make them.
        self.built = len(grouped) == len(self._features)

    def _group(self, number: int, features: list[_Feature]) -> _Group:
        """Returns features with their table, which is a weight of this layer."""
        bags = list({id(each.bag): each.bag for each in features}.values())
        sizes = [bag.embedding.input_dim for bag in bags]
        starts = dict(zip(map(id, bags), itertools.accumulate([0, *sizes]), strict=False))
        size = features[0].bag.embedding.output_dim

        def initial(shape: object, dtype: Any = None) -> Any:
            return tf.concat([_initial(bag, dtype) for bag in bags], 0)

        table = self.add_weight(
            shape=(sum(sizes), size), initializer=initial, name=f"embeddings_{number}"
        )
        setattr(self, f"table_{number}", table)
        return _Group(features, table, np.array([starts[id(each.bag)] for each in features]))

    @property
    def embeddings(self) -> dict[str, tf.Tensor]:
        """The vectors of each field, by path."""
        return {
            each.path: group.vectors_of(place)
            for group in self._groups
            for place, each in enumerate(group.features)
        } | {
            each.path: tf.convert_to_tensor(each.bag.embedding.embeddings)
            for each in self._features
            if each.bag.score is not None and each.bag.embedding.built
        }

    def call(self, inputs: Value) -> Any:
        """Returns a vector for each record, or a dict of the results of the bags."""
        if not isinstance(inputs, DenseStructuredTensor):
            fix = "Give a StructuredTensor of a batch of records."
            raise UnsupportedTypeError(self.name, "records", type(inputs).__name__, fix)
        found: dict[str, Any] = {}
        for group in self._groups:
            found |= group.results(inputs, self.compute_dtype)
            for place, each in enumerate(group.features):
                if each.bag.embedding.embeddings_regularizer is not None:
                    vectors = group.vectors_of(place)
                    self.add_loss(each.bag.embedding.embeddings_regularizer(vectors))
        for each in self._features:
            if each.path not in found:
                found[each.path] = each.bag(field_at(inputs, each.path))
        results = {each.path: found[each.path] for each in self._features}
        if self.output_mode == "dict":
            return results
        for path, result in results.items():
            if not isinstance(result, tf.Tensor):
                fix = 'Give output_mode="dict", or combine the lists around it.'
                raise StructureError(path, "one list for each record", "lists of lists", fix)
        vectors = tf.concat(list(results.values()), axis=1)
        return tf.ensure_shape(vectors, [inputs.shape[0], None])

    def save_own_variables(self, store: Any) -> None:
        """Stores the vectors by the path of the field."""
        for group in self._groups:
            for place, each in enumerate(group.features):
                store[each.path] = group.vectors_of(place).numpy()

    def load_own_variables(self, store: Any) -> None:
        """Reads the vectors of each field by its path."""
        for group in self._groups:
            table = np.zeros(group.table.shape, np.float32)
            for place, each in enumerate(group.features):
                start = group.starts[place]
                table[start : start + each.size] = store[each.path]
            group.table.assign(table)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        bags = list({id(each.bag): each.bag for each in self._features}.values())
        numbers = {id(bag): number for number, bag in enumerate(bags)}
        return {
            **super().get_config(),
            "bags": [keras.saving.serialize_keras_object(bag) for bag in bags],
            "paths": {each.path: numbers[id(each.bag)] for each in self._features},
            "output_mode": self.output_mode,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> EmbeddingBags:
        """Returns the layer of a configuration from `get_config`."""
        own = {name: value for name, value in config.items() if name != "paths"}
        bags = [keras.saving.deserialize_keras_object(bag) for bag in config["bags"]]
        own["bags"] = {path: bags[number] for path, number in config["paths"].items()}
        return super().from_config(own)


@dataclass(frozen=True, eq=False)
class _Feature:
    """A field, and its bag."""

    path: str
    bag: EmbeddingBag

    @property
    def kind(self) -> tuple[int, str]:
        """What the bags of a group have in common."""
        return self.bag.embedding.output_dim, self.bag.combiner

    @property
    def size(self) -> int:
        """The number of vectors."""
        return self.bag.embedding.input_dim

    def ids(self, lists: ListItems) -> tf.Tensor:
        """Returns the ids of the items of lists."""
        items: Any = lists.items
        ids = items if self.bag.lookup is None else self.bag.lookup(items)
        if not ids.dtype.is_integer:
            fix = "Give the bag vocabulary= or num_bins= instead of input_dim=."
            raise DTypeError(self.path, "ids that are integers", ids.dtype.name, fix)
        if ids.shape.rank != 1:
            fix = "Call an EmbeddingBag on this field."
            received = f"items of shape {items.shape[1:]}"
            raise StructureError(self.path, "lists of words or ids", received, fix)
        return tf.cast(ids, tf.int64)


@dataclass(frozen=True, eq=False)
class _Group:
    """Features whose vectors are in one table."""

    features: list[_Feature]
    table: Any
    starts: np.ndarray[Any, Any]
    """The first row of each feature in the table."""

    def vectors_of(self, place: int) -> tf.Tensor:
        """Returns the vectors of a feature."""
        start = int(self.starts[place])
        return tf.convert_to_tensor(self.table)[start : start + self.features[place].size]

    def results(self, records: Any, dtype: str) -> dict[str, Any]:
        """Returns the vectors of the lists of each feature, by path."""
        each = [ListItems.of_field(field_at(records, one.path), one.path) for one in self.features]
        ids = tf.concat([one.ids(x) for one, x in zip(self.features, each, strict=True)], 0)
        lengths, counts, places = _lengths(each)
        row_ids, count = _row_ids(lengths, tf.size(ids)), tf.size(lengths)
        ids = self._in_table(ids, tf.gather(places, row_ids))
        table = tf.cast(tf.convert_to_tensor(self.table), dtype)
        combiner = self.features[0].bag.combiner
        if combiner == "max":
            found = combine(ListItems(tf.gather(table, ids), row_ids, count), combiner, 0.0)
        else:
            found = rows_of_table(table, ids, row_ids, count, combiner)
        found = self._with_empty(found, lengths, places)
        vectors = tf.split(found, counts, num=len(each))
        return {
            one.path: lists.one_each(part)
            for one, lists, part in zip(self.features, each, vectors, strict=True)
        }

    def _in_table(self, ids: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Returns the rows of the table for ids, each of the feature at a place."""

        def of_items(numbers: Any) -> tf.Tensor:
            return tf.gather(tf.constant(numbers, tf.int64), places)

        given = [one.path for one in self.features if one.bag.lookup is None]
        if given:
            # An id that is too large would be one of another feature.
            is_id = (ids >= 0) & (ids < of_items([one.size for one in self.features]))
            message = f"{', '.join(given)}: expected ids from 0 to input_dim - 1"
            tf.debugging.Assert(tf.reduce_all(is_id), [message])
        return ids + of_items(self.starts)

    def _with_empty(self, found: tf.Tensor, lengths: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        values = [one.bag.empty for one in self.features]
        empty = tf.gather(tf.constant(values, found.dtype), places)
        return tf.where((lengths == 0)[:, tf.newaxis], empty[:, tf.newaxis], found)


def _lengths(each: list[ListItems]) -> tuple[Any, Any, Any]:
    """Returns the sizes of the lists of all fields, and to which field each list belongs.

    Returns:
        The number of items of each list, the number of lists of each field, and for each list the
        place of its field.
    """
    places = tf.range(len(each))
    splits = [lists.row_splits for lists in each if not lists.outer]
    if len(splits) == len(each) and all(found is not None for found in splits):
        # The lists of records: one difference for all fields.
        stacked = tf.stack([tf.cast(found, tf.int64) for found in splits])
        lengths = stacked[:, 1:] - stacked[:, :-1]
        count = tf.shape(lengths)[1]
        return tf.reshape(lengths, [-1]), tf.fill([len(each)], count), tf.repeat(places, count)
    parts = [tf.cast(lists.lengths(), tf.int64) for lists in each]
    counts = tf.stack([tf.size(part) for part in parts])
    return tf.concat(parts, 0), counts, tf.repeat(places, counts)


def _row_ids(lengths: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Returns the number of the list of each item."""
    # In a part of the time of tf.repeat, which pads.
    ends = tf.cumsum(lengths)
    return tf.searchsorted(ends, tf.range(tf.cast(size, ends.dtype)), side="right")


def _initial(bag: EmbeddingBag, dtype: Any) -> tf.Tensor:
    embedding: Any = bag.embedding
    if embedding.built:
        return tf.cast(tf.convert_to_tensor(embedding.embeddings), dtype)
    shape = embedding.input_dim, embedding.output_dim
    return embedding.embeddings_initializer(shape, dtype=dtype)
