"""The methods of a StructuredTensor that the files of this package call."""

from __future__ import annotations

import abc
from collections.abc import KeysView
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct.dims import Dims
from extensor._typing import FieldValue

if TYPE_CHECKING:
    from extensor._struct.dense import DenseStructuredTensor
    from extensor._struct.spec import StructuredTensorSpec
    from extensor._struct.tensor import StructuredTensor


class RecordsBase(abc.ABC):
    """The base of StructuredTensor, without imports of the modules that its methods use.

    Functions that take any value of a field test for this class. The code that depends on the
    encoding (dense or ragged) is in its methods.
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def _dims(self) -> Dims:
        """The names of the dimensions; `()` if none has a name."""

    @abc.abstractmethod
    def _with_dims(self, dims: Dims) -> StructuredTensor:
        """Returns the records with other names of their dimensions. Validates nothing."""

    @property
    @abc.abstractmethod
    def _record(self) -> DenseStructuredTensor:
        """The dense records that hold the fields, below any ragged dimensions."""

    @abc.abstractmethod
    def _names(self) -> KeysView[str]:
        """Returns the names of the fields, in which a name is found by its hash."""

    @abc.abstractmethod
    def _field(self, name: str, at: Path) -> FieldValue:
        """Returns a field's value; `at` is the path from the root to the field, for errors."""

    @abc.abstractmethod
    def _field_at(self, names: tuple[str, ...], at: Path) -> FieldValue:
        """Returns the value of a field inside records; `at` is the path from the root to it.

        Args:
            names: The last names of the path, from these records on.
            at: The whole path.
        """

    @abc.abstractmethod
    def _uncut_field(self, name: str, at: Path) -> FieldValue:
        """Returns a field's value for the records before they were cut into rows."""

    @abc.abstractmethod
    def _row_splits_dtypes(self) -> set[tf.DType]:
        """Returns the dtypes of all row splits inside the records."""

    @abc.abstractmethod
    def _outer_sizes(self, rank: int) -> tf.Tensor:
        """Returns the first `rank` sizes, if the records are uniform in them."""

    @abc.abstractmethod
    def _describe_any_count(self) -> StructuredTensorSpec:
        """Returns the spec of the records of all rows, without their number."""

    @abc.abstractmethod
    def _take(self, positions: tuple[Any, ...], at: Path) -> StructuredTensor:
        """Returns the records at the given positions; see `index.take`."""

    @abc.abstractmethod
    def _unstack(self, count: int) -> list[Any]:
        """Returns each of `count` eager records, as `_take` returns it; see `index.unstack`."""

    @abc.abstractmethod
    def _gather(self, numbers: tf.Tensor) -> StructuredTensor:
        """Returns the records at the given indices; see `index.gather`."""

    @abc.abstractmethod
    def _merge_outer(self, sizes: list[Any]) -> StructuredTensor:
        """Returns the records with the outer two dimensions merged; see `reshape.merge_outer`."""

    @abc.abstractmethod
    def _split_outer(self, sizes: list[Any]) -> StructuredTensor:
        """Returns the records with the outermost dimension split; see `reshape.split_outer`."""

    @abc.abstractmethod
    def _expand_dims(self, axis: int) -> StructuredTensor:
        """Returns the records with a new dimension of size 1; see `reshape.expand_dims`."""

    @abc.abstractmethod
    def _merge_dims(self, outer: int, inner: int) -> StructuredTensor:
        """Returns the records with some dimensions merged into one; see `reshape.merge_dims`."""
