"""docs/gpu.md says which functions have ops that only a CPU has."""

import pathlib
import re

import pytest
import tensorflow as tf

from tests.gpu import kernels

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "gpu.md"

pytestmark = [
    pytest.mark.whole("traces layers of Keras"),
    pytest.mark.skipif(
        not tf.__version__.startswith("2.21."), reason="the list is that of TensorFlow 2.21"
    ),
]


def test_the_table_of_the_page_is_that_of_the_kernels():
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.*?)`[^|]* \| (.*?) \| .*\|$", page, re.MULTILINE)
    table = {name: re.findall(r"`(\w+)`", ops) for name, ops in rows}
    assert {name: table.get(name) for name in kernels.functions()} == kernels.only_on_cpu()


def test_each_op_of_the_list_is_used():
    functions = kernels.functions().values()
    used = {node.op for function in functions for node in kernels.nodes_of(function)}
    listed = [line.split()[0] for line in kernels.FILE.read_text(encoding="utf-8").splitlines()]
    assert listed == sorted(used), "python -m tests.gpu.kernels, with TensorFlow's build for GPUs"


@pytest.mark.skipif(not tf.test.is_built_with_cuda(), reason="only a GPU build registers kernels")
def test_the_list_is_that_of_a_build_for_gpus():
    assert kernels.FILE.read_text(encoding="utf-8").splitlines() == kernels.lines()


@pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="no GPU")
def test_functions_without_such_ops_run_on_the_gpu():
    for name, ops in kernels.only_on_cpu().items():
        if not ops:
            with tf.device("/GPU:0"):
                result = tf.function(kernels.functions()[name])(kernels.EXAMPLE)
            tensors = tf.nest.flatten(result, expand_composites=True)
            # An int32 of a GPU may be in the memory of its host.
            assert all("GPU" in one.device for one in tensors if one.dtype != tf.int32), name
