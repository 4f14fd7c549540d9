"""`python -m bench.plain [extensor]`: measures plain tensors in this process.

It reads names of `WORK` from its input, one a line, and prints the seconds of each. `plain_rows`
runs one process that imports extensor and one that does not, in turns, to measure the cost of the
import for plain tensors.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import numpy as np
import tensorflow as tf

from bench.measure import Call, repeats, sample


def _add() -> Call:
    one, two = tf.constant(1.0), tf.constant(2.0)
    return lambda: tf.add(one, two)


def _function() -> Call:
    @tf.function
    def total(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {"sum": tf.add_n(list(features.values()))}

    features = {name: tf.ones([8]) for name in "abcd"}
    return lambda: total(features)


def _train_step() -> Call:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    x, y = np.ones([16, 4], np.float32), np.ones([16, 1], np.float32)
    return lambda: model.train_on_batch(x, y)


def _stack() -> Call:
    numbers = [float(i) for i in range(1_000_000)]
    return lambda: tf.stack(numbers)


def _concat() -> Call:
    numbers = [float(i) for i in range(1_000_000)]
    return lambda: tf.concat([numbers, numbers], 0)


WORK: dict[str, Callable[[], Call]] = {
    "tf.add": _add,
    "tf.function call": _function,
    "Keras train step": _train_step,
    "tf.stack of a list of a million floats": _stack,
    "tf.concat of lists of a million floats": _concat,
}


def main() -> None:
    for module in sys.argv[1:]:
        importlib.import_module(module)
    prepared: dict[str, tuple[Call, int]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            call = WORK[name]()
            call()  # the first call includes one-time work
            # Long enough that the wake-up of the process does not matter.
            count = repeats(call)
            prepared[name] = call, 10 * count if count > 1 else 1
            gc.collect()
            gc.freeze()  # a collection of all of TensorFlow takes longer than the call
        print(sample(*prepared[name]), flush=True)


if __name__ == "__main__":
    main()
