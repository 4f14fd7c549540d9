"""`python -m bench.plain [extensor]`: what plain tensors cost in this process.

It reads what to measure, one name of `WORK` a line, and answers each with the seconds that it
took, once. `plain_rows` asks a process with extensor imported and one without in turns: what
importing it costs those who do not use it can only be seen from process to process.
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


WORK: dict[str, Callable[[], Call]] = {
    "tf.add": _add,
    "tf.function call": _function,
    "Keras train step": _train_step,
}


def main() -> None:
    for module in sys.argv[1:]:
        importlib.import_module(module)
    prepared: dict[str, tuple[Call, int]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            call = WORK[name]()
            call()  # the first pays for what is built once
            # Long enough for what woke up with the process not to count.
            prepared[name] = call, 10 * repeats(call)
            gc.collect()
            gc.freeze()  # to look at all of TensorFlow again in each turn takes longer than it
        print(sample(*prepared[name]), flush=True)


if __name__ == "__main__":
    main()
