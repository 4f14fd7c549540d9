"""Times two calls side by side."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

Call = Callable[[], object]

# A sample repeats a fast call until it takes this long, so that the clock's own cost and
# resolution vanish in it.
_SAMPLE_SECONDS = 2e-3
_MIN_SAMPLES, _MAX_SAMPLES = 5, 41
_MAX_REPEATS = 10_000


def medians(*calls: Call, seconds: float = 3.0) -> list[float]:
    """Returns the median duration of each call, in seconds.

    Args:
        *calls: Functions without arguments.
        seconds: About how long to go on, all calls together. At least a few samples of each are
            taken even if that takes longer.
    """
    return [statistics.median(durations) for durations in _samples(calls, seconds)]


def fastest(*calls: Call, seconds: float = 3.0) -> list[float]:
    """Returns the shortest duration of each call, in seconds.

    That is for calls that take once or twice as long by chance: Linux may leave the two threads of
    a matrix product on one core for a second or more. The arguments are those of `medians`.
    """
    return [min(durations) for durations in _samples(calls, seconds)]


def _samples(calls: tuple[Call, ...], seconds: float) -> list[list[float]]:
    """Returns durations of each call.

    The calls take turns, so that a busy moment of the machine hits all of them, and swap places
    from turn to turn, so that none always runs in the wake of the same other. Dropping the result
    of a call is not part of its duration.
    """
    for call in calls:
        call()  # the first call of a kind pays for what is built once
    gc.collect()
    gc.freeze()  # nothing that stands by now is looked at again: collecting takes no time
    try:
        counts = [repeats(call) for call in calls]
        samples: list[list[float]] = [[] for _ in calls]
        turns = list(zip(calls, counts, samples, strict=True))
        end = time.perf_counter() + seconds
        while len(samples[0]) < _MAX_SAMPLES:
            if len(samples[0]) >= _MIN_SAMPLES and time.perf_counter() > end:
                break
            for call, count, durations in turns:
                durations.append(sample(call, count))
            turns.reverse()
    finally:
        gc.unfreeze()
    return samples


def repeats(call: Call) -> int:
    """Returns how often a call is repeated, so that one sample takes long enough."""
    count = 1
    while count < _MAX_REPEATS and sample(call, count) * count < _SAMPLE_SECONDS:
        count *= 2
    return count


def sample(call: Call, count: int) -> float:
    """Returns the mean duration of `count` calls in a row."""
    gc.collect()
    gc.disable()
    try:
        duration = 0.0
        clock = time.perf_counter
        if count == 1:
            start = clock()
            result = call()
            duration = clock() - start
            del result
        else:
            start = clock()
            for _ in range(count):
                call()
            duration = clock() - start
    finally:
        gc.enable()
    return duration / count
