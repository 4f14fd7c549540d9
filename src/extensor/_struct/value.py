"""StructuredTensorValue: records of NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.comparison import SizeComparison
from extensor._authoring.rows import uncut_rows
from extensor._path import Path, PathLike
from extensor._protocol.lossless import is_tensor_like
from extensor._struct import to_python
from extensor._struct.arrow_types import ArrowTypes
from extensor._struct.common_shape import shape_of_known_rank
from extensor._struct.dense import DenseStructuredTensor, dense_of_fields
from extensor._struct.dims import Dims, checked_dims
from extensor._struct.field import as_field, expect_fields, shape_of
from extensor._struct.inside import map_inside
from extensor._struct.other_names import NoDataFrame
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.records import RecordsBase
from extensor._struct.row_splits import uncut
from extensor._struct.tensor import StructuredTensor
from extensor._tf._tf_eager import constants, eagerly
from extensor._typing import FieldValue, ShapeLike
from extensor.errors import DTypeError, ImmutableError, StructureError

# `_value_of` calls a private method of StructuredTensorValue.


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

    __slots__ = ("_records",)

    _records: Any
    """The records of eager tensors, also where a graph is built."""

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
        with eagerly():
            parts = {name: _tensor_of(field, Path(name)) for name, field in fields.items()}
            if parts and None in static.as_list()[1:]:
                records: Any = zip_fields(parts, static.rank)
            else:
                records = DenseStructuredTensor(static, parts)
            to_python.expect_values(records, type(self).__name__)
        if not static.is_compatible_with(records.shape):
            fix = "Give every field one value for each record."
            expected, received = f"fields of shape {static}", f"shape {records.shape}"
            raise StructureError(type(self).__name__, expected, received, fix)
        _set(self, "_records", records._with_dims(names))

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
        with eagerly():
            return _value_of(_without_variables(records, Path()))

    def to_tensor(self) -> StructuredTensor:
        """Returns the records as a StructuredTensor.

        >>> import extensor as xt
        >>> value = xt.struct.constant_value([{"x": 1}, {"x": 2}])
        >>> value.to_tensor()
        <StructuredTensor shape=(2,) {x: int32} [{x: 1}, {x: 2}]>
        """
        return constants(self._records)

    @property
    def shape(self) -> tf.TensorShape:
        """The shape of the collection of records; None for ragged dimensions."""
        return self._records.shape

    @property
    def rank(self) -> int:
        """The number of dimensions of the collection."""
        return self._records.rank

    @property
    def dims(self) -> Dims:
        """The name of each dimension, or None; as for a StructuredTensor."""
        return self._records.dims

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return self._records.field_names()

    def field_value(self, path: PathLike) -> Any:
        """Returns the value of a field for all records.

        Args:
            path: The field's name, or a path through nested records.

        Raises:
            FieldError: If there is no such field (also a KeyError).
        """
        with eagerly():
            return _value_of(self._records.field_value(path))

    def __getitem__(self, key: Any) -> Any:
        """Returns a field, a record, a range of records, or a part of these.

        Args:
            key: As for a StructuredTensor: names, ints, slices, or a tuple of these.
        """
        with eagerly():
            return _value_of(self._records[key])

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def to_py(self, text: bool | None = None) -> dict[str, Any] | list[Any]:
        """Returns the records as plain Python, as `to_py` of a StructuredTensor.

        Args:
            text: Whether strings become str; by default those that are known to be text.
        """
        with eagerly():
            return self._records.to_py(text=text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StructuredTensorValue):
            return False
        if self.shape.as_list() != other.shape.as_list():
            return False
        mine, others = (_paths_and_dtypes(each._records) for each in (self, other))
        return mine == others and self.to_py() == other.to_py()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __setattr__(self, name: str, value: object) -> None:
        expected = "no assignment of attributes, because records are immutable"
        received, fix = f"assignment of {name!r}", "Make a new value of changed fields."
        raise ImmutableError(f"StructuredTensorValue.{name}", expected, received, fix)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.shape.as_list(), self._fields(), self._records._dims or None)
        return _unpickle, (*arguments, dict(self._records._record._metadata.types))

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape.as_list()))
        shape = f"({sizes},)" if self.rank == 1 else f"({sizes})"
        dims = f", dims={self.dims}" if self._records._dims else ""
        return f"StructuredTensorValue(shape={shape}, fields={self._fields()!r}{dims})"

    def _fields(self) -> dict[str, Any]:
        return {name: self.field_value((name,)) for name in self.field_names()}


def _unpickle(
    shape: list[int | None], fields: dict[str, Any], dims: Dims | None, types: ArrowTypes
) -> StructuredTensorValue:
    made = StructuredTensorValue(shape, fields, dims)
    _set(made, "_records", _with_types(made._records, types))
    return made


def _without_variables(value: FieldValue, _: Path) -> FieldValue:
    """Returns a value that does not change with its variables."""
    is_variable = isinstance(value, tf.Variable)
    return tf.convert_to_tensor(value) if is_variable else map_inside(value, _without_variables)


def _value_of(value: Any) -> Any:
    if isinstance(value, RecordsBase):
        made = object.__new__(StructuredTensorValue)
        _set(made, "_records", value)
        return made
    if isinstance(value, tf.RaggedTensor):
        return _Ragged(_value_of(value.values), value.row_splits.numpy())
    if isinstance(value, (tf.Tensor, tf.Variable)):
        plain = value.numpy()
        if isinstance(plain, np.ndarray):
            return plain
        return np.asarray(plain, object if value.dtype == tf.string else value.dtype.as_numpy_dtype)
    return value


def _tensor_of(value: Any, path: Path) -> FieldValue:
    if isinstance(value, StructuredTensorValue):
        return value._records
    if isinstance(value, _Ragged):
        return tf.RaggedTensor.from_row_splits(_tensor_of(value.values, path), value.row_splits)
    if isinstance(value, (RecordsBase, tf.Variable)):
        return _without_variables(value, path)
    is_other = not is_tensor_like(value) and not isinstance(value, np.ndarray)
    return as_field(np.asarray(value) if is_other else value, path)


def _with_types(records: StructuredTensor, types: ArrowTypes) -> StructuredTensor:
    if isinstance(records, RaggedStructuredTensor):
        return records._with_values(_with_types(records.values, types))
    return records._with_metadata(records._metadata._replace(types=types))


def _paths_and_dtypes(records: StructuredTensor) -> tuple[set[Path], list[tf.DType]]:
    tensors = tf.nest.flatten(records, expand_composites=True)
    return set(records.__tf_type_spec__()._field_paths()), [tensor.dtype for tensor in tensors]


StructuredTensor._value_type = StructuredTensorValue


def zip_(
    fields: Mapping[str, Any], depth: int | None = None, validate: bool = True
) -> StructuredTensor:
    """Returns records with the given values as their fields.

    Args:
        fields: A tensor, RaggedTensor, StructuredTensor or other value for each field. All have
            the same rows.
        depth: How many outer dimensions become the dimensions of the records. Default: all
            dimensions down to the innermost ragged one that every value has; 1 if one of them is
            dense.
        validate: Whether a graph compares the rows that are not known while it is traced. It
            compares those that its ops do not show to be the same.

    Returns:
        A RaggedStructuredTensor where a dimension is ragged, else a DenseStructuredTensor.

    Raises:
        StructureError: If the values have different rows, or fewer dimensions (also a ValueError).
            Running a graph raises an InvalidArgumentError instead.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> amounts = tf.ragged.constant([[3.0, 1.0], [2.0]])
    >>> names = tf.ragged.constant([["flour", "sugar"], ["oats"]])
    >>> xt.struct.zip({"amount": amounts, "name": names})
    <StructuredTensor shape=(2, None) {amount: float32, name: string}
     [[{amount: 3.0, name: b'flour'}, {amount: 1.0, name: b'sugar'}],
      [{amount: 2.0, name: b'oats'}]]>
    """
    expect_fields(fields, "xt.struct.zip", "values", "titles")
    if not fields:
        fix = "For records without fields, write xt.DenseStructuredTensor([count], {})."
        raise StructureError("xt.struct.zip", "at least one field", "an empty dict", fix)
    parts = {name: as_field(value, Path(name)) for name, value in fields.items()}
    if depth is None:
        depth = min(_ragged_levels(value) for value in parts.values()) + 1
    for name, value in parts.items():
        rank = shape_of(value).rank
        if depth < 0 or (rank is not None and rank < depth):
            expected, received = f"a value of rank {depth} or more", f"shape {shape_of(value)}"
            fix = "Give a smaller depth."
            raise StructureError(f"xt.struct.zip: {Path(name)}", expected, received, fix)
    return zip_fields(parts, depth, SizeComparison.in_graph(validate))


def zip_fields(
    parts: dict[str, Any], depth: int, comparison: SizeComparison | None = None
) -> StructuredTensor:
    """Returns `zip_` of values of fields. Without a comparison, a graph compares no rows."""
    ragged = [rows for value in parts.values() if (rows := uncut_rows(value))]
    if depth < 2 or not ragged:
        return dense_of_fields(parts, depth, comparison)
    for name, value in parts.items():
        if not _ragged_levels(value):
            expected = "a ragged value, like the other fields"
            received = f"a dense value of shape {shape_of(value)}"
            fix = "Convert it with tf.RaggedTensor.from_tensor, or give depth=1."
            raise StructureError(f"xt.struct.zip: {Path(name)}", expected, received, fix)
    splits = ragged[0][1]
    inner = {name: uncut(value, splits, Path(name), comparison) for name, value in parts.items()}
    below = comparison and comparison.inside_rows()
    return RaggedStructuredTensor._of_parts(zip_fields(inner, depth - 1, below), splits)


def _ragged_levels(value: FieldValue) -> int:
    rows = uncut_rows(value)
    return 0 if rows is None else 1 + _ragged_levels(rows[0])
