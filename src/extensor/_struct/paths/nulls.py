"""Nulls at paths: found, filled, left out, made from empty lists and turned into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import concat_rows, row_splits_of, rows_spec
from extensor._path import Path, PathLike
from extensor._protocol.casting import cast_value
from extensor._protocol.stackable_spec import stacks_by_components
from extensor._struct.arrow_types import value_rank
from extensor._struct.field import shape_of
from extensor._struct.index import gather, with_zeros
from extensor._struct.masked import (
    combined,
    field_at,
    is_masked,
    map_records,
    records_in,
    under_masks,
    with_nulls_masked,
    without_null_variant,
)
from extensor._struct.meaning import Unit
from extensor._struct.paths.lists import select_items
from extensor._struct.paths.place import (
    Names,
    depth_of,
    fields_at,
    list_at,
    names_of,
    new_field,
    put,
    type_at,
    value_at,
)
from extensor._struct.paths.rows import (
    lists_of,
    only_row,
    outer_null_lists_to_empty,
    size_of,
    split_mask,
    splits_dtype,
    with_rows,
)
from extensor._struct.paths.types import put_items
from extensor._struct.reshape import expand_dims
from extensor._struct.spec import StructuredTensorSpec, root_is_no_field
from extensor._tf import CompositeTensor, unstacked
from extensor._typing import FieldValue
from extensor.errors import DTypeError, ExtensorError, NullError, StructureError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor


def is_null(st: StructuredTensor, path: PathLike, target: PathLike | None = None) -> Any:
    """Returns where a field is null, as bools.

    Args:
        st: A StructuredTensor.
        path: The path of a field.
        target: The path of a new field for the bools. Default: they are returned alone.

    Returns:
        bool, with the dimensions of the records that hold the field; of its items, if the field is
        lists of which only the items may be null. A null list outside counts as empty. A field of
        a null record is null.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).

    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([500.0, 0.0], [True, False])
    >>> xt.struct.is_null(xt.DenseStructuredTensor([2], {"grams": grams}), "grams").numpy()
    array([False,  True])
    """
    names, depth = _place(st, path)
    value, own = with_nulls_masked(value_at(st, names)), _own_field(st, names)[0]
    if is_masked(own):
        depth = max(depth, own.mask.shape.rank)
    if is_masked(value) and not is_masked(value.values) and value.mask.shape.rank == depth:
        flags = tf.logical_not(value.mask)  # without a change of its dimensions
    else:
        items, valid, same = _each(value, depth)
        flags = same(tf.zeros([size_of(items)], tf.bool) if valid is None else ~valid)
    return _with_flags(st, target, flags, depth)


def has(st: StructuredTensor, source: PathLike, target: PathLike | None = None) -> Any:
    """Returns where a field has a value: a value that is not null, or a list that is not empty.

    Args:
        st: A StructuredTensor.
        source: The path of a field.
        target: The path of a new field for the bools. Default: they are returned alone.

    Returns:
        bool, with the dimensions of the records that hold the field. A null list outside of the
        field counts as empty.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "dry"], []], dtype=tf.string)
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.has(recipes, "tags").numpy()
    array([ True, False])
    """
    names, depth = _place(st, source)
    value = value_at(st, names)
    items, valid, same = _each(value, depth)
    rank = shape_of(value).rank
    if rank is None or rank <= depth:
        some = tf.ones([size_of(items)], tf.bool) if valid is None else valid
    else:
        some = lists_of(items, 1).lengths > 0
        some = some if valid is None else tf.logical_and(some, valid)
    return _with_flags(st, target, same(some), depth)


def _place(st: StructuredTensor, path: PathLike) -> tuple[Names, int]:
    """Returns the names of a path, and how many dimensions a value there has outside of it."""
    names = names_of(st, path)
    return names, depth_of(st, names)


def _each(value: FieldValue, depth: int) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Returns the values of a field, one after another, without the mask of the field itself.

    Args:
        value: The value of the field.
        depth: The number of dimensions outside of the field.

    Returns:
        The values; a bool for each of them, or None if none may be null; and a function that puts
        the dimensions back, in which lists outside of the field stay null.
    """
    value = with_nulls_masked(value)
    if depth == 0:
        value, valid = split_mask(value, 0)
        return expand_dims(value, 0), None if valid is None else tf.reshape(valid, [1]), only_row
    rows = lists_of(value, depth - 1)
    return (*split_mask(rows.items, 1), rows.same)


