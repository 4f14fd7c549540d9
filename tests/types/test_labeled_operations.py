"""LabeledTensors support the operations that the docs list, and all others raise an error."""

import operator
import re
from pathlib import Path

import pytest
import tensorflow as tf

import extensor as xt
from extensor._dispatch.operation import operation_of
from extensor.types import LabeledTensor
from tests.dispatch.brute import call
from tests.dispatch.samples import SAMPLES, arguments
from tests.types.test_labeled_elementwise import BINARY, OPERATIONS, UNARY

# All that the page names.


def listed():
    """The functions that the page of the type lists, by their own names."""
    text = (Path(__file__).parents[2] / "docs/types/labeled-tensor.md").read_text()
    section = text.split("## What it computes")[1].split("\n## ")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    return set(re.findall(r"`tf\.([\w.]+)", table))


def test_the_page_lists_the_handled_operations():
    handlers = vars(LabeledTensor)["__tf_dispatch_handlers__"].ops
    refused = {tf.reshape, tf.broadcast_to, tf.gather_nd, tf.strided_slice}
    handled = {operation_of(op).name for op in handlers if op not in refused}
    kinds = {
        name
        for name, operation in OPERATIONS.items()
        if xt.dispatch.is_reduction_op(operation.function)
        or xt.dispatch.is_shape_only_op(operation.function)
    }
    named = {operation_of(operator.attrgetter(name)(tf)).name for name in listed()}
    assert named >= (handled | kinds) - {"__operators__.getitem"}
    others = named - handled - kinds
    assert all(name in UNARY or name in BINARY for name in others), others


# Whatever is not handled: no operation forgets the names silently.


def _labeled(value):
    if isinstance(value, tf.Tensor) and value.shape.rank:
        return LabeledTensor(value, [f"axis{i}" for i in range(value.shape.rank)])
    return type(value)(map(_labeled, value)) if type(value) in (list, tuple) else value


# They make no tensor of it.
SILENT = "Assert debugging.assert_same_float_dtype debugging.assert_shapes print".split()
EVERY = sorted(OPERATIONS.keys() & SAMPLES.keys() - {*SILENT, "py_function", "numpy_function"})


@pytest.fixture
def _quiet():
    level = tf.get_logger().level
    tf.get_logger().setLevel("ERROR")
    yield
    tf.get_logger().setLevel(level)


def attempted(operation, given):
    try:
        return call(operation, given)
    except Exception as error:
        return error


@pytest.mark.whole("calls every operation of TensorFlow")
@pytest.mark.usefixtures("_quiet")
def test_no_operation_forgets_the_names():
    kept, refused = [], []
    for name in EVERY:
        operation = OPERATIONS[name]
        sample = arguments(operation)
        for parameter in operation.tensors:
            value = _labeled(sample.get(parameter))
            if value is sample.get(parameter) or "Labeled" not in repr(value):
                continue
            result = attempted(operation, {**sample, parameter: value})
            if isinstance(result, Exception):
                assert "LabeledTensor" in str(result), f"{name}: {result}"
                refused.append(name)
                continue
            kept.append(name)
            if not xt.dispatch.is_shape_only_op(operation.function) or "like" in name:
                results = result if isinstance(result, list | tuple) else [result]
                for part in results:
                    assert isinstance(part, LabeledTensor), name
                    assert len(part.axes) == part.shape.rank, name
    print(f"{len(kept)} keep the names, {len(refused)} refuse")
    assert len(kept) > 150
