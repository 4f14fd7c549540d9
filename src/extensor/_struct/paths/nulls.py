"""Nulls at paths: found, filled, left out, made from empty lists and turned into them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._path import Path, PathLike
from extensor._struct.field import shape_of
from extensor._struct.index import gather
from extensor._struct.masked import is_union
from extensor._struct.paths.lists import selected
from extensor._struct.paths.place import answer, depth_of, list_at, names_of, put, value_at
from extensor._struct.paths.rows import as_row, rows_of, splits_of, with_rows
from extensor._struct.row_splits import outer_sizes
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, StructureError


def _is_masked(value: Any) -> bool:
    from extensor._types.masked.value import MaskedTensor

    return isinstance(value, MaskedTensor)


def is_null(st: Any, path: PathLike, target: PathLike | None = None) -> Any:
    """Returns where a field is null, as bools.

    Args:
        st: A StructuredTensor.
        path: The path of a field.
        target: The path of a new field for the bools. Default: they are returned alone.

    Returns:
        bool, with the dimensions of the field's mask; False everywhere for a field without a mask,
        with the dimensions of the records that hold it.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).

    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([500.0, 0.0], [True, False])
    >>> xt.struct.is_null(xt.DenseStructuredTensor([2], {"grams": grams}), "grams").numpy()
    array([False,  True])
    """
    return answer(st, target, _null(st, path))


def _null(st: Any, path: PathLike) -> Any:
    names = names_of(st, path)
    value = value_at(st, names)
    if _is_masked(value):
        return tf.logical_not(value.mask)
    return _filled(value, depth_of(st, names), False)


def _filled(value: Any, depth: int, with_what: bool) -> Any:
    """Returns one bool for each row of a value, in its outer dimensions."""
    if depth == 0:
        return tf.constant(with_what)
    outer = rows_of(value, depth - 1)
    if isinstance(outer.items, (tf.Tensor, tf.Variable)):
        sizes = tf.shape(outer.items)[:1]
    else:
        sizes = outer_sizes(outer.items, 1)
    return outer.same(tf.fill(sizes, with_what))


def has(st: Any, source: PathLike, target: PathLike | None = None) -> Any:
    """Returns where a field has a value: a value that is not null, or a list that is not empty.

    Args:
        st: A StructuredTensor.
        source: The path of a field.
        target: The path of a new field for the bools. Default: they are returned alone.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "dry"], []], dtype=tf.string)
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.has(recipes, "tags").numpy()
    array([ True, False])
    """
    names = names_of(st, source)
    value = value_at(st, names)
    depth = depth_of(st, names)
    if _is_masked(value) and shape_of(value.mask).rank == depth:
        return answer(st, target, value.mask)
    rank = shape_of(value).rank
    if rank is None or rank <= depth:
        return answer(st, target, _filled(value, depth, True))
    rows = rows_of(value, depth)
    return answer(st, target, rows.outside(rows.lengths > 0))


def fill_null(st: Any, path: PathLike, value: Any) -> Any:
    """Returns the records with the nulls of a field replaced; the field has no mask then.

    Args:
        st: A StructuredTensor.
        path: The path of a field. A field without a mask stays as it is.
        value: The new value, of the field's dtype.

    Raises:
        FieldError: If the path does not exist (also a KeyError).

    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([500.0, 0.0], [True, False])
    >>> recipes = xt.DenseStructuredTensor([2], {"grams": grams})
    >>> xt.struct.fill_null(recipes, "grams", -1.0)["grams"].numpy()
    array([500.,  -1.], dtype=float32)
    """
    names = names_of(st, path)
    field = value_at(st, names)
    return put(st, names, field.fill(value)) if _is_masked(field) else st


def drop_null(st: Any, path: PathLike) -> Any:
    """Returns the records without the null items of a list.

    Args:
        st: A StructuredTensor.
        path: The path of a list. If its items have no mask, it stays as it is.

    Raises:
        FieldError: If the path does not exist (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).

    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([[500.0, 0.0], [0.0, 0.0]], [[True, False], [False, False]])
    >>> recipes = xt.DenseStructuredTensor([2], {"grams": grams})
    >>> xt.struct.drop_null(recipes, "grams")["grams"]
    <tf.RaggedTensor [[500.0], []]>
    """
    names, value, depth = list_at(st, path)
    if not _is_masked(value) or shape_of(value.mask).rank != depth + 1:
        return st
    rows, mask = rows_of(value.values, depth), rows_of(value.mask, depth).items
    kept = tf.cast(tf.where(mask)[:, 0], rows.splits.dtype)
    return put(st, names, selected(rows, kept, mask))


def firsts(st: Any, path: PathLike, target: PathLike | None = None) -> Any:
    """Returns the first item of each list; null where a list is empty.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records.
        target: The path of a new field. Default: the items replace the list.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> times = tf.ragged.constant([[5, 20], []], dtype=tf.int32)
    >>> recipes = xt.DenseStructuredTensor([2], {"times": times})
    >>> xt.struct.firsts(recipes, "times")["times"].to_py()
    [5, None]
    """
    from extensor._types.masked.value import MaskedTensor

    names, value, depth = list_at(st, path)
    if not names:
        raise _root_is_no_field()
    rows = rows_of(value, depth)
    some = rows.lengths > 0
    items = _at(rows.items, tf.where(some, rows.splits[:-1], tf.zeros_like(rows.lengths) - 1))
    result = MaskedTensor(rows.outside(items), rows.outside(some))
    if target is None:
        return put(st, names, result)
    return answer(st, target, result)


def _at(items: Any, numbers: Any) -> Any:
    """Returns the items of the given numbers, and the zero of their type for the number -1."""
    return gather(_with_zero(items), numbers + 1)


def _with_zero(items: Any) -> Any:
    """Returns items with a zero, an empty string or an empty list before them."""
    if isinstance(items, StructuredTensor):
        records: Any = items
        if hasattr(records, "row_splits"):
            splits = records.row_splits
            return with_rows(records.values, tf.concat([splits[:1], splits], 0))
        return records.map_parts(lambda part, _: _with_zero(part))
    if isinstance(items, tf.RaggedTensor):
        splits = items.row_splits
        return items.from_row_splits(items.values, tf.concat([splits[:1], splits], 0), False)
    if _is_masked(items):
        from extensor._types.masked.value import MaskedTensor

        return MaskedTensor.of_parts(_with_zero(items.values), _with_zero(items.mask))
    if is_union(items):
        first, *_ = items.names
        codes, variants = _with_zero(items.codes), dict(items.variants)
        if not isinstance(codes, tf.RaggedTensor):  # else, an empty list is before the others
            variants[first] = _with_zero(variants[first])
        return items.of_parts(codes, variants, items.names)
    items = tf.convert_to_tensor(items)
    shape = tf.concat([[1], tf.shape(items)[1:]], 0)
    zero = tf.fill(shape, "") if items.dtype == tf.string else tf.zeros(shape, items.dtype)
    return tf.concat([zero, items], 0)


def singletons(st: Any, path: PathLike, target: PathLike | None = None) -> Any:
    """Returns each value as a list of one item; a null as an empty list.

    Args:
        st: A StructuredTensor.
        path: The path of a field of one value a record.
        target: The path of a new field. Default: the lists replace the values.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).

    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([500.0, 0.0], [True, False])
    >>> recipes = xt.DenseStructuredTensor([2], {"grams": grams})
    >>> xt.struct.singletons(recipes, "grams")["grams"]
    <tf.RaggedTensor [[500.0], []]>
    """
    names = names_of(st, path)
    if not names:
        raise _root_is_no_field()
    value = value_at(st, names)
    depth = depth_of(st, names)
    if _is_masked(value):
        value, mask = value.values, value.mask
    else:
        mask = _filled(value, depth, True)
    if shape_of(mask).rank != depth:
        raise StructureError(
            path=Path(*names),
            expected="nulls of one value a record",
            received="a list whose items may be null",
            mend="Use xt.struct.drop_null to leave out null items.",
        )
    if depth == 0:
        result = as_row(value)[: tf.cast(mask, tf.int64)]
    else:
        rows, valid = rows_of(value, depth - 1), rows_of(mask, depth - 1).items
        kept = tf.cast(tf.where(valid)[:, 0], rows.splits.dtype)
        splits = splits_of(tf.cast(valid, rows.splits.dtype))
        result = rows.same(with_rows(gather(rows.items, kept), splits))
    return put(st, names, result) if target is None else answer(st, target, result)


def pad(st: Any, path: PathLike, n: int, value: Any = None, clip: bool = False) -> Any:
    """Returns the records with at least `n` items in each list.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records.
        n: The number of items.
        value: The value of the added items. Default: they are null.
        clip: Whether longer lists are cut to `n` items.

    Raises:
        FieldError: If the path does not exist (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).
        DTypeError: If the items are records and `value` is given (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> times = tf.ragged.constant([[5, 20], [8]])
    >>> recipes = xt.DenseStructuredTensor([2], {"times": times})
    >>> xt.struct.pad(recipes, "times", 2, value=0)["times"]
    <tf.RaggedTensor [[5, 20], [8, 0]]>
    >>> xt.struct.pad(recipes, "times", 2)["times"].to_py()
    [[5, 20], [8, None]]
    """
    from extensor._types.masked.value import MaskedTensor

    names, field, depth = list_at(st, path)
    rows = rows_of(field, depth)
    if n < 0:
        raise StructureError(
            path="n", expected="0 or more items", received=str(n), mend="Give the number of items."
        )
    if value is not None and not isinstance(rows.items, (tf.Tensor, tf.Variable)):
        raise DTypeError(
            path=Path(*names) or "the records",
            expected="a list of numbers or strings, to add a value",
            received=type(rows.items).__name__,
            mend="Leave out `value`: the added items are null.",
        )
    lengths = tf.cast(rows.lengths, rows.splits.dtype)
    target = tf.fill(tf.shape(lengths), tf.cast(n, lengths.dtype))
    target = target if clip else tf.maximum(lengths, target)
    splits = splits_of(target)
    starts = tf.repeat(splits[:-1], target)
    position = tf.range(splits[-1], dtype=splits.dtype) - starts
    real = position < tf.repeat(lengths, target)
    number = tf.where(real, tf.repeat(rows.splits[:-1], target) + position, -1)
    items = _at(rows.items, number)

    def lists(flat: Any) -> Any:
        return rows.lists(flat, splits)

    if value is None:
        padded: Any = MaskedTensor(lists(items), lists(real))
    else:
        fill = tf.cast(value, items.dtype) if items.dtype != tf.string else tf.constant(value)
        shape = tf.concat([tf.shape(real), tf.ones([items.shape.rank - 1], tf.int32)], 0)
        padded = lists(tf.where(tf.reshape(real, shape), items, fill))
    return put(st, names, padded)


def _root_is_no_field() -> StructureError:
    return StructureError(
        path="path",
        expected="the path of a field",
        received="the path of the records themselves",
        mend="Name a field of the records.",
    )
