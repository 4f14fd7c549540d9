"""Extension types of Arrow, which are read as their storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.column_type import ColumnType, is_flat
from extensor._arrow.location import Location
from extensor._path import Path


class ExtensionStorageType(ColumnType):
    """Any extension type, registered or not: uuid, json, opaque and those of other libraries.

    Args:
        arrow: The Arrow type.
        storage: The type of its storage.
    """

    def __init__(self, arrow: pa.DataType, storage: ColumnType) -> None:
        super().__init__(arrow)
        self.storage = storage
        self.copies_strings = storage.copies_strings

    @classmethod
    def of(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType]
    ) -> ColumnType | None:
        """Returns the type."""
        return cls(arrow, inner_type(arrow.storage_type, path))

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of the storage."""
        return self.storage.spec(count, location)

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the storage."""
        super().check(array, path)
        self.storage.check(array.storage, path)

    def vocabulary(self, array: pa.Array) -> pa.Array | None:
        """Returns the values of the dictionary in the storage."""
        return self.storage.vocabulary(array.storage)

    def with_vocabulary(self, words: pa.Array) -> ColumnType:
        """Returns this type with the values of the dictionary in its storage."""
        return type(self)(self.arrow, self.storage.with_vocabulary(words))

    def _read(self, array: pa.Array, location: Location) -> Any:
        return self.storage.read(array.storage, location)

    def _write(self, value: Any, path: Path) -> pa.Array:
        return pa.ExtensionArray.from_storage(self.arrow, self.storage.write(value, path))

    def _without_invalid(self, values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        return self.storage._without_invalid(values, mask)  # pyright: ignore


class Bool8Type(ExtensionStorageType):
    """Booleans of one byte each, where any number but 0 is true."""

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a vector of booleans."""
        return tf.TensorSpec([count], tf.bool)

    def _read(self, array: pa.Array, location: Location) -> Any:
        return tf.cast(self.storage.read(array.storage, location), tf.bool)

    def _write(self, value: Any, path: Path) -> pa.Array:
        if is_flat(value) and value.dtype == tf.bool:
            value = tf.cast(value, tf.int8)
        return super()._write(value, path)


class FixedShapeTensorType(ExtensionStorageType):
    """Tensors of one shape, which become further dense dimensions.

    A permutation of the dimensions, which describes how they lie in memory, is undone.
    """

    @property
    def _order(self) -> list[int]:
        return list(self.arrow.permutation or range(len(self.arrow.shape)))

    @property
    def _shape(self) -> list[int]:
        return [self.arrow.shape[i] for i in self._order]

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of tensors of this shape."""
        storage: Any = self.storage.spec(count, location)
        return tf.TensorSpec([count, *self._shape], storage.dtype)

    def _read(self, array: pa.Array, location: Location) -> Any:
        values = self.storage.read(array.storage, location)
        values = tf.reshape(values, [len(array), *self.arrow.shape])
        if self._order == sorted(self._order):
            return values
        return tf.transpose(values, [0, *(i + 1 for i in self._order)])

    def _write(self, value: Any, path: Path) -> pa.Array:
        if not isinstance(value, tf.Tensor) or value.shape[1:].as_list() != self._shape:
            raise self.not_convertible(value, path)
        if self._order != sorted(self._order):
            value = tf.transpose(value, [0, *(int(i) + 1 for i in np.argsort(self._order))])
        size = self.arrow.storage_type.list_size
        return super()._write(tf.reshape(value, [value.shape[0], size]), path)
