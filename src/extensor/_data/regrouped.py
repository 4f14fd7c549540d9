"""Passes over datasets whose batches are made of the records of another dataset, and their states.

A state is where the pass of the other dataset began, and the number of batches since then: those
before it are made again, and dropped.
"""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any

import tensorflow as tf

from extensor._data.ahead import ReadAhead
from extensor._data.earlier_runs import Place
from extensor._data.feed import Feed
from extensor._data.position import Resumable
from extensor._data.state import feed_of, methods_of_other_batches
from extensor._data.state_check import checked_state
from extensor._data.stream import feeds, feeds_in, stream
from extensor.errors import StructureError


def regroup(
    name: str, source: tf.data.Dataset, grouped: tf.data.Dataset, arguments: object, state: object
) -> tf.data.Dataset:
    """Returns a dataset of batches that were made of those of another dataset.

    Args:
        name: The function, for errors.
        source: The other dataset.
        grouped: The batches of a whole pass.
        arguments: What differs between batches of one source, as data that JSON can represent.
        state: The state at which the first pass begins, or None.

    Raises:
        StructureError, DTypeError, FormatError: If the state is of another dataset, or there are no
            states of the source.
    """
    if len({id(feed) for feed in feeds_in(source)}) != 1:
        if state is not None:
            feed_of(source)  # raises: it is no dataset of xt.data
        return grouped
    plan = RegroupedPlan(name, feed_of(source).plan, arguments)
    # Other methods give the same elements when the batches before a state are made again.
    is_shuffled = "shuffle" in methods_of_other_batches(source)
    plan.other_order = "shuffle" if is_shuffled else feed_of(source).plan.other_order
    if state is not None:
        plan.begin_at(state)
    feed = RegroupedFeed(plan)
    dataset = stream(feed).flat_map(grouped.skip)
    feeds[dataset] = feed
    return dataset


class RegroupedPlan(Resumable):
    """Where the passes begin.

    Args:
        name: The function, for errors.
        source: The plan of the other dataset.
        arguments: What differs between batches of one source.

    Raises:
        StructureError: If the workers of a service divide the source.
    """

    counts_steps = False

    def __init__(self, name: str, source: Resumable, arguments: object) -> None:
        super().__init__(1, source.shard)
        if source.by_service:
            fix = "Give shard=(index, count)."
            raise StructureError(name, "a source without a service", 'shard="service"', fix)
        self._name = name
        self._source = source
        self._arguments = arguments
        self._begun: dict[Place, Place] = {}  # where the source began, by where a pass did

    @property
    def steps(self) -> int | None:
        """None: the number of batches is not known."""
        return None

    @property
    def steps_per_shard(self) -> int:
        """Raises an error, because the number of batches is not known.

        Raises:
            StructureError: Always.
        """
        expected = "a dataset of files, whose number of records is known"
        fix = "Count the batches first, or train a fixed number of steps."
        raise StructureError(self._name, expected, "batches of other sizes", fix)

    def steps_before(self, first: int, count: int) -> int:
        """Returns 0: the number of batches is not known."""
        return 0

    @functools.cached_property
    def _digest(self) -> str:
        text = json.dumps([self._name, self._arguments])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def begin(self, place: Place) -> None:
        """Keeps where the source begins with the pass that begins now."""
        self._begun[place] = self._source.position.next

    def state(self, step: int, begun: Place) -> dict[str, Any]:
        """Returns the state after `step` batches of a pass.

        Args:
            step: The number of batches.
            begun: Where these begin, as `Position.next`.
        """
        place = self._begun.get(begun, self._source.position.next)
        return self._state(begun[0], begun[1] + step, self._source.state(0, place))

    def state_at(self, epoch: int, step: int) -> dict[str, Any]:
        """Returns the state at which the next pass begins."""
        return self._state(epoch, step, self._source.state(0, self._source.position.next))

    def _state(self, epoch: int, step: int, source: dict[str, Any]) -> dict[str, Any]:
        return {
            "version": 1,
            "digest": self._digest,
            "shard": list(self.shard),
            "epoch": epoch,
            "step": step,
            "source": source,
        }

    def begin_at(self, state: object) -> None:
        """Lets the next pass begin at a state.

        Raises:
            DTypeError, FormatError, StructureError: If it is no state, or of another dataset.
        """
        if isinstance(state, (list, tuple)):
            expected = "the state of this shard: no other number of shards can go on"
            fix = "Give each shard its own state."
            raise StructureError("state", expected, "several states", fix)
        given = checked_state(state, self._state(0, 0, {}), f"this {self._name}")
        self._source.begin_at(given["source"])
        self.position.next = given["epoch"], given["step"]
        self.position.forget()
        self._begun.clear()

    def skip_pass(self) -> None:
        """Lets the next pass be the one after it."""
        super().skip_pass()
        self._source.skip_pass()


class RegroupedFeed(Feed):
    """How many batches of a pass are dropped: one number a pass.

    Args:
        plan: Where the passes begin.
    """

    parts = 1

    def __init__(self, plan: RegroupedPlan) -> None:
        super().__init__(plan, tf.TensorSpec([], tf.int64))
        self.plan = plan

    def open(self, epoch: int, step: int) -> RegroupedPass:
        """Begins a pass."""
        return RegroupedPass(1, (epoch, step))


class RegroupedPass(ReadAhead):
    """One pass: its only part is the number of the batches that are dropped."""

    reads_ahead = False

    def _read(self, number: int) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensors(tf.constant(self.entry.place[1], tf.int64))

    def _close_source(self) -> None:
        """Does nothing: there is no source."""
