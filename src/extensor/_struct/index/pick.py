"""Takes the part of a tensor or RaggedTensor at positions, as NumPy and awkward do.

TensorFlow's own indexing takes ints and slices only, and no int at a ragged dimension.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.same_rows import with_rows_of
from extensor._count_text import count_text
from extensor._path import Path
from extensor._struct.index.key import ALL, expect_in_range, is_array, known_ints, without_trailing
from extensor._tf import ragged_tensor
from extensor.errors import RowError, StructureError

Key = tuple[Any, ...]

_INTS = (int, np.integer)

_LIMIT = np.iinfo(np.int32).max


def pick(value: Any, positions: Key, at: Path) -> tf.Tensor | tf.RaggedTensor:
    """Returns the part of a tensor or RaggedTensor at positions.

    Args:
        value: A tensor or RaggedTensor.
        positions: Ints, slices and arrays of ints along its first dimensions, from
            `key.zip_arrays`.
        at: The path of the value, for errors.

    Raises:
        RowError: If a row is too short for a position (also an IndexError). In a graph, running
            it raises an InvalidArgumentError instead.
    """
    return _Picker(at).below(value, 0, positions)


class _Picker:
    def __init__(self, at: Path) -> None:
        self.at = at

    def below(self, value: Any, depth: int, key: Key) -> tf.Tensor | tf.RaggedTensor:
        """Returns a value with positions applied below its first `depth` dimensions."""
        key = without_trailing(key)
        if not key:
            return value
        if key[0] == ALL if isinstance(key[0], slice) else False:
            return self.below(value, depth + 1, key[1:])
        if depth == 0 or not isinstance(value, tf.RaggedTensor):
            expect_in_range(key, value.shape[depth:], self.at)
        if not isinstance(value, tf.RaggedTensor):
            return self._in_dense(value, depth, key)
        if depth > 1:
            return value.with_values(self.below(value.values, depth - 1, key))
        return self._in_rows(value, key) if depth else self._at_rows(value, key)

    # The first dimension of a RaggedTensor.

    def _at_rows(self, value: Any, key: Key) -> tf.Tensor | tf.RaggedTensor:
        first, rest = key[0], key[1:]
        if isinstance(first, slice):
            step = first.step
            if step is None or isinstance(step, (int, np.integer)):
                rows = value[first]
            else:  # TensorFlow takes no tensor as the step of a ragged dimension
                rows = tf.gather(value, slice_tensor(tf.range(value.nrows()), (first,)))
            return self.below(rows, 1, rest)
        if isinstance(first, tf.RaggedTensor):
            return self.below(self._per_row(value, first), first.shape.rank, rest)
        if is_array(first):
            arrays, rest = _arrays(key)
            size = value.row_splits.shape[0]
            size = value.nrows() if size is None else size - 1
            return self._zip(value, [without_negative(arrays[0], size), *arrays[1:]], rest)
        splits = value.row_splits
        before = first - 1 if isinstance(first, int) and first < 0 else first
        if isinstance(first, int):
            start, end = splits[before], splits[before + 1]
        else:
            start, end = splits[:-1][first], splits[1:][first]
        return self.below(value.values[start:end], 0, rest)

    def _zip(self, value: Any, arrays: list[Any], rest: Key) -> tf.Tensor | tf.RaggedTensor:
        """Returns the items at arrays of positions along the first dimensions.

        The first array is in range, and not negative.
        """
        rows = arrays[0]
        if len(arrays) > 1 and isinstance(value, tf.RaggedTensor):
            starts, limits = _bounds(value)
            places = self._places(tf.gather(starts, rows), tf.gather(limits, rows), arrays[1])
            return self._zip(value.values, [places, *arrays[2:]], rest)
        if len(arrays) > 1:
            sizes = [value.shape[i] or tf.shape(value)[i] for i in range(1, len(arrays))]
            others = [without_negative(a, s) for a, s in zip(arrays[1:], sizes, strict=True)]
            return self.below(tf.gather_nd(value, _pairs([rows, *others])), _rank(arrays), rest)
        return self.below(tf.gather(value, rows), rows.shape.rank, rest)

    # The second dimension of a RaggedTensor, in every row.

    def _in_rows(self, value: Any, key: Key) -> tf.Tensor | tf.RaggedTensor:
        first, rest = key[0], key[1:]
        starts, limits = _bounds(value)
        if isinstance(first, slice):
            begin, end, step = _range(first, starts, limits)
            places = tf.ragged.range(begin, end, step, row_splits_dtype=starts.dtype)
            rows = places.with_values(tf.gather(value.values, places.values))
            return self.below(rows, 2, rest)
        arrays, rest = _arrays(key) if is_array(first) else ([first], rest)
        if not is_array(first):
            places = self._places(starts, limits, first)
            return self.below(tf.gather(value.values, places), 1, rest)
        inner = tf.reshape(starts, [-1] + [1] * arrays[0].shape.rank)
        ends = tf.reshape(limits, [-1] + [1] * arrays[0].shape.rank)
        places = self._places(inner, ends, arrays[0])
        return self._zip(value.values, [places, *arrays[1:]], rest)

    def _places(self, starts: tf.Tensor, limits: tf.Tensor, positions: Any) -> tf.Tensor:
        """Returns where the items at positions of rows are in the values.

        Args:
            starts: Where each row begins.
            limits: Where each row ends.
            positions: The position in each row; negative from its end.
        """
        if not isinstance(positions, int):
            positions = tf.cast(positions, starts.dtype)
        if isinstance(positions, int):
            places = (limits if positions < 0 else starts) + positions
            fits = places >= starts if positions < 0 else places < limits
        else:
            places = tf.where(positions < 0, limits, starts) + positions
            fits = (places >= starts) & (places < limits)
        if hasattr(fits, "numpy"):
            known = fits.numpy()
            if not known.all():
                self._refuse(known, starts, limits, positions)
            return places
        message = f"{self.at or 'index'}: a row is too short for the position in the index."
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(fits), [message])]):
            return tf.identity(places)

    def _refuse(self, fits: Any, starts: tf.Tensor, limits: tf.Tensor, positions: Any) -> None:
        wrong = np.unravel_index(np.argmin(fits), fits.shape)
        length, number = (
            int(np.broadcast_to(np.asarray(part), fits.shape)[wrong])
            for part in (limits - starts, positions)
        )
        raise row_too_short(number, length, int(wrong[0]) if len(wrong) else None, self.at)

    # Ragged arrays of positions.

    def _per_row(
        self, value: Any, positions: Any, compare: bool = True
    ) -> tf.Tensor | tf.RaggedTensor:
        """Returns, for each row, the items at its own positions, or where its own mask is True.

        Args:
            value: The rows.
            positions: A RaggedTensor of positions in each row, or of bools.
            compare: Whether a graph compares the rows of both.
        """
        if not isinstance(value, tf.RaggedTensor):
            value = tf.RaggedTensor.from_tensor(
                value,
                ragged_rank=positions.shape.rank - 1,
                row_splits_dtype=positions.row_splits.dtype,
            )
        if positions.row_splits.dtype != value.row_splits.dtype:
            positions = positions.with_row_splits_dtype(value.row_splits.dtype)
        if compare:
            rank = positions.shape.rank - (positions.dtype != tf.bool)
            positions = with_rows_of(
                positions, value, rank, lambda got: self._other_rows("the rows of the value", got)
            )
        if positions.dtype == tf.bool:
            self._expect_same_rows(value, positions, positions.shape.rank - 1)
            splits = value.nested_row_splits[: positions.ragged_rank]
            if len(splits) == positions.ragged_rank:  # so that TensorFlow does not compare them
                positions = functools.reduce(ragged_tensor, reversed(splits), positions.flat_values)
            return tf.ragged.boolean_mask(value, positions)
        if positions.shape.rank > 2:
            self._expect_same_rows(value, positions, 1)
            inner: Any = positions.values
            if not isinstance(inner, tf.RaggedTensor):
                inner = tf.RaggedTensor.from_tensor(inner, ragged_rank=inner.shape.rank - 1)
            return value.with_values(self._per_row(value.values, inner, compare=False))
        self._expect_same_count(value, positions)
        starts, limits = _bounds(value)
        rows = positions.value_rowids()
        places = self._places(tf.gather(starts, rows), tf.gather(limits, rows), positions.values)
        return positions.with_values(tf.gather(value.values, places))

    def _expect_same_count(self, value: Any, positions: Any) -> None:
        ours, theirs = value.row_splits.shape[0], positions.row_splits.shape[0]
        if ours is not None and theirs is not None and ours != theirs:
            raise self._other_rows(f"{ours - 1} rows", f"{theirs - 1} rows")

    def _expect_same_rows(self, value: Any, positions: Any, levels: int) -> None:
        """Raises StructureError if known rows of a key differ from those of the value."""
        for _ in range(levels):
            self._expect_same_count(value, positions)
            a, b = value.row_splits, positions.row_splits
            known = a is not b and hasattr(a, "numpy") and hasattr(b, "numpy")
            if known and not np.array_equal(a.numpy(), b.numpy()):
                raise self._other_rows("the rows of the value", "rows of other lengths")
            value, positions = value.values, positions.values
            if not (hasattr(value, "row_splits") and hasattr(positions, "row_splits")):
                return

    def _other_rows(self, expected: str, received: str) -> StructureError:
        fix = "Compute it from a field of the same records."
        return StructureError(self.at or "index", f"a ragged array with {expected}", received, fix)

    # Dense tensors.

    def _in_dense(self, value: Any, depth: int, key: Key) -> tf.Tensor | tf.RaggedTensor:
        count = next((i for i, part in enumerate(key) if is_array(part)), len(key))
        before, key = key[:count], key[count:]
        if before:
            value = slice_tensor(value, (ALL,) * depth + before)
            depth += sum(isinstance(part, slice) for part in before)
        if not key:
            return value
        if isinstance(key[0], tf.RaggedTensor):  # `depth` is 0: see `key.zip_arrays`
            return self.below(self._per_row(value, key[0]), key[0].shape.rank, key[1:])
        arrays, rest = _arrays(key)
        value = tf.convert_to_tensor(value)
        axes = range(depth, depth + len(arrays))
        sizes = [value.shape[axis] or tf.shape(value)[axis] for axis in axes]
        arrays = [without_negative(a, size) for a, size in zip(arrays, sizes, strict=True)]
        if len(arrays) == 1:
            value = tf.gather(value, arrays[0], axis=depth)
        elif depth == 0:
            value = tf.gather_nd(value, _pairs(arrays))
        else:
            front = [*axes, *range(depth), *range(axes[-1] + 1, value.shape.rank)]
            value = tf.gather_nd(tf.transpose(value, front), _pairs(arrays))
            moved = _rank(arrays)
            order = [*range(moved, moved + depth), *range(moved)]
            value = tf.transpose(value, [*order, *range(moved + depth, value.shape.rank)])
        return self.below(value, depth + _rank(arrays), rest)


def row_too_short(position: int, length: int, row: int | str | None, at: Path) -> RowError:
    """Returns the error for a row that has no item at a position; `row` is its number or None."""
    where = "the row" if row is None else f"row {row}"
    expected = f"position {position} in every row"
    fix = "Take a slice, such as [:, :1], or select the rows that are long enough first."
    return RowError(at or "index", expected, count_text(length, f"elements in {where}"), fix)


class Positions(Key):
    """Ints and slices, with the arguments of the op that takes them from an eager tensor.

    The arguments are made once for all fields of a value.
    """

    @functools.cached_property
    def masks(self) -> dict[int, tf.Tensor]:
        """The parts of masks at these positions, by the identity of the mask."""
        return {}

    @functools.cached_property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments of `tf.raw_ops.StridedSlice`; None if a position is a tensor."""
        ranges: list[tuple[int, int, int]] = []
        begins = ends = ints = 0
        try:
            for axis, part in enumerate(self):
                bit = 1 << axis
                if isinstance(part, slice):
                    begins |= bit if part.start is None else 0
                    ends |= bit if part.stop is None else 0
                    step = 1 if part.step is None else operator.index(part.step)
                    start, stop = (0 if b is None else b for b in (part.start, part.stop))
                    ranges.append((operator.index(start), operator.index(stop), step))
                else:
                    ints |= bit
                    position = operator.index(part)
                    ranges.append((position, position + 1, 1))
        except TypeError:
            return None
        if any(step == 0 or max(map(abs, (*ends_of, step))) > _LIMIT for *ends_of, step in ranges):
            return None
        begin, end, strides = _bounds_of(tuple(ranges))
        return {
            "begin": begin,
            "end": end,
            "strides": strides,
            "begin_mask": begins,
            "end_mask": ends,
            "shrink_axis_mask": ints,
        }


