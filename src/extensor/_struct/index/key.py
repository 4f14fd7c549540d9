"""The positions in a key: ints, slices, None and arrays, each along one or more dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._authoring.comparison import with_checks
from extensor._authoring.same_rows import with_rows_of
from extensor._path import Path
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._struct.common_shape import row_splits_at
from extensor._struct.dims import Axes
from extensor._struct.masked import is_masked, under_masks
from extensor._tf import BaseResourceVariable
from extensor.errors import DTypeError, RowError, StructureError

ALL = slice(None)


def is_array(part: Any) -> bool:
    """Returns whether a position is an array of positions: a tensor or a RaggedTensor."""
    return isinstance(part, tf.RaggedTensor) or (
        isinstance(part, tf.Tensor) and part.shape.rank != 0
    )


def to_position(part: Any, at: Path) -> Any:
    """Returns one part of a key, with arrays and lists as tensors.

    Raises:
        DTypeError: If it is no position (also a TypeError).
    """
    if isinstance(part, slice):
        return checked_slice(part, at)
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
        return int(part)
    tensor: Any = without_nulls(part)
    if isinstance(part, (list, np.ndarray, tf.Variable)):
        tensor = _as_tensor(part)
    if isinstance(tensor, (tf.Tensor, tf.RaggedTensor)):
        is_scalar = tensor.shape.rank == 0
        if tensor.shape.rank is not None and (
            tensor.dtype.is_integer or (tensor.dtype == tf.bool and not is_scalar)
        ):
            is_index = tensor.dtype in (tf.bool, *_INDEX_DTYPES)
            return tensor if is_index else tf.cast(tensor, tf.int64)
    expected = "a field name, an int, a slice, ..., None, or an array of ints or bools"
    fix = "Select several fields, or several records, with a list: of names, of ints or of bools."
    raise DTypeError(at or "index", expected, type(part).__name__, fix)


def without_nulls(part: Any) -> Any:
    """Returns a masked mask with False for each null; other positions as they are."""
    while is_masked(part):
        if not is_masked(part.values):
            return part.fill(False) if getattr(part.values, "dtype", None) == tf.bool else part
        part = part.values  # items of null lists are in no list
    return part


def checked_slice(part: slice, at: Path) -> slice:
    """Returns a slice of ints, int32 and int64, unless its step is 0 or a part is no integer."""
    bounds: list[Any] = []
    for bound in (part.start, part.stop, part.step):
        if bound is None or type(bound) is int or isinstance(bound, (int, np.integer)):
            if bound is not None and not -_MOST <= bound <= _MOST:
                bound = _MOST if bound > 0 else -_MOST
            bounds.append(bound)
            continue
        tensor: Any = tf.convert_to_tensor(bound) if isinstance(bound, _ARRAYS) else bound
        is_tensor = isinstance(tensor, tf.Tensor) and tensor.dtype.is_integer
        if not is_tensor or tensor.shape.rank not in (0, None):
            expected = "a slice of ints or integer tensors"
            fix = "Give positions; select records by value with a mask."
            raise DTypeError(at or "index", expected, f"{bound!r} in a slice", fix)
        bounds.append(bound if tensor.dtype in _INDEX_DTYPES else tf.cast(tensor, tf.int64))
    if isinstance(part.step, (int, np.integer)) and part.step == 0:
        fix = "Leave the step out for every record."
        raise StructureError(at or "index", "a step other than 0", "step 0", fix)
    return slice(*bounds)


_ARRAYS = (np.ndarray, tf.Variable)
_MOST = np.iinfo(np.int64).max  # the largest bound of TensorFlow's kernels
_INDEX_DTYPES = (tf.int32, tf.int64)  # the only dtypes of indices for TensorFlow's kernels


def _as_tensor(part: Any) -> tf.Tensor | None:
    """Returns a list or array as a tensor, lists of different lengths as a RaggedTensor."""
    if isinstance(part, list) and not part:
        return tf.zeros([0], tf.int64)
    try:
        return tf.convert_to_tensor(part)
    except (ValueError, TypeError):
        try:
            return tf.ragged.constant(part)
        except (ValueError, TypeError):
            return None


def num_selected_dims(part: Any) -> int:
    """Returns the number of dimensions that a position selects from."""
    if part is None:
        return 0
    if is_array(part) and (part.dtype == tf.bool or isinstance(part, tf.RaggedTensor)):
        return part.shape.rank
    return 1


def num_result_dims(part: Any) -> int:
    """Returns the number of dimensions of the result that come from a position."""
    if isinstance(part, slice) or part is None:
        return 1
    if not is_array(part):
        return 0
    return 1 if is_mask(part) else part.shape.rank


def axes_of_result(positions: Sequence[Any], rank: int) -> Axes:
    """Returns the axes of what positions select: see `dims.Axes`.

    An array with as many dimensions as it selects from keeps them. Arrays that are zipped make new
    dimensions.

    Args:
        positions: The positions, without `...`, None and masks.
        rank: The rank of the value.
    """
    result: list[int | None] = []
    axis = 0
    arrays = [part for part in positions if is_array(part)]
    for part in positions:
        count = num_selected_dims(part)
        if isinstance(part, slice):
            result.append(axis)
        elif arrays and part is arrays[0]:
            new = part.shape.rank
            is_kept = len(arrays) == 1 and new == count
            result += range(axis, axis + count) if is_kept else [None] * new
        axis += count
    return [*result, *range(axis, rank)]


def is_mask(part: Any) -> bool:
    """Returns whether a position is a dense mask."""
    return isinstance(part, tf.Tensor) and part.dtype == tf.bool


def without_ellipsis(positions: Sequence[Any], rank: int, at: Path) -> tuple[Any, ...]:
    """Returns the positions with `...` replaced by full slices.

    Raises:
        RowError: If there are more positions than dimensions (also an IndexError).
    """
    positions = tuple(positions)
    dots = [i for i, part in enumerate(positions) if part is Ellipsis]
    used = sum(num_selected_dims(part) for part in positions if part is not Ellipsis)
    if used > rank or len(dots) > 1:
        expected = f"at most {rank} position(s), one for each dimension of the records"
        received = f"{used + len(dots)} positions" if len(dots) > 1 else f"{used} positions"
        fix = "Only positions after a field name index the field's own dimensions."
        raise RowError(at or "index", expected, received, fix)
    if dots:
        filled = (ALL,) * (rank - used)
        positions = positions[: dots[0]] + filled + positions[dots[0] + 1 :]
    return positions


def without_new_axes(positions: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """Returns the positions without None, and the axes that None adds to the result."""
    axes: list[int] = []
    axis = 0
    in_group = False
    for part in positions:
        if part is None:
            axes.append(axis)
        group = is_array(part)
        axis += 0 if group and in_group else num_result_dims(part)
        in_group = group or (in_group and part is not None and not isinstance(part, slice))
    return tuple(part for part in positions if part is not None), axes


def zip_arrays(positions: tuple[Any, ...], at: Path) -> tuple[Any, ...]:
    """Returns positions in which masks are ints, and ints between arrays are arrays.

    So arrays beside each other are zipped, as in NumPy.

    Raises:
        StructureError: If a slice separates two arrays, or an int and an array; NumPy then moves
            the arrays' dimensions to the front (also a ValueError).
    """
    places = [i for i, part in enumerate(positions) if is_array(part)]
    if not places:
        return positions
    fixed = [i for i, part in enumerate(positions) if not isinstance(part, slice)]
    if fixed[-1] - fixed[0] >= len(fixed):
        expected = "arrays and ints beside each other"
        fix = "Index in two steps, such as records[0][:, [1, 2]]."
        raise StructureError(at or "index", expected, "a slice between them", fix)
    ragged = [i for i in places if isinstance(positions[i], tf.RaggedTensor)]
    if ragged and (len(places) > 1 or any(isinstance(p, slice) for p in positions[: ragged[0]])):
        expected = "a ragged array as the only array, without slices before it"
        fix = "Index in two steps."
        raise StructureError(at or "index", expected, "a ragged array beside other positions", fix)
    result: list[Any] = []
    for i, part in enumerate(positions):
        if is_mask(part):
            result += tf.unstack(tf.where(part), part.shape.rank, axis=1)
        elif isinstance(part, int) and places[0] < i < places[-1]:
            result.append(tf.constant([part], tf.int64))
        else:
            result.append(part)
    _expect_one_shape([p for p in result if isinstance(p, tf.Tensor) and is_array(p)], at)
    return tuple(result)


def _expect_one_shape(arrays: list[Any], at: Path) -> None:
    shape = tf.TensorShape([])
    for array in arrays:
        try:
            shape = tf.broadcast_static_shape(shape, array.shape)
        except ValueError as error:
            expected = "arrays of one shape, or that broadcast: arrays in one key are zipped"
            received = " and ".join(f"shape {array.shape}" for array in arrays)
            fix = "Index with one array after the other: records[rows][:, columns]."
            raise StructureError(at or "index", expected, received, fix) from error


def expect_in_range(positions: Sequence[Any], shape: Any, at: Path) -> None:
    """Raises RowError for a position outside of a static size, or a mask of another size."""
    axis = 0
    for part in positions:
        sizes = list(shape[axis : axis + num_selected_dims(part)])
        axis += num_selected_dims(part)
        if is_mask(part):
            if not tf.TensorShape(sizes).is_compatible_with(part.shape):
                raise _other_mask(at, f" of shape {tf.TensorShape(sizes)}", f"shape {part.shape}")
            continue
        size = sizes[0] if sizes else None
        numbers = known_ints(part)
        if size is None or numbers is None or not numbers.size:
            continue
        wrong = numbers[(numbers >= size) | (numbers < -size)]
        if wrong.size:
            expected = "a dimension with at least one element"
            if size:
                expected = f"a position from {-size} to {size - 1}"
            received, fix = f"position {wrong.flat[0]}", f"This dimension has size {size}."
            raise RowError(at or "index", expected, received, fix)


def above_mask(positions: Sequence[Any]) -> int:
    """Returns the number of ints and slices before the first mask; 0 if an array is before it."""
    first = next((i for i, part in enumerate(positions) if is_mask(part)), 0)
    return 0 if any(map(is_array, positions[:first])) else first


def with_compared_masks(value: Any, positions: tuple[Any, ...], at: Path) -> tuple[Any, ...]:
    """Returns positions whose masks have the sizes of the value, which a graph compares as it runs.

    Raises:
        RowError: If a row has another length than its mask (also an IndexError).
    """
    if isinstance(value, BaseResourceVariable) or not any(map(is_mask, positions)):
        return positions
    lists = under_masks(value)
    result: list[Any] = []
    axis = 0
    for part in positions:
        end = axis + num_selected_dims(part)
        if is_mask(part):
            splits = [row_splits_at(lists, a) for a in range(axis, end)]
            rank = next((i for i, each in enumerate(splits) if each is not None), len(splits))
            if not tf.executing_eagerly():
                part = with_rows_of(part, value, rank, lambda got: _other_mask(at, "", got), axis)
            for i, each in enumerate(splits):
                part = part if each is None else _of_equal_lists(part, i, each, at)
        result.append(part)
        axis = end
    return tuple(result)


def _of_equal_lists(mask: Any, axis: int, row_splits: Any, at: Path) -> Any:
    """Returns a mask for lists that are all as long as one of its dimensions."""
    size = tf.shape(mask, row_splits.dtype)[axis]
    lengths = row_splits[1:] - row_splits[:-1]
    other = lengths != size

    def first() -> list[Any]:
        row = tf.argmax(tf.cast(other, tf.int32))
        return [row, lengths[row], size]

    fix = "Compute the mask from the same field: a RaggedTensor of bools, if its rows differ."
    expected = f"a mask as long as row {LATER}, {LATER} bools"
    error = RowError(at or "index", expected, f"{LATER} bools", fix)
    return with_checks(assert_op(~tf.reduce_any(other), error, first), mask)


def _other_mask(at: Path, shape: str, received: str) -> StructureError:
    fix = "Compute the mask from a field of the same records."
    return StructureError(at or "index", f"a mask{shape}, one bool for each record", received, fix)


def known_ints(part: Any) -> np.ndarray[Any, Any] | None:
    """Returns the positions in an int or a dense tensor as an array, if they are known."""
    if isinstance(part, int):
        return np.asarray(part)
    if isinstance(part, tf.Tensor) and part.dtype.is_integer:
        return part.numpy() if hasattr(part, "numpy") else tf.get_static_value(part)
    return None


def without_trailing(positions: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the positions without the full slices at the end."""
    count = len(positions)
    while count and isinstance(positions[count - 1], slice) and positions[count - 1] == ALL:
        count -= 1
    return positions[:count]


def names_in(part: Any) -> list[Any]:
    """Returns the names or paths in a list of them, and [] for other parts of a key."""
    if (
        isinstance(part, list)
        and part
        and all(isinstance(n, (str, Path)) for n in cast("Any", part))
    ):
        return cast("Any", part)
    return []
