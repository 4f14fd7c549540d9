"""What a model keeps after `fit`: not more of values than of a dict of tensors."""

import pytest

LOOP = """
import gc, os, statistics
import keras, tensorflow as tf
import extensor as xt

fields = {f"f{i}": tf.ones([64, 4]) for i in range(8)}
use = lambda x: tf.concat([x[name] for name in fields], axis=1)
base, x = BASE

class Model(base):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(use(x))

def memory():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

model = Model()
model.compile("sgd", "mse", jit_compile=False)
y = tf.zeros([64, 1])
seen = []
for _ in range(8):
    seen.append(memory())
    for _ in range(50):
        model.fit(x, y, verbose=0)
seen.append(memory())
# The first fits fill caches and the pools of the allocators.
print(statistics.median((after - before) / 50 for before, after in zip(seen[3:], seen[4:])))
"""
BASES = {
    "records": "xt.keras.Model, xt.DenseStructuredTensor([64], fields)",
    "dict": "keras.Model, fields",
}


@pytest.mark.slow
def test_a_fit_keeps_at_most_10_kb_more_than_a_fit_of_a_dict(run_python):
    kept = {
        name: float(run_python(LOOP.replace("BASE", base, 1), timeout=600).stdout)
        for name, base in BASES.items()
    }
    assert kept["records"] <= kept["dict"] + 10_000
