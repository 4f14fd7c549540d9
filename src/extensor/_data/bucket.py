"""bucket: batches of a few static shapes, of records whose lists have similar lengths."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import tensorflow as tf

from extensor._choice import expect_one_of
from extensor._count_text import count_text
from extensor._data.position import positive
from extensor._data.regrouped import regroup
from extensor._data.static_batches import (
    StaticBatches,
    StaticShape,
    expect_sizes,
    text_of_sizes,
)
from extensor._path import Path, PathLike
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._struct.paths.place import Names
from extensor._struct.paths.to_static import Sizes, items_of_rows
from extensor._tf import map_elements
from extensor.errors import DTypeError, StructureError

_NAME = "xt.data.bucket"


def bucket(
    dataset: tf.data.Dataset,
    by: PathLike | list[PathLike],
    boundaries: Sequence[int],
    batch_sizes: int | Sequence[int],
    padded: Sizes | Sequence[Sizes] | None = None,
    overflow: Literal["error", "cut", "drop"] = "error",
    drop_remainder: bool = False,
    state: dict[str, Any] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset of batches of a few static shapes: each has records of similar lengths.

    A record belongs to the first bucket whose boundary is not less than the length of its list.
    When a bucket has a batch of records, `to_static` gives them its capacities. So XLA compiles a
    model at most once for each bucket, and short lists are padded little.

    Args:
        dataset: Batches of records, as functions of `xt.data` return them, or single records; alone
            or in a tuple or dict with labels. The sizes of its batches do not matter.
        by: The path of a list in each record, or a list of several paths: the longest list counts.
        boundaries: The size of these lists in each bucket, in ascending order.
        batch_sizes: The number of records in a batch of each bucket, or one for all.
        padded: The sizes of the other lists by path, as for `to_static`; or such a mapping for each
            bucket. A list of the records that has none is an error.
        overflow: "error" if a list must not have more items, "cut" to leave out those at its end,
            or "drop" to leave out the records that are in no bucket.
        drop_remainder: Whether to drop the records that fill no batch at the end. Otherwise, the
            free rows of the last batches are null, in labels too, so that losses of `xt.keras`
            leave them out; the third of three values, the weights of Keras, is 0 there.
        state: Where the first pass begins, from `xt.data.state` of this dataset. The batches before
            are made and dropped. Make `dataset` without a state.

    Returns:
        A dataset of unknown cardinality, in whose element spec the sizes are open that differ
        between buckets.

    Raises:
        FieldError: If a path does not exist (also a KeyError).
        StructureError: If there is no list at a path, a list has no capacity, the boundaries or
            batch sizes are not positive, ascending and as many, or `state` is of another dataset
            (also a ValueError). During iteration: an InvalidArgumentError if a record is in no
            bucket, or another list does not fit.
        DTypeError: If the dataset has no records, or `overflow` is not one of these (also a
            TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> lists = tf.ragged.constant([[1], [2, 3, 4], [5], [6, 7], [8]])
    >>> records = xt.DenseStructuredTensor([5], {"items": lists})
    >>> dataset = tf.data.Dataset.from_tensor_slices(records)
    >>> for batch in xt.data.bucket(dataset, "items", boundaries=[1, 3], batch_sizes=[3, 2]):
    ...     print(batch["items"].to_py())
    [[2, 3, 4], [6, 7, None]]
    [[1], [5], [8]]
    """
    fix = 'Give "drop" to leave out the records that are in no bucket.'
    expect_one_of(("error", "cut", "drop"), overflow, f"{_NAME}: overflow", fix)
    ends = _checked_boundaries(boundaries)
    sizes = _per_bucket(batch_sizes, ends, "batch_sizes")
    rule = "cut" if overflow == "cut" else "error"
    made = StaticBatches(_NAME, dataset, rule, not drop_remainder)
    names = [made.names_of(path) for path in (by if isinstance(by, list) else [by])]
    if not names:
        raise StructureError(f"{_NAME}: by", "the path of a list", "none", 'Write by="items".')
    others = _per_bucket({} if padded is None else padded, ends, "padded")
    shapes = [
        StaticShape(rows, {**other, **{own: end for own in names}}, {})
        for rows, other, end in zip(sizes, others, ends, strict=True)
    ]

    @tf.autograph.experimental.do_not_convert
    def with_numbers(element: Any) -> Any:
        return _numbers(made.records_in(element), names, ends, overflow), element

    @tf.autograph.experimental.do_not_convert
    def is_kept(number: tf.Tensor, *_: Any) -> tf.Tensor:
        return number < len(ends)

    @tf.autograph.experimental.do_not_convert
    def size(number: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.constant(sizes, tf.int64), number)

    @tf.autograph.experimental.do_not_convert
    def batch(number: tf.Tensor, rows: Any) -> tf.data.Dataset:
        @tf.autograph.experimental.do_not_convert
        def static(_: tf.Tensor, element: Any) -> Any:
            return made.chosen(element, shapes, number)

        return rows.batch(size(number), drop_remainder=drop_remainder).map(static)

    rows = map_elements(made.batches, with_numbers).unbatch()
    if overflow == "drop":
        rows = rows.filter(is_kept)
    grouped = rows.group_by_window(lambda number, _: number, batch, window_size_func=size)
    texts = [text_of_sizes(each) for each in others]
    arguments = [names, ends, sizes, texts, overflow, drop_remainder]
    return regroup(_NAME, dataset, grouped, arguments, state)


