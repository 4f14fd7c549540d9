"""Where the fields of records are stored in an Example or SequenceExample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import inner_fields, is_list
from extensor._count_text import count_text
from extensor._path import Path, PathLike
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor.errors import (
    DTypeError,
    FieldError,
    FormatError,
    StructureError,
    UnsupportedTypeError,
)

_INTEGERS = (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.bool)
_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
_STORED: dict[tf.DType, tf.DType] = {
    **dict.fromkeys(_INTEGERS, tf.int64),
    **dict.fromkeys(_FLOATS, tf.float32),
    tf.string: tf.string,
}
"""The dtype of the feature that stores a field, by the dtype of the field."""

EXAMPLE, SEQUENCE = "Example", "SequenceExample"


def message_for(schema: pa.Schema) -> str:
    """Returns the message that can hold records of a schema.

    >>> from extensor._formats.tfrecord.layout import message_for
    >>> import pyarrow as pa
    >>> message_for(pa.schema({"words": pa.list_(pa.list_(pa.string()))}))
    'SequenceExample'
    """
    return SEQUENCE if _ragged_dimensions(pa.struct(list(schema))) > 1 else EXAMPLE


def _ragged_dimensions(arrow: pa.DataType) -> int:
    inner = max((_ragged_dimensions(field.type) for field in inner_fields(arrow)), default=0)
    # A list of a fixed size is a dense dimension.
    return inner + (is_list(arrow) and not pa.types.is_fixed_size_list(arrow))


def parse_error(
    record: str, message: str, parser: str = "TensorFlow", what: str = "this message"
) -> FormatError:
    """Returns the error for bytes that are not a message."""
    fix = f"Check that the records were written as {what}."
    received = f"bytes that {parser} cannot parse"
    return FormatError(record, f"a serialized tf.{message}", received, fix)


@dataclass(frozen=True)
class Feature:
    """A field that is not records, and the feature that stores it.

    Attributes:
        path: The path of the field.
        key: The name of the feature.
        dtype: The dtype of the field.
        stored: The dtype of the feature: int64, float32 or string.
        dims: The sizes of the dense dimensions of each value.
        lists: The number of lists around a value, those of records included.
        is_masked: Whether the feature is missing where the field is null.
        is_sequence: Whether the feature is in the feature lists of a SequenceExample.
        splits: The dtype of the row splits.
        arrow: The Arrow type of the field; None if it came without one.
    """

    path: Path
    key: str
    dtype: tf.DType
    stored: tf.DType
    dims: tuple[int, ...]
    lists: int
    is_masked: bool
    is_sequence: bool
    splits: tf.DType
    arrow: pa.DataType | None

    @property
    def size(self) -> int:
        """How many numbers or strings are in a value."""
        return math.prod(self.dims)


@dataclass
class Column:
    """The values of a field: without lists, the splits of the lists, and which are not null."""

    leaf: Feature
    values: Any
    splits: list[tf.Tensor]
    mask: tf.Tensor | None


def layout(
    spec: StructuredTensorSpec,
    message: str,
    keys: Mapping[PathLike, str] | None = None,
    context: Iterable[PathLike] = (),
) -> dict[Path, Feature]:
    """Returns where each leaf of the records of a spec is stored.

    Args:
        spec: The spec of records of rank 1.
        message: `EXAMPLE` or `SEQUENCE`.
        keys: The names of features, by path. The default is the names of the path, joined by dots.
        context: The paths of lists in the context of a SequenceExample.

    Raises:
        DTypeError: If `spec` is no spec of a StructuredTensor, or the message stores no values of a
            dtype (also a TypeError).
        StructureError: If its rank is not 1, two fields have one key, or the message stores no
            field of a structure (also a ValueError).
        UnsupportedTypeError: If the message stores no values of a type (also a TypeError).
        FieldError: If `keys` or `context` names a field that does not exist (also a KeyError).
    """
    if not isinstance(spec, StructuredTensorSpec):
        expected = "the spec of a StructuredTensor, or a pyarrow Schema"
        raise DTypeError("schema", expected, repr(spec)[:80], "Give xt.spec_of(records).")
    if spec.rank != 1 or not isinstance(spec, DenseStructuredTensorSpec):
        expected = f"the spec of records of rank 1: one record for each {message}"
        fix = "Give the spec of a vector of records."
        raise StructureError("schema", expected, f"shape {spec.shape}", fix)
    named = {Path.of(path): key for path, key in (keys or {}).items()}
    in_context = {Path.of(path) for path in context}
    leaves: dict[Path, Feature] = {}
    paths_of_keys: dict[str, Path] = {}
    for path, leaf_spec, splits, arrow in _leaves(spec, Path(), None):
        key = named.pop(path, ".".join(path.names))
        leaf = _leaf(path, key, leaf_spec, splits, arrow, message, path in in_context)
        in_context.discard(path)
        if key in paths_of_keys:
            received = f"the feature {key!r}, which stores {paths_of_keys[key]} too"
            fix = "Name the features with keys={path: name}."
            raise StructureError(path, "a feature of its own for each field", received, fix)
        paths_of_keys[key] = path
        leaves[path] = leaf
    for name, paths in (("keys", named), ("context", in_context)):
        for path in paths:
            expected = f"one of the fields {', '.join(map(str, leaves))}"
            fix = "Give the path of a field that is not records."
            raise FieldError(f"{name}, {path}", expected, str(path), fix)
    return leaves


def _leaves(
    spec: StructuredTensorSpec, path: Path, splits: tf.DType | None
) -> Iterator[tuple[Path, tf.TypeSpec, tf.DType | None, pa.DataType | None]]:
    """Yields each leaf: path, spec, dtype of splits of a list of records around it, Arrow type."""
    if isinstance(spec, RaggedStructuredTensorSpec):
        inner, row_splits = spec.component_specs
        if splits or not isinstance(inner, DenseStructuredTensorSpec) or spec.shape.rank != 2:
            expected = "records, or lists of records"
            fix = "Write nested lists of records to Parquet, or leave the field out."
            raise StructureError(path, expected, "lists of lists of records", fix)
        yield from _leaves(inner, path, row_splits.dtype)
        return
    is_dense = isinstance(spec, DenseStructuredTensorSpec)
    fields, types = (spec.field_specs, spec.arrow_types) if is_dense else ({}, {})
    if not fields:
        expected = "records with at least one field"
        fix = "A feature stores values. Leave the field out."
        raise StructureError(path if path else "schema", expected, "records without fields", fix)
    for name, field in fields.items():
        if isinstance(field, StructuredTensorSpec):
            yield from _leaves(field, path / name, splits)
        else:
            yield path / name, field, splits, types.get(name)


def _leaf(
    path: Path,
    key: str,
    spec: tf.TypeSpec,
    outer: tf.DType | None,
    arrow: pa.DataType | None,
    message: str,
    is_in_context: bool,
) -> Feature:
    values, is_null = spec, False
    while is_masked(values):
        is_null = is_null or values.mask.shape.rank == 1
        values = values.values
    is_ragged = isinstance(values, tf.RaggedTensorSpec) and values.ragged_rank > 0
    is_plain = isinstance(values, (tf.TensorSpec, tf.RaggedTensorSpec))
    if not is_plain or (is_ragged and values.flat_values_spec is not None):
        expected = f"numbers, strings, and lists of them, which are all that a tf.{message} stores"
        is_records = isinstance(values, StructuredTensorSpec)
        received = "records that may be null" if is_records else type(values).__qualname__
        fix = "Leave the field out, or write Parquet."
        raise UnsupportedTypeError(path, expected, received, fix)
    stored = _STORED.get(values.dtype)
    if stored is None:
        expected = "integers that fit into int64, floats, bools or strings"
        fix = f"A tf.{message} stores int64, float32 and bytes. Convert the field."
        raise DTypeError(path, expected, f"dtype {values.dtype.name}", fix)
    ragged_rank = values.ragged_rank if is_ragged else 0
    shape, splits = values.shape, values.row_splits_dtype if is_ragged else outer or tf.int64
    dims = shape[1 + ragged_rank :] if shape.rank is not None else shape
    if not dims.is_fully_defined() or any(size is not None for size in shape[1 : 1 + ragged_rank]):
        fix = "Give the size of each dense dimension in the schema."
        raise StructureError(path, "dimensions of a known size, or lists", f"shape {shape}", fix)
    if math.prod(dims.as_list()) == 0 or (outer and is_null and message == EXAMPLE):
        # A value without numbers looks like a missing one.
        expected, received = "values of at least one number", f"shape {shape}"
        if is_null:
            expected, received = "lists without nulls among their items", "a mask"
        raise StructureError(path, expected, received, "Leave the field out, or fill its nulls.")
    lists = ragged_rank + (outer is not None)
    limit = 1 if message == EXAMPLE or is_in_context else 2
    if lists > limit:
        expected, fix = "at most two lists around a value", "Write Parquet."
        if limit == 1:
            expected = "at most one list around a value, which is all that an Example stores"
        if limit == 1 and lists == 2:
            fix = "Use xt.to_tf_sequence_example and xt.from_tf_sequence_example."
        raise StructureError(path, expected, f"{lists} lists", fix)
    return Feature(
        path=path,
        key=key,
        dtype=values.dtype,
        stored=stored,
        dims=tuple(dims.as_list()),
        lists=lists,
        is_masked=is_null and not lists,
        is_sequence=message == SEQUENCE and lists > 0 and not is_in_context,
        splits=splits,
        arrow=arrow,
    )


_ARROW = {"int64_list": pa.int64(), "float_list": pa.float32(), "bytes_list": pa.binary()}


def infer_schema(
    serialized: Iterable[bytes],
    message: str,
    name_of: Callable[[int], str],
    find_text: bool = False,
) -> tuple[pa.Schema, list[tuple[str]]]:
    """Returns a schema of all features, and the paths of lists in the context.

    A feature that has one value wherever it occurs is a field without a list. Others are lists.

    Args:
        serialized: The messages.
        message: `EXAMPLE` or `SEQUENCE`.
        name_of: Returns the name of a record by its number, for errors.
        find_text: Whether bytes have the type of text where all of them are UTF-8.

    Raises:
        FormatError: If bytes are not the message (also a ValueError).
        DTypeError: If the values of a feature differ in type (also a TypeError).
        StructureError: If there is no record or no feature, or a SequenceExample has a feature and
            a feature list of one name (also a ValueError).
    """
    features: dict[str, _FeatureType] = {}
    lists: dict[str, _FeatureType] = {}
    number = -1
    for number, one in enumerate(serialized):
        parsed = _parse(one, message, number, name_of)
        if message == SEQUENCE:
            context = parsed.context.feature
            for key, steps in parsed.feature_lists.feature_list.items():
                found = lists.setdefault(key, _FeatureType(key, find_text))
                for step in steps.feature:
                    found.add(step, number, name_of)
        else:
            context = parsed.features.feature
        for key, feature in context.items():
            features.setdefault(key, _FeatureType(key, find_text)).add(feature, number, name_of)
    if not features and not lists:
        expected = "at least one record with a feature, to find out the schema"
        received = (
            "no records" if number < 0 else count_text(number + 1, "records without features")
        )
        raise StructureError("schema", expected, received, "Give schema=.")
    for key in features.keys() & lists.keys():
        expected = "a feature of the context or a feature list"
        fix = "Give schema= and keys= with two names for it."
        raise StructureError(key, expected, "both, under one name", fix)
    # The order of keys in a message is not defined.
    fields = [pa.field(key, found.type) for key, found in sorted(features.items())]
    fields += [pa.field(key, pa.list_(found.type)) for key, found in sorted(lists.items())]
    return pa.schema(fields), [(key,) for key, found in features.items() if not found.is_single]


def _parse(one: bytes, message: str, number: int, name_of: Callable[[int], str]) -> Any:
    kind: Any = tf.train.SequenceExample if message == SEQUENCE else tf.train.Example
    parsed = kind()
    try:
        parsed.ParseFromString(one)
    except Exception as error:  # DecodeError, of a package that is not a dependency of ours
        raise parse_error(name_of(number), message, "protobuf") from error
    return parsed


class _FeatureType:
    """What the values of a feature have in common.

    Attributes:
        is_single: Whether there was one value each time.
    """

    def __init__(self, key: str, find_text: bool) -> None:
        self.is_single = True
        self._is_text = find_text
        self._key = key
        self._kind: str | None = None

    def add(self, feature: Any, number: int, name_of: Callable[[int], str]) -> None:
        kind = feature.WhichOneof("kind")
        if kind is None:  # as if the feature were missing
            return
        self._kind = self._kind or kind
        if kind != self._kind:
            expected = f"a feature of one type, such as {self._kind} in earlier records"
            fix = "Read the field with a schema from files of one type."
            raise DTypeError(self._key, expected, f"{kind} in {name_of(number)}", fix)
        values = getattr(feature, kind).value
        if len(values) != 1:
            self.is_single = False
        if self._is_text and kind == "bytes_list":
            self._is_text = all(map(_is_utf8, values))

    @property
    def type(self) -> pa.DataType:
        arrow = pa.float32() if self._kind is None else _ARROW[self._kind]
        if self._is_text and arrow == pa.binary():
            arrow = pa.string()
        return arrow if self.is_single and self._kind else pa.list_(arrow)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
