"""docs/gpu.md says which functions have ops that only a CPU has."""

import pathlib
import re

import pytest
import tensorflow as tf

import extensor as xt
from extensor._protocol.box_ragged import take
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
    used = {kernels.name_of(node) for each in functions for node in kernels.nodes_of(each)}
    lines = kernels.FILE.read_text(encoding="utf-8").splitlines()
    listed = [line.rsplit(" ", 1)[0] for line in lines]
    assert listed == sorted(used), "python -m tests.gpu.kernels, with TensorFlow's build for GPUs"


@pytest.mark.skipif(not tf.test.is_built_with_cuda(), reason="only a GPU build registers kernels")
def test_the_list_is_that_of_a_build_for_gpus():
    assert kernels.FILE.read_text(encoding="utf-8").splitlines() == kernels.lines()


@tf.function
def gradient_of_a_row(rows, n):
    with tf.GradientTape() as tape:
        tape.watch(rows)
        box = take(xt.spec_of(rows).to_boxed_tensor(rows, minimum_rank=1), n)
        row = xt.spec_of(rows).unstacked().from_boxed_tensor(box)
    return tape.gradient(row, rows)


def test_zeros_of_rows_are_made_on_the_cpu():
    rows = tf.ragged.constant([[1.0], [2.0, 3.0]])
    assert gradient_of_a_row(rows, 1).to_list() == [[0.0], [1.0, 1.0]]
    graph = gradient_of_a_row.get_concrete_function(rows, 1).graph.as_graph_def()
    nodes = [node for each in graph.library.function for node in each.node_def]
    zeros = [each for each in nodes if kernels.name_of(each) == "ZerosLike variant"]
    assert zeros
    assert all("CPU" in node.device for node in zeros)


@pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="no GPU")
def test_functions_without_such_ops_run_on_the_gpu():
    for name, ops in kernels.only_on_cpu().items():
        if not ops:
            with tf.device("/GPU:0"):
                result = tf.function(kernels.functions()[name])(kernels.EXAMPLE)
            tensors = tf.nest.flatten(result, expand_composites=True)
            # An int32 of a GPU may be in the memory of its host.
            assert all("GPU" in one.device for one in tensors if one.dtype != tf.int32), name
