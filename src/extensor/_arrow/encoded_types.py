"""Arrow types that store repeated values once: dictionaries and runs. They are read decoded."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow import buffers
from extensor._arrow.arrow_type import (
    decoded_type,
    is_encoded,
    is_string,
    is_string_view,
    is_text,
    without_views,
)
from extensor._arrow.column_type import ColumnType, Inner, WrapperType
from extensor._arrow.location import Location
from extensor._arrow.nulls import nulls_of, valid_bits
from extensor._arrow.selection import take_places
from extensor._path import Path
from extensor._typing import FieldValue

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time


class EncodedType(WrapperType):
    """Values that are stored once for several elements."""

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the decoded values, if they may have columns inside."""
        if not pa.types.is_nested(decoded_type(self.arrow)):
            return ()
        return [(self.values, self._decode(array), location)]

    @abc.abstractmethod
    def _decode(self, array: pa.Array) -> pa.Array:
        """Returns the value of each element. Those of nulls may be anything."""

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return self.values.read(self._decode(array), location)

    def _write_masked(self, value: FieldValue, path: Path) -> pa.Array:
        return self._write(value, path)  # the values have the nulls


class DictionaryType(EncodedType):
    """Values as indices into a dictionary.

    The records keep the dictionary's values. Writing uses the same values again, in the same
    order, and adds new values behind them.

    Args:
        arrow: The Arrow type.
        values: The type of the dictionary's values.
        vocabulary: The values that the dictionary begins with when it is written.
    """

    def __init__(
        self, arrow: pa.DataType, values: ColumnType, vocabulary: pa.Array | None = None
    ) -> None:
        super().__init__(arrow, values)
        self.copies_strings = values.copies_strings
        self._vocabulary = vocabulary

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the dictionary too. Arrow reads it without a check when it joins chunks."""
        super().check(array, path)
        if not pa.types.is_dictionary(array.type):  # chunks that were decoded already
            self.values.check(array, path)
            return
        words = self.values.validate(array.dictionary, path)
        if not is_string(words.type):
            words.validate(full=True)
        elif not is_string_view(words.type):
            buffers.offsets_of(words, path)
        buffers.check_start(array.indices, path)
        buffers.check_indices(array, path)

    def vocabulary(self, array: pa.Array) -> pa.Array | None:
        """Returns the values of the dictionary."""
        return array.dictionary if pa.types.is_dictionary(array.type) else None

    def with_vocabulary(self, words: pa.Array) -> DictionaryType:
        """Returns this type, to be written with a dictionary that begins with these values."""
        return DictionaryType(self.arrow, self.values, words)

    def valid(self, array: pa.Array) -> np.ndarray[Any, Any] | None:
        """Returns which indices are not null, and do not point to a null in the dictionary."""
        if not pa.types.is_dictionary(array.type):
            return self.values.valid(array)
        own, words = valid_bits(array.indices), self.values.valid(array.dictionary)
        if words is None:
            return own
        pointed = words[array.indices.fill_null(0).to_numpy()]
        return pointed if own is None else pointed & own

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        is_encoded = pa.types.is_dictionary(array.type)
        if is_encoded and is_string(self.arrow.value_type) and not array.dictionary.null_count:
            words = array.dictionary
            if is_string_view(words.type):
                words = words.cast(without_views(words.type))
            return buffers.categories_in(array, words, location)
        return super()._read(array, location)

    def _decode(self, array: pa.Array) -> pa.Array:
        if not pa.types.is_dictionary(array.type):  # chunks that were decoded already
            return array
        # After decoding, a null is found only if an index points to it. Null indices are hidden.
        if not len(array.dictionary):
            return nulls_of(array.dictionary.type, len(array))
        return take_places(array.dictionary, array.indices.fill_null(0).to_numpy())

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        values = self.values.write(value, path)
        words = self._vocabulary
        if words is not None and is_text(words.type) and is_text(values.type):
            words = words.cast(values.type)
        if words is not None and words.type != values.type:
            words = None
        try:
            return encode(values, self.arrow, words)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # too many words
            raise self.not_convertible(value, path) from error


def encode(values: pa.Array, arrow: pa.DataType, words: pa.Array | None = None) -> pa.Array:
    """Returns values as a dictionary, or as runs.

    Args:
        values: An array of the type of the values.
        arrow: The type of the dictionary or of the runs.
        words: Values that the dictionary begins with.

    Raises:
        pa.ArrowInvalid: If there are more values than the type can count.
    """
    if pa.types.is_run_end_encoded(arrow):
        ends = _run_ends(values)
        starts = np.concatenate([np.zeros(min(len(ends), 1), np.int64), ends[:-1]])
        kept = take_places(values, starts)
        run_ends = pa.array(ends).cast(arrow.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(run_ends, kept, type=arrow)
    words, indices = _encode(values, values.slice(0, 0) if words is None else words)
    indices = indices.cast(arrow.index_type)
    array = pa.DictionaryArray.from_arrays(indices, words, ordered=arrow.ordered)
    return array if array.type == arrow else array.cast(arrow)


def _encode(values: pa.Array, words: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Returns a dictionary that begins with `words`, and the index of each value in it."""
    known = len(words)
    joined = pa.concat_arrays([words, values])
    keys = comparable(joined)
    if keys is None:  # Arrow cannot compare values of this type, so no value is shared
        places = np.arange(known, len(joined))
        return joined, pa.array(places, mask=np.asarray(values.is_null()))
    codes = keys.dictionary_encode()  # numbered by their first appearance
    numbers, valid = codes.indices.fill_null(0).to_numpy(), joined.is_valid().to_numpy(False)
    first = np.empty(len(codes.dictionary), np.int64)  # the first place of each code
    first[numbers[valid][::-1]] = np.flatnonzero(valid)[::-1]
    is_new = first >= known
    index_of = np.where(is_new, known + np.cumsum(is_new) - 1, first)
    index_of = np.append(index_of, 0)  # for nulls, if there is no code
    indices = pa.array(index_of[numbers[known:]], mask=~valid[known:])
    return pa.concat_arrays([words, take_places(joined, first[is_new])]), indices


