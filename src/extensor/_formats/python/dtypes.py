"""The dtypes of columns of Python numbers: chosen by the caller, or those of the values."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._formats.python.kinds import Kind
from extensor._formats.python.place import Place, show
from extensor._path import Path
from extensor._typing import DTypeLike
from extensor.errors import DTypeError, FieldError

_Array = np.ndarray[Any, Any]
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

    def __init__(
        self,
        dtype: DTypeLike | Mapping[Any, DTypeLike] | None,
        wide: bool = False,
        rounds: bool = False,
    ) -> None:
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
                expected, fix = "paths of numbers, strings or bools", "Check the path."
                raise FieldError("dtype", expected, f"{path}, where there are none", fix)

    def chosen(self, place: Place) -> tf.DType | None:
        """Returns the dtype that the caller chose for a place, or None."""
        if not self._by_path:
            return self._all
        path = Path.parse(place.text)
        self._used.add(path)
        return self._by_path.get(path, self._all)

    def column_dtype(
        self, kind: Kind, types: set[type], values: Sequence[object], place: Place
    ) -> tf.DType | None:
        """Returns the dtype of a column; None if Arrow chooses it.

        Args:
            kind: The kind of the values.
            types: Their types.
            values: The values.
            place: Their place.

        Raises:
            DTypeError: If the caller chose a dtype that the values do not fit.
        """
        chosen = self.chosen(place)
        own = {Kind.STRING: tf.string, Kind.BOOL: tf.bool}.get(kind)
        if own is not None:
            if chosen not in (None, own) and chosen is not self._all:
                raise _not_of(chosen, values, place)
            return own
        if kind is not Kind.NUMBER:
            return None
        if chosen is not None:
            if not _is_number(chosen):
                raise _not_of(chosen, values, place)
            return chosen
        return _wide(types, values, place) if self.wide else _natural(types, values, place)

    def array(
        self, values: Sequence[object], dtype: tf.DType, place: Place, is_of_spec: bool
    ) -> _Array:
        """Returns numbers as a NumPy array of a dtype.

        Args:
            values: The numbers.
            dtype: The dtype.
            place: Their place.
            is_of_spec: Whether a spec says the dtype, for errors.

        Raises:
            DTypeError: If a number does not fit the dtype (also a TypeError).
        """
        np_dtype = np.dtype(dtype.as_numpy_dtype)
        if isinstance(values, np.ndarray) and values.dtype == np_dtype:
            return values
        types = set(map(type, values))
        made = (_integers if dtype.is_integer else _floats)(values, types, dtype)
        if made is None:
            raise _not_held(values, dtype, place, is_of_spec)
        if dtype.is_floating and not self._rounds and self.chosen(place) is None:
            _expect_exact(values, types, made, place)
        return made


def _integers(
    values: Sequence[Any], types: set[type], dtype: tf.DType
) -> np.ndarray[Any, Any] | None:
    """Returns numbers as an array of integers; None if the dtype does not hold all of them."""
    if not all(issubclass(cls, (int, np.integer)) for cls in types):
        return None
    wide = np.uint64 if dtype == tf.uint64 else np.int64
    if wide is np.uint64 and any(value < 0 for value in values):
        return None
    try:
        numbers = np.fromiter(values, wide, len(values))
    except (OverflowError, ValueError):
        return None
    low, high = _limits(dtype)
    if numbers.size and not low <= numbers.min() <= numbers.max() <= high:
        return None
    return numbers.astype(dtype.as_numpy_dtype)


def _floats(
    values: Sequence[Any], types: set[type], dtype: tf.DType
) -> np.ndarray[Any, Any] | None:
    """Returns numbers as an array of floats; None if the dtype does not hold all of them."""
    if any(issubclass(cls, (complex, np.complexfloating)) for cls in types):
        return None
    try:
        numbers = np.fromiter(values, np.float64, len(values))
    except (OverflowError, ValueError):
        return None
    with np.errstate(over="ignore"):
        narrow = numbers.astype(dtype.as_numpy_dtype)
    return None if (np.isinf(narrow) & ~np.isinf(numbers)).any() else narrow


def _expect_exact(values: Sequence[object], types: set[type], made: _Array, place: Place) -> None:
    """Raises DTypeError if an integer of Python is another number in floats."""
    if not any(issubclass(cls, int) for cls in types):
        return
    exact = 2 ** (np.finfo(made.dtype).nmant + 1)
    for index in np.flatnonzero(np.abs(made) >= exact).tolist():
        value = values[index]
        if isinstance(value, int) and int(made[index]) != value:
            expected = f"an integer that {made.dtype.name} holds exactly"
            fix = "Choose the dtype of the field, such as dtype=tf.int64 or dtype=tf.float64."
            raise DTypeError(place.at(index), expected, show(value), fix)


def _dtype(dtype: DTypeLike) -> tf.DType:
    try:
        return tf.dtypes.as_dtype(dtype)
    except TypeError:
        expected = "a dtype such as tf.float64, or a dict from path to dtype"
        fix = 'Write dtype=tf.float64 or dtype={"steps.minutes": tf.float64}.'
        raise DTypeError("dtype", expected, repr(dtype)[:60], fix) from None


def _is_number(dtype: tf.DType) -> bool:
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def _natural(types: set[type], values: Sequence[Any], place: Place) -> tf.DType:
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
        raise _not_held(values, tf.int64, place, is_of_spec=False) from None
    low, high = _limits(tf.int32)
    wide = numbers.size and (numbers.min() < low or numbers.max() > high)
    return tf.int64 if wide else tf.int32


def _wide(types: set[type], values: Sequence[Any], place: Place) -> tf.DType:
    """Returns int64 or float64 for Python's ints and floats, which must not lose digits.

    Numbers of NumPy have their dtypes, and the common one beside others.
    """
    kinds = [np.dtype(cls) for cls in types if issubclass(cls, (np.integer, np.floating))]
    if len(kinds) < len(types):
        kinds.append(np.dtype(np.float64 if float in types else np.int64))
    dtype = tf.dtypes.as_dtype(np.result_type(*kinds))
    if dtype.is_floating and all(kind.kind in "iu" for kind in kinds):
        dtype = tf.uint64  # of NumPy, the common dtype of uint64 and int64 is float64
    for index, value in enumerate(values):
        if type(value) is not int or -_EXACT <= value <= _EXACT:
            continue
        if not _fits(value, dtype) or (dtype.is_floating and int(float(value)) != value):
            expected = f"a number that {dtype.name} can hold"
            fix = "Choose the type of the field with schema=, such as pa.float64()."
            raise DTypeError(place.at(index), expected, show(value), fix)
    return dtype


@functools.cache
def _limits(dtype: tf.DType) -> tuple[int, int]:
    """Returns the limits of integers. TensorFlow takes 50 us to find them."""
    return int(dtype.min), int(dtype.max)


def _fits(value: object, dtype: tf.DType) -> bool:
    convert = _integers if dtype.is_integer else _floats
    return convert([value], {type(value)}, dtype) is not None


def _not_held(
    values: Sequence[object], dtype: tf.DType, place: Place, is_of_spec: bool
) -> DTypeError:
    index = next((i for i, v in enumerate(values) if v is not None and not _fits(v, dtype)), 0)
    fix = "Choose the dtype of the field: dtype= or spec=."
    if is_of_spec:
        fix = "Round or scale the number, or change the spec."
    expected = f"a number that {dtype.name} can hold"
    return DTypeError(place.at(index), expected, show(values[index]), fix)


def _not_of(dtype: tf.DType, values: Sequence[object], place: Place) -> DTypeError:
    index = next(i for i, value in enumerate(values) if value is not None)
    fix = "Choose another dtype for this path."
    return DTypeError(place.at(index), f"{dtype.name}, as dtype= says", show(values[index]), fix)