def _with_flags(
    st: StructuredTensor, target: PathLike | None, flags: FieldValue, depth: int
) -> FieldValue:
    """Returns bools alone, or the records with them in a new field.

    Args:
        st: The records.
        target: The path of the new field, or None.
        flags: The bools, null where a list outside of them is null.
        depth: The number of dimensions outside of each bool.
    """
    if target is None:
        return outer_null_lists_to_empty(flags, 0, depth)
    new = new_field(st, target)
    return put(st, new, outer_null_lists_to_empty(flags, depth_of(st, new), depth))


def fill_null(st: StructuredTensor, path: PathLike, value: object) -> StructuredTensor:
    """Returns the records with the nulls of a field replaced; the field has no mask then.

    Args:
        st: A StructuredTensor.
        path: The path of a field. A field without a mask stays as it is.
        value: The new value: a number or string of the field's dtype, a list for null lists, a dict
            or a single record for null records.

    Raises:
        FieldError: If the path does not exist, or a dict has other fields than the records (also a
            KeyError).
        DTypeError: If the value does not fit the field (also a TypeError).
        NullError: If not the field is null, but records that hold it (also a ValueError).

    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([500.0, 0.0], [True, False])
    >>> recipes = xt.DenseStructuredTensor([2], {"grams": grams})
    >>> xt.struct.fill_null(recipes, "grams", -1.0)["grams"].numpy()
    array([500.,  -1.], dtype=float32)
    """
    names = names_of(st, path)
    field, outer = _own_field(st, names)
    if is_masked(field):
        value = _as_stored(st, names, value)
        filled = _filled_nulls(field, value, Path(*names))
        return put_items(st, names, _with_null_variant(filled, value_at(st, names)))
    if outer is None:
        return st
    received = f"a field of the records {Path(*outer)}, which are null"
    fix = (
        f"Fill the records: xt.struct.fill_null(st, {str(Path(*outer))!r}, a dict of their "
        "fields). Or leave them out by xt.struct.drop_null."
    )
    raise NullError(Path(*names), "a field that is null itself", received, fix)


def _as_stored(st: Any, names: Names, value: object) -> object:
    """Returns values of Python as the numbers of a field: 2 is 200 for decimals of scale 2.

    Args:
        st: The records.
        names: The path of the field.
        value: A value of Python, or lists of them.
    """
    kept = type_at(st, names)
    if kept is None or not isinstance(kept.meaning, Unit):
        return value
    if isinstance(value, (list, tuple)):
        return [_as_stored(st, names, item) for item in value]
    if value is None or isinstance(value, Mapping) or tf.is_tensor(value):
        return value
    spec = under_masks(tf.type_spec_from_value(value_at(st, names)))
    shape = spec.shape[spec.shape.rank - value_rank(kept) :]
    arrow = kept.field.type
    while hasattr(arrow, "value_type"):
        arrow = arrow.value_type
    record = fields_at(st, names[:-1]).__tf_type_spec__()._record
    one = type(record)([], {names[-1]: tf.TensorSpec(shape, spec.dtype)}, {names[-1]: arrow})
    with tf.init_scope():  # a list in a graph has numbers too
        stored = one.cast({names[-1]: value})[names[-1]]
    return stored.numpy().tolist() if hasattr(stored, "numpy") else stored


def _own_field(st: StructuredTensor, names: Names) -> tuple[Any, Names | None]:
    """Returns a field without the masks of the records that hold it.

    Returns:
        The field, and the path of the innermost masked records that hold it, or None.
    """
    value, outer = st, None
    value_at(st, names)  # raises the error that names the whole path
    for count, name in enumerate(names):
        if is_masked(value):
            value, outer = records_in(value), names[:count]
        value = value_at(value, (name,))
    return with_nulls_masked(value), outer


def _with_null_variant(filled: FieldValue, before: FieldValue) -> FieldValue:
    """Returns a filled value whose other nulls, those of items, are a variant if they were one.

    Args:
        filled: The value; a mask says which items are null.
        before: The value before, with all its masks.
    """
    if not is_masked(filled):
        return without_null_variant(filled)
    while is_masked(before):
        if before.mask.shape.rank == filled.mask.shape.rank:
            return filled
        before = before.values
    return filled.values


def _filled_nulls(field: FieldValue, value: FieldValue, at: Path) -> FieldValue:
    """Returns the values of a MaskedTensor with one value in place of the nulls."""
    # Imported here, because `import extensor` stays fast without the module.
    from extensor._types.masked.item import values_to_fill

    values, mask = values_to_fill(field.values, field.mask, value)
    is_number = value.shape.rank == 0 if tf.is_tensor(value) else np.isscalar(value)
    if isinstance(values, tf.Tensor) or (isinstance(values, tf.RaggedTensor) and is_number):
        value = cast_value(tf.TensorSpec(None, values.dtype), value, str(at))
        return type(field)._of_parts(values, mask).fill(value)
    rank = shape_of(mask).rank
    if rank == 0:
        return only_row(_with_item(expand_dims(values, 0), tf.reshape(mask, [1]), value, at))
    rows = lists_of(values, rank - 1)
    return rows.same(_with_item(rows.items, lists_of(mask, rank - 1).items, value, at))


