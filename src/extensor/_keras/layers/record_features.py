"""RecordFeatures: the preprocessing of whole records."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from extensor._authoring.rows import cut_rows
from extensor._keras.compiled_step import looks_up, mark_apart
from extensor._keras.layer import Layer
from extensor._keras.layers.adapted_layer import (
    Learned,
    adapted_to,
    batches_of_records,
    expect_open,
    expect_text_or_numbers,
    is_finite,
    warn_of_many_words,
)
from extensor._keras.layers.combine import combine, summable
from extensor._keras.layers.crosses import Cross, crosses_of
from extensor._keras.layers.default_features import adapted_layers, spec_layers
from extensor._keras.layers.field_statistics import one_a_row
from extensor._keras.layers.lists import ListItems, in_flat, without_masks
from extensor._keras.layers.unions import field_at, variant_specs
from extensor._keras.open_spec import any_batch_size
from extensor._keras.spec_key import key_of_spec, spec_of_key
from extensor._path import Path
from extensor._struct import reshape
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.inside import map_inside
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import first_sizes
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._struct.units import have_other_units, with_units_of
from extensor._types.masked.value import MaskedTensor
from extensor._types.union.value import UnionTensor
from extensor._typing import Value
from extensor.errors import ArgumentError, FieldError, StructureError, UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class RecordFeatures(Layer):
    """A layer that preprocesses records, field by field, as `keras.utils.FeatureSpace`.

    `RecordFeatures()` gets its layers from `adapt(dataset)`: numbers are normalized, strings looked
    up, times cut into buckets. `RecordFeatures.from_spec(spec)` needs no data: strings are hashed,
    timestamps are years, durations are days. `RecordFeatures({path: layer})` has your layers of
    Keras, for these fields only; `adapt` adapts those that need it.

    With `output_mode="concat"`, each record becomes one vector: the features of its fields, side by
    side. The numbers of categories (of strings, times and hashes) are one-hot; of a list it has the
    mean; a null, NaN, infinity and an empty list are zeros. With `output_mode="records"`, the
    result has the form of the input: lists stay lists, nulls stay null, with zeros as their values.

    Records in lists, and masked records, are taken too: each record becomes a vector. Each variant
    of a union is a field of its own, `amount.int` and `amount.string`, null in the rows of other
    variants. In the form of the input, it stays a union.

    Args:
        layers: A preprocessing layer for each field, by path. None: `adapt` makes them.
        output_mode: "concat" or "records".
        num_bins: The number of buckets for times that `adapt` makes.
        max_tokens: The size of the vocabularies that `adapt` makes. Default: all strings.
        crosses: Tuples of paths of fields whose categories are hashed together, as
            `keras.utils.FeatureSpace` does, or `keras.utils.FeatureSpace.cross(...)`. Their one-hot
            vectors follow those of the fields. With "records", they are fields of numbers,
            such as `city_X_kind`. A cross with a null is zeros, or null.
        crossing_dim: The number of bins of a cross.
        **kwargs: Options of `keras.layers.Layer`.

    Raises:
        ArgumentError: If `output_mode` is another word, or a cross has fewer than two fields, or,
            with "records", the name of a field or of another cross (also a ValueError).
        FieldError: If a cross names a field that has no layer (also a KeyError).
        UnsupportedTypeError: If the layer of a field in a cross returns no numbers of categories
            (also a TypeError).

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([3], {
    ...     "title": ["Scones", "Flapjacks", "Scones"],
    ...     "minutes": tf.ragged.constant([[5., 20.], [], [8.]])})
    >>> features = xt.keras.layers.RecordFeatures()
    >>> features.adapt(tf.data.Dataset.from_tensors(recipes))
    >>> features(recipes).numpy().round(2)
    array([[ 0.  ,  1.  ,  0.  ,  0.23],
           [ 0.  ,  0.  ,  1.  ,  0.  ],
           [ 0.  ,  1.  ,  0.  , -0.46]], dtype=float32)

    The pairs of two fields, hashed into 4 bins:

    >>> lookup = {name: keras.layers.StringLookup(vocabulary=["a", "b"]) for name in ("x", "y")}
    >>> pairs = xt.DenseStructuredTensor([2], {"x": ["a", "b"], "y": ["b", "b"]})
    >>> features = xt.keras.layers.RecordFeatures(lookup, crosses=[("x", "y")], crossing_dim=4)
    >>> features(pairs).shape
    TensorShape([2, 10])
    """

    def __init__(
        self,
        layers: Mapping[str, Any] | None = None,
        output_mode: str = "concat",
        num_bins: int = 16,
        max_tokens: int | None = None,
        crosses: Sequence[Any] | None = None,
        crossing_dim: int = 32,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)  # half precision cannot hold most numbers
        if output_mode not in ("concat", "records"):
            expected = 'output_mode="concat" or "records"'
            fix = 'Write output_mode="concat" for one vector each record.'
            raise ArgumentError(self.name, expected, repr(output_mode), fix)
        self.output_mode, self.num_bins, self.max_tokens = output_mode, num_bins, max_tokens
        self.crosses, self.crossing_dim = crosses_of(crosses or (), crossing_dim), crossing_dim
        self._chosen = layers is not None
        self._spec: Any = None
        self._learned: Learned | None = None
        self.layers: dict[str, Any] = {}
        self._set_layers({str(Path.of(path)): layer for path, layer in (layers or {}).items()})

    @classmethod
    def from_spec(
        cls, spec: StructuredTensorSpec, *, num_bins: int = 32, **kwargs: Any
    ) -> RecordFeatures:
        """Returns a layer for records of a spec, which needs no data.

        Args:
            spec: The spec of records, such as a dataset's `element_spec`.
            num_bins: The number of bins in which strings are hashed.
            **kwargs: Other arguments of the constructor.

        >>> import pyarrow as pa
        >>> import extensor as xt
        >>> spec = xt.spec_from_schema(pa.schema({"title": pa.string()}))
        >>> features = xt.keras.layers.RecordFeatures.from_spec(spec, num_bins=4)
        >>> features(xt.from_arrow(pa.table({"title": ["Scones"]}))).numpy()
        array([[1., 0., 0., 0.]], dtype=float32)
        """
        made = cls(**kwargs)
        made._chosen, made._spec = True, spec
        made._set_layers(spec_layers(spec, num_bins, made._number_dtype))
        return made

    def adapt(self, data: tf.data.Dataset | StructuredTensor, steps: int | None = None) -> None:
        """Adapts the layers to data, in one pass over the data for all fields.

        A layer whose class has an `adapt` of its own reads the data once more.

        Args:
            data: A dataset of batches of records, or of tuples that begin with records; or records.
            steps: The number of batches to read. Default: all.

        Raises:
            StructureError: If the layer was called before, there is no string, or the data are
                single records (also a ValueError).
            UnsupportedTypeError: If the data are no records (also a TypeError).
        """
        expect_open(self)
        given, spec = batches_of_records(data, steps, self.name)
        self._spec = any_batch_size(spec)
        layers = dict(self.layers)
        if not self._chosen:
            layers = adapted_layers(spec, self.num_bins, self.max_tokens, self._number_dtype)
        self._check_crosses(layers)
        adapted, learned = adapted_to(layers, given)
        if self._chosen and self._learned is not None:  # layers that were adapted before
            known = self._learned.fields
            kept = {path: known[path] for path in known if adapted[path] is self.layers[path]}
            learned = Learned({**learned.fields, **kept})
        self._set_adapted(adapted, learned)

    def merge(self, other: RecordFeatures) -> None:
        """Adds what another layer learned, as if `adapt` had read the data of both.

        Adapt one layer to each shard of the data, where the shard is, and merge them: means,
        variances and vocabularies, also with `max_tokens`, are those of all data. Boundaries of
        `Discretization` and `TimeBuckets` are those of all data for fewer than 100 values, else
        quantiles with an error of about 1% for each merge.

        `pickle`, with which processes send objects to each other, keeps what a merge needs. Files
        of models do not.

        Args:
            other: A layer with the same fields and settings, adapted to other data. It is not
                changed.

        Raises:
            StructureError: If a layer is not adapted or comes from a file, if this layer was called
                before, or if the fields, settings, sizes of vectors or units differ (also a
                ValueError).
            UnsupportedTypeError: If `other` is no RecordFeatures, or has a layer whose statistics
                cannot be merged (also a TypeError).

        >>> import extensor as xt
        >>> shards = [["Scones", "Flapjacks"], ["Scones"]]
        >>> adapted = []
        >>> for titles in shards:
        ...     features = xt.keras.layers.RecordFeatures()
        ...     features.adapt(xt.DenseStructuredTensor([len(titles)], {"title": titles}))
        ...     adapted.append(features)
        >>> features, other = adapted
        >>> features.merge(other)
        >>> print(*features.layers["title"].get_vocabulary())
        [UNK] Scones Flapjacks
        """
        if not isinstance(other, RecordFeatures):
            fix = "Adapt a RecordFeatures to each shard."
            raise UnsupportedTypeError(self.name, "RecordFeatures", type(other).__name__, fix)
        expect_open(self)
        mine, theirs = _expect_learned(self), _expect_learned(other)
        if have_other_units(self._spec, other._spec) or have_other_units(other._spec, self._spec):
            fix = "Cast the records first: spec.cast(records)."
            raise StructureError(self.name, "records of the same units", "other units", fix)
        learned = mine.merged(theirs, self.name)
        self._set_adapted(learned.layers(self.layers), learned)

    @property
    def _number_dtype(self) -> str:
        """The dtype in which numbers are computed, before the result is cast."""
        return "float64" if self.compute_dtype == "float64" else "float32"

    def _set_adapted(self, layers: dict[str, Any], learned: Learned) -> None:
        if not self._chosen and self.max_tokens is None and self.output_mode == "concat":
            warn_of_many_words(layers)
        self._set_layers(layers)
        self._learned = learned

    def _check_crosses(self, layers: Mapping[str, Any]) -> None:
        known = {Path.of(path).names[0] for path in layers}
        for cross in self.crosses:
            cross.check(layers)
            if self.output_mode == "records":
                if cross.name in known:
                    expected = "crosses whose names are not those of fields or other crosses"
                    fix = f'Rename the field {cross.name}, or write output_mode="concat".'
                    raise ArgumentError("crosses", expected, cross.name, fix)
                known.add(cross.name)

    def _set_layers(self, layers: dict[str, Any]) -> None:
        if layers:
            self._check_crosses(layers)
        for path in list(self.layers):
            self.layers.pop(path)  # Keras stops tracking the layer
        for number, (path, layer) in enumerate(layers.items()):
            self.layers[path] = layer
            if looks_up(layer):
                layer.supports_jit = True  # because a model computes it apart
            # TensorFlow finds the tables of layers in attributes, but not in dicts of Keras.
            setattr(self, f"layer_{number}", layer)

    @property
    def layers_apart(self) -> list[Any]:
        """The layers whose results a compiled model computes before its step."""
        return list(self.layers.values())

    def call(self, inputs: Value) -> Value:
        """Returns a vector for each record, or the records with preprocessed fields."""
        if not self.layers:
            fix = "Call adapt(dataset) first, or use RecordFeatures.from_spec(spec)."
            raise StructureError(self.name, "the layers of the fields", "none", fix)
        if self._spec is not None and have_other_units(self._spec, inputs):
            inputs = with_units_of(self._spec, inputs)
        return self._features(inputs)

    def _features(self, value: Value) -> Value:
        if isinstance(value, MaskedTensor):
            return MaskedTensor._of_parts(self._features(value.values), value.mask)
        if isinstance(value, RaggedStructuredTensor):
            return cut_rows(self._features(value.values), value.row_splits)
        if not isinstance(value, DenseStructuredTensor):
            fix = "Give a StructuredTensor, whole or a field of records."
            raise UnsupportedTypeError(self.name, "records", type(value).__name__, fix)
        if value.rank > 1:  # padded lists of records
            found = self._features(value.merge_dims(0, 1))
            return reshape.split_outer(found, first_sizes(value, 2))
        if self.output_mode == "records":
            records = self._records(value, Path())
            crossed = {cross.name: self._cross_bins(value, cross) for cross in self.crosses}
            return records.with_updates(crossed) if crossed else records
        parts = [self._vector(field_at(value, path), path) for path in self.layers]
        for cross in self.crosses:
            bins = self._cross_bins(value, cross)
            bins = bins.fill(-1) if isinstance(bins, MaskedTensor) else bins  # -1 is zeros
            parts.append(tf.one_hot(bins, cross.num_bins, dtype=self.compute_dtype))
        vectors = tf.concat(parts, axis=1)
        return tf.ensure_shape(vectors, [value.shape[0], None])

    def _records(self, records: DenseStructuredTensor, above: Path) -> DenseStructuredTensor:
        """Returns records with preprocessed fields, and only those fields."""
        chosen = {Path.of(path).names for path in self.layers}

        def is_chosen(path: Path) -> bool:
            return any(names[: len(path.names)] == path.names for names in chosen)

        def field(value: Value, path: Path) -> Value:
            if not is_chosen(path):  # a variant of a union
                return value
            if isinstance(value, DenseStructuredTensor):
                return self._records(value, path)
            if isinstance(value, tf.Tensor):
                return self._apply(value, str(path))
            found = map_inside(value, field, path)
            is_masked = isinstance(found, MaskedTensor)
            if is_masked and isinstance(found.values, (tf.Tensor, tf.RaggedTensor)):
                found = MaskedTensor._of_parts(found.fill(0), found.mask)
            return found

        names = [name for name in records.field_names() if is_chosen(above / name)]
        fields = {name: field(records[name], above / name) for name in names}
        return DenseStructuredTensor(records.shape, fields, validate=False)

    def _cross_bins(self, records: DenseStructuredTensor, cross: Cross) -> Value:
        """Returns the bin of a cross for each record, masked if one of its fields may be null."""

        def categories(path: str) -> Value:
            value = field_at(records, path)
            _check_field(value, path)
            if isinstance(self.layers[path], _OF_NUMBERS):
                value = _not_finite_as_null(value)
            return in_flat(value, lambda flat: self._apply(flat, path))

        return cross.bins({path: categories(path) for path in cross.paths})

    def _vector(self, value: Value, path: str) -> tf.Tensor:
        """Returns the features of a field, a vector for each record."""
        _check_field(value, path)
        depth = _depth(self.layers[path])
        dtype = self.compute_dtype

        def numbers(flat: tf.Tensor) -> tf.Tensor:
            found = self._apply(flat, path)
            if depth is not None and found.dtype.is_integer:
                return tf.one_hot(found, depth, dtype=dtype)
            return tf.cast(found, dtype)

        is_ragged = isinstance(without_masks(value)[0], tf.RaggedTensor)
        if isinstance(self.layers[path], _OF_NUMBERS if is_ragged else keras.layers.Discretization):
            value = _not_finite_as_null(value)  # others return 0 for these
        value = in_flat(value, numbers)
        plain, masks = without_masks(value)
        if isinstance(plain, tf.RaggedTensor):
            plain = combine(ListItems.of_field(value, path).of_records(), "mean", 0.0)
        elif plain.shape.rank > (1 if depth is None else 2) and self._is_list(path, depth):
            return _mean_of_valid(plain, masks, 0 if depth is None else 1)
        else:
            for mask in masks:
                plain = MaskedTensor._of_parts(plain, mask).fill(0)
        if plain.shape.rank == 1:
            return plain[:, tf.newaxis]
        if plain.shape.rank == 2:
            return plain
        size = plain.shape[1:].num_elements()
        return tf.reshape(plain, [tf.shape(plain)[0], -1 if size is None else size])

    def _is_list(self, path: str, depth: int | None) -> bool:
        """Returns whether a dense field has lists and not vectors: of categories, or padded."""
        if depth is not None or self._spec is None:
            return depth is not None
        names = Path.of(path).names
        with contextlib.suppress(FieldError):  # of a variant of a union
            for count in range(1, len(names) + 1):
                spec, _ = without_masks(self._spec.field_spec(names[:count]))
                is_ragged = isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank > 0
                if is_ragged or (isinstance(spec, StructuredTensorSpec) and spec.rank > 1):
                    return True
        return False

    def _apply(self, flat: tf.Tensor, path: str) -> tf.Tensor:
        layer = self.layers[path]
        expect_text_or_numbers(layer, flat.dtype, path)
        if not isinstance(layer, keras.layers.Normalization):
            found = layer(one_a_row(layer, flat))
            if looks_up(layer) or flat.dtype == tf.string:
                return mark_apart(found)
            is_scaled = isinstance(layer, keras.layers.Rescaling)
            return self._number(found, flat) if is_scaled else found
        column = flat[:, tf.newaxis] if flat.shape.rank == 1 else flat  # it needs a second axis
        if not layer.built:
            with tf.init_scope():  # it keeps the tensors that `build` makes
                layer.build(tuple(column.shape))
        found = layer(column)
        found = found[:, 0] if flat.shape.rank == 1 else tf.reshape(found, tf.shape(flat))
        return self._number(found, flat)

    def _number(self, found: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
        """Returns numbers with zero where those that they were made of are not finite."""
        if given.dtype.is_floating:
            found = tf.where(is_finite(given), found, tf.zeros([], found.dtype))
        return tf.cast(found, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor; after `adapt`, with the adapted layers."""
        layers = {path: keras.saving.serialize_keras_object(x) for path, x in self.layers.items()}
        return {
            **super().get_config(),
            "layers": layers or None,
            "output_mode": self.output_mode,
            "num_bins": self.num_bins,
            "max_tokens": self.max_tokens,
            "crosses": [cross.get_config() for cross in self.crosses],
            "crossing_dim": self.crossing_dim,
            **({} if self._spec is None else {"spec": str(key_of_spec(self._spec))}),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> RecordFeatures:
        """Returns the layer of a configuration from `get_config`."""
        layers = config["layers"]
        if layers is not None:
            layers = {path: keras.saving.deserialize_keras_object(x) for path, x in layers.items()}
        own = {name: value for name, value in config.items() if name != "spec"}
        made = super().from_config({**own, "layers": layers})
        if "spec" in config:
            made._spec = spec_of_key(config["spec"])
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__()[:2], {"learned": self._learned})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._learned = state["learned"]


