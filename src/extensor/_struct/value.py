"""StructuredTensorValue: records of NumPy arrays."""

# `_value_of` calls a private method of StructuredTensorValue.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._path import Path, PathLike
from extensor._struct import to_python
from extensor._struct.arrow_types import NONE, ArrowTypes
from extensor._struct.common_shape import shape_of_known_rank
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dims import Dims, checked_dims, to_dims
from extensor._struct.other_names import NoDataFrame
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.records import RecordsBase
from extensor._struct.spec import no_such_field, resolve
from extensor._struct.tensor import StructuredTensor
from extensor._struct.zipped import zip_fields
from extensor._tf._tf_eager import constants, eagerly
from extensor._typing import FieldValue, ShapeLike
from extensor.errors import DTypeError, ImmutableError, StructureError

_Ragged = tf.compat.v1.ragged.RaggedTensorValue
_set = object.__setattr__


class StructuredTensorValue(NoDataFrame):
    """Records of NumPy arrays: the concrete value of a StructuredTensor, outside of any graph.

    A field is a NumPy array, a `tf.compat.v1.ragged.RaggedTensorValue`, or another
    StructuredTensorValue. Fields of extension types stay as they are. Get one from
    `xt.struct.constant_value` or `from_tensor`.

    Args:
        shape: The shape of the collection of records, without unknown sizes. For records cut into
            rows, with None for each ragged dimension.
        fields: The values of each field for all records. Their first dimensions are `shape`.
        dims: The names of the dimensions of `shape`: a string or None for each.

    Raises:
        StructureError: If the dimensions of a field differ from `shape`, or the names do not fit
            (also a ValueError).
        DTypeError: If the fields are not a mapping (also a TypeError).

    >>> import numpy as np
    >>> import extensor as xt
    >>> value = xt.StructuredTensorValue([2], {"x": np.array([1, 2])})
    >>> value.to_py()
    [{'x': 1}, {'x': 2}]
    """

    __slots__ = ("_columns", "_dims", "_shape", "_types")

    def __init__(
        self,
        shape: ShapeLike,
        fields: Mapping[str, Any],
        dims: str | Sequence[str | None] | None = None,
    ) -> None:
        if not isinstance(fields, Mapping):
            expected = "a mapping from field names to NumPy arrays"
            fix = 'Write {"title": np.array(["Tea"])}.'
            raise DTypeError("StructuredTensorValue.fields", expected, type(fields).__name__, fix)
        static = shape_of_known_rank(shape, type(self).__name__)
        names = checked_dims(dims, static.rank, type(self).__name__)
        self._init(static, {name: _as_value(v) for name, v in fields.items()}, names, NONE)
        for name, field in self._columns.items():
            given = _shape_of(field)
            if given is not None and not self._shape.is_compatible_with(given[: self._shape.rank]):
                expected = f"a shape that begins with {self._shape}"
                fix = "Give every field one value for each record."
                raise StructureError(Path(name), expected, f"shape {given}", fix)

    def _init(
        self, shape: tf.TensorShape, fields: dict[str, Any], dims: Dims, types: ArrowTypes
    ) -> None:
        _set(self, "_dims", dims)
        _set(self, "_types", types)
        _set(self, "_shape", shape)
        _set(self, "_columns", fields)

    @classmethod
    def from_tensor(cls, records: StructuredTensor) -> StructuredTensorValue:
        """Returns the value of a StructuredTensor.

        Raises:
            DTypeError: If it is not a StructuredTensor, or part of a graph (also a TypeError).

        >>> import extensor as xt
        >>> xt.StructuredTensorValue.from_tensor(xt.DenseStructuredTensor([2], {"x": [1, 2]}))
        StructuredTensorValue(shape=(2,), fields={'x': array([1, 2], dtype=int32)})
        """
        if not isinstance(records, RecordsBase):
            expected, received = "a StructuredTensor", type(records).__name__
            fix = "Make records of Python data with xt.struct.constant_value."
            raise DTypeError("StructuredTensorValue.from_tensor", expected, received, fix)
        to_python.expect_values(records, "from_tensor")
        return _value_of(records)

    def to_tensor(self) -> StructuredTensor:
        """Returns the records as a StructuredTensor.

        >>> import extensor as xt
        >>> value = xt.struct.constant_value([{"x": 1}, {"x": 2}])
        >>> value.to_tensor()
        <StructuredTensor shape=(2,) {x: int32} [{x: 1}, {x: 2}]>
        """
        with eagerly():
            fields = {name: _tensor_of(field) for name, field in self._columns.items()}
            if None not in self._shape.as_list()[1:]:
                records: Any = DenseStructuredTensor(self._shape, fields)
            elif fields:
                records = zip_fields(fields, self.rank)
            else:
                expected = "at least one field, which has the rows of ragged records"
                fix = "Keep the StructuredTensor itself."
                raise StructureError("StructuredTensorValue.to_tensor", expected, "0 fields", fix)
            records = _with_types(records, self._types)._with_dims(self._dims)
        return constants(records)

    @property
    def shape(self) -> tf.TensorShape:
        """The shape of the collection of records; None for ragged dimensions."""
        return self._shape

    @property
    def rank(self) -> int:
        """The number of dimensions of the collection."""
        return self._shape.rank

    @property
    def dims(self) -> Dims:
        """The name of each dimension, or None; as for a StructuredTensor."""
        return self._dims or (None,) * self.rank

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return tuple(self._columns)

    def field_value(self, path: PathLike) -> Any:
        """Returns the value of a field for all records.

        Args:
            path: The field's name, or a path through nested records.

        Raises:
            FieldError: If there is no such field (also a KeyError).
        """
        value: Any = self
        done: list[str] = []
        for name in resolve(path, self._columns):
            if not isinstance(value, StructuredTensorValue):
                raise no_such_field(Path(*done, name), ())
            if name not in value._columns:
                raise no_such_field(Path(*done, name), value.field_names())
            value = value._columns[name]
            done.append(name)
        return value

    def __getitem__(self, key: Any) -> Any:
        """Returns a field, a record, a range of records, or a part of these.

        Args:
            key: As for a StructuredTensor: names, ints, slices, or a tuple of these.
        """
        if isinstance(key, (str, Path)):
            return self.field_value(key)
        with eagerly():
            return _value_of(self.to_tensor()[key])

    def __len__(self) -> int:
        if not self.rank:
            expected, received = "records of rank 1 or more", "a single record, of shape ()"
            fix = "Write len(record.field_names()) for the number of its fields."
            raise DTypeError("len(StructuredTensorValue)", expected, received, fix)
        return int(self._shape[0] or 0)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def to_py(self, text: bool | None = None) -> dict[str, Any] | list[Any]:
        """Returns the records as plain Python, as `to_py` of a StructuredTensor.

        Args:
            text: Whether strings become str; by default those that are known to be text.
        """
        with eagerly():
            return self.to_tensor().to_py(text=text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StructuredTensorValue):
            return False
        mine, others = self._columns, other._columns
        if list(self._shape) != list(other._shape) or mine.keys() != others.keys():
            return False
        return all(map(_equal, mine.values(), map(others.__getitem__, mine)))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __setattr__(self, name: str, value: object) -> None:
        expected = "no assignment of attributes, because records are immutable"
        received, fix = f"assignment of {name!r}", "Make a new value of changed fields."
        raise ImmutableError(f"StructuredTensorValue.{name}", expected, received, fix)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._shape.as_list(), self._columns, self._dims or None)
        return _unpickle, (*arguments, dict(self._types))

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self._shape.as_list()))
        shape = f"({sizes},)" if self.rank == 1 else f"({sizes})"
        dims = f", dims={self._dims}" if self._dims else ""
        return f"StructuredTensorValue(shape={shape}, fields={self._columns!r}{dims})"


