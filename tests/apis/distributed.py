"""Rows of tf.distribute, each run in processes of its own.

`python -m tests.apis.distributed mirrored`: MirroredStrategy on two logical devices.
`python -m tests.apis.distributed worker`: MultiWorkerMirroredStrategy, one of the processes that
TF_CONFIG names.
`python -m tests.apis.distributed servers`: ParameterServerStrategy, with its servers on loopback.
Each prints an error text for each row and kind, as JSON; empty if the row passes.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

from tests.apis.kinds import assert_same
from tests.apis.matrix import EAGER, GRAPH, RUN
from tests.apis.process import Report, free_ports, print_and_end

mirrored, servers = Report(), Report()

Dataset = tf.data.Dataset


def replicas(strategy):
    """The numbers of the replicas that this process runs, of two in all."""
    cluster = strategy.cluster_resolver
    return range(2) if cluster is None else [cluster.task_id]


def parts(kind, change=lambda value: value):
    """What each of the two replicas has of a batch of four."""
    return [change(kind.make(2)), change(kind.make(2, 2))]


def per_replica(strategy, kind):
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts(kind)[context.replica_id_in_sync_group]
    )


def assert_local(strategy, value, expected):
    """Asserts what this process's replicas have, of what both are to have."""
    local = list(strategy.experimental_local_results(value))
    assert_same(local, [expected[n] for n in replicas(strategy)])


def sharded(dataset):
    """The dataset with its elements spread over workers: it is too short to be spread by files."""
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


@mirrored.check("run, eager", EAGER)
@mirrored.check("run, graph", GRAPH)
def run(kind, strategy, mode):
    def on_all(value):
        return strategy.run(kind.doubled, args=(value,))

    doubled = parts(kind, kind.doubled)
    assert_local(strategy, RUN[mode](on_all, per_replica(strategy, kind)), doubled)
    assert_local(strategy, RUN[mode](on_all, kind.make(2)), doubled[:1] * 2)
    nested = RUN[mode](lambda x: strategy.run(lambda: {"a": [kind.doubled(x)]}), kind.make(2))
    assert_local(strategy, nested["a"][0], doubled[:1] * 2)


@mirrored.check("per-replica values, eager", EAGER)
@mirrored.check("per-replica values, graph", GRAPH)
def per_replica_values(kind, strategy, mode):
    values = per_replica(strategy, kind)
    assert_local(strategy, RUN[mode](lambda x: x, values), parts(kind))
    local = RUN[mode](lambda x: strategy.experimental_local_results(x), values)
    assert_same(list(local), [parts(kind)[n] for n in replicas(strategy)])
    one = RUN[mode](lambda x: strategy.experimental_local_results(x), kind.make(2))
    assert_same(list(one), [kind.make(2)])


@mirrored.check("dataset")
def distributed_dataset(kind, strategy):
    dataset = sharded(Dataset.from_tensor_slices(kind.make(4)).batch(4))
    [element] = strategy.experimental_distribute_dataset(dataset)
    assert_local(strategy, element, parts(kind))
    doubled = parts(kind, kind.doubled)
    assert_local(strategy, strategy.run(kind.doubled, args=(element,)), doubled)


@mirrored.check("datasets from function")
def datasets_from_function(kind, strategy):
    def dataset(context):
        rows = Dataset.from_tensor_slices(kind.make(4)).batch(2)
        return rows.shard(context.num_input_pipelines, context.input_pipeline_id)

    [element] = strategy.distribute_datasets_from_function(dataset)
    assert_local(strategy, element, parts(kind))


@mirrored.check("loop, eager", EAGER)
@mirrored.check("loop, graph", GRAPH)
def loop_over_distributed_dataset(kind, strategy, mode):
    # Of the second batch the second replica gets nothing.
    dataset = sharded(Dataset.from_tensor_slices(kind.make(3)).batch(2))
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

    result, extra = RUN[mode](total)
    assert (float(result), float(extra)) == (6.0, 6.0 if kind.has_strings else 0.0)


@mirrored.check("reduce and gather components, eager", EAGER)
@mirrored.check("reduce and gather components, graph", GRAPH)
def reduce_and_gather_components(kind, strategy, mode):
    def components(values):
        floats = strategy.run(kind.floats, args=(values,))
        return strategy.reduce("SUM", floats, axis=None), strategy.gather(floats, axis=0)

    total, gathered = RUN[mode](components, per_replica(strategy, kind))
    assert_same(total, tf.constant([2.0, 4.0]))
    assert_same(gathered, tf.constant([0.0, 1.0, 2.0, 3.0]))

    def on_replica(value):
        floats = kind.floats(value) * 1  # an argument itself is on no device yet
        context = tf.distribute.get_replica_context()
        return context.all_reduce("SUM", floats), context.all_gather(floats, axis=0)

    # With no graph around it a replica alone cannot wait for those of other processes.
    in_graph = tf.function(lambda values: strategy.run(on_replica, args=(values,)))
    totals, gathers = in_graph(per_replica(strategy, kind))
    assert_local(strategy, totals, [total] * 2)
    assert_local(strategy, gathers, [gathered] * 2)


