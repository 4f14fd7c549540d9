"""NullableType: a column whose nulls are masked, replaced by a value, or empty lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.column_type import ColumnType
from extensor._arrow.location import Location
from extensor._arrow.null_policy import Fill
from extensor._arrow.nulls import is_null
from extensor._path import Path
from extensor.errors import StructureError


class NullableType(ColumnType):
    """A type with a policy for its nulls. Supports reading only.

    Args:
        values: The type of the values.
        policy: "mask", "empty" or a Fill; see `null_policy`.
    """

    def __init__(self, values: ColumnType, policy: Any) -> None:
        super().__init__(values.arrow)
        self.values = values
        self.policy = policy
        self.copies_strings = values.copies_strings

    def spec(self, count: int | None, location: Location) -> Any:
        """Returns the spec of the values; under "mask", of a MaskedTensor of them."""
        values = self.values.spec(count, location)
        if self.policy != "mask":
            return values
        from extensor._types.masked.value import MaskedTensor

        return MaskedTensor.Spec(values, tf.TensorSpec([count], tf.bool))

    def validate(self, array: pa.Array, path: Path) -> pa.Array:
        """Validates the values."""
        return self.values.validate(array, path)

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the values."""
        self.values.check(array, path)

    def vocabulary(self, array: pa.Array) -> pa.Array | None:
        """Returns the values of the dictionary inside."""
        return self.values.vocabulary(array)

    def with_vocabulary(self, words: pa.Array) -> NullableType:
        """Returns this type with the values of the dictionary inside."""
        return NullableType(self.values.with_vocabulary(words), self.policy)

    def read(self, array: pa.Array, location: Location) -> Any:
        """Returns a validated column; no null of it is an error."""
        array = self.values.plain(array)
        nulls = is_null(array)
        inside = location if nulls is None else location.hiding(nulls)
        if self.policy == "mask":
            return self._masked(self.values.read_hidden(array, inside), nulls, len(array))
        if nulls is None or self.policy == "empty":
            return self.values.read_hidden(array, inside)
        assert isinstance(self.policy, Fill)
        if pa.types.is_nested(array.type):
            return self.values.read(self._filled(array, nulls, location.path), location)
        value = self.values.read(pa.array([self.policy.value], array.type), location.alone())
        return tf.where(tf.constant(nulls), value, self.values.read_hidden(array, inside))

    def _masked(self, values: Any, nulls: Any, count: int) -> Any:
        # Imported here, because `import extensor` stays fast without the module.
        from extensor._types.masked.value import MaskedTensor

        mask = tf.ones([count], tf.bool) if nulls is None else tf.convert_to_tensor(~nulls)
        return MaskedTensor.of_parts(values, mask)

    def _filled(self, array: pa.Array, nulls: Any, path: Path) -> pa.Array:
        """Returns lists or structs with the value in place of nulls."""
        assert isinstance(self.policy, Fill)
        try:
            array.validate(full=True)  # `take` reads by the offsets
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise StructureError(
                path=path,
                expected="a valid Arrow array",
                received=f"an array that Arrow rejects ({error})",
                mend="Fix the program that wrote these buffers; extensor read nothing from them.",
            ) from error
        both = pa.concat_arrays([array, pa.array([self.policy.value], array.type)])
        places = np.where(nulls, len(array), np.arange(len(array)))
        try:
            return both.take(pa.array(places))
        except pa.ArrowNotImplementedError:  # string views
            return pa.concat_arrays([both.slice(place, 1) for place in places.tolist()])

    def _read(self, array: pa.Array, location: Location) -> Any:
        raise NotImplementedError  # `read` does it all
