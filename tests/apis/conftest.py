"""Fixtures that run rows of the matrix in other processes."""

import json
import os
import subprocess
import sys

import pytest
import tensorflow as tf

from tests.apis.kinds import KINDS
from tests.apis.process import free_ports


def results(processes):
    """Runs processes at the same time, and returns the JSON data of the last line of each.

    Args:
        processes: By name, the module with arguments, and additional variables of the
            environment.
    """
    # Servers on this machine are not behind a proxy.
    environment = {**os.environ, "no_proxy": "127.0.0.1,localhost"}
    started = {
        name: subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, (arguments, more) in processes.items()
    }
    found = {}
    try:
        for name, process in started.items():
            printed, log = process.communicate(timeout=240)
            assert process.returncode == 0, f"{name}: {printed}{log}"
            found[name] = json.loads(printed.splitlines()[-1])
    finally:
        for process in started.values():
            process.kill()
            process.wait()
    return found


def layer(kind):
    """Returns a module for tensorflow_hub that multiplies by a trainable factor."""
    module = tf.train.Checkpoint()
    module.factor = tf.Variable(2.0)
    module.trainable_variables = [module.factor]
    module.__call__ = tf.function(
        lambda value: kind.change(lambda floats: floats * module.factor, value),
        input_signature=[kind.spec],
    )
    return module


def reader(kind):
    """Returns a module with a variable in a value, and a function that reads it."""
    module = tf.Module()
    variable = tf.Variable([3.0, 2.0, 1.0])
    module.value = kind.change(lambda _: variable, kind.make(3))
    module.floats = tf.function(lambda: kind.floats(module.value) * 2, input_signature=[])
    return module


@pytest.fixture(scope="session")
def there(tmp_path_factory):
    """Returns the results of another process, which loads models that were saved in this one.

    They are an error text for each row and kind; empty if the row passes.
    """
    folder = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        function = tf.Module()
        function.double = tf.function(kind.doubled, input_signature=[kind.spec])
        models = {"function": function, "variable": reader(kind), "layer": layer(kind)}
        for name, model in models.items():
            tf.saved_model.save(model, str(folder / kind.name / name))
    [found] = results({"elsewhere": (["tests.apis.elsewhere", str(folder)], {})}).values()
    return found


@pytest.fixture(scope="session")
def distributed():
    """Returns the results of the processes of each strategy of tf.distribute."""
    module = "tests.apis.distributed"
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]

    def of_cluster(index):
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        return {"TF_CONFIG": json.dumps(config)}

    found = results(
        {
            "MirroredStrategy": ([module, "mirrored"], {}),
            "first worker": ([module, "worker"], of_cluster(0)),
            "second worker": ([module, "worker"], of_cluster(1)),
            "ParameterServerStrategy": ([module, "servers"], {}),
        }
    )
    first, second = found.pop("first worker"), found.pop("second worker")
    found["MultiWorkerMirroredStrategy"] = {
        check: {kind: said + second[check][kind] for kind, said in kinds.items()}
        for check, kinds in first.items()
    }
    return found
