"""Serialized Examples and SequenceExamples to StructuredTensors, in a graph and eagerly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.null_policy import Fill, Nulls
from extensor._arrow.read import read_value
from extensor._arrow.wanted_table import WantedTable
from extensor._formats.tfrecord.layout import (
    EXAMPLE,
    SEQUENCE,
    Column,
    Feature,
    layout,
    parse_error,
)
from extensor._path import Path, PathLike
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked
from extensor._struct.meaning import meaning_of
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike, TensorLike
from extensor.errors import DTypeError, ExtensorError, NullError, StructureError


def from_tf_example(
    serialized: TensorLike,
    schema: SchemaLike,
    columns: Iterable[PathLike] | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    keys: Mapping[PathLike, str] | None = None,
) -> StructuredTensor:
    """Returns the records of serialized tf.Examples, in a graph or eagerly.

    A field of the record is the feature of its name; a field of an inner record is the feature
    `outer.inner`. A field without a list needs one value (or as many as its dense dimensions have)
    in every Example. A list may have any number of values, and is empty where its feature is
    missing. The fields of a list of records are features with lists of one length. Features that
    are not in `schema` are not parsed.

    Integers and bools are read from int64 values, floats from float32 values.

    Args:
        serialized: A string vector: a tensor, an array, or a list of bytes.
        schema: The spec of the records, of rank 1, or an Arrow schema.
        columns: Paths of the fields to read. Default: all.
        nulls: The policy for features that are missing, or a dict of policies by path: `"error"`
            (the default), `"mask"`, or `xt.fill(value)`. With a spec, its MaskedTensors are masked.
        row_splits_dtype: The dtype of row splits. Default: that of the spec, or int64.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields.

    Returns:
        A StructuredTensor of shape `[number of Examples]`.

    Raises:
        FormatError: If bytes are not an Example (also a ValueError).
        DTypeError: If a feature has values of another type, or a dtype has no values in Examples
            (also a TypeError).
        StructureError: If a feature has another number of values, or Examples cannot hold a field,
            such as a list of lists (also a ValueError).
        NullError: If a feature is missing, and there is no policy for it (also a ValueError).
        UnsupportedTypeError: If Examples cannot hold a field, such as a union (also a TypeError).
        FieldError: If a column, key or policy names no field (also a KeyError).
        tf.errors.InvalidArgumentError: Inside a tf.function, instead of the errors of the data.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "Tea", "minutes": [5, 2]},
    ...                               {"title": "Toast", "minutes": []}])
    >>> serialized = xt.to_tf_example(recipes)
    >>> xt.from_tf_example(serialized, xt.spec_of(recipes)).to_py()
    [{'title': 'Tea', 'minutes': [5, 2]}, {'title': 'Toast', 'minutes': []}]
    """
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    return _records(serialized, EXAMPLE, wanted, schema, row_splits_dtype, keys, ())


def from_tf_sequence_example(
    serialized: TensorLike,
    schema: SchemaLike,
    columns: Iterable[PathLike] | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    keys: Mapping[PathLike, str] | None = None,
    context: Iterable[PathLike] = (),
) -> StructuredTensor:
    """Returns the records of serialized tf.SequenceExamples, in a graph or eagerly.

    Fields without a list are features of the context. Lists, lists of lists, and the fields of
    lists of records are feature lists: one feature an item. A missing feature list is an empty
    list.

    Args:
        serialized: A string vector: a tensor, an array, or a list of bytes.
        schema: The spec of the records, of rank 1, or an Arrow schema.
        columns: Paths of the fields to read. Default: all.
        nulls: The policy for features that are missing, or a dict of policies by path: `"error"`
            (the default), `"mask"`, or `xt.fill(value)`. With a spec, its MaskedTensors are masked.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields.
        context: The paths of the lists that are features of the context.

    Raises:
        FormatError, DTypeError, StructureError, NullError, UnsupportedTypeError, FieldError,
            tf.errors.InvalidArgumentError: As in `from_tf_example`.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "Tea", "words": [["boil"], ["pour", "wait"]]}])
    >>> serialized = xt.to_tf_sequence_example(recipes)
    >>> xt.from_tf_sequence_example(serialized, xt.spec_of(recipes)).to_py()
    [{'title': 'Tea', 'words': [['boil'], ['pour', 'wait']]}]
    """
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    return _records(serialized, SEQUENCE, wanted, schema, row_splits_dtype, keys, context)


def _records(
    serialized: TensorLike,
    message: str,
    given: WantedTable,
    schema: SchemaLike,
    row_splits_dtype: DTypeLike | None,
    keys: Mapping[PathLike, str] | None,
    context: Iterable[PathLike],
) -> StructuredTensor:
    strings = _strings(serialized)
    # In a graph, "auto" is an error: no data is known.
    wanted = given if tf.is_symbolic_tensor(strings) else with_nullable(given, given.schema)
    spec = wanted_spec(wanted, schema, row_splits_dtype)
    return given.settle(Parser(spec, message, wanted.nulls, keys, context).records(strings))


def with_nullable(wanted: WantedTable, schema: pa.Schema | None) -> WantedTable:
    """Returns the arguments with "mask" in place of "auto" for the features that may be missing.

    Args:
        wanted: The arguments.
        schema: The schema of the records.
    """
    return wanted.without_auto(outside_lists(schema or ()))


def outside_lists(fields: Iterable[pa.Field], outer: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the path of each leaf outside of lists; a list whose feature is missing is empty."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from outside_lists(field.type.fields, (*outer, field.name))
        elif not pa.types.is_nested(field.type):
            yield str(Path(*outer, field.name))


def wanted_spec(
    wanted: WantedTable, schema: SchemaLike, row_splits_dtype: DTypeLike | None
) -> StructuredTensorSpec:
    """Returns the spec of any number of records to read."""
    # A spec without `columns` is kept, because Arrow has no bfloat16 and no names of dimensions.
    if not isinstance(schema, StructuredTensorSpec) or wanted.columns is not None:
        return wanted.spec()
    schema = schema._any_length()
    return schema if row_splits_dtype is None else schema._with_row_splits_dtype(row_splits_dtype)


class Parser:
    """The features to parse for a spec, and the records that are made of them."""

    def __init__(
        self,
        spec: StructuredTensorSpec,
        message: str,
        nulls: NullsLike,
        keys: Mapping[PathLike, str] | None = None,
        context: Iterable[PathLike] = (),
    ) -> None:
        self.spec = spec
        self._message = message
        self._leaves = layout(spec, message, keys, context)
        self._defaults = _defaults(self._leaves, nulls)

    def records(
        self, serialized: tf.Tensor, name_of: Callable[[int], str] = "record {}".format
    ) -> StructuredTensor:
        """Returns the records of a string vector.

        Args:
            serialized: The vector.
            name_of: Returns the name of a record by its number, for errors.
        """
        leaves = list(self._leaves.values())
        try:
            parsed = self._parse(serialized, leaves)
        except _UNPARSED as error:
            raise self._parse_error(serialized, name_of) from error
        columns = {leaf.path: self._column(leaf, parsed[leaf.key], name_of) for leaf in leaves}
        return self._value(self.spec, Path(), columns)

    def first_with_lists_in_context(self, serialized: tf.Tensor) -> int | None:
        """Returns the number of the first message with a feature that should be a feature list."""
        features = {x.key: _ragged(x) for x in self._leaves.values() if x.is_sequence}
        for number, one in enumerate(tf.split(serialized, serialized.shape[0]) if features else []):
            try:
                parsed = tf.io.parse_example(one, features)
            except _UNPARSED:
                return number
            if any(int(tf.size(ragged.values)) for ragged in parsed.values()):
                return number
        return None

    def _parse(self, serialized: tf.Tensor, leaves: list[Feature]) -> dict[str, tf.Tensor]:
        if self._message == EXAMPLE:
            return tf.io.parse_example(
                serialized, {leaf.key: self._feature(leaf) for leaf in leaves}
            )
        # A FixedLenFeature in a context fails for 0 records, and does not say which one is missing.
        context, lists, _ = tf.io.parse_sequence_example(
            serialized,
            {leaf.key: _ragged(leaf) for leaf in leaves if not leaf.is_sequence},
            {leaf.key: _ragged(leaf) for leaf in leaves if leaf.is_sequence},
        )
        return {**context, **lists}

    def _feature(self, leaf: Feature) -> Any:
        if leaf.lists or leaf.is_masked:
            return _ragged(leaf)
        return tf.io.FixedLenFeature(leaf.dims, leaf.stored, self._defaults.get(leaf.path))

    def _column(
        self, leaf: Feature, parsed: tf.Tensor | tf.RaggedTensor, name_of: Callable[[int], str]
    ) -> Column:
        """Returns the values of a field, of the feature that was parsed."""
        splits: list[tf.Tensor] = []
        mask = None
        if isinstance(parsed, tf.RaggedTensor):
            while isinstance(parsed, tf.RaggedTensor):
                splits.append(parsed.row_splits)
                parsed = parsed.values
            if leaf.lists < len(splits):  # one value a record, or a step
                parsed, mask = self._single(leaf, parsed, splits.pop(), name_of)
            elif leaf.dims:
                even = splits[-1] % leaf.size == 0
                parsed = check(parsed, even, _wrong_size(leaf, f"multiples of {leaf.size}"))
                splits[-1] //= leaf.size
            if leaf.dims:
                parsed = tf.reshape(parsed, [-1, *leaf.dims])
        return Column(leaf, _convert(leaf, parsed), splits, mask)

    def _single(
        self, leaf: Feature, values: tf.Tensor, splits: tf.Tensor, name_of: Callable[[int], str]
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Returns the values of a feature that has one, or none if it may be null, in each row."""
        lengths = splits[1:] - splits[:-1]
        is_there = tf.equal(lengths, leaf.size)
        default = self._defaults.get(leaf.path)
        if not leaf.is_masked and default is None:
            error = _wrong_size(leaf, str(leaf.size))
            if not leaf.lists and tf.executing_eagerly():
                error = _single_error(leaf, lengths.numpy(), name_of)
            return check(values, is_there, error), None
        is_missing = tf.equal(lengths, 0)
        error = _wrong_size(leaf, f"0 or {leaf.size}")
        values = check(values, is_there | is_missing, error)
        # Row i of the feature is at splits[i]; a missing one is the value after all others.
        rows = tf.reshape(values, [-1, leaf.size])
        if default is None:
            default = tf.zeros([1, leaf.size], leaf.stored)
        rows = tf.concat([rows, tf.reshape(tf.cast(default, leaf.stored), [1, leaf.size])], 0)
        last = tf.shape(rows, splits.dtype)[0] - 1
        rows = tf.gather(rows, tf.where(is_there, splits[:-1] // leaf.size, last))
        return tf.reshape(rows, [-1]), is_there if leaf.is_masked else None

    def _value(self, spec: tf.TypeSpec, path: Path, columns: dict[Path, Column]) -> Any:
        if isinstance(spec, DenseStructuredTensorSpec):
            # The components are ordered by name.
            return spec.from_components(
                tuple(
                    self._value(spec.field_specs[name], path / name, columns)
                    for name in sorted(spec.field_specs)
                )
            )
        if isinstance(spec, RaggedStructuredTensorSpec):
            inside = [p for p in self._leaves if p.names[: len(path)] == path.names]
            splits = columns[inside[0]].splits[0]
            for other in inside[1:]:
                expected = f"as many values in each record as {inside[0]}, in a list of records"
                fix = "Read lists of different lengths as fields of their own."
                error = StructureError(other, expected, "another number", fix)
                same = tf.reduce_all(tf.equal(splits, columns[other].splits[0]))
                splits = check(splits, same, error)
            for p in inside:
                columns[p].splits.pop(0)
            return spec.from_components(
                (self._value(spec.component_specs[0], path, columns), splits)
            )
        column = columns[path]
        if is_masked(spec):
            values = self._value(spec.values, path, columns)
            return spec.value_type._of_parts(values, _mask(values, spec.mask, column.mask))
        values = column.values
        for splits in reversed(column.splits):
            values = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
        return values

    def _parse_error(self, serialized: tf.Tensor, name_of: Callable[[int], str]) -> ExtensorError:
        """Returns the error of the first record that TensorFlow does not parse."""
        leaves = list(self._leaves.values())
        start, stop = 0, int(tf.size(serialized))
        while stop - start > 1:
            middle = (start + stop) // 2
            if self._error(serialized[start:middle], leaves) is None:
                start = middle
            else:
                stop = middle
        one, record = serialized[start:stop], name_of(start)
        for leaf in leaves:
            error = self._error(one, [leaf])
            if error is None or "ould not parse" in error or "nvalid protocol" in error:
                continue
            if "required but" in error:
                return _missing(leaf, record)
            if "ypes don't match" in error:
                actual = re.search(r"Actual type: (\w+)", error)
                expected = f"{leaf.stored.name} values in the feature {leaf.key!r}"
                received = f"{actual[1] if actual else 'another type'} in {record}"
                fix = "Correct the dtype of the field in the schema."
                return DTypeError(leaf.path, expected, received, fix)
            size = re.search(r"Values size: (\d+)", error)
            received = f"{size[1] if size else 'another number'} in {record}"
            return _wrong_size(leaf, str(leaf.size), received)
        return parse_error(record, self._message)

    def _error(self, serialized: tf.Tensor, leaves: list[Feature]) -> str | None:
        try:
            self._parse(serialized, leaves)
        except UnicodeDecodeError as error:
            return error.object.decode(errors="replace")
        except _UNPARSED as error:
            return str(error)
        return None


# TensorFlow writes the bytes of a record into its message, which fails if they are not UTF-8.
_UNPARSED = (tf.errors.InvalidArgumentError, tf.errors.DataLossError, UnicodeDecodeError)


def _strings(serialized: TensorLike) -> tf.Tensor:
    try:
        strings = tf.convert_to_tensor(serialized, tf.string)
    except (TypeError, ValueError) as error:
        received = f"{type(serialized).__name__} ({str(error)[:80]})"
        fix = "Give a string tensor, or a list of bytes."
        raise DTypeError("serialized", "a vector of strings", received, fix) from error
    if strings.shape.rank not in (1, None):
        fix = "Give one string for each record: tf.reshape(serialized, [-1])."
        raise StructureError("serialized", "a vector of strings", f"shape {strings.shape}", fix)
    return strings


def _ragged(leaf: Feature) -> Any:
    return tf.io.RaggedFeature(leaf.stored, row_splits_dtype=leaf.splits)


def _arrow_type(leaf: Feature) -> pa.DataType:
    if leaf.arrow is not None and meaning_of(leaf.arrow) is not None:
        return leaf.arrow  # of times and decimals
    if leaf.dtype == tf.string:
        arrow = pa.large_binary()
    elif leaf.dtype == tf.bfloat16:
        arrow = pa.float32()
    else:
        arrow = pa.from_numpy_dtype(leaf.dtype.as_numpy_dtype)
    for size in reversed(leaf.dims):
        arrow = pa.list_(arrow, size)
    return pa.list_(arrow) if leaf.lists else arrow


def _defaults(leaves: Mapping[Path, Feature], nulls: NullsLike) -> dict[Path, np.ndarray[Any, Any]]:
    """Returns the values in place of features that are missing."""
    policies = Nulls(nulls)
    defaults: dict[Path, np.ndarray[Any, Any]] = {}
    for path, leaf in leaves.items():
        arrow = _arrow_type(leaf)
        policy = policies.at((path.names, 0), arrow)
        if leaf.lists:
            policies.at((path.names, leaf.lists), pa.null())
            if isinstance(policy, Fill) and policy.value:
                expected = "no policy, because a list whose feature is missing is empty"
                fix = "Leave the policy out."
                raise StructureError(f"nulls, {path}", expected, repr(policy), fix)
        elif isinstance(policy, Fill):
            with tf.init_scope():  # computes eagerly, also while a graph is being traced
                value = tf.cast(read_value(policy.value, arrow), leaf.stored)
                defaults[path] = tf.reshape(value, leaf.dims).numpy()
    policies.expect_all_seen()
    return defaults


def _convert(leaf: Feature, values: tf.Tensor) -> tf.Tensor:
    """Returns values of the dtype of the field, which must be able to hold them."""
    if leaf.dtype == leaf.stored:
        return values
    converted = tf.cast(values, leaf.dtype)
    if leaf.dtype in (tf.float64, tf.bfloat16):
        return converted
    if leaf.dtype == tf.float16:
        fits = tf.math.is_finite(converted) | ~tf.math.is_finite(values)
    elif leaf.dtype == tf.bool:
        fits = tf.equal(values, 0) | tf.equal(values, 1)
    else:
        fits = (values >= leaf.dtype.min) & (values <= leaf.dtype.max)
    expected = f"numbers that fit into {leaf.dtype.name}"
    if leaf.dtype == tf.bool:
        expected = "the numbers 0 and 1"
    fix = f"Read the field as {leaf.stored.name}."
    return check(converted, fits, StructureError(leaf.path, expected, "other numbers", fix))


def check(values: Any, holds: tf.Tensor, error: ExtensorError) -> Any:
    """Returns values after a check; in a graph, the check is an op."""
    holds = tf.reduce_all(holds)
    if not tf.executing_eagerly():
        with tf.control_dependencies([tf.debugging.Assert(holds, [str(error)])]):
            return tf.nest.map_structure(tf.identity, values, expand_composites=True)
    if not holds:
        raise error
    return values


def _mask(values: Any, spec: tf.TypeSpec, mask: tf.Tensor | None) -> tf.Tensor | tf.RaggedTensor:
    """Returns the mask of a field. Lists and their items are never null."""
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.ones_like(values, tf.bool)
    if mask is not None:
        return mask
    if isinstance(values, tf.RaggedTensor):
        return tf.ones([values.nrows()], tf.bool)
    values = values.values if is_masked(values) else values
    return tf.ones(tf.shape(values)[: spec.shape.rank], tf.bool)


def _missing(leaf: Feature, record: str) -> NullError:
    expected = f"the feature {leaf.key!r} in every record"
    fix = f'Give nulls={{"{leaf.path}": xt.fill(value)}} or a MaskedTensor in the schema.'
    return NullError(leaf.path, expected, f"none in {record}", fix)


def _wrong_size(leaf: Feature, expected: str, received: str = "another number") -> StructureError:
    noun = "value" if expected == "1" else "values"
    step = "a step of " if leaf.is_sequence else ""
    expected = f"{expected} {noun} in {step}the feature {leaf.key!r}"
    fix = "Correct the shape of the field in the schema; a list is a RaggedTensor."
    return StructureError(leaf.path, expected, received, fix)


def _single_error(
    leaf: Feature, lengths: np.ndarray[Any, Any], name_of: Callable[[int], str]
) -> ExtensorError:
    wrong = lengths != leaf.size
    if not wrong.any():
        return _wrong_size(leaf, str(leaf.size))
    row = int(wrong.argmax())
    if lengths[row] == 0:
        return _missing(leaf, name_of(row))
    return _wrong_size(leaf, str(leaf.size), f"{lengths[row]} in {name_of(row)}")
