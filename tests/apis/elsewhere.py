"""What the rows ask of a process that has met no type yet: `python -m tests.apis.elsewhere FOLDER`.

Loads the models that test_values saved, and runs what needs two devices or a first meeting. Prints
for each row and kind what went wrong, as JSON.
"""

import functools
import json
import os
import sys
import threading
import traceback
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

CHECKS = {}


def check(name):
    def decorate(function):
        CHECKS[name] = function
        return function

    return decorate


def load(folder, kind, name):
    import tensorflow as tf

    return tf.saved_model.load(str(Path(folder) / kind / name))


@check("threads")
def threads(kind, folder):
    import tensorflow as tf

    from tests.apis.kinds import assert_same

    value, errors = kind.make(3), []
    barrier = threading.Barrier(8)

    def meet():
        try:
            barrier.wait()
            assert_same(tf.function(kind.doubled)(value), kind.doubled(value))
            assert_same(tf.nest.map_structure(tf.identity, value, expand_composites=True), value)
            [batch] = tf.data.Dataset.from_tensor_slices(value).batch(3)
            assert_same(batch, value)
        except BaseException:
            errors.append(traceback.format_exc())

    workers = [threading.Thread(target=meet) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors, errors[0]


@check("function")
def function(kind, folder):
    from tests.apis.kinds import assert_same

    double = load(folder, kind.name, "function").double
    for size in (2, 3):
        assert_same(double(kind.make(size)), kind.doubled(kind.make(size)))


@check("variable")
def variable(kind, folder):
    import tensorflow as tf

    from tests.apis.kinds import assert_same

    model = load(folder, kind.name, "variable")
    assert_same(model.floats(), tf.constant([6.0, 4.0, 2.0]))


@functools.cache
def mirrored():
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def replicas(kind, run):
    from tests.apis.kinds import assert_same

    strategy = mirrored()
    values = [kind.make(2), kind.make(2, 2)]

    def on_all():
        per_replica = strategy.experimental_distribute_values_from_function(
            lambda context: values[context.replica_id_in_sync_group]
        )
        return strategy.run(kind.doubled, args=(per_replica,))

    def on_one(value):
        return strategy.run(kind.doubled, args=(value,))

    local = strategy.experimental_local_results
    if run == "eager":
        assert_same(list(local(on_all())), [kind.doubled(value) for value in values])
    import tensorflow as tf

    call = tf.function(on_one) if run == "graph" else on_one
    assert_same(list(local(call(values[0]))), [kind.doubled(values[0])] * 2)


check("replicas, eager")(lambda kind, folder: replicas(kind, "eager"))
check("replicas, graph")(lambda kind, folder: replicas(kind, "graph"))


@check("distributed dataset")
def distributed_dataset(kind, folder):
    import tensorflow as tf

    from tests.apis.kinds import assert_same

    strategy = mirrored()
    dataset = tf.data.Dataset.from_tensor_slices(kind.make(4)).batch(4)
    [element] = strategy.experimental_distribute_dataset(dataset)
    local = strategy.experimental_local_results(strategy.run(kind.doubled, args=(element,)))
    assert_same(list(local), [kind.doubled(kind.make(2)), kind.doubled(kind.make(2, 2))])


def loop_over_distributed_dataset(kind, run):
    import tensorflow as tf

    strategy = mirrored()
    # Of the second batch the second replica gets nothing.
    dataset = tf.data.Dataset.from_tensor_slices(kind.make(3)).batch(2)
    distributed = strategy.experimental_distribute_dataset(dataset)

    def on_replica(value):
        ragged = [value["tags"], value["steps", "minutes"]] if kind.has_strings else []
        count = tf.add_n([tf.cast(tf.size(x), tf.float32) for x in ragged] + [tf.constant(0.0)])
        return kind.floats(kind.doubled(value)), count

    def total():
        result, extra = tf.constant(0.0), tf.constant(0.0)
        for value in distributed:
            floats, count = strategy.run(on_replica, args=(value,))
            result += strategy.reduce("SUM", floats, axis=0)
            extra += strategy.reduce("SUM", count, axis=None)
        return result, extra

    result, extra = (tf.function(total) if run == "graph" else total)()
    assert (float(result), float(extra)) == (6.0, 6.0 if kind.has_strings else 0.0)


check("loop, eager")(lambda kind, folder: loop_over_distributed_dataset(kind, "eager"))
check("loop, graph")(lambda kind, folder: loop_over_distributed_dataset(kind, "graph"))


@check("gather")
def gather(kind, folder):
    import tensorflow as tf

    from tests.apis.kinds import assert_same

    strategy = mirrored()
    per_replica = strategy.run(kind.doubled, args=(kind.make(2),))
    floats = strategy.run(kind.floats, args=(per_replica,))
    once = kind.floats(kind.doubled(kind.make(2)))
    assert_same(strategy.gather(floats, axis=0), tf.concat([once, once], 0))


@functools.cache
def dispatcher():
    import tensorflow as tf

    dispatcher = tf.data.experimental.service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    worker = tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(dispatcher_address=address)
    )
    return dispatcher, worker


@check("data service")
def data_service(kind, folder):
    import tensorflow as tf

    from tests.apis.kinds import assert_same

    dataset = tf.data.Dataset.from_tensor_slices(kind.make(4)).batch(2).map(kind.doubled)
    found = dataset.apply(
        tf.data.experimental.service.distribute("parallel_epochs", dispatcher()[0].target)
    )
    assert_same(list(found), [kind.doubled(kind.make(2)), kind.doubled(kind.make(2, 2))])
    elements = tf.data.Dataset.from_tensor_slices(kind.make(2)).apply(
        tf.data.experimental.service.distribute(
            "parallel_epochs", dispatcher()[0].target, compression=None
        )
    )
    assert_same(list(elements), kind.examples(0, 1))


def main(folder):
    import tensorflow as tf

    [cpu] = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    results = {"not imported": {}}
    for path in sorted(Path(folder).iterdir()):
        try:
            load(folder, path.name, "function")
        except ValueError as error:
            results["not imported"][path.name] = str(error)
    from tests.apis.kinds import KINDS

    for name, run in CHECKS.items():
        results[name] = {}
        for kind in KINDS:
            try:
                run(kind, folder)
            except Exception:
                results[name][kind.name] = traceback.format_exc()
            else:
                results[name][kind.name] = ""
    print(json.dumps(results), flush=True)
    # The servers of tf.data service have no quick end.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
