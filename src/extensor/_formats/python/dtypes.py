"""The dtypes of columns of Python numbers: chosen by the caller, or those of the values."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._formats.python import kinds
from extensor._formats.python.place import Place, shown
from extensor._path import Path
from extensor.errors import DTypeError, FieldError

_EXACT = 2**53  # up to here, float64 holds each integer


class Dtypes:
    """The argument `dtype`: one dtype of all numbers, or dtypes by path.

    Args:
        dtype: The argument.
        wide: Whether Python numbers are int64 and float64, as Arrow's readers infer, and not int32
            and float32.
        rounds: Whether floats may hold other integers than the given ones, as those of a format
            that has one type of numbers.

    Raises:
        DTypeError: If it is neither (also a TypeError).
    """

    def __init__(self, dtype: Any, wide: bool = False, rounds: bool = False) -> None:
        self.wide = wide
        self._rounds = rounds
        self._all: tf.DType | None = None
        self._by_path: dict[Path, tf.DType] = {}
        self._used: set[Path] = set()
        if isinstance(dtype, Mapping):
            self._by_path = {Path.of(path): _dtype(each) for path, each in dtype.items()}
        elif dtype is not None:
            self._all = chosen = _dtype(dtype)
            if not _is_number(chosen):
                expected = "a dtype of numbers, for all fields that are numbers"
                fix = "Strings and bools keep their dtypes; leave dtype= out."
                raise DTypeError("dtype", expected, chosen.name, fix)

    def expect_all_used(self) -> None:
        """Raises FieldError for a path of `dtype` at which there are no values."""
        for path in self._by_path:
            if path not in self._used:
                expected = "paths of numbers, strings or bools"
                fix = "Check the path."
                raise FieldError("dtype", expected, f"{path}, where there are none", fix)

    def of_numbers(self, text: str, _: Any) -> tf.DType | None:
        """Returns the dtype that the caller chose for a path, or None."""
        if not self._by_path:
            return self._all
        path = Path.parse(text)
        self._used.add(path)
        return self._by_path.get(path, self._all)

    def of(self, kind: str, types: set[type], values: Any, place: Place) -> tf.DType | None:
        """Returns the dtype of a column; None if Arrow chooses it.

        Args:
            kind: The kind of the values.
            types: Their types.
            values: The values.
            place: Their place.

        Raises:
            DTypeError: If the caller chose a dtype that the values do not fit.
        """
        chosen = self.of_numbers(place.text, None)
        own = {kinds.STRING: tf.string, kinds.BOOL: tf.bool}.get(kind)
        if own is not None:
            if chosen not in (None, own) and chosen is not self._all:
                raise _not_of(chosen, values, place)
            return own
        if kind != kinds.NUMBER:
            return None
        if chosen is not None:
            if not _is_number(chosen):
                raise _not_of(chosen, values, place)
            return chosen
        return _wide(types, values, place) if self.wide else _natural(types, values, place)

    def array(self, values: Any, dtype: tf.DType, place: Place, wanted: bool) -> Any:
        """Returns numbers as a NumPy array of a dtype.

        Raises:
            DTypeError: If a number does not fit the dtype (also a TypeError).
        """
        np_dtype = np.dtype(dtype.as_numpy_dtype)
        if isinstance(values, np.ndarray) and values.dtype == np_dtype:
            return values
        types = set(map(type, values))
        if dtype.is_integer:
            if not all(issubclass(cls, (int, np.integer)) for cls in types):
                raise _not_held(values, dtype, place, wanted)
            wide = np.uint64 if dtype == tf.uint64 else np.int64
            try:
                numbers = np.fromiter(values, wide, len(values))
            except (OverflowError, ValueError):
                raise _not_held(values, dtype, place, wanted) from None
            low, high = _limits(dtype)
            if numbers.size and not low <= numbers.min() <= numbers.max() <= high:
                raise _not_held(values, dtype, place, wanted)
            if wide is np.uint64 and any(value < 0 for value in values):
                raise _not_held(values, dtype, place, wanted)
            return numbers.astype(np_dtype)
        if any(issubclass(cls, (complex, np.complexfloating)) for cls in types):
            raise _not_held(values, dtype, place, wanted)
        try:
            numbers = np.fromiter(values, np.float64, len(values))
        except (OverflowError, ValueError):
            raise _not_held(values, dtype, place, wanted) from None
        with np.errstate(over="ignore"):
            narrow = numbers.astype(np_dtype)
        if (np.isinf(narrow) & ~np.isinf(numbers)).any():
            raise _not_held(values, dtype, place, wanted)
        if not self._rounds and self.of_numbers(place.text, None) is None:
            _expect_exact(values, types, narrow, place)
        return narrow


def _expect_exact(values: Any, types: set[type], made: Any, place: Place) -> None:
    """Raises DTypeError if an integer of Python is another number in floats."""
    if not any(issubclass(cls, int) for cls in types):
        return
    exact = 2 ** (np.finfo(made.dtype).nmant + 1)
    for index in np.flatnonzero(np.abs(made) >= exact).tolist():
        value = values[index]
        if isinstance(value, int) and int(made[index]) != value:
            expected = f"an integer that {made.dtype.name} holds exactly"
            fix = "Choose the dtype of the field, such as dtype=tf.int64 or dtype=tf.float64."
            raise DTypeError(place.at(index), expected, shown(value), fix)


def _dtype(dtype: Any) -> tf.DType:
    try:
        return tf.dtypes.as_dtype(dtype)
    except TypeError:
        expected = "a dtype such as tf.float64, or a dict from path to dtype"
        fix = 'Write dtype=tf.float64 or dtype={"steps.minutes": tf.float64}.'
        raise DTypeError("dtype", expected, repr(dtype)[:60], fix) from None


def _is_number(dtype: tf.DType) -> bool:
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def _natural(types: set[type], values: Any, place: Place) -> tf.DType:
    """Returns the dtype that tf.ragged.constant gives to Python numbers; NumPy's keep theirs."""
    own = [np.dtype(cls) for cls in types if issubclass(cls, np.generic)]
    if own:
        weak = [kind() for kind in (int, float, complex)
                if any(issubclass(cls, kind) and not issubclass(cls, np.generic)
                       for cls in types)]  # fmt: skip
        return tf.dtypes.as_dtype(np.result_type(*own, *weak))
    if any(issubclass(cls, complex) for cls in types):
        return tf.complex128
    if any(issubclass(cls, float) for cls in types):
        return tf.float32
    try:
        numbers = np.fromiter((v for v in values if v is not None), np.int64)
    except OverflowError:
        raise _not_held(values, tf.int64, place, wanted=False) from None
    low, high = _limits(tf.int32)
    wide = numbers.size and (numbers.min() < low or numbers.max() > high)
    return tf.int64 if wide else tf.int32


