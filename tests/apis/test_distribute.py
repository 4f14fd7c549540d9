"""Extension values in tf.distribute: several devices, several processes.

The processes run `tests.apis.distributed`; a test reads their results.
"""

from pathlib import Path

import pytest

from tests.apis import matrix
from tests.apis.matrix import EAGER, RUN

pytestmark = pytest.mark.whole("starts the processes of each strategy")


def row(use):
    """Adds a test to the row of this use, for every strategy."""
    return matrix.row(*(strategy + use for strategy in matrix.STRATEGIES))


def said(distributed, name, check, kind, run=None):
    """Returns the results of a check in the processes of the strategy in a row's name."""
    strategy = name.partition(".")[0].partition(":")[0]
    mode = "" if run is None else ", eager" if run is RUN[EAGER] else ", graph"
    return distributed[strategy][check + mode][kind.name]


@row(".run")
def test_every_replica_gets_values(name, kind, run, distributed):
    assert said(distributed, name, "run", kind, run) == ""


@row(": per-replica values, experimental_local_results")
def test_values_of_replicas_are_passed_on(name, kind, run, distributed):
    assert said(distributed, name, "per-replica values", kind, run) == ""


@row(".experimental_distribute_dataset")
def test_a_distributed_dataset_has_values(name, kind, run, distributed):
    assert said(distributed, name, "dataset", kind) == ""


@row(".distribute_datasets_from_function")
def test_datasets_of_workers_have_values(name, kind, run, distributed):
    assert said(distributed, name, "datasets from function", kind) == ""


@row(": a loop over a distributed dataset")
def test_a_loop_over_a_distributed_dataset_has_values(name, kind, run, distributed):
    assert said(distributed, name, "loop", kind, run) == ""


@row(".reduce, gather: components")
def test_components_of_all_replicas_are_reduced_and_gathered(name, kind, run, distributed):
    assert said(distributed, name, "reduce and gather components", kind, run) == ""


@row(".reduce(value), gather(value)")
def test_the_error_for_reducing_values_names_the_alternative(name, kind, run, distributed):
    assert said(distributed, name, "reduce and gather values", kind, run) == ""


@row(": tf.Variable in a field")
def test_variables_on_many_devices_work_in_values(name, kind, run, distributed):
    assert said(distributed, name, "variables", kind, run) == ""


@matrix.row("ParameterServerStrategy.run")
def test_workers_take_and_return_values(kind, run, distributed):
    assert distributed["ParameterServerStrategy"]["run"][kind.name] == ""


@matrix.row("ClusterCoordinator.create_per_worker_dataset")
def test_datasets_of_a_coordinator_have_values(kind, run, distributed):
    assert distributed["ParameterServerStrategy"]["dataset"][kind.name] == ""


def test_every_result_of_the_processes_is_read_by_a_row(distributed):
    source = Path(__file__).read_text()
    checks = {check.partition(",")[0] for found in distributed.values() for check in found}
    assert [check for check in checks if f'"{check}"' not in source] == []
