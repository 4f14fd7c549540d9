"""Lists made of lists: grouped, cut, combined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._authoring.comparison import equal_splits, with_checks
from extensor._authoring.rows import row_splits_of
from extensor._path import Path, PathLike
from extensor._protocol.row_splits import check_row_splits
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.field import expect_mapping
from extensor._struct.index import gather
from extensor._struct.masked import field_at, is_masked, records_in
from extensor._struct.paths.order import groups, keys_without_nulls, lists_and_keys
from extensor._struct.paths.place import Names, list_at, names_of, new_field, put, type_at, value_at
from extensor._struct.paths.rows import Lists, lists_of, null_lists_to_empty, row_numbers, with_rows
from extensor._struct.paths.types import put_items, with_types
from extensor._typing import TensorLike
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor
    from extensor._types.masked.value import MaskedTensor


def group_by(
    st: StructuredTensor, path: PathLike, by: PathLike, items: str = "items"
) -> StructuredTensor:
    """Returns the records with the records of each list grouped by a key.

    Args:
        st: A StructuredTensor.
        path: The path of a list of records; `()` groups the records themselves.
        by: The path of a field of the listed records: the key, a number, bool or string.
        items: The name of the field for the records of a group.

    Returns:
        The records with, at the path, a list of records with two fields: the key, under its own
        name, and `items`, a list of the records that have this key. Groups are in the order of
        their first record.

    Raises:
        FieldError: If a path does not exist, or `items` is the name of the key (also a KeyError).
        StructureError: If there is no list at the path (also a ValueError).
        DTypeError: If the keys cannot be compared (also a TypeError).
        NullError: If a key is null (also a ValueError); in a tf.function, an InvalidArgumentError.
            Keys that may be null, and are not, are keys like others.

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"kind": ["mix", "bake", "mix"],
    ...                                        "minutes": [5, 20, 8]})
    >>> xt.struct.group_by(steps, (), by="kind", items="steps").with_only("kind",
    ...                                                                    "steps.minutes").to_py()
    [{'kind': b'mix', 'steps': [{'minutes': 5}, {'minutes': 8}]},
     {'kind': b'bake', 'steps': [{'minutes': 20}]}]
    """
    names, rows, keys = lists_and_keys(st, path, by, None)
    key = names_of(records_in(rows.items), by)
    keys = keys_without_nulls(keys, Path(*names, *key))
    first, group, outer = groups(keys, rows)
    order = tf.argsort(group, stable=True)
    count = tf.size(first)
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(group), group, count)
    inner = row_splits_of(tf.cast(lengths, rows.splits.dtype))
    keys = gather(field_at(rows.items, key, Path(*key)), first)
    grouped = DenseStructuredTensor([None], {key[-1]: keys})
    new_field(grouped, (items,))
    lists = with_rows(gather(rows.items, order), inner)
    grouped = grouped.with_updates({(items,): lists}, validate=False)
    result = put(st, names, rows.lists(grouped, outer))
    return with_types(result, {(*names, key[-1]): type_at(records_in(rows.items), key)})


def unflatten(
    st: StructuredTensor,
    path: PathLike,
    counts: PathLike | TensorLike | tf.RaggedTensor | MaskedTensor,
) -> StructuredTensor:
    """Returns the records with each list cut into lists of the given lengths.

    Args:
        st: A StructuredTensor.
        path: The path of a list; `()` cuts the records themselves.
        counts: The lengths, one list of integers for each list; or the path of such a field. In
            each list, their sum is the number of items.

    Raises:
        FieldError: If a path does not exist (also a KeyError).
        StructureError: If the lengths do not fit the lists (also a ValueError).
        DTypeError: If the lengths are no integers (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "dry", "quick"], ["oats"]])
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.unflatten(recipes, "tags", tf.ragged.constant([[2, 1], [1]]))["tags"]
    <tf.RaggedTensor [[[b'sweet', b'dry'], [b'quick']], [[b'oats']]]>
    """
    names, value, depth = list_at(st, path)
    lengths: Any = counts
    if isinstance(counts, (str, Path)):
        lengths = value_at(st, names_of(st, counts))
    elif not hasattr(counts, "shape"):
        lengths = tf.ragged.constant(counts) if depth else tf.convert_to_tensor(counts)
    rows = lists_of(value, depth)
    if tf.TensorShape(lengths.shape).rank != depth + 1:
        expected = f"one list of lengths for each list, of rank {depth + 1}"
        fix = "Give integers of the dimensions of the list."
        raise StructureError("counts", expected, f"shape {lengths.shape}", fix)
    cuts = lists_of(lengths, depth)
    if not cuts.items.dtype.is_integer and cuts.items.shape[0] != 0:
        fix = "Count the items of each list, or cast the lengths with tf.cast."
        raise DTypeError("counts", "integers", cuts.items.dtype.name, fix)
    items = cuts.items.unmasked("counts") if is_masked(cuts.items) else cuts.items
    inner = row_splits_of(tf.cast(items, rows.splits.dtype))
    outer = tf.cast(cuts.splits, inner.dtype)
    lists = with_rows(rows.items, _checked_cuts(inner, outer, rows, Path(*names)))
    return put_items(st, names, rows.lists(lists, outer))


def _checked_cuts(inner: tf.Tensor, outer: tf.Tensor, rows: Lists, at: Path) -> tf.Tensor:
    """Returns the row splits of new lists, whose lengths add up to those of the lists.

    Raises:
        StructureError: If they do not. Running a graph raises an InvalidArgumentError instead.
    """
    fix = "Give one list of lengths for each list."
    where = at or "the records"
    count = StructureError(where, f"lengths for {LATER} lists", f"lengths for {LATER}", fix)
    expected = "lengths that add up to the number of items of each list"
    length = StructureError(where, expected, f"other lengths for list {LATER}", fix)
    ends = tf.gather(inner, outer)
    counts = [tf.size(splits) - 1 for splits in (rows.splits, outer)]
    checks = equal_splits(
        ends,
        rows.splits,
        lambda: assert_op(tf.constant(False), count, counts),
        (length, lambda row, *_: [row]),
    )
    return with_checks([*checks, *check_row_splits(inner, rows.splits[-1], "counts")], inner)


def cartesian(
    st: StructuredTensor, sources: Mapping[str, PathLike], target: PathLike
) -> StructuredTensor:
    """Returns the records with a list of all combinations of the items of lists.

    Args:
        st: A StructuredTensor.
        sources: The paths of lists, all in the same records, by the name of the item in the
            combination.
        target: The path of the new list of records, beside the lists. The last source varies
            fastest. A null list counts as empty.

    Raises:
        FieldError: If a path does not exist, or the target exists (also a KeyError).
        StructureError: If the lists are not in the records of the target (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([1], {"tags": tf.ragged.constant([["sweet", "dry"]]),
    ...                                          "sizes": tf.ragged.constant([[1, 2]])})
    >>> pairs = xt.struct.cartesian(recipes, {"tag": "tags", "size": "sizes"}, "pairs")
    >>> pairs["pairs.tag"], pairs["pairs.size"]
    (<tf.RaggedTensor [[b'sweet', b'sweet', b'dry', b'dry']]>, <tf.RaggedTensor [[1, 2, 1, 2]]>)
    """
    expect_mapping(sources, "sources", "from names to paths", '{"tag": "tags", "size": "sizes"}')
    new = new_field(st, target)
    lists: dict[str, Lists] = {}
    types: dict[Names, Any] = {}
    for name, path in sources.items():
        names, value, depth = list_at(st, path)
        if names[:-1] != new[:-1] or not names:
            expected, received = f"a list in the records of {Path(*new)}", "a list in other records"
            fix = "Bring the lists together first: xt.struct.promote_and_broadcast."
            raise StructureError(Path(*names) or "the records", expected, received, fix)
        lists[name] = lists_of(null_lists_to_empty(value, depth), depth)
        types[(*new, name)] = type_at(st, names)
    if not lists:
        expected = "at least one list"
        raise StructureError("sources", expected, "none", 'Write {"tag": "tags", "size": "sizes"}.')
    dtype = tf.int32 if {r.splits.dtype for r in lists.values()} == {tf.int32} else tf.int64
    lengths = {name: tf.cast(rows.lengths, dtype) for name, rows in lists.items()}
    total: Any = None
    for length in lengths.values():
        total = length if total is None else total * length
    splits = row_splits_of(total)
    numbers = row_numbers(splits)
    rest = tf.range(splits[-1], dtype=dtype) - tf.gather(splits, numbers)
    fields: dict[str, Any] = {}
    for name, rows in reversed(lists.items()):
        length = tf.gather(lengths[name], numbers)
        starts = tf.gather(tf.cast(rows.splits, dtype), numbers)
        fields[name] = gather(rows.items, starts + rest % length)
        rest //= length
    fields = {name: fields[name] for name in lists}
    records = DenseStructuredTensor([None], fields, validate=False)
    return with_types(put(st, new, next(iter(lists.values())).lists(records, splits)), types)


def combinations(
    st: StructuredTensor,
    source: PathLike,
    target: PathLike,
    n: int = 2,
    fields: list[str] | None = None,
) -> StructuredTensor:
    """Returns the records with a list of all combinations of `n` different items of a list.

    Args:
        st: A StructuredTensor.
        source: The path of a list.
        target: The path of the new list of records. The combinations are in the order of the
            positions of their items.
        n: The number of items in a combination.
        fields: The names of the items in a combination. Default: "0", "1", and so on.

    Raises:
        FieldError: If a path does not exist, or the target exists (also a KeyError).
        StructureError: If there is no list at the path, or as many fields as `n` (also a
            ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([1], {"tags": tf.ragged.constant([["a", "b", "c"]])})
    >>> pairs = xt.struct.combinations(recipes, "tags", "pairs")
    >>> pairs["pairs.0"], pairs["pairs.1"]
    (<tf.RaggedTensor [[b'a', b'a', b'b']]>, <tf.RaggedTensor [[b'b', b'c', b'c']]>)
    """
    new = new_field(st, target)
    names, value, depth = list_at(st, source)
    labels = [str(i) for i in range(n)] if fields is None else list(fields)
    if n < 1 or len(set(labels)) != n or not names or names[:-1] != new[:-1]:
        expected = f"1 or more items, one name for each, beside {Path(*names)}"
        fix = "Give n names, and a target in the records that hold the list."
        raise StructureError(Path(*new), expected, f"n={n}, names {labels}", fix)
    rows = lists_of(value, depth)
    splits = rows.splits
    chosen = [tf.range(splits[-1], dtype=splits.dtype)]
    numbers = rows.numbers
    lengths = rows.lengths
    for _ in range(n - 1):
        last = chosen[-1]
        after = tf.gather(splits, numbers + 1) - last - 1  # the items after the last chosen one
        inner = row_splits_of(after)
        combination = row_numbers(inner)
        step = tf.range(inner[-1], dtype=inner.dtype) - tf.gather(inner, combination)
        chosen = [tf.gather(c, combination) for c in chosen]
        chosen.append(chosen[-1] + 1 + step)
        numbers = tf.gather(numbers, combination)
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(numbers), numbers, tf.size(splits) - 1)
    items = {name: gather(rows.items, c) for name, c in zip(labels, chosen, strict=True)}
    records = DenseStructuredTensor([None], items, validate=False)
    kept = type_at(st, names)
    result = put(st, new, rows.lists(records, row_splits_of(lengths)))
    return with_types(result, {(*new, label): kept for label in labels})
