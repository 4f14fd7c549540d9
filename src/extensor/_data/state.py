"""The position of a dataset, as data that JSON can represent, and the number of its batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from extensor._data.feed import Feed
from extensor._data.stream import feeds
from extensor.errors import StructureError


def state(dataset: tf.data.Dataset, step: int) -> dict[str, Any]:
    """Returns where a dataset is after some batches, to begin there in another process.

    An iterator cannot say this: it reads ahead of what is used. `tf.train.Checkpoint` saves an
    iterator with what it has read ahead.

    Args:
        dataset: A dataset of `xt.data`, or one that was made of it by `map` and other methods that
            keep its batches.
        step: The number of batches that were used since the pass began.

    Returns:
        A dict of less than 1 KB, which JSON can represent, for `state=`.

    Raises:
        StructureError: If the dataset is not from `xt.data`, or its source gives records in any
            order (also a ValueError).

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
    return plan.state(step, plan.begun)


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


def feed_of(dataset: Any) -> Feed:
    """Returns the feed of a dataset, or of the one that it was made of.

    Raises:
        StructureError: If there is not exactly one (also a ValueError).
    """
    found = {id(feed): feed for feed in _feeds(dataset)}
    if len(found) != 1:
        raise StructureError(
            path="dataset",
            expected="a dataset of xt.data, or one that was made of it",
            received=f"{len(found)} of them in {dataset!r}",
            mend="Give the dataset that xt.data.parquet returned.",
        )
    return next(iter(found.values()))


def _feeds(value: Any) -> Iterable[Feed]:
    if isinstance(value, (list, tuple)):
        parts: Iterable[Any] = value
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, tf.data.Dataset):
        if value in feeds:
            return [feeds[value]]
        parts = vars(value).values()
    else:
        return []
    return [feed for part in parts for feed in _feeds(part)]