@mirrored.check("reduce and gather values, eager", EAGER)
@mirrored.check("reduce and gather values, graph", GRAPH)
def reduce_and_gather_values(kind, strategy, mode):
    values, name = per_replica(strategy, kind), type(kind.make(1)).__name__
    context = tf.distribute.get_replica_context
    for refused in (
        lambda x: strategy.reduce("SUM", x, axis=None),
        lambda x: strategy.reduce("MEAN", [x], axis=0),
        lambda x: strategy.gather(x, axis=0),
        lambda x: strategy.run(lambda y: context().all_reduce("SUM", y), args=(x,)),
        lambda x: strategy.run(lambda y: context().all_gather([y], axis=0), args=(x,)),
    ):
        try:
            RUN[mode](refused, values)
        except TypeError as error:
            message = str(error)
        assert f"got {name} values. Return the components of the values" in message


@mirrored.check("variables, eager", EAGER)
@mirrored.check("variables, graph", GRAPH)
def variables(kind, strategy, mode):
    with strategy.scope():
        variable = tf.Variable([1.0, 2.0])
    held = kind.change(lambda _: variable, kind.make(2))
    if kind.has_strings:
        assert isinstance(kind.floats(held), tf.Tensor), "StructuredTensor keeps it by now: say so"
        return

    def gradient():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(kind.floats(kind.doubled(held)) ** 2)
        return kind.floats(tape.gradient(y, held))

    found = RUN[mode](lambda: strategy.run(gradient))
    assert_local(strategy, found, [tf.constant([8.0, 16.0])] * 2)
    module = tf.Module()
    module.held = held
    assert [v is variable for v in module.trainable_variables] == [True]
    assert [v is variable for v in module._trackable_children()["held"].variables] == [True]


def coordinator():
    """Starts two workers and a parameter server in this process; returns their coordinator."""
    *workers, last = [f"127.0.0.1:{port}" for port in free_ports(3)]
    addresses = {"worker": workers, "ps": [last]}
    cluster = tf.train.ClusterSpec(addresses)
    # Workers wait for each other, so one thread each would not do on a machine of one core.
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)
    for job, tasks in addresses.items():
        for index in range(len(tasks)):
            _servers.append(tf.distribute.Server(cluster, job, index, config=config))
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    return tf.distribute.coordinator.ClusterCoordinator(strategy)


_servers: list[tf.distribute.Server] = []  # they serve for as long as somebody holds them


@servers.check("run")
def run_on_workers(kind, coordinator):
    strategy, value = coordinator.strategy, kind.make(2)

    @tf.function
    def step(other):
        both = strategy.run(lambda x: (kind.doubled(x), kind.doubled(value)), args=(other,))
        return both

    results = [coordinator.schedule(step, args=(part,)) for part in parts(kind)]
    coordinator.join()
    expected = [(part, kind.doubled(value)) for part in parts(kind, kind.doubled)]
    # `fetch` would return the columns of records in NumPy, as it does with tensors.
    assert_same([result.get() for result in results], expected)


@servers.check("dataset")
def datasets_of_workers(kind, coordinator):
    strategy = coordinator.strategy
    with strategy.scope():
        total = tf.Variable(0.0)

    def dataset(context):
        return Dataset.from_tensor_slices(kind.make(2)).batch(2).repeat()

    @tf.function
    def step(iterator):
        def on_worker(value):
            total.assign_add(tf.reduce_sum(kind.floats(value)))
            return kind.doubled(value)

        return strategy.run(on_worker, args=(next(iterator),))

    for make in (
        lambda: dataset(None),
        lambda: strategy.distribute_datasets_from_function(dataset),
    ):
        total.assign(0.0)
        iterator = iter(coordinator.create_per_worker_dataset(make))
        results = [coordinator.schedule(step, args=(iterator,)) for _ in range(4)]
        coordinator.join()
        assert_same([result.get() for result in results], [kind.doubled(kind.make(2))] * 4)
        assert total.numpy() == 4.0


def main(role):
    tf.get_logger().setLevel("ERROR")  # that eager calls of these APIs are slow
    if role == "servers":
        print_and_end(servers.results(coordinator()))
    if role == "worker":
        print_and_end(mirrored.results(tf.distribute.MultiWorkerMirroredStrategy()))
    [cpu] = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    print_and_end(mirrored.results(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])))


if __name__ == "__main__":
    main(sys.argv[1])
