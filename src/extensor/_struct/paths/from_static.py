"""The lists of records of static shapes, as ragged lists again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._path import Path, PathLike
from extensor._struct import index, reshape
from extensor._struct.masked import combined, is_masked, under_masks
from extensor._struct.paths.place import Names
from extensor._struct.paths.rows import lists_of, split_mask, take_off_dimension, with_rows
from extensor._struct.records import RecordsBase
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import stacked, unstacked
from extensor._typing import FieldValue
from extensor.errors import DTypeError, StructureError


def from_static(
    st: FieldValue, spec: StructuredTensorSpec, lengths: Mapping[Any, PathLike] | None = None
) -> Any:
    """Returns records whose lists have their own lengths again, from those of `to_static`.

    Args:
        st: What `records.to_static` returned, or records with some of these fields and others.
        spec: The spec of the records before, such as the `element_spec` of a dataset: its ragged
            fields become lists again. The number of records may differ.
        lengths: The paths of the fields that hold the lengths of lists, by the path of each list.
            Only lists whose items may be null need them, because a null at their end could be a
            free place. Both fields belong to the same records.

    Returns:
        The records, with the row splits and the nulls of the spec. Gradients flow through.

    Raises:
        StructureError: If the items of a list may be null, and there are no lengths of it (also
            a ValueError).
        DTypeError: If `spec` is no spec of records (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> records = xt.DenseStructuredTensor([2], {"items": tf.ragged.constant([[1, 2, 3], [4]])})
    >>> static = records.to_static({"items": 4})
    >>> xt.struct.from_static(static, xt.spec_of(records))["items"]
    <tf.RaggedTensor [[1, 2, 3], [4]]>
    """
    if not isinstance(under_masks(spec), StructuredTensorSpec):
        fix = "Give xt.spec_of(records) of the records before to_static."
        raise DTypeError("from_static: spec", "the spec of records", type(spec).__name__, fix)
    found: dict[Names, Names] = {}
    for path, target in (lengths or {}).items():
        names, own = Path.of(path).names, Path.of(target).names
        if names[:-1] != own[:-1]:
            fix = "Put the lengths into the records that hold the list, by xt.struct.num."
            received = f"a field of {Path(*own[:-1]) or 'the root'}"
            raise StructureError(Path(*own), f"a field beside {Path(*names)}", received, fix)
        found[names] = own
    if spec.shape.rank:
        return _from_rows(st, spec, Path(), found, None)
    rows = _from_rows(reshape.expand_dims(st, 0), stacked(spec, 1), Path(), found, None)
    return index.take(rows, (0,), Path())


def _from_rows(
    value: Any, spec: Any, at: Path, lengths: dict[Names, Names], own: tf.Tensor | None
) -> Any:
    """Returns a value of one row for each item, with lists as its spec says.

    Args:
        value: The value.
        spec: Its spec before `to_static`.
        at: Its path.
        lengths: The names of the fields of lengths, by the names of the paths of lists.
        own: The lengths of the innermost lists, or None.
    """
    value, valid = split_mask(value, 1)
    while is_masked(spec) and spec.mask.shape.rank == 1:
        spec = spec.values
    result = _from_lists(value, spec, at, lengths, own)
    return result if valid is None else combined(result, valid)


def _from_lists(
    value: Any, spec: Any, at: Path, lengths: dict[Names, Names], own: tf.Tensor | None
) -> Any:
    inner = under_masks(spec)
    is_ragged = isinstance(inner, tf.RaggedTensorSpec) and inner.ragged_rank > 0
    if not is_ragged and not (isinstance(inner, StructuredTensorSpec) and inner.rank > 1):
        if not isinstance(inner, StructuredTensorSpec) or not isinstance(value, RecordsBase):
            return value
        return _from_fields(value, inner._record, at, lengths)
    items_spec = stacked(unstacked(unstacked(spec)), None)
    if inner.shape[1] is not None:
        items, rows = take_off_dimension(value)
        return rows.around(_from_rows(items, items_spec, at, lengths, own))
    lists = lists_of(value, 1)
    items, mask = split_mask(lists.items, 1)
    if mask is None:  # of another function, without free places
        return value
    is_nullable = is_masked(items_spec) and items_spec.mask.shape.rank == 1
    real = mask
    if is_nullable:
        if own is None:
            name = str(at)
            expected = "the lengths of the lists, because their items may be null"
            fix = (
                f"Before to_static: xt.struct.num(records, {name!r}, 'n'). Then give "
                f"lengths={{{name!r}: 'n'}}."
            )
            raise StructureError(at or "()", expected, "none", fix)
        flat = tf.cast(tf.reshape(own, [-1]), lists.splits.dtype)
        real = lists.positions() < tf.repeat(flat, lists.lengths)
    kept = tf.cast(tf.where(real)[:, 0], lists.splits.dtype)
    if own is not None and not is_nullable:
        own = index.gather(under_masks(take_off_dimension(own)[0]), kept)
    if is_nullable:
        items = combined(items, mask)
    chosen = _from_rows(index.gather(items, kept), items_spec, at, lengths, own)
    before = tf.concat([[0], tf.cumsum(tf.cast(real, tf.int64))], 0)
    splits = tf.gather(before, lists.splits)
    dtype = getattr(inner, "row_splits_dtype", None) or tf.int64
    return with_rows(chosen, tf.cast(splits, dtype))


def _from_fields(records: Any, spec: Any, at: Path, lengths: dict[Names, Names]) -> Any:
    """Returns dense records of rank 1 with lists in place of static fields."""
    specs = spec.field_specs

    def of_field(part: FieldValue, name: str) -> FieldValue:
        if name not in specs:
            return part
        path = at / name
        own = lengths.get(path.names)
        length = None if own is None else under_masks(records._field(own[-1], Path(*own)))
        return _from_rows(part, specs[name], path, lengths, length)

    return records._map_parts(of_field)
