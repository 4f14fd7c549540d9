"""Where the passes of a dataset begin, and its arguments that a state has."""

from __future__ import annotations

import abc
import functools
import hashlib
import json
import numbers
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from extensor._data.earlier_runs import EarlierRun, EarlierRuns, Place, runs_from, text_of
from extensor._data.state_check import (
    VERSION,
    VERSION_OF_REST,
    checked_state,
    checked_states,
    runs_in,
    wrong_place,
)
from extensor.errors import DTypeError, RowError, StructureError

# So that the number of batches of a pass fits int64.
_LIMIT = 1 << 31


class Shuffle(NamedTuple):
    """How records are shuffled: `shuffle=` of the functions of `xt.data`.

    An epoch reads the row groups of all files in a random order, so many at a time that they have
    about `window` records, and mixes the records of these. Each epoch has a new order, which
    follows from the seed.

    Args:
        seed: An integer that is not negative. The same seed gives the same order.
        window: The number of records that are mixed. They are in memory at once; at least one row
            group and one batch are.

    >>> import extensor as xt
    >>> xt.data.Shuffle(seed=3)
    Shuffle(seed=3, window=65536)
    """

    seed: int
    window: int = 1 << 16


class Passes(NamedTuple):
    """The arguments that say which batches the passes over a dataset have.

    Attributes:
        batch_size: The number of records in a batch.
        drop_remainder: Whether to drop a last batch of an epoch that is not full.
        shuffle: How to shuffle; None for the order of the source.
        shard: The number of this shard, and the number of shards; None for one shard.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins: a state, or those of all shards of an earlier run.
    """

    batch_size: int
    drop_remainder: bool
    shuffle: Shuffle | None
    shard: tuple[int, int] | Literal["service"] | None
    epochs: int
    state: State | None = None


class StartedPass:
    """A pass that began.

    Args:
        place: Its first epoch, and the number of its first batch in the pass.
    """

    __slots__ = ("is_finished", "is_open", "place", "position")

    def __init__(self, place: tuple[int, int]) -> None:
        self.place = place
        self.is_open = True
        """Whether its iterator exists."""
        self.is_finished = False
        """Whether its last batch was read."""
        self.position: Position | None = None
        """The position of the dataset."""


class Position:
    """Where the passes of a dataset begin.

    A dataset, and those that read fewer fields of its records, have one position.
    """

    def __init__(self) -> None:
        self.next: tuple[int, int] = (0, 0)
        """The first epoch of the next pass, and the number of its first batch in the pass."""
        self.earlier_runs: EarlierRuns = ()
        """Runs of other numbers of shards that have read a part of the epochs from there on."""
        self._passes: list[StartedPass] = []

    @property
    def unfinished(self) -> list[StartedPass]:
        """The passes whose last batch was not read, or whose iterators exist."""
        return [each for each in self._passes if each.is_open or not each.is_finished]

    def has_read(self, place: Place) -> bool:
        """Returns whether a pass that begins at a place is the rest of one, or may be.

        Args:
            place: A place, as `next`.
        """
        return place[1] > 0 or any(run.last_epoch >= place[0] for run in self.earlier_runs)

    def add(self, begun: StartedPass) -> None:
        """Counts a pass that begins."""
        begun.position = self
        self._passes.append(begun)

    def forget(self) -> None:
        """Forgets the passes that began."""
        self._passes.clear()

    @property
    def last(self) -> tuple[int, int]:
        """Where the last pass began; where the next one begins if there was none.

        Raises:
            StructureError: If several passes are not finished (also a ValueError).
        """
        passes = self.unfinished
        if not passes or passes[-1] is not self._passes[-1]:
            passes += self._passes[-1:]  # may be meant, though it is finished
        if len(passes) > 1:
            expected = "a dataset of which at most one pass is not finished"
            received = f"{len(passes)} passes that may be meant"
            fix = "Give the pass, iter(dataset). To look at batches, make another dataset."
            raise StructureError("dataset", expected, received, fix)
        return passes[0].place if passes else self.next


