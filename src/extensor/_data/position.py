"""Where the passes of a dataset begin, and its arguments that a state has."""

from __future__ import annotations

import abc
import functools
import hashlib
import json
import numbers
import operator
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from extensor.errors import DTypeError, FormatError, RowError, StructureError

_VERSION = 1

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
        state: Where the first pass begins.
    """

    batch_size: int
    drop_remainder: bool
    shuffle: Shuffle | None
    shard: tuple[int, int] | Literal["service"] | None
    epochs: int
    state: dict[str, Any] | None = None


class StartedPass:
    """A pass that began.

    Args:
        place: Its first epoch, and the number of its first batch in the pass.
    """

    __slots__ = ("is_finished", "is_open", "place")

    def __init__(self, place: tuple[int, int]) -> None:
        self.place = place
        self.is_open = True
        """Whether its iterator exists."""
        self.is_finished = False
        """Whether its last batch was read."""


class Position:
    """Where the passes of a dataset begin.

    A dataset, and those that read fewer fields of its records, have one position.
    """

    def __init__(self) -> None:
        self.next: tuple[int, int] = (0, 0)
        """The first epoch of the next pass, and the number of its first batch in the pass."""
        self._passes: list[StartedPass] = []

    @property
    def unfinished(self) -> list[StartedPass]:
        """The passes whose last batch was not read, or whose iterators exist."""
        return [each for each in self._passes if each.is_open or not each.is_finished]

    def add(self, begun: StartedPass) -> None:
        """Counts a pass that begins."""
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
            raise StructureError(
                "dataset",
                "a dataset of which at most one pass is not finished",
                f"{len(passes)} passes that may be meant",
                "Give the iterator of the pass, iter(dataset), to xt.data.state. To look at "
                "some batches, make another dataset.",
            )
        return passes[0].place if passes else self.next


class Positioned(abc.ABC):
    """The arguments of a dataset that its states have, and its position: the base of plans.

    Args:
        passes: The arguments.

    Raises:
        StructureError, RowError, DTypeError: If an argument is wrong.
    """

    by_service = False
    """Whether the workers of a tf.data service divide the parts of each pass."""

    def __init__(self, passes: Passes) -> None:
        size, self.drop_remainder, shuffle, shard, epochs, _ = passes
        self.batch_size = _positive(size, "batch_size", "Give the number of records a batch.")
        self.epochs = _positive(epochs, "epochs", "Give the number of epochs in a pass.")
        self.shuffle = _checked_shuffle(shuffle)
        self.shard = _checked_shard(shard)
        self.position = Position()

    @abc.abstractmethod
    def identity(self) -> object:
        """Returns what differs between sources, as data that JSON can represent."""

    @property
    @abc.abstractmethod
    def steps(self) -> int | None:
        """The number of batches in an epoch, if it is known."""

    @property
    @abc.abstractmethod
    def steps_per_shard(self) -> int:
        """The number of batches that every shard has at least."""

    def expect_order(self, argument: str) -> None:  # noqa: B027 - files have one order
        """Raises StructureError if the source may give its records in another order next time."""

    def state(self, step: int, begun: tuple[int, int]) -> dict[str, Any]:
        """Returns the state after `step` batches.

        Args:
            step: The number of batches.
            begun: Where these begin, as `Position.next`.
        """
        self.expect_order("state")
        epochs, step = 0, begun[1] + step
        if self.steps is not None:
            epochs, step = divmod(step, self.steps or 1)
        return self.state_at(begun[0] + epochs, step)

    def begin_at(self, state: object) -> None:
        """Lets the next pass begin at a state.

        Raises:
            DTypeError, FormatError, StructureError: As `place_of`.
        """
        self.expect_order("state")
        epoch, step = self.place_of(state, self.steps)
        if self.steps is not None:
            before = epoch % self.epochs  # epochs of the pass
            epoch, step = epoch - before, before * self.steps + step
        self.position.next = epoch, step
        self.position.forget()

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the source."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def state_at(self, epoch: int, step: int) -> dict[str, Any]:
        """Returns the state after `step` batches of an epoch."""
        return {
            "version": _VERSION,
            "digest": self.digest,
            "seed": self.shuffle.seed if self.shuffle else None,
            "window": self.shuffle.window if self.shuffle else None,
            "shard": list(self.shard),
            "batch_size": self.batch_size,
            "drop_remainder": self.drop_remainder,
            "epoch": epoch,
            "step": step,
        }

    def place_of(self, state: object, steps: int | None) -> tuple[int, int]:
        """Returns the epoch and step of a state.

        Args:
            state: The state.
            steps: The number of batches of an epoch, if it is known.

        Raises:
            DTypeError: If it is no state (also a TypeError).
            FormatError: If another version wrote it (also a ValueError).
            StructureError: If it is of another dataset (also a ValueError).
        """
        own = self.state_at(0, 0)
        if not isinstance(state, Mapping) or not all(name in state for name in own):
            expected = "a state that `xt.data.state` returned"
            fix = "Give the whole dict, or None to begin at the beginning."
            raise DTypeError("state", expected, type(state).__name__, fix)
        given = cast("Mapping[str, Any]", state)
        if given["version"] != _VERSION:
            expected = f"a state of version {_VERSION}"
            fix = "Begin again, or use the release of extensor that wrote it."
            raise FormatError("state", expected, f"version {given['version']}", fix)
        for name in own:
            if name not in ("epoch", "step") and own[name] != given[name]:
                what = "files or columns" if name == "digest" else name
                expected = f"{own[name]}, which this dataset has"
                received = f"{given[name]}: the state of a dataset with other {what}"
                fix = "Give the arguments with which the state was made."
                raise StructureError(f"state, {name}", expected, received, fix)
        places = (given["epoch"], given["step"])
        is_place = all(type(n) is int and n >= 0 for n in places)
        if not is_place or (steps is not None and places[1] > steps):
            expected = "an epoch, and a step of 0 " + ("on" if steps is None else f"to {steps}")
            fix = "Give a state as `xt.data.state` returned it."
            raise StructureError("state", expected, f"epoch {places[0]}, step {places[1]}", fix)
        return places


def _positive(value: object, name: str, fix: str) -> int:
    """Returns a positive number below 2**31 as an int.

    Raises:
        StructureError: If it is anything else (also a ValueError).
    """
    number = 0
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
    if not 0 < number < _LIMIT:
        expected = "a positive number" + (" below 2**31" if number > 0 else "")
        raise StructureError(f"xt.data: {name}", expected, repr(value), fix)
    return number


def _checked_shuffle(shuffle: object) -> Shuffle | None:
    if shuffle is None or shuffle is False:
        return None
    if not isinstance(shuffle, Shuffle):
        fix = "Give shuffle=xt.data.Shuffle(seed=0)."
        raise DTypeError("shuffle", "an xt.data.Shuffle, or None", repr(shuffle), fix)
    seed = shuffle.seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        fix = "Give the same number to get the same order."
        raise StructureError("shuffle, seed", "an integer that is not negative", repr(seed), fix)
    window = _positive(shuffle.window, "shuffle, window", "Give a number of records.")
    return Shuffle(int(seed), window)


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
