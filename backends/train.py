"""Trains the model of `baskets` with the backend of KERAS_BACKEND, and prints the results as JSON.

The arguments are a Parquet file and a number of steps.
"""

import json
import sys

import keras
import numpy as np

from backends import baskets


def main(path, steps):
    dataset = baskets.batches(path, 64)
    model = baskets.model()
    report = {"backend": keras.backend.backend()}
    if report["backend"] != "numpy":
        # Epochs of one step, whose losses are those of single steps.
        history = model.fit(dataset, epochs=steps, steps_per_epoch=1, shuffle=False, verbose=0)
        report["losses"] = history.history["loss"]
        # Epochs of all steps, whose number Keras knows.
        history = model.fit(dataset, validation_data=dataset, epochs=2, shuffle=False, verbose=0)
        report["epochs"] = history.history
        report["steps"] = history.params["steps"]
        report["evaluated"] = model.evaluate(dataset, verbose=0)
    model.set_weights([np.full_like(weight, 0.01) for weight in model.get_weights()])
    report["predicted"] = model.predict(dataset, verbose=0).tolist()
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