class Resumable(abc.ABC):
    """A dataset whose passes may begin at a state: the base of plans, and of mixtures.

    Args:
        epochs: The number of epochs in a pass.
        shard: The number of this shard, and the number of shards.
    """

    by_service = False
    """Whether the workers of a tf.data service divide the parts of each pass."""

    is_endless = False
    """Whether a pass has no end."""

    counts_steps = True
    """Whether a state follows from the number of batches of several passes."""

    other_order: str | None = None
    """The method by which a source gives its batches in an order that no state has."""

    def __init__(self, epochs: int, shard: tuple[int, int]) -> None:
        self.epochs = epochs
        self.shard = shard
        self.position = Position()

    @property
    @abc.abstractmethod
    def steps(self) -> int | None:
        """The number of batches in an epoch, if it is known."""

    @property
    @abc.abstractmethod
    def steps_per_shard(self) -> int:
        """The number of batches that every shard has at least."""

    @abc.abstractmethod
    def steps_before(self, first: int, count: int) -> int:
        """Returns the number of batches in so many epochs from one on, if it is known."""

    @abc.abstractmethod
    def state(self, step: int, begun: Place) -> dict[str, Any]:
        """Returns the state after `step` batches.

        Args:
            step: The number of batches.
            begun: Where these begin, as `Position.next`.
        """

    @abc.abstractmethod
    def state_at(self, epoch: int, step: int) -> dict[str, Any]:
        """Returns the state after `step` batches of an epoch."""

    @abc.abstractmethod
    def begin_at(self, state: object) -> None:
        """Lets the next pass begin at a state, or at the states of all shards of a run.

        Raises:
            DTypeError, FormatError, StructureError: If they are no states, or of other datasets.
        """

    def begin(self, place: Place) -> None:  # noqa: B027 - only some plans need it
        """Keeps what a state of the pass needs that begins now."""

    def pass_after(self, place: Place) -> Place:
        """Returns where the pass begins that comes after the one of a place."""
        return (place[0] // self.epochs + 1) * self.epochs, 0

    def skip_pass(self) -> None:
        """Lets the next pass be the one after it."""
        self.position.next = self.pass_after(self.position.next)


class Positioned(Resumable):
    """The arguments of a dataset that its states have, and its position: the base of plans.

    Args:
        passes: The arguments.

    Raises:
        StructureError, RowError, DTypeError: If an argument is wrong.
    """

    def __init__(self, passes: Passes) -> None:
        size, self.drop_remainder, shuffle, shard, epochs, _ = passes
        fix = "Give the number of records a batch."
        self.batch_size = positive(size, "xt.data: batch_size", fix)
        epochs = positive(epochs, "xt.data: epochs", "Give the number of epochs in a pass.")
        self.shuffle = _checked_shuffle(shuffle)
        super().__init__(epochs, _checked_shard(shard))

    @abc.abstractmethod
    def identity(self) -> object:
        """Returns what differs between sources, as data that JSON can represent."""

    def steps_of(self, epoch: int) -> int | None:
        """Returns the number of batches in an epoch, if it is known."""
        return self.steps

    def steps_of_shards(self, epoch: int, count: int) -> list[int]:
        """Returns the number of batches in an epoch of each of so many shards.

        Raises:
            StructureError: If the source cannot be divided among another number of shards.
        """
        expected = f"the state of shard {self.shard[0]} of {self.shard[1]}"
        fix = "Give as many shards as the earlier run had: only files are divided anew."
        raise StructureError("state", expected, f"those of {count} shards", fix)

    def steps_before(self, first: int, count: int) -> int:
        """Returns the number of batches in so many epochs from one on, if it is known."""
        last = max((run.last_epoch for run in self.position.earlier_runs), default=-1)
        begun = min(max(0, last + 1 - first), count)
        own = sum(self.steps_of(epoch) or 0 for epoch in range(first, first + begun))
        return own + (count - begun) * (self.steps or 0)

    def expect_order(self, argument: str) -> None:
        """Raises StructureError if the source may give its records in another order next time."""

    def state(self, step: int, begun: tuple[int, int]) -> dict[str, Any]:
        """Returns the state after `step` batches.

        Args:
            step: The number of batches.
            begun: Where these begin, as `Position.next`.
        """
        self.expect_order("state")
        return self.state_at(*self._place_of(begun[0], begun[1] + step))

    def _place_of(self, epoch: int, step: int) -> Place:
        """Returns the place of a step that is counted from the beginning of an epoch on."""
        if self.steps is None:
            return epoch, step
        last = max((run.last_epoch for run in self.position.earlier_runs), default=-1)
        while epoch <= last and step >= (steps := self.steps_of(epoch) or 0):
            epoch, step = epoch + 1, step - steps
        epochs, step = divmod(step, self.steps or 1)
        return epoch + epochs, step

    def begin_at(self, state: object) -> None:
        """Lets the next pass begin at a state, or at the states of all shards of a run.

        Raises:
            DTypeError, FormatError, StructureError: As `checked_state` and `checked_states`;
                StructureError also if a state is no place of the dataset.
        """
        self.expect_order("state")
        known = self.position.earlier_runs
        try:
            epoch, step = self._begin_at(state)
        except BaseException:
            self.position.earlier_runs = known
            raise
        if self.steps is not None:
            before = epoch % self.epochs  # epochs of the pass
            epoch, step = epoch - before, self.steps_before(epoch - before, before) + step
        self.position.next = epoch, step
        self.position.forget()

    def _begin_at(self, state: object) -> Place:
        """Sets the earlier runs to those of a state; returns where the dataset goes on."""
        own = self.state_at(0, 0)
        if isinstance(state, (list, tuple)):
            states = checked_states(cast("Sequence[object]", state), own)
            epochs = {state["epoch"] for state in states}
            if len(states) != self.shard[1] or len(epochs) > 1:
                return self._begin_after(states)
            state = states[self.shard[0]]  # each shard goes on where it was
        given = checked_state(state, own)
        self.position.earlier_runs = runs_in(given)
        steps = self.steps_of(given["epoch"])
        if steps is not None and given["step"] > steps:
            raise wrong_place(given, steps)
        return given["epoch"], given["step"]

    def _begin_after(self, states: Sequence[Mapping[str, Any]]) -> Place:
        """Sets the earlier runs to those of states and their own; returns where it goes on."""
        begin = min(state["epoch"] for state in states)
        runs = next(runs_in(state) for state in states if state["epoch"] == begin)
        self.position.earlier_runs = runs
        for epoch in {state["epoch"] for state in states}:
            steps = self.steps_of_shards(epoch, len(states))
            for state, count in zip(states, steps, strict=True):
                if state["epoch"] == epoch and state["step"] > count:
                    raise wrong_place(state, count, f"state of shard {state['shard'][0]}")
        run = EarlierRun(tuple((state["epoch"], state["step"]) for state in states))
        self.position.earlier_runs = runs_from((*runs, run), begin)
        return begin, 0

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the source."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def state_at(self, epoch: int, step: int) -> dict[str, Any]:
        """Returns the state after `step` batches of an epoch."""
        runs = runs_from(self.position.earlier_runs, epoch)
        state = {
            "version": VERSION_OF_REST if runs else VERSION,
            "digest": self.digest,
            "seed": self.shuffle.seed if self.shuffle else None,
            "window": self.shuffle.window if self.shuffle else None,
            "shard": list(self.shard),
            "batch_size": self.batch_size,
            "drop_remainder": self.drop_remainder,
            "epoch": epoch,
            "step": step,
        }
        return {**state, "earlier_runs": text_of(runs)} if runs else state


def positive(value: object, where: str, fix: str) -> int:
    """Returns a positive integer below 2**31.

    Raises:
        StructureError: If it is anything else (also a ValueError).
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise StructureError(where, "an integer of 1 or more", repr(value)[:60], fix)
    if int(value) >= _LIMIT:
        raise StructureError(where, "an integer below 2**31", repr(value)[:60], fix)
    return int(value)


def checked_seed(seed: object, where: str) -> int:
    """Returns the seed of an order.

    Raises:
        StructureError: If it is no integer, or negative (also a ValueError).
    """
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        fix = "Give the same number to get the same order."
        raise StructureError(where, "an integer that is not negative", repr(seed)[:60], fix)
    return int(seed)


def _checked_shuffle(shuffle: object) -> Shuffle | None:
    if shuffle is None or shuffle is False:
        return None
    if not isinstance(shuffle, Shuffle):
        fix = "Give shuffle=xt.data.Shuffle(seed=0)."
        raise DTypeError("shuffle", "an xt.data.Shuffle, or None", repr(shuffle), fix)
    window = positive(shuffle.window, "xt.data: shuffle, window", "Give a number of records.")
    return Shuffle(checked_seed(shuffle.seed, "shuffle, seed"), window)


def _checked_shard(shard: Any) -> tuple[int, int]:
    if shard is None:
        return 0, 1
    try:
        if isinstance(shard, (str, bytes)) or any(isinstance(number, bool) for number in shard):
            raise TypeError
        index, count = map(operator.index, shard)
    except (TypeError, ValueError) as error:
        expected = "two integers: the number of this shard, and the number of shards"
        fix = "Give for example shard=(0, 4)."
        raise DTypeError("shard", expected, repr(shard), fix) from error
    if not 0 <= index < count:
        expected = f"a number from 0 to {count - 1}" if count > 0 else "at least one shard"
        fix = "Shards are numbered from 0."
        raise RowError("shard", expected, f"shard {index} of {count}", fix)
    return index, count


State = dict[str, Any] | Sequence[dict[str, Any]]
"""What `xt.data.state` returned, or what it returned for each shard of an earlier run."""