def _wide(types: set[type], values: Any, place: Place) -> tf.DType:
    """Returns int64 or float64 for Python's ints and floats, which must not lose digits."""
    dtype = tf.float64 if float in types else tf.int64
    whole = [value for value in values if type(value) is int]
    if not whole or (min(whole) >= -_EXACT and max(whole) <= _EXACT):
        return dtype
    for index, value in enumerate(values):
        if type(value) is not int:
            continue
        is_held = _fits(value, dtype) and (dtype.is_integer or int(float(value)) == value)
        if not is_held:
            expected = f"a number that {dtype.name} can hold"
            fix = "Choose the type of the field with schema=, such as pa.float64()."
            raise DTypeError(place.at(index), expected, shown(value), fix)
    return dtype


@functools.cache
def _limits(dtype: tf.DType) -> tuple[int, int]:
    """Returns the limits of integers. TensorFlow takes 50 us to find them."""
    return int(dtype.min), int(dtype.max)


def _fits(value: Any, dtype: tf.DType) -> bool:
    if dtype.is_integer:
        whole = isinstance(value, (int, np.integer))
        low, high = _limits(dtype)
        return whole and low <= int(value) <= high
    if isinstance(value, (complex, np.complexfloating)):
        return False
    try:
        wide = float(value)
    except OverflowError:
        return False
    with np.errstate(over="ignore"):
        return bool(np.isinf(wide) or not np.isinf(np.array(wide).astype(dtype.as_numpy_dtype)))


def _not_held(values: Any, dtype: tf.DType, place: Place, wanted: bool) -> DTypeError:
    index = next((i for i, v in enumerate(values) if v is not None and not _fits(v, dtype)), 0)
    return DTypeError(
        place.at(index),
        f"a number that {dtype.name} can hold",
        shown(values[index]),
        "Round or scale the number, or change the spec."
        if wanted
        else "Choose the dtype of the field: dtype= or spec=.",
    )


def _not_of(dtype: tf.DType, values: Any, place: Place) -> DTypeError:
    index = next(i for i, value in enumerate(values) if value is not None)
    fix = "Choose another dtype for this path."
    return DTypeError(place.at(index), f"{dtype.name}, as dtype= says", shown(values[index]), fix)
