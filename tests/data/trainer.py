"""One of the processes that train together: `python trainer.py INDEX PORTS FILES OUTPUT`.

Each sums its own shard. A shard that has fewer batches than another takes some batch with the
weight 0, because a synchronous step needs all processes.
"""

import json
import os
import sys


def main():
    index, ports = int(sys.argv[1]), sys.argv[2].split(",")
    files, output = sys.argv[3:]
    workers = [f"localhost:{port}" for port in ports]
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
    )
    train(index, len(ports), files, output)


def train(index, count, files, output, states=None, most=None):
    """Sums the ids of a shard with the other processes, and writes what it saw as JSON.

    Args:
        index: The number of the shard.
        count: The number of shards.
        files: A folder of Parquet files with the column `id`.
        output: The file to write.
        states: The states of all shards of an earlier run.
        most: After how many steps to stop; None for the end of the epoch.
    """
    import tensorflow as tf  # here, because it reads TF_CONFIG

    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation

    import numpy as np

    import extensor as xt

    shard = xt.data.parquet(files, 64, shard=(index, count), state=states)

    @tf.function(input_signature=[shard.element_spec, tf.TensorSpec([], tf.int64)])
    def step(batch, weight):
        def replica(batch, weight):
            ids = batch["id"]
            sums = tf.stack([tf.constant(1, tf.int64), tf.size(ids, tf.int64), tf.reduce_sum(ids)])
            return tf.distribute.get_replica_context().all_reduce("SUM", sums * weight)

        return strategy.run(replica, args=(batch, weight))

    seen, total, used, steps = [], 0, 0, 0
    batches, other = iter(shard), next(iter(xt.data.parquet(files, 64)))
    while steps != most:
        batch = next(batches, None)
        used += batch is not None
        weights, *sums = step(*((other, 0) if batch is None else (batch, 1))).numpy()
        if not weights:
            break
        seen += [] if batch is None else batch["id"].numpy().tolist()
        total, steps = total + np.array(sums), steps + 1
    found = {"seen": seen, "steps": steps, "total": total.tolist()}
    with open(output, "w") as file:
        json.dump({**found, "state": xt.data.state(shard, used)}, file)


if __name__ == "__main__":
    main()
