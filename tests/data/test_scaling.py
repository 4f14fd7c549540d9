"""Datasets of files on several processes: tf.data service, and synchronous training."""

import collections
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt

ROWS = 2_000
SIZE = 64
SECONDS = 240  # until a process is killed, and the test fails


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Returns a folder of files with 3, 2 and 2 row groups of different sizes."""
    folder = tmp_path_factory.mktemp("files")
    first = 0
    for number, (rows, group) in enumerate([(900, 300), (600, 400), (500, 250)]):
        ids = list(range(first, first + rows))
        table = pa.table({"id": ids, "tags": [["tag"] * (i % 3) for i in ids]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=group)
        first += rows
    assert first == ROWS
    return str(folder)


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [str(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Service:
    """A dispatcher and workers, each a process."""

    def __init__(self, folder):
        self._folder = folder
        self._processes = []
        dispatcher = self._start("dispatcher")
        self.target = dispatcher.stdout.readline().split(": ")[1].strip()
        self.ports = _free_ports(2)
        self.workers = [self.start_worker(port) for port in self.ports]
        for worker in self.workers:
            assert worker.stdout.readline().startswith("worker:")

    def start_worker(self, port):
        return self._start("worker", "--dispatcher", self.target, "--port", port)

    def _start(self, *arguments):
        with open(self._folder / "log", "a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "extensor", "data-service", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._processes.append(process)
        return process

    def close(self):
        for process in self._processes:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path)
    yield service
    service.close()


EPOCH = """
    import json
    import tensorflow as tf
    import extensor as xt

    batches = xt.data.parquet({files!r}, {size}, shuffle={shuffle}, shard={shard!r})
    batches = batches.apply(tf.data.experimental.service.distribute({mode!r}, {target!r}))
    print(json.dumps([batch["id"].numpy().tolist() for batch in batches]))
"""


@pytest.mark.slow
def test_a_service_gives_each_record_once_or_once_for_each_worker(service, files, run_python):
    for mode, shard, times in (("distributed_epoch", "service", 1), ("parallel_epochs", None, 2)):
        for shuffle in ("None", "xt.data.Shuffle(seed=1, window=500)"):
            code = EPOCH.format(
                files=files,
                size=SIZE,
                shuffle=shuffle,
                shard=shard,
                mode=mode,
                target=service.target,
            )
            printed = run_python(code, timeout=SECONDS).stdout.splitlines()[-1]
            counts = collections.Counter(i for batch in json.loads(printed) for i in batch)
            assert counts == dict.fromkeys(range(ROWS), times)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_processes(service, number):
    for worker in service.workers:
        worker.send_signal(number)
        assert worker.wait(SECONDS) == 0


@pytest.mark.slow
def test_two_trainers_have_each_record_once_in_equal_steps(files, tmp_path):
    ports = ",".join(_free_ports(2))
    script = pathlib.Path(__file__).with_name("trainer.py")
    outputs = [tmp_path / f"{index}.json" for index in range(2)]
    logs = [tmp_path / f"{index}.log" for index in range(2)]
    with contextlib.ExitStack() as stack:
        trainers = []
        for index, (output, log) in enumerate(zip(outputs, logs, strict=True)):
            stream = stack.enter_context(log.open("w"))
            trainer = subprocess.Popen(
                [sys.executable, str(script), str(index), ports, files, str(output)],
                stdout=stream,
                stderr=stream,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
            )
            stack.callback(trainer.wait)
            stack.callback(trainer.kill)
            trainers.append(trainer)
        codes = [trainer.wait(SECONDS) for trainer in trainers]
    assert codes == [0, 0], [log.read_text() for log in logs]
    first, second = (json.loads(output.read_text()) for output in outputs)
    assert sorted(first["seen"] + second["seen"]) == list(range(ROWS))
    assert len(first["seen"]) != len(second["seen"])  # so that one of them has to wait
    assert first["steps"] == second["steps"]
    assert first["total"] == second["total"] == [ROWS, sum(range(ROWS))]


KILLED = """
    import json
    import tensorflow as tf
    import extensor as xt

    steps = int(xt.data.parquet({files!r}, {size}).cardinality())
    batches = xt.data.parquet({files!r}, {size}, shard="service", epochs=20)
    batches = batches.apply(tf.data.experimental.service.distribute({mode!r}, {target!r}))
    seen = []
    try:
        for batch in batches.apply(tf.data.experimental.assert_cardinality(20 * steps)):
            seen.append(batch["id"].numpy().tolist())
            if len(seen) == 20:
                print("begun", flush=True)
                input()
    except tf.errors.FailedPreconditionError as error:
        print("lost", error)
    print(json.dumps(seen))
"""


@pytest.mark.slow
def test_a_killed_worker_doubles_nothing_and_what_it_loses_is_an_error(service, files):
    code = KILLED.format(files=files, size=SIZE, mode="distributed_epoch", target=service.target)
    trainer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    timer = threading.Timer(SECONDS, trainer.kill)
    timer.start()
    try:
        assert trainer.stdout.readline() == "begun\n"
        service.workers[0].kill()
        service.workers[0].wait()
        again = service.start_worker(service.ports[0])
        assert again.stdout.readline().startswith("worker:")
        printed = trainer.communicate("\n")[0].splitlines()
    finally:
        timer.cancel()
        trainer.kill()
        trainer.wait()
    counts = collections.Counter(i for batch in json.loads(printed[-1]) for i in batch)
    assert set(counts) <= set(range(ROWS))
    assert max(counts.values()) <= 20
    is_complete = counts == dict.fromkeys(range(ROWS), 20)
    assert printed[0].startswith("lost") == (not is_complete)


def test_the_processes_know_how_to_make_the_datasets_of_all_files(run_python):
    code = """
        import extensor._cli.data_service
        from extensor._data.serialize import SOURCES
        print(sorted(SOURCES))
    """
    assert (
        run_python(code).stdout.split("\n")[-2]
        == "['arrow', 'csv', 'json', 'parquet', 'proto', 'tfrecord']"
    )


@pytest.mark.whole("starts servers")
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")
def test_workers_in_the_process_of_the_dataset_divide_one_order(files):
    """Each worker began the next epoch: their parts had some records twice, and others never."""
    shuffle = xt.data.Shuffle(seed=1, window=100)
    dataset = xt.data.parquet(files, 100, shuffle=shuffle, shard="service")
    servers = tf.data.experimental.service
    dispatcher = servers.DispatchServer()
    config = servers.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1])
    workers = [servers.WorkerServer(config) for _ in range(2)]
    served = dataset.apply(servers.distribute("distributed_epoch", dispatcher.target))
    for _ in range(2):
        found = np.concatenate([batch["id"].numpy() for batch in served])
        assert sorted(found.tolist()) == list(range(ROWS))
    del workers


def test_what_the_workers_of_a_service_divide_has_no_state(files):
    dataset = xt.data.parquet(files, SIZE, shard="service")
    state = xt.data.state(xt.data.parquet(files, SIZE), 1)
    for make in (
        lambda: xt.data.state(dataset, 1),
        lambda: xt.data.parquet(files, SIZE, shard="service", state=state),
    ):
        with pytest.raises(xt.errors.StructureError, match=r'^state: .* those of shard="service"'):
            make()