@functools.lru_cache(256)
def _bounds_of(ranges: tuple[tuple[int, int, int], ...]) -> list[tf.Tensor]:
    """Returns the begins, the ends and the strides of ranges, each as an eager tensor."""
    return list(map(tf.constant, np.array(ranges, np.int32).reshape(-1, 3).T))


def slice_op(positions: Key, shape: tf.TensorShape) -> Callable[..., Any] | None:
    """Returns the op that takes positions from eager tensors; None where `slice_tensor` is needed.

    Args:
        positions: Positions that are in the range of the shape.
        shape: The outer sizes of all the tensors.
    """
    if (
        not isinstance(positions, Positions)
        or not shape.is_fully_defined()
        or not tf.executing_eagerly()
        or (len(positions) == 1 and is_full_range(positions[0], shape[0]))
        or positions.arguments is None
    ):
        return None
    return functools.partial(tf.raw_ops.StridedSlice, **positions.arguments)


def slice_tensor(value: Any, key: Key) -> tf.Tensor | tf.RaggedTensor:
    """Returns `value[key]`, with a static rank; TensorFlow loses it if the step is symbolic."""
    if hasattr(value, "numpy") and tf.executing_eagerly():
        if len(key) == 1 and isinstance(key[0], slice) and is_full_range(key[0], value.shape[0]):
            return value
        # Indexing a tensor in Python takes ten times as long as the op.
        arguments = (key if isinstance(key, Positions) else Positions(key)).arguments
        if arguments is not None:
            return tf.raw_ops.StridedSlice(input=value, **arguments)
    bounds: list[Any] = []
    for part in key:
        bounds += [part.start, part.stop, part.step] if isinstance(part, slice) else [part]
    dtypes = {bound.dtype for bound in bounds if isinstance(bound, tf.Tensor)}
    if not dtypes:
        return value[key]
    if len(dtypes) > 1:
        key = tuple(map(_as_int64, key))
    result = value[key]
    if result.shape.rank is None and value.shape.rank is not None:
        outer = [None] * sum(isinstance(part, slice) for part in key)
        result.set_shape([*outer, *value.shape[len(key) :]])
    return result


