"""Fields copied to records above or below them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._path import PathLike
from extensor._struct.field import expect_mapping
from extensor._struct.masked import map_records, records_in
from extensor._struct.paths.place import (
    Names,
    fields_at,
    names_of,
    new_field,
    not_in_line,
    put,
    type_at,
    value_at,
)
from extensor._struct.paths.rows import flat_lists, list_rank, repeat_like, size_of
from extensor._struct.paths.types import put_items, with_types
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue
from extensor.errors import FieldError


def promote(st: StructuredTensor, source: PathLike, target: PathLike) -> StructuredTensor:
    """Returns the records with a field copied to records above it, as one flat list a record.

    All lists between the two, and the ragged lists of the field itself, become one list. The
    values are shared; the row splits are composed by one gather for each list but the first. Fixed
    inner dimensions, such as those of an embedding, stay.

    Args:
        st: A StructuredTensor.
        source: The path of a field, of any type.
        target: The full path of the new field. Its records hold, at any depth, those of `source`.

    Raises:
        FieldError: If a path does not exist, or the target exists (also a KeyError).
        PathError: If the target does not lie above the source (also a ValueError).

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor(
    ...     [2], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> xt.struct.promote(recipes, "steps.minutes", "minutes")["minutes"]
    <tf.RaggedTensor [[5, 20], [8]]>
    """
    names, parent = _source(st, source)
    new = new_field(st, target)
    if names[: len(new) - 1] != new[:-1] or len(new) > len(names):
        raise not_in_line(names, new, "above", "broadcast")
    return put_items(st, new, _promote(st, names, parent, new[:-1]), names)


def _promote(st: StructuredTensor, names: Names, parent: FieldValue, above: Names) -> FieldValue:
    rank, outside = records_in(parent).rank, fields_at(st, above).rank
    if rank == outside:
        return value_at(st, names)
    if not isinstance(parent, StructuredTensor):  # masked records
        value = value_at(st, names)
        return flat_lists(value, outside, list_rank(value, outside + 1) - outside)
    # The lists are merged around the records, because cutting a tensor at each level is slow.
    flat = flat_lists(parent._select(names[-1:]), outside, rank - outside)
    value = value_at(flat, names[-1:])
    return flat_lists(value, outside, list_rank(value, outside + 1) - outside)


def broadcast(st: StructuredTensor, source: PathLike, target: PathLike) -> StructuredTensor:
    """Returns the records with a field copied to all records below it.

    Each value is repeated for all records below it, by one op.

    Args:
        st: A StructuredTensor.
        source: The path of a field, of any type; `()` for the records themselves.
        target: The full path of the new field. The records that hold `source` hold, at any depth,
            those of the target.

    Raises:
        FieldError: If a path does not exist, or the target exists (also a KeyError).
        PathError: If the target does not lie below the source (also a ValueError).

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor([2], {
    ...     "title": ["Snickerdoodles", "Flapjacks"],
    ...     "steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> xt.struct.broadcast(recipes, "title", "steps.title")["steps.title"]
    <tf.RaggedTensor [[b'Snickerdoodles', b'Snickerdoodles'], [b'Flapjacks']]>
    """
    names = names_of(st, source)
    new = new_field(st, target)
    if not names:
        return put(st, new, _broadcast(st, st, st.rank, new[:-1]))
    names, parent = _source(st, source)
    if new[: len(names) - 1] != names[:-1]:
        raise not_in_line(names, new, "below", "promote")
    value = _broadcast(st, value_at(st, names), records_in(parent).rank, new[:-1])
    return put_items(st, new, value, names)


def _broadcast(st: StructuredTensor, value: FieldValue, depth: int, below: Names) -> FieldValue:
    like = fields_at(st, below)
    return repeat_like(value, like, depth, like.rank - depth)


def _source(st: StructuredTensor, path: PathLike) -> tuple[Names, Any]:
    """Returns the names of the path of a field that exists, and the records that hold it."""
    names = names_of(st, path)
    if not names:
        fix = "Name a field. xt.struct.broadcast copies a field to records below."
        raise FieldError("source", "the path of a field", "the path of the records themselves", fix)
    parent = value_at(st, names[:-1])
    records = records_in(parent)
    if records is None or names[-1] not in records._names():
        value_at(st, names)  # raises the error that lists the fields
    return names, parent


def promote_and_broadcast(
    st: StructuredTensor, sources: Mapping[str, PathLike], parent: PathLike = ()
) -> StructuredTensor:
    """Returns the records with fields copied from anywhere to the records at one path.

    Each field is promoted to the nearest records that hold both, and then broadcast.

    Args:
        st: A StructuredTensor.
        sources: The path of each field by its new name; `()` for the records themselves.
        parent: The path of the records that get the fields.

    Raises:
        FieldError: If a path does not exist, or a new field exists (also a KeyError).

    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([1], {
    ...     "author": xt.DenseStructuredTensor([1], {"name": ["Ann"]}),
    ...     "steps": xt.DenseStructuredTensor([1, 2], {"minutes": [[5, 20]]})})
    >>> xt.struct.promote_and_broadcast(recipes, {"by": "author.name"}, "steps")["steps.by"]
    <tf.Tensor: shape=(1, 2), dtype=string, numpy=array([[b'Ann', b'Ann']], dtype=object)>
    """
    expect_mapping(sources, "sources", "from names to paths", '{"by": "author.name"}')
    below = names_of(st, parent)
    updates: dict[Names, Any] = {}
    types: dict[Names, Any] = {}
    for name, path in sources.items():
        new = new_field(st, (*below, name))
        if path == ():
            updates[new] = _broadcast(st, st, st.rank, below)
            continue
        names, parent = _source(st, path)
        common = 0
        while common < min(len(names) - 1, len(below)) and names[common] == below[common]:
            common += 1
        value = _promote(st, names, parent, below[:common])
        depth = fields_at(st, below[:common]).rank
        updates[new] = _broadcast(st, value, depth, below)
        types[new] = type_at(st, names)
    return with_types(st.with_updates(updates, validate=False), types)


def reroot(st: StructuredTensor, path: PathLike, index: str | None = None) -> StructuredTensor:
    """Returns the records at a path as a vector of records.

    Args:
        st: A StructuredTensor.
        path: The path of records, or of lists of records; `()` merges the dimensions of the root.
        index: The name of a new field of the number of the record of the root (in the first
            dimension) that each record comes from.

    Raises:
        FieldError: If there are no records at the path, or `index` exists (also a KeyError).

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor(
    ...     [2], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> xt.struct.reroot(recipes, "steps", index="recipe").to_py()
    [{'minutes': 5, 'recipe': 0}, {'minutes': 20, 'recipe': 0}, {'minutes': 8, 'recipe': 1}]
    """
    names = names_of(st, path)
    value, records = value_at(st, names), fields_at(st, names)
    if index is not None:
        new = new_field(records, (index,))
        origin = _origin(st, records)
        value = map_records(value, lambda old: put(old, new, origin))
    return value if records.rank == 0 else flat_lists(value, 0, records.rank)


def _origin(st: StructuredTensor, records: StructuredTensor) -> tf.Tensor:
    """Returns the number of the outermost record for each of the records."""
    if st.rank == 0:
        return repeat_like(tf.zeros([], tf.int64), records, 0, records.rank)
    numbers = tf.range(tf.cast(size_of(records), tf.int64))
    return repeat_like(numbers, records, 1, records.rank - 1)
