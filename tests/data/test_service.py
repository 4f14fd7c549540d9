"""The command of tf.data service: its arguments, and servers that start."""

import pytest
import tensorflow as tf

from extensor._data import service


def test_a_dispatcher_and_a_worker_start_and_read_a_dataset():
    parser = service._parser()
    try:
        dispatcher = parser.parse_args(["dispatcher"])
        address = dispatcher.start(dispatcher)
        worker = parser.parse_args(["worker", "--dispatcher", address])
        assert address in worker.start(worker)
        dataset = tf.data.Dataset.range(5).apply(
            tf.data.experimental.service.distribute("distributed_epoch", address)
        )
        assert sorted(dataset.as_numpy_iterator()) == [0, 1, 2, 3, 4]
    finally:
        while service._held:
            service._held.pop()  # the worker before its dispatcher


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["worker"]])
def test_wrong_arguments_end_with_the_usage(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        service.main(arguments)
    assert "usage: python -m extensor.data_service" in capsys.readouterr().err
