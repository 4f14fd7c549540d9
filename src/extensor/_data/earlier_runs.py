"""What earlier runs read of an epoch, and which records of the rest each shard reads.

A run with some number of shards ended somewhere within an epoch; the next one has another number.
The rest of the epoch is what the shards of the earlier run have not read, in their orders, one
shard after the other. It is cut into batches, and each shard of the new run gets batches that
follow one another. If a third run has yet another number of shards, the rest is what the shards of
the second one have not read of their batches.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

Place = tuple[int, int]
"""An epoch, and the number of batches of it that were read."""

Rows = Callable[[int], "np.ndarray[Any, Any]"]
"""Returns the number of records of each shard, for a number of shards."""

_LIMIT = 1 << 31


class Span(NamedTuple):
    """Records of a shard that follow one another in its order of an epoch.

    Attributes:
        shard: The number of the shard.
        begin: The number of the first record in the epoch.
        end: The number after the last one.
    """

    shard: int
    begin: int
    end: int


class EarlierRun(NamedTuple):
    """A run that has ended.

    Attributes:
        places: Where each of its shards stood.
    """

    places: tuple[Place, ...]

    @property
    def last_epoch(self) -> int:
        """The last epoch of which a shard has read anything."""
        return max(epoch if step else epoch - 1 for epoch, step in self.places)

    def batches_read(self, epoch: int) -> list[int]:
        """Returns how many batches of an epoch each shard has read, or a number above it."""
        return [_LIMIT if own > epoch else step if own == epoch else 0 for own, step in self.places]


EarlierRuns = tuple[EarlierRun, ...]
"""The earlier runs that matter, the first one first."""


def runs_from(runs: Iterable[EarlierRun], epoch: int) -> EarlierRuns:
    """Returns the runs that have read anything of an epoch or of a later one."""
    return tuple(run for run in runs if run.last_epoch >= epoch)


class Batching(NamedTuple):
    """How records become batches.

    Attributes:
        size: The number of records in a batch.
        drops: Whether a last batch that is not full is dropped.
    """

    size: int
    drops: bool

    def steps(self, rows: Any) -> Any:
        """Returns the number of batches of so many records."""
        return rows // self.size if self.drops else -(-rows // self.size)


def rest_of(
    runs: EarlierRuns, epoch: int, count: int, rows: Rows, batching: Batching
) -> tuple[int, list[list[Span]]] | None:
    """Returns the records of an epoch that earlier runs left to each shard.

    Args:
        runs: The earlier runs.
        epoch: The number of the epoch.
        count: The number of shards.
        rows: The number of records of each shard, for a number of shards.
        batching: How records become batches, in all runs.

    Returns:
        The number of shards of the first run, and spans of these shards; None if the runs have
        read nothing of the epoch.
    """
    read = [(len(run.places), run.batches_read(epoch)) for run in runs]
    read = [(shards, steps) for shards, steps in read if any(steps)]
    if not read:
        return None
    first, _ = read[0]
    pieces = [[Span(i, 0, int(end))] for i, end in enumerate(rows(first))]
    following = [*(shards for shards, _ in read[1:]), count]
    for (_, steps), shards in zip(read, following, strict=True):
        pieces = _deal(_left(pieces, steps, batching), rows(shards), batching)
    return first, pieces


def _left(pieces: Sequence[Sequence[Span]], steps: Sequence[int], batching: Batching) -> list[Span]:
    """Returns what is left of each piece after so many batches, one after the other."""
    found: list[Span] = []
    for piece, count in zip(pieces, steps, strict=True):
        skipped = count * batching.size
        for shard, begin, end in piece:
            if skipped < end - begin:
                found.append(Span(shard, begin + max(0, skipped), end))
            skipped -= end - begin
    return found


def _deal(
    spans: Sequence[Span], rows: np.ndarray[Any, Any], batching: Batching
) -> list[list[Span]]:
    """Returns the spans of each shard.

    A shard gets as many of the batches as is its part in a whole epoch, and never more than it has
    there: a dataset whose number of batches is known has no more than these.
    """
    records = sum(span.end - span.begin for span in spans)
    capacity = [int(n) for n in np.cumsum(batching.steps(rows))]
    batches = min(batching.steps(records), capacity[-1])
    ends = [batches * each // max(1, capacity[-1]) * batching.size for each in capacity]
    dealt: list[list[Span]] = [[] for _ in ends]
    position = index = 0
    for shard, first, last in spans:
        while first < last:
            while index < len(ends) and ends[index] <= position:
                index += 1
            if index == len(ends):
                return dealt
            end = min(last, first + ends[index] - position)
            dealt[index].append(Span(shard, first, end))
            position += end - first
            first = end
    return dealt


def text_of(runs: EarlierRuns) -> str:
    """Returns runs as text, of a few bytes a shard."""
    plain = [[list(part) for part in zip(*run.places, strict=True)] for run in runs]
    for epochs, _ in plain:
        epochs[1:] = [one - epochs[0] for one in epochs[1:]]
    packed = zlib.compress(json.dumps(plain, separators=(",", ":")).encode(), 9)
    return base64.b64encode(packed).decode()


def runs_of(text: object) -> EarlierRuns | None:
    """Returns the runs of a text; None if `text_of` did not return it."""
    try:
        plain: Any = json.loads(zlib.decompress(base64.b64decode(cast("Any", text), validate=True)))
        runs = tuple(
            EarlierRun(
                tuple(zip([epochs[0], *(epochs[0] + n for n in epochs[1:])], steps, strict=True))
            )
            for epochs, steps in plain
        )
    except (ValueError, TypeError, IndexError, zlib.error):
        return None
    parts: list[Any] = [n for run in runs for place in run.places for n in place]
    is_valid = runs and all(type(n) is int and 0 <= n < _LIMIT for n in parts)
    return runs if is_valid else None