def _checked_boundaries(boundaries: Any) -> list[int]:
    fix = "Give the sizes of the lists in ascending order, such as [8, 32, 128]."
    if not isinstance(boundaries, Sequence) or isinstance(boundaries, str):
        received = type(boundaries).__name__
        raise DTypeError(f"{_NAME}: boundaries", "a list of integers", received, fix)
    found = [positive(each, f"{_NAME}: boundaries", fix) for each in boundaries]  # pyright: ignore[reportUnknownVariableType]
    if not found or any(a >= b for a, b in itertools.pairwise(found)):
        expected = "one boundary at least, in ascending order"
        raise StructureError(f"{_NAME}: boundaries", expected, str(found)[:60], fix)
    return found


def _per_bucket(given: Any, boundaries: list[int], name: str) -> list[Any]:
    """Returns an argument for each bucket, from one for all or one for each."""
    where, count = f"{_NAME}: {name}", len(boundaries)
    is_several = isinstance(given, Sequence) and not isinstance(given, str)
    several = list(given) if is_several else [given] * count
    if len(several) != count:
        expected = f"one for each of the {count} boundaries"
        fix = "The last boundary is the size of the longest lists, not the begin of another bucket."
        raise StructureError(where, expected, count_text(len(several), "of them"), fix)
    if name == "padded":
        for sizes in several:
            expect_sizes(sizes, where)
        return several
    return [positive(each, where, "Give the number of records in a batch.") for each in several]


def _numbers(
    records: Any, by: Sequence[Names], boundaries: Sequence[int], overflow: str
) -> tf.Tensor:
    """Returns the number of the bucket of each record; that of no bucket is their count."""
    counts = items_of_rows(records)
    lengths: Any = None
    for names in by:
        inside = [str(Path(*names[:size])) for size in range(1, len(names))]
        inside = [path for path in inside if Path.of(path).names in counts]
        own = counts.get(names, [])
        if inside or len(own) != 1:
            received = f"lists in {inside[0]}" if inside else "no list"
            received = "lists of lists" if len(own) > 1 else received
            fix = "Give the path of a list that each record has once, and padded= for other lists."
            raise StructureError(Path(*names) or "()", "one list for each record", received, fix)
        lengths = own[0] if lengths is None else tf.maximum(lengths, own[0])
    last = boundaries[-1]
    if overflow == "cut":
        lengths = tf.minimum(lengths, last)
    if overflow == "error":
        longest = tf.reduce_max(tf.concat([[0], lengths], 0))
        expected = f"lists of at most {last} items, the last boundary"
        fix = 'Give a larger boundary, or overflow="cut" or "drop".'
        where = ", ".join(str(Path(*names)) for names in by)
        error = StructureError(where, expected, f"one of {LATER}", fix)
        with tf.control_dependencies(assert_op(longest <= last, error, [longest])):
            lengths = tf.identity(lengths)
    ends = tf.constant(boundaries, tf.int64)
    return tf.searchsorted(ends, lengths, side="left", out_type=tf.int64)
