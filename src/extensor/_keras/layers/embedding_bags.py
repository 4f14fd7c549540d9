"""EmbeddingBags: the vectors of many fields of lists, with one table for many fields."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras.layer import Layer
from extensor._keras.layers.adapted_layer import (
    adapted_to,
    batches_of_records,
    expect_open,
    word_lookups,
)
from extensor._keras.layers.combine import checked_combiner, combine, rows_of_table
from extensor._keras.layers.embedding_bag import EmbeddingBag
from extensor._keras.layers.lists import ListItems
from extensor._keras.layers.unions import field_at
from extensor._path import Path
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.tensor import StructuredTensor
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

    A number in place of a bag is the size of its vectors: `adapt(dataset)` reads its vocabulary, of
    strings or ints.

    Saved files have the vectors by the path of the field. Under `compile(jit_compile=True)`, it
    takes records of static shapes, whose bags have `input_dim`.

    Args:
        bags: An EmbeddingBag for each field, or the size of its vectors, by path.
        output_mode: "concat" for one vector each record: those of its fields, side by side. "dict"
            for a dict of the results, by path.
        combiner: That of the fields whose vocabulary `adapt` reads; as in `EmbeddingBag`.
        max_tokens: The size of the vocabularies that `adapt` reads, with one place for all other
            items. Default: all strings and ints.
        **kwargs: Options of `keras.layers.Layer`. The `dtype` is that of all bags.

    Raises:
        ArgumentError: If `bags` is empty, has another layer or a size below 1, or `output_mode` or
            `combiner` is another word (also a ValueError).

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

    With vocabularies of the data:

    >>> bags = xt.keras.layers.EmbeddingBags({"tags": 4, "ids": 4})
    >>> bags.adapt(recipes)
    >>> {path: len(vectors) for path, vectors in bags.embeddings.items()}
    {'tags': 3, 'ids': 4}
    """

    def __init__(
        self,
        bags: Mapping[str, EmbeddingBag | int],
        output_mode: str = "concat",
        combiner: str = "mean",
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.combiner, self.max_tokens = checked_combiner(combiner, self.name), max_tokens
        if output_mode not in ("concat", "dict"):
            fix = 'Write output_mode="concat" for one vector each record.'
            raise ArgumentError(self.name, 'output_mode="concat" or "dict"', repr(output_mode), fix)
        self.output_mode = output_mode
        by_path = {str(Path.of(path)): bag for path, bag in bags.items()}
        if not by_path:
            fix = "Write EmbeddingBags({path: EmbeddingBag(...)})."
            raise ArgumentError(self.name, "an EmbeddingBag for at least one field", "none", fix)
        for path, bag in by_path.items():
            is_size = isinstance(bag, int) and not isinstance(bag, bool)
            if not (is_size or isinstance(bag, EmbeddingBag)):
                fix = "Call other layers on the field. Or give the size of the vectors."
                raise ArgumentError(path, "an EmbeddingBag", type(bag).__name__, fix)
            if is_size and bag < 1:
                fix = f"Write, for example, {{{path!r}: 16}}."
                raise ArgumentError(path, "vectors of size 1 or more", str(bag), fix)
        self._groups: tuple[_Group, ...] = ()
        self._set_bags(by_path)

    def _sizes(self) -> dict[str, int]:
        """Returns the sizes of the vectors of the fields without a vocabulary, by path."""
        return {
            each.path: each.bag for each in self._features if not isinstance(each.bag, EmbeddingBag)
        }

    def adapt(self, data: tf.data.Dataset | StructuredTensor, steps: int | None = None) -> None:
        """Reads the vocabularies of the fields without a bag, in one pass over the data.

        Args:
            data: A dataset of batches of records, or of tuples that begin with records; or records.
            steps: The number of batches to read. Default: all.

        Raises:
            StructureError: If all vocabularies are known, the layer was called before, a field has
                no item, or the data are single records (also a ValueError).
            UnsupportedTypeError: If the data are no records (also a TypeError).
            DTypeError: If a field has neither strings nor integers (also a TypeError).
        """
        sizes = self._sizes()
        expect_open(self)
        if not sizes:
            expected = "at least one field without a vocabulary"
            fix = "Make a new EmbeddingBags, with the size of the vectors in place of the bag."
            raise StructureError(self.name, expected, "bags for all fields", fix)
        data, _ = batches_of_records(data, steps, self.name)
        adapted, _ = adapted_to(word_lookups(data, sizes, self.max_tokens), data)
        bags = {each.path: each.bag for each in self._features}
        for path, size in sizes.items():
            words = adapted[path].get_vocabulary(include_special_tokens=False)
            bags[path] = EmbeddingBag(size, vocabulary=words, combiner=self.combiner)
        self._set_bags(bags)

    def _set_bags(self, by_path: dict[str, Any]) -> None:
        """Sets the bags, and makes the weights if all vocabularies are known."""
        # Keras does not look into a tuple of these objects: the weights of the bags are not those
        # of this layer.
        self._features = tuple(_Feature(path, bag) for path, bag in by_path.items())
        if self._sizes():
            return
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
        starts = list(itertools.accumulate([0, *sizes]))
        start_of = dict(zip(map(id, bags), starts, strict=False))
        size = features[0].bag.embedding.output_dim

        def initial(shape: object, dtype: Any = None) -> Any:
            return tf.concat([_initial(bag, dtype) for bag in bags], 0)

        table = self.add_weight(
            shape=(sum(sizes), size),
            initializer=initial,
            regularizer=_OfBags(bags, starts) if any(map(_regularizer, bags)) else None,
            trainable=_is_trained(bags[0]),
            name=f"embeddings_{number}",
        )
        setattr(self, f"table_{number}", table)
        return _Group(features, table, np.array([start_of[id(each.bag)] for each in features]))

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
            if isinstance(each.bag, EmbeddingBag)
            and each.bag.score is not None
            and each.bag.embedding.built
        }

    def call(self, inputs: Value) -> Any:
        """Returns a vector for each record, or a dict of the results of the bags."""
        if not isinstance(inputs, DenseStructuredTensor):
            fix = "Give a StructuredTensor of a batch of records."
            raise UnsupportedTypeError(self.name, "records", type(inputs).__name__, fix)
        if sizes := self._sizes():
            expected, received = "the vocabularies of all fields", f"none for {', '.join(sizes)}"
            raise StructureError(self.name, expected, received, "Call adapt(dataset) first.")
        found: dict[str, Any] = {}
        for group in self._groups:
            found |= group.results(inputs, self.compute_dtype)
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
            table = np.zeros(group.table.shape, group.table.dtype)
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
            "combiner": self.combiner,
            "max_tokens": self.max_tokens,
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

    bag: Any
    """An EmbeddingBag; before `adapt`, perhaps the size of its vectors."""

    @property
    def kind(self) -> tuple[int, str, bool]:
        """What the bags of a group have in common."""
        return self.bag.embedding.output_dim, self.bag.combiner, _is_trained(self.bag)

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
        parts = [one.ids(lists) for one, lists in zip(self.features, each, strict=True)]
        if each[0].is_static:
            return self._static_results(each, parts, dtype)
        ids = tf.concat(parts, 0)
        lengths, counts, places = _lengths(each)
        row_ids, count = _row_ids(lengths, tf.size(ids)), tf.size(lengths)
        ids = self._in_table(ids, tf.gather(places, row_ids))
        table = tf.cast(tf.convert_to_tensor(self.table), dtype)
        combiner = self.features[0].bag.combiner
        if combiner == "max":
            found = combine(ListItems(tf.gather(table, ids), row_ids, count), combiner, 0.0)
        else:
            found = rows_of_table(table, ids, row_ids, count, combiner)
        if any(one.bag.empty for one in self.features):
            found = self._with_empty(found, lengths, places)
        vectors = tf.split(found, counts, num=len(each))
        return {
            one.path: lists.one_each(part)
            for one, lists, part in zip(self.features, each, vectors, strict=True)
        }

    def _static_results(
        self, each: list[ListItems], ids: list[tf.Tensor], dtype: str
    ) -> dict[str, Any]:
        """Returns what `results` returns, by ops that XLA has."""
        # XLA takes the nearest row for an id that is too large. It would be one of another feature.
        rows = [
            tf.clip_by_value(own, 0, one.size - 1) + int(start)
            for one, own, start in zip(self.features, ids, self.starts, strict=True)
        ]
        vectors = tf.gather(tf.cast(tf.convert_to_tensor(self.table), dtype), tf.concat(rows, 0))
        parts = tf.split(vectors, [tf.size(own) for own in ids], num=len(ids))
        return {
            one.path: combine(lists.with_items(part), one.bag.combiner, one.bag.empty)
            for one, lists, part in zip(self.features, each, parts, strict=True)
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


def _is_trained(bag: EmbeddingBag) -> bool:
    return bool(bag.trainable and bag.embedding.trainable)


class _OfBags(keras.regularizers.Regularizer):
    """The sum of what the regularizers of bags say of their parts of a table."""

    def __init__(self, bags: Sequence[EmbeddingBag], starts: Sequence[int]) -> None:
        self._own = list(zip(map(_regularizer, bags), itertools.pairwise(starts), strict=True))

    def __call__(self, table: Any) -> tf.Tensor:
        """Returns the sum."""
        return tf.add_n([own(table[a:b]) for own, (a, b) in self._own if own is not None])


def _regularizer(bag: EmbeddingBag) -> Any:
    embedding: Any = bag.embedding
    return embedding.embeddings_regularizer


def _initial(bag: EmbeddingBag, dtype: Any) -> tf.Tensor:
    embedding: Any = bag.embedding
    if embedding.built:
        return tf.cast(tf.convert_to_tensor(embedding.embeddings), dtype)
    shape = embedding.input_dim, embedding.output_dim
    return embedding.embeddings_initializer(shape, dtype=dtype)
