"""The position of a dataset, as data that JSON can represent, and the number of its batches."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from extensor._data.feed import Feed
from extensor._data.position import Position, Resumable
from extensor._data.stream import feeds, feeds_in, passes_of
from extensor._tf import method_of_other_elements
from extensor.errors import DTypeError, StructureError


def state(dataset: tf.data.Dataset | tf.data.Iterator, step: int) -> dict[str, Any]:
    """Returns where a pass over a dataset is after some batches, to begin there in another process.

    An iterator reads ahead of what is used, so it cannot say how many batches were used.
    `tf.train.Checkpoint` saves an iterator with what it has read ahead.

    Args:
        dataset: The iterator of the pass; or its dataset, if no other pass is unfinished. The
            dataset is one of `xt.data`, such as a mixture, or was made of it by `map` and other
            methods that keep its batches.
        step: The number of batches that were used since the pass began.

    Returns:
        A dict of less than 1 KB, which JSON can represent, for `state=`. That of a mixture has so
        much for each source.

    Raises:
        StructureError: If the dataset is not from `xt.data`, a method that does not keep its
            batches made it, such as `filter`, or its source gives records in any order; if several
            passes over it are not finished; if an iterator has not begun, or has ended; or if
            `step` is negative (also a ValueError).
        DTypeError: If `step` is no integer (also a TypeError).

    >>> import extensor as xt
    >>> path = "numbers.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([6], {"x": [1, 2, 3, 4, 5, 6]}), path)
    >>> dataset = xt.data.parquet(path, 2, shuffle=xt.data.Shuffle(seed=1))
    >>> used = xt.data.state(dataset, 1)
    >>> rest = xt.data.parquet(path, 2, shuffle=xt.data.Shuffle(seed=1), state=used)
    >>> [batch.to_py() for batch in rest] == [batch.to_py() for batch in dataset][1:]
    True
    """
    plan = feed_of(dataset).plan
    step = _checked_step(step)
    expect_its_batches(dataset)
    _expect_no_repetition(dataset, plan)
    if isinstance(dataset, tf.data.Iterator):
        return plan.state(step, _begun(dataset, plan.position, step))
    return plan.state(step, plan.position.last)


def _checked_step(step: Any) -> int:
    """Returns a number of batches as an int, also of NumPy and TensorFlow."""
    fix = "Give the number of batches that were used since the pass began."
    try:
        number = operator.index(step)
    except TypeError as error:
        raise DTypeError("xt.data.state: step", "an integer", repr(step)[:60], fix) from error
    if number < 0:
        raise StructureError("xt.data.state: step", "0 or more", str(number), fix)
    return number


def steps_per_shard(dataset: tf.data.Dataset) -> int:
    """Returns the number of batches that every shard of an epoch has at least.

    Shards have whole row groups, so one may have more records than another. For synchronous
    training, where all workers take equally many steps, take so many batches.

    Args:
        dataset: A shard of a dataset of `xt.data`, or one that was made of it by `map` and other
            methods that keep its batches.

    Raises:
        StructureError: If the dataset is not from `xt.data`, or its source has no known number
            of records (also a ValueError).

    >>> import extensor as xt
    >>> path = "numbers.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([6], {"x": [1, 2, 3, 4, 5, 6]}), path)
    >>> shard = xt.data.parquet([path] * 3, 2, shard=(0, 2))
    >>> len(shard), xt.data.steps_per_shard(shard)
    (6, 3)
    """
    return feed_of(dataset).plan.steps_per_shard


def feed_of(dataset: object, where: str = "dataset") -> Feed:
    """Returns the feed of a dataset, or of the one that it was made of.

    Args:
        dataset: A dataset or an iterator.
        where: The name of the dataset in errors.

    Raises:
        StructureError: If there is not exactly one (also a ValueError).
    """
    found = {id(feed): feed for feed in feeds_in(dataset)}
    if len(found) != 1:
        expected = "a dataset of xt.data, or one that was made of it"
        fix = "Give the dataset that xt.data.parquet returned."
        raise StructureError(where, expected, f"{len(found)} of them in {dataset!r}", fix)
    return next(iter(found.values()))


def expect_its_batches(dataset: tf.data.Dataset | tf.data.Iterator) -> None:
    """Raises if a dataset, or that of an iterator, has other batches than the one of `xt.data`.

    Raises:
        StructureError: If a method made it, or its source, that does not keep the batches (also a
            ValueError).
    """
    method = next(methods_of_other_batches(dataset), feed_of(dataset).plan.other_order)
    if method is not None:
        expected = "a dataset with the batches that are read, to know which were used"
        fix = "Use filters=, shuffle= and batch_size= of the function of xt.data, and map."
        raise StructureError("dataset", expected, f"one made by {method}", fix)


def methods_of_other_batches(value: object) -> Iterator[str]:
    """Yields the methods that do not keep batches, from a dataset or iterator to that of `xt.data`.

    Args:
        value: The dataset or iterator. Anything else has none.
    """
    if isinstance(value, tf.data.Dataset):
        if value in feeds:
            return
        if method := method_of_other_elements(value):
            yield method
    elif not isinstance(value, tf.data.Iterator):
        return
    for part in vars(value).values():
        yield from methods_of_other_batches(part)


def _expect_no_repetition(dataset: tf.data.Dataset | tf.data.Iterator, plan: Resumable) -> None:
    """Raises if one iteration has several passes, of which nobody knows the current one."""
    if plan.is_endless:
        return
    parts = vars(dataset).values() if isinstance(dataset, tf.data.Iterator) else [dataset]
    counts = [int(part.cardinality()) for part in parts if isinstance(part, tf.data.Dataset)]
    most = max(counts)
    if plan.steps is not None and not plan.by_service:
        most = plan.steps * plan.epochs
    if tf.data.INFINITE_CARDINALITY in counts or max(counts) > most:
        expected = "a dataset that is not repeated"
        fix = "Give epochs= to the function of xt.data, in place of repeat()."
        raise StructureError("dataset", expected, "more batches than a pass has", fix)


def _begun(iterator: tf.data.Iterator, position: Position, step: int) -> tuple[int, int]:
    """Returns where the pass of an iterator began."""
    found = [each for each in passes_of(iterator) if each.position is position]
    if len(found) == 1:
        return found[0].place
    # What reads ahead forgets a pass that it has read to its end.
    if not found and step and not position.unfinished:
        return position.last
    expected = "an iterator that is within one pass"
    fix = "Give it after its first batch, and before what it reads ahead has ended."
    raise StructureError("iterator", expected, f"one with {len(found)} passes", fix)
