"""Measures the durations of calls that take turns."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable

Call = Callable[[], object]
Clock = Callable[[], float]

# A sample repeats a fast call until it takes this long, so that the cost and resolution of the
# clock do not matter.
_SAMPLE_SECONDS = 2e-3
_MIN_SAMPLES, _MAX_SAMPLES = 5, 41
_MAX_REPEATS = 10_000


def medians(*calls: Call, seconds: float = 3.0) -> list[float]:
    """Returns the median duration of each call, in seconds.

    Args:
        *calls: Functions without arguments.
        seconds: The approximate total time. At least a few samples of each call are taken even if
            this takes longer.
    """
    return [statistics.median(durations) for durations in _samples(calls, seconds)]


def warm_medians(*calls: Call, seconds: float = 3.0) -> list[float]:
    """Returns the median duration of each call, in seconds; each sample follows the same call.

    Use it for calls that allocate much memory: an allocator that has just given memory back, or
    that keeps the memory of the other call, changes the time. The arguments are those of `medians`.
    """
    return [statistics.median(durations) for durations in _samples(calls, seconds, is_warm=True)]


def fastest(*calls: Call, seconds: float = 3.0) -> list[float]:
    """Returns the shortest duration of each call, in seconds.

    Use it for calls that sometimes take twice as long: Linux may keep the two threads of a matrix
    product on one core for a second or more. The arguments are those of `medians`.
    """
    return [min(durations) for durations in _samples(calls, seconds)]


def cpu_medians(*calls: Call, seconds: float = 3.0) -> list[float]:
    """Returns the median CPU time of each call, in seconds: of all threads, user and system.

    Use it for calls that use several threads, or that wait. The arguments are those of `medians`.
    """
    return [statistics.median(durations) for durations in _samples(calls, seconds, _cpu_seconds)]


def fastest_cpu(call: Call, seconds: float) -> float:
    """Returns the shortest CPU time of a call, in seconds: for calls that cannot take turns."""
    return min(_samples((call,), seconds, _cpu_seconds)[0])


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _samples(
    calls: tuple[Call, ...],
    seconds: float,
    clock: Clock = time.perf_counter,
    is_warm: bool = False,
) -> list[list[float]]:
    """Returns the durations of each call, by a clock.

    The calls take turns, so that other load on the machine affects all of them. The order reverses
    in each turn, so that no call always runs after the same other one. Freeing the result of a call
    is not part of its duration.
    """
    for call in calls:
        call()  # the first call includes one-time work
    gc.collect()
    gc.freeze()  # excludes all existing objects, so that collections are fast
    try:
        counts = [repeats(call) for call in calls]
        samples: list[list[float]] = [[] for _ in calls]
        turns = list(zip(calls, counts, samples, strict=True))
        end = time.perf_counter() + seconds
        while len(samples[0]) < _MAX_SAMPLES:
            if len(samples[0]) >= _MIN_SAMPLES and time.perf_counter() > end:
                break
            for call, count, durations in turns:
                if is_warm:
                    call()
                durations.append(sample(call, count, clock))
            turns.reverse()
    finally:
        gc.unfreeze()
    return samples


def repeats(call: Call) -> int:
    """Returns the number of repetitions that makes a sample long enough."""
    count = 1
    while count < _MAX_REPEATS and sample(call, count) * count < _SAMPLE_SECONDS:
        count *= 2
    return count


def sample(call: Call, count: int, clock: Clock = time.perf_counter) -> float:
    """Returns the mean duration of `count` calls in a row."""
    gc.collect()
    gc.disable()
    try:
        duration = 0.0
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
