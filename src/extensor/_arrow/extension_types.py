"""Extension types of Arrow, which are read as their storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.column_type import ColumnType, Inner, is_flat
from extensor._arrow.location import Location
from extensor._path import Path
from extensor._struct.masked import is_masked


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
        self.storage.check(_storage_of(array), path)

    def valid(self, array: pa.Array) -> np.ndarray[Any, Any] | None:
        """Returns which elements of the storage are not null."""
        return self.storage.valid(_storage_of(array))

    def vocabulary(self, array: pa.Array) -> pa.Array | None:
        """Returns the values of the dictionary in the storage."""
        return self.storage.vocabulary(_storage_of(array))

    def with_vocabulary(self, words: pa.Array) -> ColumnType:
        """Returns this type with the values of the dictionary in its storage."""
        return type(self)(self.arrow, self.storage.with_vocabulary(words))

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the storage."""
        return [(self.storage, _storage_of(array), location)]

    def _read(self, array: pa.Array, location: Location) -> Any:
        return self.storage.read(_storage_of(array), location)

    def _write(self, value: Any, path: Path) -> pa.Array:
        stored = self.storage.write(self._stored(value, path), path)
        return pa.ExtensionArray.from_storage(self.arrow, stored)

    def _write_masked(self, value: Any, path: Path) -> pa.Array:
        stored = type(value).of_parts(self._stored(value.values, path), value.mask)
        return pa.ExtensionArray.from_storage(self.arrow, self.storage.write(stored, path))

    def _stored(self, value: Any, path: Path) -> Any:
        """Returns a value as its storage writes it."""
        return value


def _storage_of(array: pa.Array) -> pa.Array:
    """Returns the storage of an array; the array itself if it was decoded already."""
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array


class Bool8Type(ExtensionStorageType):
    """Booleans of one byte each, where any number but 0 is true."""

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a vector of booleans."""
        return tf.TensorSpec([count], tf.bool)

    def _read(self, array: pa.Array, location: Location) -> Any:
        return tf.cast(super()._read(array, location), tf.bool)

    def _stored(self, value: Any, path: Path) -> Any:
        return tf.cast(value, tf.int8) if is_flat(value) and value.dtype == tf.bool else value


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

        def reshaped(storage: Any) -> tf.TypeSpec:
            return tf.TensorSpec([count, *self._shape], storage.dtype)

        return _each_part(self.storage.spec(count, location), reshaped)

    def _read(self, array: pa.Array, location: Location) -> Any:
        def reshaped(values: tf.Tensor) -> tf.Tensor:
            values = tf.reshape(values, [len(array), *self.arrow.shape])
            if self._order == sorted(self._order):
                return values
            return tf.transpose(values, [0, *(i + 1 for i in self._order)])

        return _each_part(super()._read(array, location), reshaped)

    def _stored(self, value: Any, path: Path) -> Any:
        return _each_part(value, lambda part: self._flat(part, path))

    def _flat(self, value: Any, path: Path) -> tf.Tensor:
        if not isinstance(value, tf.Tensor) or value.shape[1:].as_list() != self._shape:
            raise self.not_convertible(value, path)
        if self._order != sorted(self._order):
            value = tf.transpose(value, [0, *(int(i) + 1 for i in np.argsort(self._order))])
        return tf.reshape(value, [value.shape[0], self.arrow.storage_type.list_size])


def _each_part(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a function of a tensor or spec; for masked items, of their values and their mask."""
    if not is_masked(value):
        return change(value)
    parts = change(value.values), change(value.mask)
    return type(value)(*parts) if isinstance(value, tf.TypeSpec) else type(value).of_parts(*parts)
