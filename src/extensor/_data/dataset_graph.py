"""The tf.data graph of a feed.

    Range(parts) -> Scan(hold a pass) -> FlatMap(load a part)

The number of the part, and how far into it, is all of an iterator's state. So tf.train.Checkpoint
saves an iterator, and another process may restore it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._protocol.box import boxed_specs


class Steps(NamedTuple):
    """The functions of a graph.

    Attributes:
        hold: Returns a tensor that keeps a pass alive.
        load: Returns the dataset of a part.
        goes_on: Returns whether the source has more parts.
    """

    hold: Callable[..., tf.Tensor]
    load: Callable[..., tf.Tensor]
    goes_on: Callable[..., tf.Tensor]


@functools.lru_cache(maxsize=128)
def graph_of(
    spec: tf.TypeSpec, steps: Steps, is_endless: bool, is_counted: bool
) -> Callable[..., list[tf.Tensor]]:
    """Returns a function that makes a dataset of a feed, and the same without tuning, as variants.

    An eager op that makes a dataset costs about half a millisecond, because TensorFlow builds a
    function for each call. This function is built once for all datasets of a spec. Its arguments
    are numbers by which the steps find the feed, its serialized form, the number of parts, and the
    number of elements if it is known.

    Args:
        spec: The spec of the elements.
        steps: The functions.
        is_endless: Whether the number of parts is not known.
        is_counted: Whether the number of elements is known.
    """

    def datasets(
        own: tf.Tensor, serialized: tf.Tensor, parts: tf.Tensor, count: tf.Tensor
    ) -> list[tf.Tensor]:
        numbers = tf.raw_ops.RangeDataset(
            start=np.int64(0),
            stop=parts,
            step=np.int64(1),
            output_types=[tf.int64],
            output_shapes=[[]],
        )
        structure = {"output_types": [tf.int64, tf.int64], "output_shapes": [[4], []]}
        held = tf.raw_ops.ScanDataset(
            input_dataset=numbers,
            initial_state=[own],
            other_arguments=[own, serialized],
            f=steps.hold,
            preserve_cardinality=True,
            **structure,
        )
        if is_endless:
            held = tf.raw_ops.TakeWhileDataset(
                input_dataset=held, other_arguments=[], predicate=steps.goes_on, **structure
            )
        elements = tf.raw_ops.FlatMapDataset(
            input_dataset=held, other_arguments=[own, serialized], f=steps.load, **boxes_of(spec)
        )
        dataset = tf.data.experimental.from_variant(elements, spec)
        if is_counted:
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
        tuned, untuned = _options()
        # Threads that share an iterator take turns: those that count elements at once count wrong.
        both = dataset.with_options(tuned), dataset.take(-1).with_options(untuned)
        return list(map(tf.data.experimental.to_variant, both))

    with tf.init_scope():
        own, number = tf.TensorSpec([4], tf.int64), tf.TensorSpec([], tf.int64)
        function = tf.function(datasets, autograph=False)
        return function.get_concrete_function(own, tf.TensorSpec([], tf.string), number, number)


@functools.cache
def _options() -> tuple[tf.data.Options, tf.data.Options]:
    """Returns the options of a dataset, and those of one that is iterated as it is."""
    # Python functions have no state that a checkpoint or another process would lack.
    tuned = tf.data.Options()
    tuned.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    # The graph of a feed has nothing to tune or to rewrite, but both cost time for each iteration
    # and each batch.
    untuned = tf.data.Options().merge(tuned)
    untuned.autotune.enabled = False
    untuned.experimental_optimization.apply_default_optimizations = False
    return tuned, untuned


def boxes_of(spec: tf.TypeSpec) -> dict[str, list[Any]]:
    """Returns the attributes of a dataset op for elements of a spec, which are boxes there."""
    specs = boxed_specs(spec)
    return {
        "output_types": [tensor.dtype for tensor in specs],
        "output_shapes": [tensor.shape for tensor in specs],
    }
