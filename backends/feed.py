"""Times training with JAX from a Parquet file, and from arrays that are ready; prints JSON.

The arguments are a folder for the file, and the number of records in a batch. Both feed the same
model with the same batches.
"""

import json
import os
import statistics
import sys
import time

import keras
import numpy as np

from backends import baskets

STEPS, REPETITIONS = 200, 5


def main(folder, batch_size):
    path = os.path.join(folder, "baskets.parquet")
    baskets.write_baskets(path, batch_size * STEPS)
    dataset = baskets.batches(path, batch_size)
    pairs = list(dataset)
    ready = {key: np.concatenate([inputs[key] for inputs, _ in pairs]) for key in pairs[0][0]}
    spent = np.concatenate([spent for _, spent in pairs])
    model = baskets.model(width=512, layers=3)
    calls = {
        "ours": lambda: model.fit(dataset, shuffle=False, verbose=0),
        "ready": lambda: model.fit(ready, spent, batch_size=batch_size, shuffle=False, verbose=0),
    }
    times = {name: [] for name in calls}
    for repetition in range(REPETITIONS + 1):
        for name, call in list(calls.items())[:: 1 if repetition % 2 else -1]:
            begin = time.perf_counter()
            call()
            if repetition:  # the first one compiles
                times[name].append((time.perf_counter() - begin) / STEPS)
    report = {name: statistics.median(seconds) for name, seconds in times.items()}
    where = str(getattr(model.trainable_variables[0].value, "device", ""))
    backend = keras.backend.backend()
    print(json.dumps({"backend": backend, "device": where, "batch": batch_size, **report}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