_OF_NUMBERS = keras.layers.Normalization, keras.layers.Rescaling, keras.layers.Discretization


def _expect_learned(features: RecordFeatures) -> Learned:
    """Returns what layers learned. Raises if they were not adapted, or come from a file."""
    if features._learned is None:
        expected = "a layer that `adapt` made, whose statistics are known"
        received = "one without statistics, which files of models do not have"
        fix = "Call adapt(dataset), and merge before you save; or send the layer by pickle."
        raise StructureError(features.name, expected, received, fix)
    return features._learned


def _check_field(value: Value, path: str) -> None:
    """Raises if a field is a union, of which a variant must be chosen."""
    value, _ = without_masks(value)
    if isinstance(value, UnionTensor):
        spec = tf.type_spec_from_value(value)
        variants = [str(Path.of(path) / name) for name in variant_specs(spec)]
        expected = "a field of one type"
        fix = f"Name its variants, each with a layer: {', '.join(variants)}."
        raise UnsupportedTypeError(path, expected, f"a union of {', '.join(value.names)}", fix)


def _mean_of_valid(items: tf.Tensor, masks: list[tf.Tensor], inner: int) -> tf.Tensor:
    """Returns the mean of the items in dense lists that are not null, as a row for each record.

    Args:
        items: The items, of shape `[rows, ...]`.
        masks: Masks of the lists and of their items.
        inner: The rank of an item.
    """
    rank = items.shape.rank - inner
    valid = tf.ones([1] * rank, tf.bool)
    for mask in masks:
        valid &= tf.reshape(mask, tf.concat([tf.shape(mask), [1] * (rank - mask.shape.rank)], 0))
    valid = tf.broadcast_to(valid, tf.shape(items)[:rank])
    given = items.dtype
    items = summable(MaskedTensor._of_parts(items, valid).fill(0))
    axes = list(range(1, rank))
    count = tf.reduce_sum(tf.cast(valid, items.dtype), axes)[:, tf.newaxis]
    total = tf.reduce_sum(items, axes)
    mean = tf.math.divide_no_nan(total if inner else total[:, tf.newaxis], count)
    return tf.cast(mean, given)


def _not_finite_as_null(value: Value) -> Value:
    """Returns a field whose NaN and infinite numbers are null, so that a mean leaves them out."""
    if isinstance(value, MaskedTensor):
        return MaskedTensor._of_parts(_not_finite_as_null(value.values), value.mask)
    if not value.dtype.is_floating:
        return value
    return MaskedTensor._of_parts(value, in_flat(value, is_finite))


def _depth(layer: Any) -> int | None:
    """Returns the number of categories of a layer that returns their numbers, or None."""
    if getattr(layer, "output_mode", "int") != "int":
        return None
    if hasattr(layer, "vocabulary_size"):
        with tf.init_scope():  # not a tensor of the graph
            return int(layer.vocabulary_size())
    if getattr(layer, "bin_boundaries", None) is not None:
        return len(layer.bin_boundaries) + 1
    return layer.num_bins if isinstance(layer, keras.layers.Hashing) else None
