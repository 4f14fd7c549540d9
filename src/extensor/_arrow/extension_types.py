"""Extension types of Arrow, which are read as their storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.column_type import SameRowsType, is_flat
from extensor._arrow.location import Location
from extensor._path import Path
from extensor._struct.masked import is_masked
from extensor._typing import FieldValue


class ExtensionStorageType(SameRowsType):
    """Any extension type, registered or not: uuid, json, opaque and those of other libraries."""

    def _values_of(self, array: pa.Array) -> pa.Array:
        """Returns the storage of a column; the column itself if it was decoded already."""
        return array.storage if isinstance(array.type, pa.BaseExtensionType) else array

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return self.values.read(self._values_of(array), location)

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        stored = self.values.write(self._to_storage(value, path), path)
        return pa.ExtensionArray.from_storage(self.arrow, stored)

    def _write_masked(self, value: FieldValue, path: Path) -> pa.Array:
        stored = type(value)._of_parts(self._to_storage(value.values, path), value.mask)
        return pa.ExtensionArray.from_storage(self.arrow, self.values.write(stored, path))

    def _to_storage(self, value: FieldValue, path: Path) -> FieldValue:
        """Returns a value as its storage writes it."""
        return value


class Bool8Type(ExtensionStorageType):
    """Booleans of one byte each, where any number but 0 is true."""

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a vector of booleans."""
        return tf.TensorSpec([count], tf.bool)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return tf.cast(super()._read(array, location), tf.bool)

    def _to_storage(self, value: FieldValue, path: Path) -> FieldValue:
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

        def reshape(storage: tf.TypeSpec) -> tf.TypeSpec:
            return tf.TensorSpec([count, *self._shape], storage.dtype)

        return _each_part(super().spec(count, location), reshape)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        def reshape(values: tf.Tensor) -> tf.Tensor:
            values = tf.reshape(values, [len(array), *self.arrow.shape])
            if self._order == sorted(self._order):
                return values
            return tf.transpose(values, [0, *(i + 1 for i in self._order)])

        return _each_part(super()._read(array, location), reshape)

    def _to_storage(self, value: FieldValue, path: Path) -> FieldValue:
        return _each_part(value, lambda part: self._flat(part, path))

    def _flat(self, value: FieldValue, path: Path) -> tf.Tensor:
        if not isinstance(value, tf.Tensor) or value.shape[1:].as_list() != self._shape:
            raise self.not_convertible(value, path)
        if self._order != sorted(self._order):
            value = tf.transpose(value, [0, *(int(i) + 1 for i in np.argsort(self._order))])
        return tf.reshape(value, [value.shape[0], self.arrow.storage_type.list_size])


def _each_part(
    value: FieldValue | tf.TypeSpec, change: Callable[[Any], Any]
) -> FieldValue | tf.TypeSpec:
    """Returns a function of a tensor or spec; for masked items, of their values and their mask."""
    if not is_masked(value):
        return change(value)
    parts = change(value.values), change(value.mask)
    return type(value)(*parts) if isinstance(value, tf.TypeSpec) else type(value)._of_parts(*parts)
