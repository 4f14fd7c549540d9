"""Lists put in order: sorted, without duplicates, and the item with the largest or smallest key."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._authoring.comparison import with_checks
from extensor._path import Path, PathLike
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._struct.index import gather
from extensor._struct.masked import combined, field_of, is_masked, records_in
from extensor._struct.paths.place import list_at, names_of, rank_at, return_or_put
from extensor._struct.paths.rows import Lists, lists_of
from extensor._struct.paths.types import put_items
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue
from extensor.errors import DTypeError, NullError, RowError


def argsort(
    st: StructuredTensor,
    path: PathLike = (),
    by: PathLike | None = None,
    axis: int = -1,
    descending: bool = False,
    target: PathLike | None = None,
) -> Any:
    """Returns the positions that sort each list; equal items keep their order.

    Args:
        st: A StructuredTensor.
        path: The path of a list; `()` is the records themselves.
        by: The path of a field of the listed records, with one number, bool or string each. Strings
            are compared byte by byte; NaN and then nulls are last. Default: the items are the keys.
        axis: Which dimension of the records at the path, or of the values, is sorted.
        descending: Whether the largest is first.
        target: The path of a new field for the positions. Default: they are returned alone.

    Raises:
        FieldError: If a path does not exist, or the target exists (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).
        DTypeError: If the keys have no order (also a TypeError).

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [20, 5, 8]})
    >>> recipes = xt.DenseStructuredTensor(
    ...     [2], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> xt.struct.argsort(recipes, "steps", by="minutes")
    <tf.RaggedTensor [[1, 0], [0]]>
    """
    _, rows, keys = lists_and_keys(st, path, by, axis)
    order = _order(keys, rows, descending)
    return return_or_put(st, target, rows.same(order - rows.starts))


def sort(
    st: StructuredTensor,
    path: PathLike = (),
    by: PathLike | None = None,
    axis: int = -1,
    descending: bool = False,
) -> StructuredTensor:
    """Returns the records with each list sorted; equal items keep their order.

    Args and errors are those of `argsort`.

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [20, 5, 8]})
    >>> recipes = xt.DenseStructuredTensor(
    ...     [2], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> xt.struct.sort(recipes, "steps", by="minutes")["steps.minutes"]
    <tf.RaggedTensor [[5, 20], [8]]>
    >>> xt.struct.sort(recipes["steps", 0], by="minutes", descending=True).to_py()
    [{'minutes': 20}, {'minutes': 5}]
    """
    names, rows, keys = lists_and_keys(st, path, by, axis)
    return put_items(st, names, rows.same(gather(rows.items, _order(keys, rows, descending))))


def unique(
    st: StructuredTensor, path: PathLike = (), by: PathLike | None = None, axis: int = -1
) -> StructuredTensor:
    """Returns the records with only the first of equal items of each list, in their order.

    Args and errors are those of `argsort`, except that a null key is a NullError (also a
    ValueError). Each NaN is an item of its own.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "dry", "sweet"], ["dry"]])
    >>> xt.struct.unique(xt.DenseStructuredTensor([2], {"tags": tags}), "tags")["tags"]
    <tf.RaggedTensor [[b'sweet', b'dry'], [b'dry']]>
    """
    names, rows, keys = lists_and_keys(st, path, by, axis)
    key = () if by is None else names_of(records_in(rows.items), by)
    first, _, splits = groups(keys_without_nulls(keys, Path(*names, *key)), rows)
    items = gather(rows.items, first)
    return put_items(st, names, rows.lists(items, splits))


def groups(keys: FieldValue, rows: Lists) -> tuple[Any, Any, Any]:
    """Returns the first item of each group of equal keys of each list.

    Returns:
        The number of the first item of each group, in their order; the group of each item; and the
        row splits that cut the groups into lists.
    """
    dtype = rows.splits.dtype
    _, code = tf.unique(keys, out_idx=tf.int64)
    count = tf.size(code, tf.int64)
    _, group = tf.unique(tf.cast(rows.numbers, tf.int64) * count + code, out_idx=tf.int64)
    number = tf.reduce_max(tf.concat([group, [-1]], 0)) + 1
    first = tf.math.unsorted_segment_min(tf.range(count), group, number)
    starts = tf.searchsorted(first, tf.cast(rows.splits, tf.int64), out_type=dtype)
    return tf.cast(first, dtype), group, starts


def argmax(
    st: StructuredTensor, path: PathLike, by: PathLike | None = None, target: PathLike | None = None
) -> Any:
    """Returns the position of the largest item of each list, the first of equal ones.

    Args:
        st: A StructuredTensor.
        path: The path of a list.
        by: The path of a field of the listed records. Default: the items are the keys.
        target: The path of a new field for the positions. Default: they are returned alone.

    Returns:
        A MaskedTensor of integers, null where a list is empty or has only nulls; or the records
        with it.

    Raises:
        FieldError: If a path does not exist, or the target exists (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).
        DTypeError: If the keys have no order (also a TypeError).

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor(
    ...     [3], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 2, 3])})
    >>> xt.struct.argmax(recipes, "steps", by="minutes").to_py()
    [1, None, 0]
    """
    return _extreme(st, path, by, target, True)


def argmin(
    st: StructuredTensor, path: PathLike, by: PathLike | None = None, target: PathLike | None = None
) -> Any:
    """Returns the position of the smallest item of each list: see `argmax`.

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor(
    ...     [3], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 2, 3])})
    >>> xt.struct.argmin(recipes, "steps", by="minutes").to_py()
    [0, None, 0]
    """
    return _extreme(st, path, by, target, False)


def _extreme(
    st: StructuredTensor,
    path: PathLike,
    by: PathLike | None,
    target: PathLike | None,
    largest: bool,
) -> FieldValue:
    _, rows, keys = lists_and_keys(st, path, by, None)
    order = _order(keys, rows, largest)
    padded = tf.concat([order, tf.zeros([1], order.dtype)], 0)
    first = tf.gather(padded, rows.splits[:-1])
    some = rows.lengths > 0
    if is_masked(keys):
        valid = tf.concat([keys.mask, [False]], 0)
        some = tf.logical_and(some, tf.gather(valid, first))
    first = tf.where(some, first - rows.splits[:-1], tf.zeros_like(first))
    return return_or_put(st, target, rows.outside(combined(first, some)))


def lists_and_keys(
    st: StructuredTensor, path: PathLike, by: PathLike | None, axis: int | None
) -> tuple[tuple[str, ...], Lists, Any]:
    """Returns the names of a path, the lists there, and a key for each item, masked or not."""
    names, value, depth = list_at(st, path)
    at = Path(*names)
    if axis is not None:
        rank = rank_at(st, names) or 0
        position = axis + rank if axis < 0 else axis
        if not 0 <= position < rank:
            fix = f"The value has shape {value.shape}."
            raise RowError("axis", f"a dimension from {-rank} to {rank - 1}", str(axis), fix)
        depth = position
    keys = value
    if by is not None:
        records = records_in(value)
        if records is None:
            expected = "a list of records, whose field is the key"
            fix = "Leave out `by` to sort the items themselves."
            raise DTypeError(at or "by", expected, type(value).__name__, fix)
        inner = names_of(records, by)
        at = Path(*names, *inner)
        for i, name in enumerate(inner):
            keys = field_of(keys, name, Path(*names, *inner[: i + 1]))
    rows, keys = lists_of(value, depth), lists_of(keys, depth).items
    if is_masked(keys) and keys.mask.shape.rank == 1:
        return names, rows, combined(_ordered_keys(keys.values, at), keys.mask)
    return names, rows, _ordered_keys(keys, at)


def keys_without_nulls(keys: FieldValue, path: PathLike) -> FieldValue:
    """Returns keys without their mask.

    Raises:
        NullError: If keys are null (also a ValueError). In a graph, TensorFlow raises an
            InvalidArgumentError when it runs.
    """
    if not is_masked(keys):
        return keys
    count = tf.size(keys.mask) - tf.math.count_nonzero(keys.mask, dtype=tf.int32)
    fix = (
        "Fill the nulls by xt.struct.fill_null, or leave the items or records out: "
        "xt.struct.drop_null(st, path, by=...)."
    )
    error = NullError(path or "items", "keys that are not null", f"{LATER} null", fix)
    return with_checks(assert_op(tf.equal(count, 0), error, [count]), keys.values)


def _ordered_keys(keys: FieldValue, at: Path) -> tf.Tensor:
    is_tensor = isinstance(keys, (tf.Tensor, tf.Variable))
    if is_tensor and keys.shape.rank == 1 and (
        keys.dtype.is_integer or keys.dtype.is_floating or keys.dtype in (tf.bool, tf.string)
    ):  # fmt: skip
        keys = tf.convert_to_tensor(keys)
        return tf.cast(keys, tf.int32) if keys.dtype == tf.bool else keys
    expected = "one number, bool or string an item, to compare them"
    received = f"{keys.dtype.name}, shape {keys.shape}" if is_tensor else type(keys).__name__
    fix = "Name a field of the listed records: by=..."
    raise DTypeError(at or "items", expected, received, fix)


def _order(keys: FieldValue, rows: Lists, descending: bool) -> tf.Tensor:
    """Returns the numbers of all items in the order of their lists, sorted in each list."""
    if is_masked(keys):
        order = _sorted_order(keys.values, descending)
        order = tf.gather(order, _argsort(tf.cast(tf.gather(keys.mask, order), tf.int32), True))
    else:
        order = _sorted_order(keys, descending)
    if rows.is_only:
        return tf.cast(order, rows.splits.dtype)
    by_row = _argsort(tf.gather(rows.numbers, order), False)
    return tf.cast(tf.gather(order, by_row), rows.splits.dtype)


def _argsort(keys: tf.Tensor, descending: bool) -> tf.Tensor:
    direction = "DESCENDING" if descending else "ASCENDING"
    return tf.argsort(keys, direction=direction, stable=True)


def _sorted_order(keys: tf.Tensor, descending: bool) -> tf.Tensor:
    if keys.dtype == tf.string:
        return _string_order(keys, descending)
    if not keys.dtype.is_floating:
        return _argsort(keys, descending)
    nan = tf.math.is_nan(keys)
    order = _argsort(tf.where(nan, tf.zeros_like(keys), keys), descending)
    return tf.gather(order, _argsort(tf.cast(tf.gather(nan, order), tf.int32), False))


_BYTES = 7  # as many bytes as an int64 holds without its sign


def _string_order(keys: tf.Tensor, descending: bool) -> tf.Tensor:
    """Returns the order of strings by their bytes: a radix sort, because no op sorts strings."""
    lengths = tf.strings.length(keys)
    order = _argsort(lengths, descending)
    digits = (tf.reduce_max(tf.concat([lengths, [1]], 0)) + _BYTES - 1) // _BYTES
    letters = tf.io.decode_raw(keys, tf.uint8, fixed_length=digits * _BYTES)
    letters = tf.cast(tf.reshape(letters, [-1, digits, _BYTES]), tf.int64)
    weights = tf.constant([256**i for i in reversed(range(_BYTES))], tf.int64)
    numbers = tf.reduce_sum(letters * weights, -1)

    def by_digit(digit: tf.Tensor, order: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        column = tf.gather(numbers[:, digit], order)
        return digit - 1, tf.gather(order, _argsort(column, descending))

    return tf.while_loop(lambda digit, _: digit >= 0, by_digit, (digits - 1, order))[1]