class RunEndEncodedType(EncodedType):
    """Runs of equal values, of which each is stored once."""

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the ends of the runs and the values too."""
        super().check(array, path)
        buffers.check_start(array.run_ends, path)
        self.values.check(array.values, path)
        array.validate(full=True)

    def valid(self, array: pa.Array) -> np.ndarray[Any, Any] | None:
        """Returns which elements do not belong to a run of nulls."""
        if not pa.types.is_run_end_encoded(array.type):
            return self.values.valid(array)
        runs = self.values.valid(array.values)
        return None if runs is None else runs[_runs(array)]

    def _decode(self, array: pa.Array) -> pa.Array:
        if not pa.types.is_run_end_encoded(array.type):
            return array
        return take_places(array.values, _runs(array))

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        try:
            return encode(self.values.write(value, path), self.arrow)
        except pa.ArrowInvalid as error:  # more values than the type can count
            raise self.not_convertible(value, path) from error


def storage_of(array: pa.ExtensionArray) -> pa.Array:
    """Returns the values of an extension array as a plain array; those of bool8 are bools."""
    is_bool = isinstance(array.type, pa.Bool8Type)
    return array.storage.cast(pa.bool_()) if is_bool else array.storage


def decode(array: pa.Array) -> pa.Array:
    """Returns the values of a dictionary array or of runs, one for each element.

    Arrow does so itself, but not for views of strings.
    """
    is_dictionary = pa.types.is_dictionary(array.type)
    if not is_string_view(array.type.value_type):
        return array.dictionary_decode() if is_dictionary else pc.run_end_decode(array)
    values = array.dictionary if is_dictionary else array.values
    places = array.indices if is_dictionary else pa.array(_runs(array))
    return values.cast(without_views(values.type)).take(places)


def plain_values(array: pa.Array) -> pa.Array:
    """Returns an array without extension types, dictionaries and runs; UUIDs are text."""
    while is_encoded(array.type) or isinstance(array.type, pa.BaseExtensionType):
        if isinstance(array.type, pa.UuidType):
            return pa.array([x if x is None else str(x) for x in array.to_pylist()], pa.string())
        array = decode(array) if is_encoded(array.type) else storage_of(array)
    return array


def _runs(array: pa.Array) -> np.ndarray[Any, Any]:
    """Returns the number of the run of each element."""
    elements = np.arange(array.offset, array.offset + len(array))
    return np.searchsorted(array.run_ends.to_numpy(), elements, side="right")


def _run_ends(values: pa.Array) -> np.ndarray[Any, Any]:
    """Returns the end of each run of equal values."""
    keys = comparable(values)
    if keys is None:
        return np.arange(1, len(values) + 1)
    numbers = keys.dictionary_encode().indices.fill_null(-1).to_numpy()
    ends = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    return np.append(ends, len(values)) if len(values) else ends


def comparable(values: pa.Array) -> pa.Array | None:
    """Returns values of a type that `dictionary_encode` takes, equal only where the bits are.

    Floats are compared as integers: 0.0 and -0.0 differ, and NaN equals itself. Returns None for a
    type that Arrow cannot compare.
    """
    t, arrow = pa.types, values.type
    if t.is_dictionary(arrow):
        return values.indices
    if isinstance(arrow, pa.BaseExtensionType):
        return comparable(values.storage)
    if t.is_floating(arrow) or t.is_decimal(arrow):
        width = arrow.bit_width
        same = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(width, pa.binary(width // 8))
        return values.view(same)
    return None if t.is_nested(arrow) or t.is_run_end_encoded(arrow) else values
