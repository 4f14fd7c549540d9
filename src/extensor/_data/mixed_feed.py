"""The draws of a mixture as a stream of the numbers of its sources, and its states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import tensorflow as tf

from extensor._data.ahead import ReadAhead
from extensor._data.draws import Draws, Numbers
from extensor._data.earlier_runs import Place
from extensor._data.feed import Feed
from extensor._data.position import Positioned, Resumable
from extensor._data.state_check import checked_state
from extensor.errors import StructureError

_PART = 1 << 12  # so many draws are computed at once


class Weights(NamedTuple):
    """The arguments of a mixture.

    Attributes:
        by_name: The weight of each source.
        seed: The seed of the order.
        at_end: What happens when a source has ended.
    """

    by_name: Mapping[str, float]
    seed: int
    at_end: str


class Segment(NamedTuple):
    """Draws of a pass up to the one after which a source has no batch left.

    Attributes:
        sources: The numbers of the sources that have batches left.
        draws: The order of these.
        begin: The number of draws of the order before.
        end: The number with the last one; infinite if no source ends.
    """

    sources: list[int]
    draws: Draws
    begin: int
    end: float

    @property
    def length(self) -> float:
        """The number of draws."""
        return self.end - self.begin

    def counts(self, draws: int) -> list[tuple[int, int]]:
        """Returns how many of so many draws of the segment each source has."""
        before, after = self.draws.counts(self.begin), self.draws.counts(self.begin + draws)
        own = [one - other for one, other in zip(after, before, strict=True)]
        return list(zip(self.sources, own, strict=True))


class Begun(NamedTuple):
    """Where a pass over a mixture begins.

    Attributes:
        draws: The number of draws in its first segment before.
        places: Where the next pass of each source begins, as `Position.next`.
        ended: The sources that have ended in this pass: it has none of their batches.
    """

    draws: int
    places: tuple[Place, ...]
    ended: frozenset[int] = frozenset()


class MixedPlan(Resumable):
    """What is drawn when.

    Args:
        plans: The plan of each source, by name.
        weights: The arguments of the mixture.

    Raises:
        StructureError: If the number of batches of a source is not known but needed.
    """

    def __init__(self, plans: Mapping[str, Positioned], weights: Weights) -> None:
        super().__init__(1, next(iter(plans.values())).shard)
        self._plans = plans
        self._sources = list(plans.values())
        self._weights = weights
        self._begun: dict[Place, Begun] = {}
        self._ended = frozenset[int]()  # in the pass that is next, before it begins
        self._has_begun = False  # a pass, since the state was given
        self.is_endless = weights.at_end == "repeat"
        # A source that is read from its beginning knows its length after a pass. All passes of a
        # mixture end by the same rule, so it does not count then.
        self._is_counted = [plan.steps is not None for plan in self._sources]
        for name, plan in plans.items():
            if weights.at_end == "rest" and plan.steps is None:
                expected = "a source of files, whose number of batches is known"
                received = 'one that is read from its beginning, with at_end="rest"'
                fix = 'Give at_end="stop" or "repeat".'
                raise StructureError(f"xt.data.mix: {name}", expected, received, fix)

    @property
    def next_begun(self) -> Begun:
        """Where the next pass begins."""
        places = tuple(self._next(plan) for plan in self._sources)
        return Begun(self.position.next[1], places, self._ended)

    def _next(self, plan: Positioned) -> Place:
        """Returns where the next pass of a source begins."""
        place = plan.position.next
        # The pass before may have ended without a batch of the rest that the state left to it.
        is_over = self._has_begun and plan.position.has_read(place)
        return plan.pass_after(place) if is_over else place

    def begin(self, place: Place) -> None:
        """Keeps where a pass begins that begins now."""
        self._begun[place] = self.next_begun
        for plan in self._sources:
            plan.position.next = self._next(plan)
        self._has_begun = True
        self._ended = frozenset()

    def begun_at(self, place: Place) -> Begun:
        """Returns where a pass began. In a checkpoint it may be one that did not begin here."""
        if place not in self._begun:
            begun = self.next_begun
            for _ in range(place[0] - self.position.next[0]):
                begun = Begun(0, self._after(begun, int(self.length(begun))))
            self._begun[place] = begun
        return self._begun[place]

    # Segments of a pass.

    def _left(self, begun: Begun) -> list[float]:
        """Returns how many batches each source has left in a pass; infinite if it is not known."""
        left = [
            plan.steps_before(epoch, plan.epochs) - step if is_counted else math.inf
            for plan, is_counted, (epoch, step) in zip(
                self._sources, self._is_counted, begun.places, strict=True
            )
        ]
        return [0 if i in begun.ended else count for i, count in enumerate(left)]

    def _whole(self) -> list[float]:
        """Returns how many batches a pass of each source has; infinite if it is not known."""
        return [
            (plan.steps or 0) * plan.epochs if is_counted else math.inf
            for plan, is_counted in zip(self._sources, self._is_counted, strict=True)
        ]

    def _segments(self, left: list[float], before: int) -> Iterator[Segment]:
        """Yields the segments of a pass.

        Args:
            left: How many batches each source has left.
            before: The number of draws of the first segment before.
        """
        at_end = self._weights.at_end
        if at_end == "repeat":
            left = [math.inf if count else 0 for count in self._whole()]
        if at_end == "stop" and not all(left):
            return
        while any(left):
            segment = self._segment([i for i, count in enumerate(left) if count], left, before)
            yield segment
            if at_end == "stop" or segment.end == math.inf:
                return
            for source, count in segment.counts(int(segment.length)):
                left[source] -= count
            before = 0

    def _segment(self, sources: list[int], left: Sequence[float], before: int) -> Segment:
        weights = list(self._weights.by_name.values())
        seed = [self._weights.seed, self.shard[0], *sources]
        draws = Draws([weights[source] for source in sources], seed)
        known = draws.counts(before)
        ends = [
            draws.draws_until(i, known[i] + int(left[source]))
            for i, source in enumerate(sources)
            if left[source] < math.inf
        ]
        return Segment(sources, draws, before, min(ends, default=math.inf))

    def segments(self, begun: Begun) -> Iterator[Segment]:
        """Yields the segments of a pass."""
        return self._segments(self._left(begun), begun.draws)

    def length(self, begun: Begun) -> float:
        """Returns the number of batches of a pass; infinite if it has no known end."""
        return sum(segment.length for segment in self.segments(begun))

    def choices(self, begun: Begun, begin: int, end: int) -> Numbers:
        """Returns the inputs of which batches of a pass are, from one to another.

        An input is the number of a source. With at_end="repeat", a source is two inputs: its first
        pass, of which some batches may have been read before, and those that follow.
        """
        found = [np.empty(0, np.int64)]
        before = 0.0  # batches of the segments before
        for segment in self.segments(begun):
            first, last = max(0, begin - before), min(segment.length, end - before)
            if first < last:
                draws = np.arange(segment.begin + int(first), segment.begin + int(last))
                numbers = segment.draws.sources(draws)
                found.append(np.array(segment.sources)[numbers])
                if self.is_endless:
                    found[-1] += self._repeat(segment, begun, draws, numbers)
            before += segment.length
            if before >= end:
                break
        return np.concatenate(found)

    def _repeat(self, segment: Segment, begun: Begun, draws: Numbers, numbers: Numbers) -> Numbers:
        """Returns what is added to the numbers of sources whose first pass is over."""
        known = segment.draws.counts(segment.begin)
        over = np.zeros(len(segment.sources), np.int64)
        for i, source in enumerate(segment.sources):
            left = self._left(begun)[source]
            # The datasets know how many batches a whole pass has; of another one, it is an error
            # to ask for more than there are.
            if begun.places[source][1] and 0 < left < math.inf:
                over[i] = segment.draws.draws_until(i, known[i] + int(left))
        return np.where(draws >= over[numbers], len(self._sources), 0)

    # States.

    @property
    def steps(self) -> int | None:
        """The number of batches in a whole pass, if it is known."""
        whole = self._whole()
        length = sum(segment.length for segment in self._segments(whole, 0))
        return None if math.inf in (length, *whole) else int(length)

    def steps_before(self, first: int, count: int) -> int:
        """Returns the number of the first batch after the next pass."""
        return self.position.next[1] + int(self.length(self.next_begun))

    @property
    def steps_per_shard(self) -> int:
        """Raises an error: mixtures of other shards are not known.

        Raises:
            StructureError: Always.
        """
        expected = "a dataset of files, whose number of records is known"
        fix = "Ask the sources of the mixture."
        raise StructureError("xt.data.mix", expected, "a mixture", fix)

    def state(self, step: int, begun: Place) -> dict[str, Any]:
        """Returns the state after `step` batches.

        Args:
            step: The number of batches.
            begun: Where these begin, as `Position.next`.
        """
        number, found = begun[0], self.begun_at(begun)
        while step >= (length := self.length(found)) and length:
            step -= int(length)
            number, found = number + 1, Begun(0, self._after(found, int(length)))
        draws, counts = self._counts(found, step)
        left = self._left(found)
        is_rest = self._weights.at_end == "rest"
        ended = [n for i, n in enumerate(self._plans) if is_rest and counts[i] == left[i]]
        states = {
            name: self._state_of_source(i, counts[i], found.places[i])
            for i, name in enumerate(self._plans)
        }
        return self._state_of(number, draws, states, ended)

    def _state_of_source(self, source: int, step: int, begun: Place) -> dict[str, Any]:
        plan = self._sources[source]
        if self._is_counted[source] or self._weights.at_end == "repeat":
            return plan.state(step, begun)
        # Not the next epoch: the pass ends where a batch after the last one would be drawn.
        plan.expect_order("state")
        return plan.state_at(begun[0], begun[1] + step)

    def state_at(self, epoch: int, step: int) -> dict[str, Any]:
        """Returns the state at which the next pass begins."""
        states = {name: plan.state(0, self._next(plan)) for name, plan in self._plans.items()}
        return self._state_of(epoch, step, states)

    def _state_of(
        self, number: int, draws: int, states: dict[str, Any], ended: Sequence[str] = ()
    ) -> dict[str, Any]:
        return {
            "version": 1,
            "weights": dict(self._weights.by_name),
            "seed": self._weights.seed,
            "at_end": self._weights.at_end,
            "shard": list(self.shard),
            "epoch": number,
            "step": draws,
            "ended": list(ended),
            "sources": states,
        }

    def _counts(self, begun: Begun, step: int) -> tuple[int, list[int]]:
        """Returns the draws in the segment of a batch, and how many batches are of each source."""
        counts, draws = [0] * len(self._sources), begun.draws
        for segment in self.segments(begun):
            taken = int(min(step, segment.length))
            for source, count in segment.counts(taken):
                counts[source] += count
            step -= taken
            draws = segment.begin + taken
            if draws < segment.end:
                break
            draws = 0
        return draws, counts

    def _after(self, begun: Begun, length: int) -> tuple[Place, ...]:
        """Returns where the passes of the sources begin after a pass."""
        _, counts = self._counts(begun, length)
        return tuple(
            plan.pass_after(place) if count or plan.position.has_read(place) else place
            for plan, place, count in zip(self._sources, begun.places, counts, strict=True)
        )

    def skip_pass(self) -> None:
        """Lets the next pass be the one after it."""
        super().skip_pass()
        self._ended = frozenset()
        for plan in self._sources:
            plan.skip_pass()

    def begin_at(self, state: object) -> None:
        """Lets the next pass begin at a state, or at the states of all shards of a run.

        Raises:
            DTypeError, FormatError, StructureError: If they are no states, or of other mixtures.
        """
        is_list = isinstance(state, (list, tuple))
        own = self._state_of(0, 0, {})
        states = [
            checked_state(each, own, "this mixture", *((f"state[{i}]", "shard") if is_list else ()))
            for i, each in enumerate(cast("Sequence[Any]", state if is_list else [state]))
        ]
        for name, plan in self._plans.items():
            given = [each["sources"].get(name) for each in states]
            plan.begin_at(given if is_list else given[0])
        own_states = [each for each in states if each["shard"] == list(self.shard)]
        begin = min((each["epoch"] for each in states), default=0)
        self.position.next = begin, own_states[0]["step"] if own_states else 0
        first = [set(each["ended"]) for each in states if each["epoch"] == begin]
        self._ended = frozenset(
            i for i, name in enumerate(self._plans) if all(name in ended for ended in first)
        )
        self.position.earlier_runs = tuple(
            run for plan in self._sources for run in plan.position.earlier_runs
        )
        self.position.forget()
        self._begun.clear()
        self._has_begun = False


class MixedFeed(Feed):
    """The numbers of the inputs that a mixture draws from, one after the other.

    Args:
        plan: What is drawn when.
    """

    def __init__(self, plan: MixedPlan) -> None:
        super().__init__(plan, tf.TensorSpec([], tf.int64))
        self.plan = plan

    @property
    def length(self) -> int | None:
        """The number of batches of each pass, if it is known and that of the next one too."""
        begun, steps = self.plan.next_begun, self.plan.steps
        is_whole = not begun.ended
        is_whole &= not any(step for _, step in (self.plan.position.next, *begun.places))
        return steps if is_whole and not self.plan.position.earlier_runs else None

    def open(self, epoch: int, step: int) -> MixedPass:
        """Begins a pass."""
        return MixedPass(self.plan, (epoch, step))


class MixedPass(ReadAhead):
    """One pass over the draws of a mixture. The last one is a part of its own, as of files.

    Args:
        plan: What is drawn when.
        place: Where the pass begins.
    """

    reads_ahead = False

    def __init__(self, plan: MixedPlan, place: Place) -> None:
        self._plan, self._begun = plan, plan.begun_at(place)
        self._length = plan.length(self._begun)
        parts = math.inf
        if self._length < math.inf:
            parts = -(-int(self._length - 1) // _PART) + 1 if self._length else 0
        super().__init__(parts, place)

    def _read(self, number: int) -> tf.data.Dataset | None:
        if number >= self._parts:
            return None
        begin, end = number * _PART, (number + 1) * _PART
        if self._length < math.inf:
            last = int(self._length) - 1
            begin, end = (last, last + 1) if number + 1 == self._parts else (begin, min(end, last))
        return tf.data.Dataset.from_tensor_slices(self._plan.choices(self._begun, begin, end))

    def _close_source(self) -> None:
        """Does nothing: there is no source."""
