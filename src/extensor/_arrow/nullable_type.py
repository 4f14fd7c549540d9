"""NullableType: a column whose nulls are masked, replaced by a value, or empty lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import decoded_type, is_string
from extensor._arrow.column_type import ColumnType, SameRowsType, over_rows
from extensor._arrow.location import Location
from extensor._arrow.null_policy import Fill, exact_value, is_auto, needs_data
from extensor._arrow.selection import expect_selectable, take_places
from extensor._path import Path
from extensor._typing import FieldValue


class NullableType(SameRowsType):
    """A type with a policy for its nulls, for reading; it is written as its values are.

    Args:
        values: The type of the values.
        policy: "mask", "empty" or a Fill; see `null_policy`. "auto" only counts the nulls.
    """

    def __init__(self, values: ColumnType, policy: object) -> None:
        super().__init__(values.arrow, values)
        self.policy = policy
        self._is_number = pa.types.is_primitive(self.arrow)
        self._is_string = is_string(self.arrow)
        t = pa.types
        self._is_list = any(is_(self.arrow) for is_ in (t.is_list, t.is_large_list, t.is_map))
        if policy == "mask":
            # Imported here, because `import extensor` stays fast without the module.
            from extensor._types.masked.value import MaskedTensor

            self._masked_type = MaskedTensor

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of the values; under "mask", of a MaskedTensor of them."""
        if is_auto(self.policy):
            raise needs_data(location.text())
        values = self.values.spec(count, location)
        if self.policy != "mask":
            return values
        return self._masked_type.Spec(values, tf.TensorSpec([count], tf.bool))

    def read(self, array: pa.Array, location: Location) -> FieldValue:
        """Returns a validated column; no null of it is an error."""
        ignores_nulls = self._ignores_nulls(array, location)
        if ignores_nulls and self.policy in ("mask", "empty"):
            values = self.values.read_hidden(array, location)
            if self.policy == "empty":
                return values
            return self._masked_type._with_late_mask(values, location.masks.maker(array))
        valid = self.values.valid(array)
        inside = location if ignores_nulls or valid is None else location.hiding(~valid)
        if self.policy == "mask":
            values = self.values.read_hidden(array, inside)
            return self._masked_type._of_parts(values, location.masks.mask(valid, len(array)))
        if valid is None or self.policy == "empty":
            return self.values.read_hidden(array, inside)
        assert isinstance(self.policy, Fill)
        filling = array_of_one(self.policy.value, self.arrow)
        if pa.types.is_nested(decoded_type(self.arrow)):
            return self.values.read(_fill(array, valid, filling, location.path), location)
        value = self.values.read(filling, location.alone())
        values = self.values.read_hidden(array, inside)
        mask = location.masks.mask(valid, len(array))
        return tf.where(over_rows(mask, values), values, value)

    def _ignores_nulls(self, array: pa.Array, location: Location) -> bool:
        """Returns whether the values of a column are read without a look at its nulls.

        Numbers and strings take nulls for values, and lists look at their own bits.
        """
        if self._is_number:
            return True
        if self._is_list:
            return location.hidden is None
        return self._is_string and array.type == self.arrow  # and not a dictionary

    def write(self, value: FieldValue, path: Path) -> pa.Array:
        """Returns the value of a field, masked or not, as a column."""
        return self.values.write(value, path)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return self.read(array, location)


def _fill(array: pa.Array, valid: np.ndarray[Any, Any], filling: pa.Array, path: Path) -> pa.Array:
    """Returns an array with an array of one value in place of nulls."""
    expect_selectable(array, path)
    places = np.where(valid, np.arange(len(array)), len(array))
    return take_places(pa.concat_arrays([array, filling]), places)


def array_of_one(value: Any, arrow: pa.DataType) -> pa.Array:
    """Returns an array of one value, also of encoded types, which `pa.array` does not make."""
    if isinstance(arrow, pa.BaseExtensionType):
        value = int(value) if arrow == pa.bool8() else value
        return pa.ExtensionArray.from_storage(arrow, array_of_one(value, arrow.storage_type))
    if pa.types.is_dictionary(arrow):
        words = array_of_one(value, arrow.value_type)
        return pa.DictionaryArray.from_arrays(pa.array([0], arrow.index_type), words).cast(arrow)
    if pa.types.is_run_end_encoded(arrow):
        values = array_of_one(value, arrow.value_type)
        ends = pa.array([1], arrow.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, values, type=arrow)
    arrow = pa.float32() if pa.types.is_null(arrow) else arrow
    return pa.array([exact_value(value, arrow)], arrow)
