"""RaggedStructuredTensor: records cut into rows of differing lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct import partition, uniform
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.spec import (
    StructuredTensorSpec,
)
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError

_set = object.__setattr__


class RaggedStructuredTensor(StructuredTensor):
    """A collection of records cut into rows of differing lengths.

    Made by `from_row_splits`. It holds the records of all rows, one after another, in `values`,
    and where each row begins and ends in `row_splits`.
    """

    __slots__ = ("_row_splits", "_values")

    _values: StructuredTensor
    _row_splits: Any

    def __init__(self) -> None:
        raise DTypeError(
            "RaggedStructuredTensor is made by its factories: use "
            "RaggedStructuredTensor.from_row_splits(values, row_splits)."
        )

    @classmethod
    def from_row_splits(
        cls, values: StructuredTensor, row_splits: Any, validate: bool = False
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            row_splits: An int64 or int32 vector of shape `[nrows + 1]`: row `i` is
                `values[row_splits[i]:row_splits[i + 1]]`. It begins with 0, never decreases and
                ends with `nvals`. A list becomes an int64 tensor.
            validate: Whether assertions that the splits cut the values are added to a graph.
                Outside a graph that is always checked, in NumPy.

        Returns:
            A RaggedStructuredTensor of shape `[nrows, None, ...]`.

        Raises:
            StructureError: If the splits do not cut the values (also a ValueError).
            DTypeError: If the splits are no integers, or of another dtype than row splits inside
                the values (also a TypeError).

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])
        <StructuredTensor shape=(2, None) {minutes: int32}>
        """
        if not isinstance(values, StructuredTensor) or values.rank == 0:
            raise DTypeError(
                path="from_row_splits: values",
                expected="a StructuredTensor of rank 1 or more",
                received=repr(values) if isinstance(values, StructuredTensor)
                else type(values).__name__,
                mend="Cut bare tensors with tf.RaggedTensor.from_row_splits.",
            )  # fmt: skip
        splits = partition.checked_row_splits(row_splits, values, validate)
        return cls.of_parts(values, splits)

    @classmethod
    def of_parts(cls, values: Any, row_splits: Any, hint: Any = None) -> RaggedStructuredTensor:
        """Returns records of parts that are known to fit. Runs no op and checks nothing."""
        self = cls.__new__(cls)
        _set(self, "_values", values)
        _set(self, "_row_splits", row_splits)
        _set(self, "_hint", None)
        _set(self, "_shape", None)
        _set(self, "_spec", None)
        return self

    def _with_hint(self, hint: StructuredTensorSpec) -> RaggedStructuredTensor:
        return self  # its own spec says that its rows are ragged

    def _as_dense(self, shape: tf.TensorShape) -> StructuredTensor:
        return uniform.as_dense(self, shape)

    @property
    def values(self) -> Any:
        """The records of all rows, one after another: a StructuredTensor of one rank less."""
        return self._values

    @property
    def row_splits(self) -> Any:
        """Where rows begin and end in `values`: an integer vector of shape `[nrows + 1]`."""
        return self._row_splits

    def row_lengths(self) -> tf.Tensor:
        """Returns the number of records in each row.

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3]).row_lengths().numpy()
        array([2, 1])
        """
        return self._row_splits[1:] - self._row_splits[:-1]

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records; its rank is always known."""
        if self._shape is None:
            nsplits = self._row_splits.shape[0]
            outer = [None if nsplits is None else nsplits - 1, None]
            _set(self, "_shape", tf.TensorShape(outer).concatenate(self._values.shape[1:]))
        assert self._shape is not None
        return self._shape

    @property
    def rank(self) -> int:
        """How many dimensions the collection has; never None."""
        return self._values.rank + 1

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return self._values.field_names()

    def _describe(self) -> StructuredTensorSpec:
        return RaggedStructuredTensorSpec(
            self.shape, self._values.__tf_type_spec__(), self._row_splits.dtype
        )

    def _field(self, name: str, at: Path) -> Any:
        value = self._values._field(name, at)
        if isinstance(value, StructuredTensor):
            return RaggedStructuredTensor.of_parts(value, self._row_splits)
        return partition.cut(value, self._row_splits, at)

    def _updated(self, updates: Mapping[str, Any], at: Path) -> RaggedStructuredTensor:
        if not updates:
            return self
        inner = {
            name: partition.uncut(value, self._row_splits, at / name)
            for name, value in updates.items()
        }
        return RaggedStructuredTensor.of_parts(self._values._updated(inner, at), self._row_splits)

    def _selected(self, names: Any) -> RaggedStructuredTensor:
        return RaggedStructuredTensor.of_parts(self._values._selected(names), self._row_splits)

    def _row_splits_dtypes(self) -> set[tf.DType]:
        return {self._row_splits.dtype}


RaggedStructuredTensorSpec.ragged_type = RaggedStructuredTensor
