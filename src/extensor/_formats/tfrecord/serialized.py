"""StructuredTensors to serialized Examples and SequenceExamples, in a graph and eagerly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._formats.tfrecord.layout import EXAMPLE, SEQUENCE, Column, Feature, layout
from extensor._formats.tfrecord.parsed import check, wanted_spec
from extensor._path import Path, PathLike
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._typing import SchemaLike
from extensor.errors import DTypeError, NullError

_LISTS = {
    tf.int64: ("tensorflow.Int64List", "int64_list"),
    tf.float32: ("tensorflow.FloatList", "float_list"),
    tf.string: ("tensorflow.BytesList", "bytes_list"),
}


def to_tf_example(
    records: StructuredTensor,
    schema: pa.Schema | pa.DataType | None = None,
    keys: Mapping[PathLike, str] | None = None,
) -> tf.Tensor:
    """Returns records as serialized tf.Examples, in a graph or eagerly.

    Integers and bools become int64 values, floats float32 values, strings bytes; times and decimals
    their integers, without their unit: 1.50 is 150. A null of a field without a list is a missing
    feature. `from_tf_example` says which feature a field is.

    Args:
        records: A StructuredTensor of rank 1.
        schema: The spec, or the Arrow schema, to which the records are cast. Default: their own.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields.

    Returns:
        A string vector of as many Examples.

    Raises:
        DTypeError: If `records` is no StructuredTensor, or has a dtype that Examples do not hold,
            such as uint64, or float64, which would lose digits (also a TypeError).
        StructureError: If its rank is not 1, or Examples cannot hold a field, such as a list of
            lists (also a ValueError).
        UnsupportedTypeError: If Examples cannot hold a field, such as a union (also a TypeError).
        NullError: If a list is null, or holds nulls (also a ValueError; inside a tf.function,
            tf.errors.InvalidArgumentError).
        FieldError: If a key names no field (also a KeyError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "Tea", "minutes": [5, 2]}])
    >>> example = tf.train.Example.FromString(xt.to_tf_example(recipes).numpy()[0])
    >>> example.features.feature["minutes"].int64_list.value
    [5, 2]
    """
    columns, count = _columns(records, EXAMPLE, schema, keys, ())
    features = _features(columns, count)
    assert features is not None  # records have fields
    return _wrap("tensorflow.Example", "features", features)


def to_tf_sequence_example(
    records: StructuredTensor,
    schema: pa.Schema | pa.DataType | None = None,
    keys: Mapping[PathLike, str] | None = None,
    context: Iterable[PathLike] = (),
) -> tf.Tensor:
    """Returns records as serialized tf.SequenceExamples, in a graph or eagerly.

    `from_tf_sequence_example` says which feature, or list of features, a field is.

    Args:
        records: A StructuredTensor of rank 1.
        schema: The spec, or the Arrow schema, to which the records are cast. Default: their own.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields.
        context: The paths of the lists that become features of the context.

    Returns:
        A string vector of as many SequenceExamples.

    Raises:
        DTypeError, StructureError, UnsupportedTypeError, NullError, FieldError: As in
            `to_tf_example`, but for lists of lists.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "Tea", "words": [["boil"], ["pour", "wait"]]}])
    >>> message = xt.to_tf_sequence_example(recipes).numpy()[0]
    >>> lists = tf.train.SequenceExample.FromString(message).feature_lists
    >>> [feature.bytes_list.value for feature in lists.feature_list["words"].feature]
    [[b'boil'], [b'pour', b'wait']]
    """
    columns, count = _columns(records, SEQUENCE, schema, keys, context)
    in_context = [column for column in columns if not column.leaf.is_sequence]
    in_lists = [column for column in columns if column.leaf.is_sequence]
    parts = {
        "context": _features(in_context, count),
        "feature_lists": _feature_lists(in_lists, count),
    }
    message = "tensorflow.SequenceExample"
    found = [_wrap(message, name, part) for name, part in parts.items() if part is not None]
    return found[0] if len(found) == 1 else tf.strings.join(found)


def _columns(
    records: StructuredTensor,
    message: str,
    schema: SchemaLike | None,
    keys: Mapping[PathLike, str] | None,
    context: Iterable[PathLike],
) -> tuple[list[Column], tf.Tensor]:
    """Returns the columns of records, and the number of records."""
    if not isinstance(records, StructuredTensor):
        fix = 'Name the column of a plain tensor: xt.DenseStructuredTensor([n], {"x": tensor}).'
        raise DTypeError("records", "a StructuredTensor", type(records).__name__, fix)
    if schema is not None:
        records = _cast(records, schema)
    spec = records.__tf_type_spec__()
    leaves = layout(spec, message, keys, context)
    for leaf in leaves.values():
        if leaf.dtype == tf.float64:
            expected = f"floats of at most 32 bits, because a tf.{message} stores float32"
            fix = "Give tf.cast(field, tf.float32), or write Parquet."
            raise DTypeError(leaf.path, expected, "float64", fix)
    columns = [
        _column(leaves[path], value, splits)
        for path, value, splits in _leaves(spec, records, Path(), [])
    ]
    first = columns[0]
    count = tf.shape(first.splits[0])[0] - 1 if first.splits else tf.shape(first.values)[0]
    return columns, count


def _cast(records: StructuredTensor, schema: SchemaLike) -> StructuredTensor:
    """Returns records as a schema has them; their numbers too, except in a graph.

    Raises:
        DTypeError: If a number does not fit, or numbers have other dtypes in a graph (also a
            TypeError).
    """
    leaves = _leaves(records.__tf_type_spec__(), records, Path(), [])
    nulls = {str(path): "mask" for path, value, _ in leaves if is_masked(value)}
    wanted = WantedTable(schema=schema, nulls=nulls or None)
    try:
        return wanted_spec(wanted, schema, None).cast(records)
    except DTypeError:
        if not tf.executing_eagerly():
            raise
    return wanted.records(pa.Table.from_batches([to_arrow(records, wanted.schema)]))


def _leaves(
    spec: tf.TypeSpec, value: Any, path: Path, splits: list[tf.Tensor]
) -> Iterator[tuple[Path, Any, list[tf.Tensor]]]:
    """Yields the path and value of each leaf, and the splits of the lists of records around it."""
    if isinstance(spec, RaggedStructuredTensorSpec):
        values, row_splits = spec.to_components(value)
        yield from _leaves(spec.component_specs[0], values, path, [*splits, row_splits])
    elif isinstance(spec, DenseStructuredTensorSpec):
        names = sorted(spec.field_specs)  # as the components
        for name, inner in zip(names, spec.to_components(value), strict=True):
            yield from _leaves(spec.field_specs[name], inner, path / name, splits)
    else:
        yield path, value, splits


def _column(leaf: Feature, value: Any, splits: list[tf.Tensor]) -> Column:
    mask = None
    while is_masked(value):
        if leaf.is_masked and value.mask.shape.rank == 1:
            mask = value.mask if mask is None else mask & value.mask
        else:
            value = _without_nulls(leaf, value)
            continue
        value = value.values
    splits = list(splits)
    while isinstance(value, tf.RaggedTensor):
        splits.append(value.row_splits)
        value = value.values
    value = tf.convert_to_tensor(value)  # a Variable
    if leaf.dtype != leaf.stored:
        value = tf.cast(value, leaf.stored)
    return Column(leaf, value, splits, mask)


def _without_nulls(leaf: Feature, value: Any) -> Any:
    """Returns the values of a mask that must be True everywhere."""
    mask = value.mask
    holds = tf.reduce_all(mask.flat_values if isinstance(mask, tf.RaggedTensor) else mask)
    expected = "lists without nulls: a feature is a list of values"
    fix = "Fill the nulls with records[path].fill(value)."
    error = NullError(leaf.path, expected, "a null list, or a null in a list", fix)
    return check(value.values, holds, error)


def _features(columns: list[Column], count: tf.Tensor) -> tf.Tensor | None:
    """Returns a serialized `Features` for each record."""
    # Messages of one type that follow one another are one message, with the entries of all.
    parts: list[tf.Tensor] = []
    for column in columns:
        leaf, mask = column.leaf, column.mask
        splits = column.splits[0] if column.splits else None
        feature = _feature(leaf, column.values, splits)
        entry = _entry("tensorflow.Features", "FeatureEntry", leaf.key, feature)
        sizes = tf.ones([count], tf.int32) if mask is None else tf.cast(mask, tf.int32)
        parts.append(_wrap("tensorflow.Features", "feature", entry, sizes))
    return tf.strings.join(parts) if parts else None


def _feature_lists(columns: list[Column], count: tf.Tensor) -> tf.Tensor | None:
    """Returns a serialized `FeatureLists` for each record."""
    parts: list[tf.Tensor] = []
    for column in columns:
        leaf, splits = column.leaf, column.splits
        feature = _feature(leaf, column.values, splits[1] if len(splits) > 1 else None)
        step = _wrap("tensorflow.FeatureList", "feature", feature)
        rows = tf.ragged.row_splits_to_segment_ids(splits[0], out_type=tf.int64)
        steps = tf.strings.unsorted_segment_join(step, rows, tf.cast(count, tf.int64))
        steps = tf.ensure_shape(steps, [None])
        entry = _entry("tensorflow.FeatureLists", "FeatureListEntry", leaf.key, steps)
        parts.append(_wrap("tensorflow.FeatureLists", "feature_list", entry))
    return tf.strings.join(parts) if parts else None


def _wrap(message: str, field: str, inner: tf.Tensor, sizes: tf.Tensor | None = None) -> tf.Tensor:
    """Returns messages that have one field, with the given bytes, or without where a size is 0."""
    inner = inner[:, tf.newaxis]
    sizes = tf.ones_like(inner, tf.int32) if sizes is None else sizes[:, tf.newaxis]
    return tf.io.encode_proto(sizes, [inner], [field], message)


def _entry(message: str, entry: str, key: str, value: tf.Tensor) -> tf.Tensor:
    value = value[:, tf.newaxis]
    keys = tf.fill(tf.shape(value), key)
    sizes = tf.ones(tf.stack([tf.shape(value)[0], 2]), tf.int32)
    return tf.io.encode_proto(sizes, [keys, value], ["key", "value"], f"{message}.{entry}")


def _feature(leaf: Feature, values: tf.Tensor, splits: tf.Tensor | None) -> tf.Tensor:
    """Returns a serialized `Feature` for each row of values."""
    message, field = _LISTS[leaf.stored]
    size = leaf.size
    if splits is None:
        values = tf.reshape(values, [-1, size])
        sizes = tf.fill(tf.stack([tf.shape(values)[0], 1]), size)
        lists = tf.io.encode_proto(sizes, [values], ["value"], message)
    else:
        lists = _lists(tf.reshape(values, [-1]), splits * size, message)
    return _wrap("tensorflow.Feature", field, lists)


def _lists(values: tf.Tensor, splits: tf.Tensor, message: str) -> tf.Tensor:
    """Returns a serialized list for each row of values.

    `tf.io.encode_proto` takes a dense matrix. One long row would make it large, so rows are encoded
    with those of a similar length: the matrices hold at most twice as many values as the rows. A
    list cannot be encoded in pieces, because TensorFlow's parser reads only the first one.
    """
    rows = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
    lengths = tf.cast(rows.row_lengths(), tf.int32)
    # 0 for rows of 0 or 1 values, 1 for 2 values, 2 for 3 and 4, ...
    log = tf.math.log(tf.cast(tf.maximum(lengths, 1), tf.float64)) / tf.math.log(
        tf.constant(2.0, tf.float64)
    )
    kinds = tf.cast(tf.math.ceil(log - 1e-9), tf.int32)
    order = tf.argsort(kinds, stable=True)
    count = tf.reduce_max(tf.concat([kinds, [0]], 0)) + 1
    found = tf.TensorArray(tf.string, count, infer_shape=False, element_shape=[None])

    def encode(kind: tf.Tensor, found: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        chosen = tf.gather(rows, tf.reshape(tf.where(tf.equal(kinds, kind)), [-1]))
        sizes = tf.cast(chosen.row_lengths(), tf.int32)[:, tf.newaxis]
        lists = tf.io.encode_proto(sizes, [chosen.to_tensor()], ["value"], message)
        return kind + 1, found.write(kind, lists)

    _, found = tf.while_loop(lambda kind, _: kind < count, encode, (tf.constant(0), found))
    return tf.gather(found.concat(), tf.math.invert_permutation(order))
