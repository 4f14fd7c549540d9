"""One of the processes that train together: `python trainer.py INDEX PORTS FILES OUTPUT`.

Each sums its own shard. A shard that has fewer batches than another repeats its last batch with
the weight 0, because a synchronous step needs all processes.
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


def train(index, count, files, output):
    """Sums the ids of a shard with the other processes, and writes what it saw as JSON.

    Args:
        index: The number of the shard.
        count: The number of shards.
        files: A folder of Parquet files with the column `id`.
        output: The file to write.
    """
    import tensorflow as tf  # here, because it reads TF_CONFIG

    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation

    import extensor as xt

    shards = [xt.data.parquet(files, 64, shard=(i, count)) for i in range(count)]
    steps = max(int(shard.cardinality()) for shard in shards)

    @tf.function(input_signature=[shards[index].element_spec, tf.TensorSpec([], tf.int64)])
    def step(batch, weight):
        def replica(batch, weight):
            sums = [tf.size(batch["id"], tf.int64), tf.reduce_sum(batch["id"])]
            return tf.distribute.get_replica_context().all_reduce("SUM", tf.stack(sums) * weight)

        return strategy.run(replica, args=(batch, weight))

    seen, total = [], 0
    batches = iter(shards[index])
    for _ in range(steps):
        following = next(batches, None)
        if following is not None:
            batch = following
            seen += batch["id"].numpy().tolist()
        total += step(batch, tf.constant(0 if following is None else 1, tf.int64)).numpy()

    with open(output, "w") as file:
        json.dump({"seen": seen, "steps": steps, "total": total.tolist()}, file)


if __name__ == "__main__":
    main()
