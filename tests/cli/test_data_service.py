"""`extensor data-service`: its arguments, and servers that start."""

import pytest
import tensorflow as tf

from extensor._cli.data_service import started_dispatcher, started_worker
from extensor_command.main import main


def test_a_dispatcher_and_a_worker_start_and_read_a_dataset():
    dispatcher = started_dispatcher()
    worker = started_worker(dispatcher.target)
    dataset = tf.data.Dataset.range(5).apply(
        tf.data.experimental.service.distribute("distributed_epoch", dispatcher.target)
    )
    assert sorted(dataset.as_numpy_iterator()) == [0, 1, 2, 3, 4]
    del worker  # before its dispatcher


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["worker"], *(["dispatcher", "--port", port] for port in ("x", "-1", "65536"))],
)
def test_wrong_arguments_end_with_the_usage(arguments, capsys):
    assert main(["data-service", *arguments]) == 2
    assert "Usage: extensor data-service" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["", "host", "grpc://host", ":5050", "host:"])
def test_a_dispatcher_without_host_or_port_is_an_error(address, capsys):
    assert main(["data-service", "worker", "--dispatcher", address]) == 2
    assert "--dispatcher: expected a host, a colon and a port" in capsys.readouterr().err
