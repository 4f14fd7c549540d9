"""The types of arguments that many functions take, for annotations."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._files.file_path import FilePath
from extensor._path import PathLike

if TYPE_CHECKING:
    from extensor._arrow.null_policy import Fill
    from extensor._struct.spec import StructuredTensorSpec

__all__ = [
    "ArrowData",
    "DTypeLike",
    "FilePath",
    "Nest",
    "NullPolicy",
    "NullsLike",
    "PathLike",
    "SchemaLike",
    "ShapeLike",
    "TensorLike",
    "Value",
]


class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


ArrowData = (
    pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray | pa.Scalar | _ArrowArray | _ArrowStream
)
"""Records in memory: data of pyarrow, or of a library with the Arrow PyCapsule interface."""

Value = Any
"""A tensor, or a value of an extension type. Such types have no class in common."""

Nest = Any
"""A value, or dicts, lists, tuples and namedtuples of values, as `tf.nest` and Keras take them."""

# For type checkers, `complex` has int and float in it, and `Sequence` str and bytes.
TensorLike = tf.Tensor | tf.Variable | np.ndarray[Any, Any] | np.generic | complex | Sequence[Any]
"""A tensor, or what `tf.convert_to_tensor` makes one of: arrays, numbers, strings, and lists."""

FieldValue = tf.Tensor | tf.Variable | tf.RaggedTensor | tf.experimental.ExtensionType
"""The value of a field: a tensor, a RaggedTensor, records, or a value of any extension type."""

DTypeLike = tf.DType | np.dtype[Any] | type | str
"""A dtype, or what `tf.as_dtype` makes one of."""

ShapeLike = tf.TensorShape | Sequence[int | None] | None
"""A static shape, or what `tf.TensorShape` makes one of; None is an unknown rank."""

SchemaLike = Union["StructuredTensorSpec", pa.Schema]
"""The argument `schema`: the spec of records, or an Arrow schema."""

_Date = datetime.date | datetime.time | datetime.timedelta
_Fill = Union["Fill", float, decimal.Decimal, bytes, _Date, np.generic, list[Any], tuple[Any, ...]]

NullPolicy = Literal["error", "mask", "auto", "empty"] | _Fill
"""What becomes of nulls: a word, `xt.fill(value)`, or a value that is not a string."""

NullsLike = NullPolicy | Mapping[Any, Any]
"""The argument `nulls`: one policy for all fields, or a dict of policies by path."""
