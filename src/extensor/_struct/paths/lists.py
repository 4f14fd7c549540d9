"""Lists: how long they are, where their items are, and which items stay."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import uncut_rows
from extensor._authoring.same_rows import with_rows_of
from extensor._path import Path, PathLike
from extensor._struct.index import ALL, gather, take
from extensor._struct.index.key import checked_slice, without_nulls
from extensor._struct.masked import combined, is_masked
from extensor._struct.paths.place import (
    Names,
    depth_of,
    list_at,
    names_of,
    put,
    rank_at,
    return_or_put,
    type_at,
    value_at,
)
from extensor._struct.paths.rows import (
    flat_lists,
    lists_of,
    null_lists_to_empty,
    repeat_rows,
    split_mask,
    take_off_dimension,
    with_rows,
)
from extensor._struct.paths.types import put_items, with_types
from extensor._struct.reshape import expand_dims
from extensor._typing import FieldValue, TensorLike
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor._struct.paths.rows import Lists
    from extensor._struct.tensor import StructuredTensor
    from extensor._types.masked.value import MaskedTensor


def num(st: StructuredTensor, path: PathLike, target: PathLike | None = None) -> Any:
    """Returns the number of items of each list.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records.
        target: The path of a new field for the numbers. Default: they are returned alone.

    Returns:
        Integers with the dimensions of the records that hold the list, null for a null list, or the
        records with them; their dtype is that of the row splits.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "dry"], []], dtype=tf.string)
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.num(recipes, "tags").numpy()
    array([2, 0])
    """
    _, value, depth = list_at(st, path)
    rows = lists_of(value, depth)
    return return_or_put(st, target, rows.outside(rows.lengths))


def local_index(
    st: StructuredTensor, path: PathLike, target: PathLike | None = None, from_end: bool = False
) -> Any:
    """Returns the position of each item in its list, from 0.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records.
        target: The path of a new field for the positions: beside the list, or inside its records.
            Default: they are returned alone.
        from_end: Whether to count from the end: -1 is the last item, -2 the one before it.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "dry"], ["oats"]])
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.local_index(recipes, "tags")
    <tf.RaggedTensor [[0, 1], [0]]>
    >>> xt.struct.local_index(recipes, "tags", "n", from_end=True)["n"]
    <tf.RaggedTensor [[-2, -1], [-1]]>
    """
    _, value, depth = list_at(st, path)
    rows = lists_of(value, depth)
    positions = rows.positions()
    if from_end:
        positions -= tf.repeat(rows.lengths, rows.lengths)
    return return_or_put(st, target, rows.same(positions))


def slice_(
    st: StructuredTensor,
    path: PathLike,
    start: TensorLike | None = None,
    stop: TensorLike | None = None,
    step: TensorLike | None = None,
) -> StructuredTensor:
    """Returns the records with a range of each list, as Python's `items[start:stop:step]`.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records; `()` slices the records themselves.
        start: The first position; negative positions count from the end.
        stop: The position after the last.
        step: The distance of two positions.

    Raises:
        FieldError: If the path does not exist (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "dry", "quick"], ["oats"]])
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.slice(recipes, "tags", start=1)["tags"]
    <tf.RaggedTensor [[b'dry', b'quick'], []]>
    """
    names, value, depth = list_at(st, path)
    at = Path(*names)
    positions = (*((ALL,) * depth), checked_slice(slice(start, stop, step), at))
    return put_items(st, names, take(value, positions, at))


def filter_by(
    st: StructuredTensor,
    path: PathLike,
    mask: PathLike | TensorLike | tf.RaggedTensor | MaskedTensor,
) -> StructuredTensor:
    """Returns the records with only those items of each list for which a mask is true.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records; `()` filters the records themselves.
        mask: bool, one for each item; or the path of such a field. A null counts as False.

    Raises:
        FieldError: If a path does not exist (also a KeyError).
        DTypeError: If the mask is not bool (also a TypeError).
        StructureError: If the mask does not have one bool an item (also a ValueError).

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor(
    ...     [2], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> long = xt.struct.filter_by(recipes, "steps", recipes["steps.minutes"] > 6)
    >>> long["steps.minutes"]
    <tf.RaggedTensor [[20], [8]]>
    """
    names, value, depth = list_at(st, path)
    if isinstance(mask, (str, Path)) or (
        isinstance(mask, tuple) and mask and all(isinstance(part, str) for part in mask)
    ):
        mask = value_at(st, names_of(st, mask))
    mask = _bools(mask)
    rows = lists_of(value, depth)
    flat = _flat_like(mask, value, depth, Path(*names))
    kept = tf.cast(tf.where(flat)[:, 0], rows.splits.dtype)
    return put_items(st, names, select_items(rows, kept, flat))


def select_items(rows: Lists, kept: tf.Tensor, flat: tf.Tensor) -> FieldValue:
    """Returns the lists with the items at the positions `kept` only, where `flat` is true."""
    items = gather(rows.items, kept)
    if rows.is_only:
        return items
    before = tf.concat([tf.zeros([1], kept.dtype), tf.cumsum(tf.cast(flat, kept.dtype))], 0)
    return rows.lists(items, tf.gather(before, rows.splits))


def _is_nested(mask: object) -> bool:
    return isinstance(mask, (list, tuple)) and any(isinstance(m, (list, tuple)) for m in mask)


def _bools(mask: object) -> Any:
    given: Any = without_nulls(mask)
    if _is_nested(given):
        ragged: Any = tf.ragged.constant(given)
        given = ragged if ragged.flat_values.shape[0] else tf.cast(ragged, tf.bool)
    elif not hasattr(given, "dtype") or not hasattr(given, "shape"):
        given = tf.convert_to_tensor(given)
    if tf.as_dtype(given.dtype) == tf.bool:
        return given if hasattr(given, "row_splits") else tf.convert_to_tensor(given)
    received = tf.as_dtype(given.dtype).name
    raise DTypeError("mask", "bool", received, "Compare the values: mask=st[path] > 0.")


def _flat_like(mask: FieldValue, value: FieldValue, depth: int, at: Path) -> tf.Tensor:
    """Returns a mask for the items of lists as a vector, if it has one bool for each item."""

    def unlike(received: str) -> StructureError:
        expected = "a mask of one bool for each item"
        fix = "Compute the mask from the items of this list."
        return StructureError(
            at or "the records", expected, f"other rows or sizes: {received}", fix
        )

    for rank in [2] * depth or [1]:
        value, _ = split_mask(value, 1)
        own, rows = _splits_in(mask), _splits_in(value)
        if (own is None) != (rows is None) and mask.shape.rank != 1:
            mask, value = (
                with_rows(r.items, r.splits) for r in (lists_of(mask, 1), lists_of(value, 1))
            )
            own, rows = _splits_in(mask), _splits_in(value)
        shapes = tf.TensorShape(mask.shape), tf.TensorShape(value.shape)
        is_other = shapes[0].rank in range(rank) or not shapes[0][:rank].is_compatible_with(
            shapes[1][:rank]
        )
        if is_other or (own is not rows and hasattr(own, "numpy") and hasattr(rows, "numpy")
            and not np.array_equal(np.asarray(own), np.asarray(rows))
        ):  # fmt: skip
            raise unlike(f"shape {shapes[0]} for {shapes[1]}")
        mask = with_rows_of(mask, value, rank, unlike)
        if rank > 1:
            (mask, _), (value, _) = take_off_dimension(mask), take_off_dimension(value)
    if mask.shape.rank != 1:
        raise unlike(f"shape {mask.shape} for {tf.TensorShape(value.shape)}")
    return mask


def _splits_in(value: FieldValue) -> tf.Tensor | None:
    """Returns the row splits of the outermost lists; None if they are not ragged."""
    rows = uncut_rows(value)
    return None if rows is None else rows[1]


def flatten(st: StructuredTensor, path: PathLike = ()) -> StructuredTensor:
    """Returns the records with the two outermost dimensions of a list of lists merged.

    Args:
        st: A StructuredTensor.
        path: The path of lists of lists; `()` merges the first two dimensions of the records.

    Raises:
        FieldError: If the path does not exist (also a KeyError).
        StructureError: If there is no list of lists at the path (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([[["sweet"], ["dry"]], [["oats"]]])
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.flatten(recipes, "tags")["tags"]
    <tf.RaggedTensor [[b'sweet', b'dry'], [b'oats']]>
    """
    names, value, depth = list_at(st, path)
    if (rank_at(st, names) or 0) < depth + 2:
        expected = "a list of lists"
        fix = "To put items into the records: xt.struct.explode; to merge lists: promote."
        raise StructureError(Path(*names) if names else "the records", expected, "a list", fix)
    return put_items(st, names, flat_lists(value, depth, 2))


def explode(st: StructuredTensor, path: PathLike) -> StructuredTensor:
    """Returns the records with one record for each item of a list: the other fields are repeated.

    The field becomes the item. A record whose list is empty or null is left out.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records. The records that hold it are repeated.

    Raises:
        FieldError: If the path does not exist (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([2], {
    ...     "title": ["Snickerdoodles", "Flapjacks"],
    ...     "tags": tf.ragged.constant([["sweet", "dry"], ["oats"]])})
    >>> xt.struct.explode(recipes, "tags").to_py()
    [{'title': b'Snickerdoodles', 'tags': b'sweet'}, {'title': b'Snickerdoodles', 'tags': b'dry'},
     {'title': b'Flapjacks', 'tags': b'oats'}]
    """
    names, value, depth = list_at(st, path)
    if not names:
        expected = "the path of a list in the records"
        fix = "Use xt.struct.flatten to merge dimensions of the records."
        raise StructureError("path", expected, "the path of the records themselves", fix)
    parent, masks = value_at(st, names[:-1]), list[Any]()
    while is_masked(parent):
        masks.append(parent.mask)
        parent = parent.values
    if depth:  # a null around all records of one record is put back below
        value, _ = split_mask(value, 0)
    lists = lists_of(null_lists_to_empty(value, depth), depth)
    rest = parent.without(names[-1:])
    above = depth_of(st, names[:-1])
    if above != depth:  # a null among the records that are repeated has no list, and is left out
        masks = [mask for mask in masks if mask.shape.rank < depth]
    result = _explode(rest, names[-1:], lists, depth, above)
    result = put(st, names[:-1], functools.reduce(combined, reversed(masks), result))
    return with_types(result, {names: type_at(st, names)})


def _explode(
    rest: StructuredTensor, name: Names, lists: Lists, depth: int, above: int
) -> StructuredTensor:
    """Returns records with one record for each item of a list.

    Args:
        rest: The records without the list.
        name: The path of the items in the result.
        lists: The lists.
        depth: The number of dimensions outside the lists.
        above: The number of dimensions outside the records.
    """
    if depth == 0:
        repeated = gather(expand_dims(rest, 0), lists.numbers)
        return repeated.with_updates({name: lists.items}, validate=False)
    outer = None if depth == 1 else lists_of(rest, depth - 1)
    items = rest if outer is None else outer.items
    repeated = repeat_rows(items, lists.lengths)
    repeated = repeated.with_updates({name: lists.items}, validate=False)
    if above == depth:  # the records become a list
        return lists.lists(repeated, lists.splits)
    if outer is None:
        return repeated
    return outer.lists(repeated, tf.gather(lists.splits, outer.splits))
