"""The ops of functions of records, and which of them have kernels only on the CPU.

TensorFlow's build for GPUs registers its kernels without a GPU too. With that build in front of the
other in PYTHONPATH, this writes the list anew:

    python -m tests.gpu.kernels
"""

import pathlib
from collections.abc import Iterator
from functools import cache

import keras
import tensorflow as tf
from tensorflow.python.framework import kernels

import extensor as xt

ITEM = xt.DenseStructuredTensorSpec(
    [None], {"price": tf.TensorSpec([None], tf.float32), "brand": tf.TensorSpec([None], tf.int64)}
)
BASKET = xt.DenseStructuredTensorSpec(
    [None],
    {
        "id": tf.TensorSpec([None], tf.int64),
        "shop": tf.TensorSpec([None], tf.string),
        "taste": xt.types.MaskedTensor.Spec(
            tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.bool)
        ),
        "steps": tf.RaggedTensorSpec([None, None, 4], tf.float32, 1),
        "items": xt.RaggedStructuredTensorSpec([None, None], ITEM),
    },
)

EXAMPLE = BASKET.cast(
    [
        {
            "id": 7,
            "shop": "north",
            "taste": None,
            "steps": [[1.0, 2.0, 3.0, 4.0]],
            "items": [{"price": 2.5, "brand": 3}],
        }
    ]
)

FILE = pathlib.Path(__file__).parent / "kernels.txt"

# They hold no numbers, or are on each device.
_PLAIN = {"Placeholder", "Const", "Identity", "NoOp", "ReadVariableOp", "VarHandleOp"}
_CALLS = {"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If"}


@cache
def functions():
    """Returns functions of records, by what they are called in docs/gpu.md."""
    layers = xt.keras.layers
    bag = layers.EmbeddingBag(4, input_dim=10, combiner="sum")
    means = layers.EmbeddingBag(4, input_dim=10)
    total, largest = layers.ListPooling("sum"), layers.ListPooling("max")
    attention = layers.ListAttention(1, 2)
    gru = layers.ListRNN(keras.layers.GRU(4, use_cudnn=False))
    buckets = layers.TimeBuckets(bin_boundaries=[10, 20])
    lookup = keras.layers.StringLookup(vocabulary=["north"])

    def numbers(records):
        return records.without("shop")  # no device but a CPU has strings

    def static(records):
        return numbers(records).to_static({"items": 8, "steps": 8})

    def from_static(records):
        return xt.struct.from_static(static(records), xt.spec_of(numbers(records)))

    return {
        'records["items.price"]': lambda r: r["items.price"],
        "records[:2]": lambda r: numbers(r)[:2],
        "tf.gather(records, rows)": lambda r: tf.gather(numbers(r), [0, 0]),
        "tf.boolean_mask(records, mask)": lambda r: tf.boolean_mask(numbers(r), r["id"] > 0),
        "tf.concat([records, records], 0)": lambda r: tf.concat([numbers(r)] * 2, 0),
        'tf.reduce_sum(records["items.price"], 1)': lambda r: tf.reduce_sum(r["items.price"], 1),
        'tf.reduce_mean(records["taste"])': lambda r: tf.reduce_mean(r["taste"]),
        'records["items"].to_dense()': lambda r: r["items"].to_dense(),
        'records.to_static({"items": 8})': static,
        'records.to_static(packed={"items": 8})': lambda r: numbers(r).to_static(
            packed={"items": 8, "steps": 8}
        ),
        'from_static(records.to_static({"items": 8}), spec)': from_static,
        'EmbeddingBag(4, input_dim=10, combiner="sum")': lambda r: bag(r["items.brand"]),
        "EmbeddingBag(4, input_dim=10)": lambda r: means(r["items.brand"]),
        'ListPooling("sum")': lambda r: total(r["items.price"]),
        'ListPooling("max")': lambda r: largest(r["items.price"]),
        "ListAttention(1, 2)": lambda r: attention(r["steps"]),
        "ListRNN(GRU(4, use_cudnn=False))": lambda r: gru(r["steps"]),
        "TimeBuckets(bin_boundaries=...)": lambda r: buckets(r["id"]),
        'StringLookup(...)(records["shop"])': lambda r: lookup(r["shop"]),
    }


def nodes_of(function) -> Iterator:
    """Yields the nodes of a function of baskets, and of the functions that it calls."""
    graph = tf.function(function).get_concrete_function(BASKET).graph.as_graph_def()
    for nodes in (graph.node, *(each.node_def for each in graph.library.function)):
        for node in nodes:
            if node.op not in _PLAIN | _CALLS:
                yield node


def name_of(node) -> str:
    """Returns an op and the dtypes that decide which kernel it has: `Pad int64 int32`."""
    types = [tf.DType(value.type).name for _, value in sorted(node.attr.items()) if value.type]
    return " ".join([node.op, *types])


def is_on_gpu(node):
    """Returns whether a GPU has a kernel for an op and its dtypes, in TensorFlow's GPU build."""
    for kernel in kernels.get_registered_kernels_for_op(node.op).kernel:
        fits = all(
            node.attr[each.name].type in each.allowed_values.list.type
            for each in kernel.constraint
            if node.attr[each.name].type
        )
        if fits and kernel.device_type in ("GPU", "DEFAULT"):
            return True
    return False


def lines():
    """Returns a line for each op and its dtypes: where it has a kernel, by the build that runs."""
    found: dict[str, bool] = {}
    for function in functions().values():
        for node in nodes_of(function):
            found[name_of(node)] = is_on_gpu(node)
    return [f"{name} {'GPU' if on_gpu else 'CPU'}" for name, on_gpu in sorted(found.items())]


def only_on_cpu():
    """Returns the ops that only the CPU has, by function, as `kernels.txt` says."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    devices = dict(line.rsplit(" ", 1) for line in lines)
    return {
        name: sorted({each.op for each in nodes_of(function) if devices[name_of(each)] == "CPU"})
        for name, function in functions().items()
    }


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
