"""The cost of dispatch, for types that override operations and for others."""

from __future__ import annotations

import functools
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import extensor  # noqa: F401 - switches dispatch on
from bench.measure import Call
from bench.row import NoLimit, ProcessRow, Row, Under, Within

_IMPORTS = 5
_TURNS, _CALLS = 1500, 20


def rows() -> list[Row | ProcessRow]:
    return [
        ProcessRow("what dispatch adds to `import extensor`, vs all of it", Under(0.1), _import),
        *(
            ProcessRow(
                f"what dispatch adds to tf.add, {count} types, vs {peer}",
                Within(0.6) if peer == "dispatch_for_api" else NoLimit(),
                functools.partial(_added, count, theirs),
            )
            for peer, theirs in _PEERS.items()
            for count in (1, 8)
        ),
        Row(
            "tf.add of tensors, vs the function as TensorFlow has it",
            NoLimit(),
            lambda folder: _plain(tf.add, tf.ones([2]), tf.ones([2])),
        ),
        Row(
            "tf.concat of two tensors, vs the function as TensorFlow has it",
            NoLimit(),
            lambda folder: _plain(tf.concat, [tf.ones([2]), tf.ones([2])], 0),
        ),
        Row(
            "tf.add of a ragged tensor, vs the function as TensorFlow has it",
            NoLimit(),
            lambda folder: _plain(tf.add, tf.ragged.constant([[1.0], []]), tf.ones([])),
        ),
    ]


def _import() -> tuple[float, float]:
    """Returns the time that dispatch adds to `import extensor`, and the total, in new processes."""
    code = "import tensorflow, time; start = time.process_time(); import extensor; "
    code += "print(time.process_time() - start)"
    seconds: dict[str, list[float]] = {"0": [], "1": []}
    for _ in range(_IMPORTS):
        for switch, found in seconds.items():
            done = subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "EXTENSOR_DISPATCH": switch},
                check=True,
                capture_output=True,
                text=True,
            )
            found.append(float(done.stdout))
    off, on = (statistics.median(found) for found in seconds.values())
    return on - off, on


# The cost of dispatch: the time of an overridden tf.add minus that of the two operations that its
# handler calls, and of the new value.


def _handler_call(make: Callable[..., Any], x: Any, y: Any) -> Any:
    return make(tf.add(x.values, y.values), tf.logical_and(x.mask, y.mask))


def _ours() -> type:
    class Masked:
        def __init__(self, values: tf.Tensor, mask: tf.Tensor) -> None:
            self.values, self.mask = values, mask

        @classmethod
        def __tf_dispatch__(cls, op: Any, args: Any, kwargs: Any) -> Any:
            if op is tf.add:
                x, y = args
                return cls(op(x.values, y.values), tf.logical_and(x.mask, y.mask))
            return NotImplemented

    return Masked


def _for_api() -> type:
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

    @tf.experimental.dispatch_for_api(tf.add, {"x": Masked, "y": Masked})
    def add(x: Any, y: Any) -> Any:
        return Masked(tf.add(x.values, y.values), tf.logical_and(x.mask, y.mask))

    return Masked


def _for_elementwise_apis() -> type:
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

    @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)
    def binary(api: Any, x: Any, y: Any) -> Any:
        return Masked(api(x.values, y.values), tf.logical_and(x.mask, y.mask))

    return Masked


_PEERS = {
    "dispatch_for_api": _for_api,
    "dispatch_for_binary_elementwise_apis": _for_elementwise_apis,
}


@functools.cache
def _types(make: Callable[[], type], count: int) -> list[type]:
    return [make() for _ in range(count)]


def _added(count: int, theirs: Callable[[], type]) -> tuple[float, float]:
    tensors = tf.ones([2]), tf.ones([2], tf.bool)
    calls: list[Call] = []
    for make in (_ours, theirs):
        kind = _types(make, count)[-1]
        x, y = kind(*tensors), kind(*tensors)
        calls.append(functools.partial(tf.add, x, y))
        calls.append(functools.partial(_handler_call, kind, x, y))
    return _more(*calls)


def _more(ours: Call, our_handler: Call, peer: Call, peer_handler: Call) -> tuple[float, float]:
    """Returns the differences of the first and second call, and of the third and fourth.

    A microsecond in thirty is less than what a busy moment adds, so each call is compared with the
    one beside it, in turns so short that most see no such moment, and the median turn counts.
    """
    calls = [ours, our_handler, peer, peer_handler]
    for call in calls:
        call()
    turns: list[list[float]] = []
    gc.collect()
    gc.disable()
    try:
        for number in range(_TURNS):
            times = dict[Call, float]()
            for call in reversed(calls) if number % 2 else calls:
                start = time.perf_counter()
                for _ in range(_CALLS):
                    call()
                times[call] = (time.perf_counter() - start) / _CALLS
            turns.append([times[call] for call in calls])
    finally:
        gc.enable()
    return (
        statistics.median(turn[0] - turn[1] for turn in turns),
        statistics.median(turn[2] - turn[3] for turn in turns),
    )


def _plain(function: Any, *args: Any) -> tuple[Call, Call]:
    before = vars(function)["_extensor_plain"]
    return functools.partial(function, *args), functools.partial(before, *args)