def _with_item(items: FieldValue, valid: tf.Tensor, value: FieldValue, at: Path) -> FieldValue:
    """Returns items with one value in place of those that are not valid.

    Args:
        items: Values of any type, in one dimension of items.
        valid: A vector of bools.
        value: A number, string, list, dict or record.
        at: The path of the items, for errors.
    """
    if isinstance(items, (tf.Tensor, tf.Variable)):
        fill = cast_value(tf.TensorSpec(None, items.dtype), value, str(at))
        shape = tf.concat([tf.shape(valid), tf.ones([items.shape.rank - 1], tf.int32)], 0)
        return tf.where(tf.reshape(valid, shape), items, fill)
    spec = rows_spec(tf.type_spec_from_value(items), str(at))
    is_one = isinstance(value, CompositeTensor) or (
        # A dict of the components of a declared type. A spec of records names the path inside.
        isinstance(value, Mapping)
        and stacks_by_components(spec)
        and not isinstance(spec, StructuredTensorSpec)
    )
    try:
        if is_one:
            single = expand_dims(cast_value(unstacked(spec), value, str(at)), 0)
        else:
            single = cast_value(spec, [value], str(at))
    except ExtensorError as error:
        inside = "" if error.path is None else error.path.partition("record 0")[0].strip(", ")
        raise type(error)(
            f"value for {'.'.join(filter(None, (str(at), inside)))}",
            error.expected,
            error.received,
            error.fix,
        ) from error
    count = tf.size(valid, tf.int64)
    return gather(concat_rows([items, single]), tf.where(valid, tf.range(count), count))


def drop_null(st: StructuredTensor, path: PathLike, by: PathLike | None = None) -> StructuredTensor:
    """Returns the records without the null items of a list, or without the records of a null field.

    Args:
        st: A StructuredTensor.
        path: The path of a list. If its items have no mask, it stays as it is. `()` is the records
            themselves.
        by: The path of a field of the listed records: those are left out whose field is null. The
            field has no nulls then. Default: the items that are null are left out.

    Raises:
        FieldError: If a path does not exist (also a KeyError).
        StructureError: If there is no list at the path, or `by` is inside a list of the records
            (also a ValueError).

    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([[500.0, 0.0], [0.0, 0.0]], [[True, False], [False, False]])
    >>> recipes = xt.DenseStructuredTensor([2], {"grams": grams})
    >>> xt.struct.drop_null(recipes, "grams")["grams"]
    <tf.RaggedTensor [[500.0], []]>
    >>> recipes = xt.struct.constant([{"id": 1, "rating": None}, {"id": 2, "rating": 5}],
    ...                              nulls="mask")
    >>> xt.struct.drop_null(recipes, (), by="rating").to_py()
    [{'id': 2, 'rating': 5}]
    """
    names, value, depth = list_at(st, path)
    if by is not None:
        return put(st, names, _without_null(value, by, Path(*names)))
    items = value = with_nulls_masked(value)
    while is_masked(items) and shape_of(items.mask).rank != depth + 1:  # null lists
        items = items.values
    if not is_masked(items):
        return st
    rows = lists_of(value, depth)
    values, mask = split_mask(rows.items, 1)
    kept = tf.cast(tf.where(mask)[:, 0], rows.splits.dtype)
    values = without_null_variant(select_items(replace(rows, items=values), kept, mask))
    return put_items(st, names, values)


def _without_null(value: FieldValue, by: PathLike, at: Path) -> FieldValue:
    """Returns a list of records without those whose field `by` is null."""
    records = records_in(value)
    if records is None:
        expected = "a list of records, whose field may be null"
        fix = "Leave out `by` to drop the null items themselves."
        raise DTypeError(at or "by", expected, type(value).__name__, fix)
    inner = names_of(records, by)
    if not inner:
        raise root_is_no_field("by", "Leave out `by` to drop the records that are null.")
    if depth_of(records, inner) != records.rank:
        received = "a field of records in a list of theirs"
        fix = f"Give the path of that list: {str(Path(*at, *inner[:-1]))!r}."
        raise StructureError(Path(*at, *inner), "a field of the listed records", received, fix)
    depth = records.rank - 1
    keys = lists_of(with_nulls_masked(field_at(value, inner, Path(*at, *inner))), depth).items
    valid = split_mask(keys, 1)[1]
    if valid is None:
        return value
    rows = lists_of(value, depth)
    items = split_mask(rows.items, 1)[0]
    kept = tf.cast(tf.where(valid)[:, 0], rows.splits.dtype)
    result = select_items(replace(rows, items=_without_masks(items, inner)), kept, valid)
    return map_records(result, lambda made: _without_null_variant(made, inner))