def _unpickle(
    shape: list[int | None], fields: dict[str, Any], dims: Dims | None, types: ArrowTypes
) -> StructuredTensorValue:
    made = StructuredTensorValue(shape, fields, dims)
    _set(made, "_types", types)
    return made


def _value_of(value: Any) -> Any:
    if isinstance(value, RecordsBase):
        made = StructuredTensorValue.__new__(StructuredTensorValue)
        records: Any = value
        names = records.field_names()
        fields = {n: _value_of(records.field_value((n,))) for n in names}
        made._init(records.shape, fields, to_dims(records.dims), records._record._metadata.types)
        return made
    if isinstance(value, tf.RaggedTensor):
        return _Ragged(_value_of(value.values), value.row_splits.numpy())
    if isinstance(value, (tf.Tensor, tf.Variable)):
        plain = value.numpy()
        if isinstance(plain, np.ndarray):
            return plain
        return np.asarray(plain, object if value.dtype == tf.string else value.dtype.as_numpy_dtype)
    return value


def _as_value(value: object) -> Any:
    if isinstance(value, (RecordsBase, tf.Tensor, tf.RaggedTensor, tf.Variable)):
        return _value_of(value)
    if isinstance(value, (StructuredTensorValue, _Ragged, np.ndarray)):
        return value
    return value if hasattr(value, "__tf_type_spec__") else np.asarray(value)


def _tensor_of(value: Any) -> FieldValue:
    if isinstance(value, StructuredTensorValue):
        return value.to_tensor()
    if isinstance(value, _Ragged):
        return tf.RaggedTensor.from_row_splits(_tensor_of(value.values), value.row_splits)
    return tf.convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def _shape_of(value: Any) -> tf.TensorShape | None:
    if isinstance(value, _Ragged):
        inner = _shape_of(value.values) or tf.TensorShape(None)
        return tf.TensorShape([len(value.row_splits) - 1, None]).concatenate(inner[1:])
    shape = getattr(value, "shape", None)
    return None if shape is None else tf.TensorShape(shape)


def _with_types(records: StructuredTensor, types: ArrowTypes) -> StructuredTensor:
    if isinstance(records, RaggedStructuredTensor):
        return records._with_values(_with_types(records.values, types))
    return records._with_metadata(records._metadata._replace(types=types))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, _Ragged) or isinstance(b, _Ragged):
        return (
            isinstance(a, _Ragged)
            and isinstance(b, _Ragged)
            and np.array_equal(a.row_splits, b.row_splits)
            and _equal(a.values, b.values)
        )
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


StructuredTensor._value_type = StructuredTensorValue