def gather_tensor(value: Any, numbers: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
    """Returns `tf.gather(value, numbers)`, for eager tensors by the kernel alone."""
    if (
        isinstance(value, tf.Tensor)
        and hasattr(value, "numpy")
        and hasattr(numbers, "numpy")
        and isinstance(numbers, tf.Tensor)
        and tf.executing_eagerly()
    ):
        # tf.gather takes longer than its kernel does for a few hundred numbers.
        return tf.raw_ops.GatherV2(params=value, indices=numbers, axis=0)
    is_ragged = isinstance(value, tf.RaggedTensor) and isinstance(value.flat_values, tf.Tensor)
    if is_ragged and isinstance(numbers, tf.Tensor) and numbers.shape.rank == 1:
        return _gathered_rows(value, numbers)
    return tf.gather(value, numbers)


def _gathered_rows(value: tf.RaggedTensor, numbers: tf.Tensor) -> tf.RaggedTensor:
    """Returns `tf.gather(value, numbers)`; `tf.gather` takes the cube of the ragged rank."""
    splits = value.nested_row_splits
    rows = tf.raw_ops.RaggedGather(
        params_nested_splits=splits,
        params_dense_values=value.flat_values,
        indices=numbers,
        OUTPUT_RAGGED_RANK=len(splits),
    )
    result = rows.output_dense_values
    for row_splits in reversed(rows.output_nested_splits):
        result = ragged_tensor(result, row_splits)
    return result


def is_step_of_one(step: Any) -> bool:
    """Returns whether a step is known to be 1; that of a tensor may be another one in each run."""
    return step is None or (isinstance(step, _INTS) and step == 1)


def is_full_range(part: Any, size: int) -> bool:
    """Returns whether a position is a range of all elements of a dimension, in their order."""
    return (
        isinstance(part, slice)
        and (part.start is None or (isinstance(part.start, _INTS) and part.start == 0))
        and isinstance(part.stop, _INTS)
        and part.stop == size
        and part.step is None
    )


def _as_int64(part: Any) -> Any:
    """Returns an int or slice with int64 tensors, because TensorFlow packs all into one tensor."""
    if isinstance(part, slice):
        return slice(_as_int64(part.start), _as_int64(part.stop), _as_int64(part.step))
    return tf.cast(part, tf.int64) if isinstance(part, tf.Tensor) else part


def _bounds(value: Any) -> tuple[Any, Any]:
    return value.row_splits[:-1], value.row_splits[1:]


def _arrays(key: Key) -> tuple[list[Any], Key]:
    """Returns the arrays at the beginning of a key, and its rest."""
    count = next((i for i, part in enumerate(key) if not is_array(part)), len(key))
    return list(key[:count]), key[count:]


def _rank(arrays: list[Any]) -> int:
    return max(array.shape.rank for array in arrays)


def _pairs(arrays: list[Any]) -> tf.Tensor:
    """Returns the indices for tf.gather_nd from arrays that broadcast."""
    arrays = [tf.cast(array, tf.int64) for array in arrays]
    shape = arrays[0].shape
    if any(array.shape != shape for array in arrays) or not shape.is_fully_defined():
        dynamic = tf.shape(arrays[0])
        for array in arrays[1:]:
            dynamic = tf.broadcast_dynamic_shape(dynamic, tf.shape(array))
        arrays = [tf.broadcast_to(array, dynamic) for array in arrays]
    return tf.stack(arrays, axis=-1)


def without_negative(positions: Any, size: Any) -> tf.Tensor:
    """Returns positions along a dimension of a size, without negative ones."""
    known = known_ints(positions)
    if known is not None and (known >= 0).all():
        return positions
    if known is not None and isinstance(size, int):
        return tf.constant(np.where(known < 0, known + size, known), positions.dtype)
    return tf.where(positions < 0, positions + tf.cast(size, positions.dtype), positions)


def _range(part: slice, starts: tf.Tensor, limits: tf.Tensor) -> tuple[Any, Any, Any]:
    """Returns where a slice of each row begins and ends in the values, and the step."""
    step: Any = 1 if part.step is None else part.step
    if isinstance(step, (int, np.integer)):
        if step == 0:
            expected = "a step that is not 0"
            raise StructureError("index", expected, "step 0", "Leave the step out for 1.")
        begin, end = _ends(part, starts, limits, bool(step > 0))
        return begin, end, tf.cast(step, starts.dtype)
    step = tf.cast(step, starts.dtype)
    up, down = (_ends(part, starts, limits, forward) for forward in (True, False))
    return tf.where(step > 0, up[0], down[0]), tf.where(step > 0, up[1], down[1]), step


def _ends(part: slice, starts: tf.Tensor, limits: tf.Tensor, forward: bool) -> tuple[Any, Any]:
    # Backwards, a slice begins at most at the last element, and ends before the first one.
    low, high = (starts, limits) if forward else (starts - 1, limits - 1)

    def place(bound: Any, default: Any) -> tf.Tensor:
        if bound is None:
            return default
        most = starts.dtype.max // 2  # the sum with a larger one would overflow
        if isinstance(bound, (int, np.integer)):
            places = (limits if bound < 0 else starts) + min(max(int(bound), -most), most)
        else:
            bound = tf.clip_by_value(tf.cast(bound, tf.int64), -most, most)
            bound = tf.cast(bound, starts.dtype)
            places = tf.where(bound < 0, limits, starts) + bound
        return tf.clip_by_value(places, low, high)

    return (place(part.start, low), place(part.stop, high)) if forward else (
        place(part.start, high), place(part.stop, low)
    )  # fmt: skip