def _without_null_variant(records: StructuredTensor, names: Names) -> StructuredTensor:
    """Returns records, in which a field that is a union has no variant of nulls."""
    value = value_at(records, names)
    if shape_of(value).rank != records.rank:  # a list, whose items may be null
        return records
    new = without_null_variant(value)
    return records if new is value else put(records, names, new)


def _without_masks(records: StructuredTensor, names: Names) -> StructuredTensor:
    """Returns records of rank 1 without the masks of a field and of the records on its path."""
    value, _ = split_mask(value_at(records, names[:1]), 1)
    if names[1:]:
        value = _without_masks(value, names[1:])
    return records.with_updates({names[:1]: value}, validate=False)


def firsts(st: StructuredTensor, path: PathLike, target: PathLike | None = None) -> Any:
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
    names, value, depth = list_at(st, path)
    if not names:
        raise root_is_no_field("path")
    rows = lists_of(value, depth)
    some = rows.lengths > 0
    items = gather(with_zeros(rows.items), tf.where(some, rows.splits[:-1], rows.splits[-1:]))
    result = rows.outside(combined(items, some))
    return put_items(st, names if target is None else new_field(st, target), result, names)


def singletons(
    st: StructuredTensor, path: PathLike, target: PathLike | None = None
) -> StructuredTensor:
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
        raise root_is_no_field("path")
    value = value_at(st, names)
    items, valid, same = _each(value, depth_of(st, names))
    if valid is None and is_masked(items):
        expected = "nulls of one value a record"
        fix = "Use xt.struct.drop_null to leave out null items."
        raise StructureError(Path(*names), expected, "a list whose items may be null", fix)
    if valid is None:
        valid = tf.ones([size_of(items)], tf.bool)
    dtype = splits_dtype(value)
    kept = tf.cast(tf.where(valid)[:, 0], dtype)
    result = same(with_rows(gather(items, kept), row_splits_of(tf.cast(valid, dtype))))
    return put_items(st, names if target is None else new_field(st, target), result, names)


def pad(
    st: StructuredTensor, path: PathLike, n: int, value: object | None = None, clip: bool = False
) -> Any:
    """Returns the records with at least `n` items in each list.

    Args:
        st: A StructuredTensor.
        path: The path of a list, or of a list of records.
        n: The number of items.
        value: The added item: a number or string of the items' dtype, a list for lists of lists,
            a dict or a single record for records. Default: the added items are null.
        clip: Whether longer lists are cut to `n` items.

    Raises:
        FieldError: If the path does not exist (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).
        DTypeError: If the value does not fit the items, or `n` is no integer (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> times = tf.ragged.constant([[5, 20], [8]])
    >>> recipes = xt.DenseStructuredTensor([2], {"times": times})
    >>> xt.struct.pad(recipes, "times", 2, value=0)["times"]
    <tf.RaggedTensor [[5, 20], [8, 0]]>
    >>> xt.struct.pad(recipes, "times", 2)["times"].to_py()
    [[5, 20], [8, None]]
    """
    names, field, depth = list_at(st, path)
    rows = lists_of(field, depth)
    is_integer = isinstance(n, (int, np.integer)) or (tf.is_tensor(n) and n.dtype.is_integer)
    if not is_integer:
        raise DTypeError("n", "a number of items", repr(n), "Give an int, or an integer tensor.")
    known = tf.get_static_value(n)
    if known is not None and known < 0:
        raise StructureError("n", "0 or more items", str(known), "Give the number of items.")
    lengths = tf.cast(rows.lengths, rows.splits.dtype)
    target = tf.fill(tf.shape(lengths), tf.cast(n, lengths.dtype))
    target = target if clip else tf.maximum(lengths, target)
    splits = row_splits_of(target)
    starts = tf.repeat(splits[:-1], target)
    position = tf.range(splits[-1], dtype=splits.dtype) - starts
    real = position < tf.repeat(lengths, target)
    number = tf.where(real, tf.repeat(rows.splits[:-1], target) + position, rows.splits[-1])
    items = gather(with_zeros(rows.items), number)

    if value is None:
        items = combined(items, real)
    else:
        items = _with_item(items, real, _as_stored(st, names, value), Path(*names))
    return put_items(st, names, rows.lists(items, splits))
