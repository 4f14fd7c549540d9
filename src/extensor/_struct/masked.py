"""Masks and unions in records: a field of a masked record has the mask of the record too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._struct.records import RecordsBase
from extensor._struct.spec import no_such_field
from extensor._typing import FieldValue


def is_masked(value: FieldValue) -> bool:
    """Returns whether a value is a MaskedTensor, or a spec the spec of one."""
    # Imported here, because `import extensor` stays fast without the module.
    from extensor._types.masked.value import MaskedTensor

    return isinstance(value, (MaskedTensor, MaskedTensor.Spec))


def combined(values: FieldValue, mask: FieldValue) -> FieldValue:
    """Returns values that are null where a mask is False; see `MaskedTensor.combined`."""
    from extensor._types.masked.value import MaskedTensor

    return MaskedTensor.combined(values, mask)


def is_nullable(spec: tf.TypeSpec, rank: int) -> bool:
    """Returns whether each value of a field may be null, in records of a rank."""
    return is_masked(spec) and spec.mask.shape.rank == rank


def mask_ranks(spec: tf.TypeSpec) -> frozenset[int | None]:
    """Returns the rank of the mask of a spec, and those of the masks under it."""
    own = {spec.mask.shape.rank, *mask_ranks(spec.values)} if is_masked(spec) else ()
    return frozenset[int | None](own)


def is_union(value: FieldValue) -> bool:
    """Returns whether a value is a UnionTensor, or a spec the spec of one."""
    from extensor._types.union.value import UnionTensor

    return isinstance(value, (UnionTensor, UnionTensor.Spec))


def with_nulls_masked(value: FieldValue) -> FieldValue:
    """Returns a value whose nulls its mask says: also those that are a variant of a union."""
    if is_masked(value):
        inner = with_nulls_masked(value.values)
        return value if inner is value.values else combined(inner, value.mask)
    null = _null_variant(value)
    return value if null is None else combined(value, tf.logical_not(value.is_variant(null)))


def without_null_variant(value: FieldValue) -> FieldValue:
    """Returns a value without nulls, or masked; a union in it without the variant of nulls."""
    if is_masked(value):
        return type(value)._of_parts(without_null_variant(value.values), value.mask)
    null = _null_variant(value)
    if null is None or len(value.names) == 1:
        return value
    code = value.names.index(null)
    later = tf.cast(tf.greater(value.codes, tf.constant(code, tf.int8)), tf.int8)
    names = (*value.names[:code], *value.names[code + 1 :])
    variants = {name: value.variants[name] for name in names}
    return value._of_parts(value.codes - later, variants, names)


def _null_variant(value: FieldValue) -> str | None:
    """Returns the name of the variant of nulls in a union; None for others."""
    if isinstance(value, (tf.Tensor, tf.RaggedTensor, RecordsBase)) or not is_union(value):
        return None
    from extensor._types.union.conversion import is_null_spec

    specs = {name: tf.type_spec_from_value(value.variants[name]) for name in value.names}
    return next((name for name, spec in specs.items() if is_null_spec(spec)), None)


def under_masks(value_or_spec: FieldValue | tf.TypeSpec) -> FieldValue:
    """Returns the values under all masks of a value, or their spec; others as they are."""
    while is_masked(value_or_spec):
        value_or_spec = value_or_spec.values
    return value_or_spec


def records_in(value: FieldValue) -> Any:
    """Returns the records of a field's value, without the masks around them; None for others."""
    # Of most values this is known without the module of masks.
    is_bare = isinstance(value, (RecordsBase, tf.Tensor, tf.RaggedTensor))
    inner = value if is_bare else under_masks(value)
    return inner if isinstance(inner, RecordsBase) else None


def map_records(value: FieldValue, change: Callable[[Any], Any]) -> FieldValue:
    """Returns a value with a function applied to the records in it; the masks stay."""
    if isinstance(value, RecordsBase):
        return change(value)
    return type(value)._of_parts(map_records(value.values, change), value.mask)


def field_of(value: FieldValue, name: str, at: Path) -> FieldValue:
    """Returns a field of records, masked or not; a field of masked records has their mask too.

    Args:
        value: The value of a field.
        name: The name of a field in it.
        at: The path from the root to that field, for errors.

    Raises:
        FieldError: If the value is not records (also a KeyError).
    """
    if isinstance(value, RecordsBase):
        return value._field(name, at)
    return field_at(value, (name,), at)


def field_at(value: FieldValue, names: tuple[str, ...], at: Path) -> FieldValue:
    """Returns `field_of` for each name in turn, in time that is linear in their number.

    Args:
        value: The value of a field.
        names: The last names of a path, from the value on.
        at: The whole path, from the root.

    Raises:
        FieldError: If there is no such field (also a KeyError).
    """
    if isinstance(value, RecordsBase):
        return value._field_at(names, at)
    if not is_masked(value):
        raise no_such_field(Path(*at.names[: len(at.names) - len(names) + 1]), ())
    return type(value).combined(field_at(value.values, names, at), value.mask)


def uncut_field(value: FieldValue, names: tuple[str, ...], at: Path) -> FieldValue:
    """Returns the field at a path in records before they were cut into rows, so any type works.

    Args:
        value: The records, masked or not; the field has none of their masks.
        names: The names of the path.
        at: The path of the records.

    Raises:
        FieldError: If there is no such field (also a KeyError).
    """
    for name in names:
        at = at / name
        records = records_in(value)
        if records is None:
            raise no_such_field(at, ())
        value = records._uncut_field(name, at)
    return value


def as_numpy(value: FieldValue) -> Any:
    """Returns a field's value in NumPy; see `StructuredTensor.numpy`."""
    is_composite = isinstance(value, _tf.CompositeTensor)
    return _masked_as_numpy(value) if is_composite and is_masked(value) else _tf.as_numpy(value)


def _masked_as_numpy(value: FieldValue) -> dict[str, Any] | list[Any] | np.ndarray[Any, Any]:
    records = records_in(value)
    if records is not None:
        return {n: as_numpy(field_of(value, n, Path(n))) for n in records.field_names()}
    if isinstance(value.values, tf.Tensor):
        return value.to_numpy()
    rows = uncut_rows(value)
    lists: list[Any]
    if is_union(under_masks(value)):  # which has an array for each variant
        lists = value.to_py()
        if value.mask.shape.rank == 0:
            return lists
    elif rows is not None:  # a mask of the items of lists
        flat, splits = as_numpy(rows[0]), rows[1].numpy().tolist()
        lists = [flat[a:b] for a, b in itertools.pairwise(splits)]
    elif value.mask.shape.rank == 1:
        pairs = zip(as_numpy(value.values), value.mask.numpy(), strict=True)
        lists = [row if valid else None for row, valid in pairs]
    else:
        return value.to_py()
    array = np.empty(len(lists), object)
    array[:] = lists
    return array
