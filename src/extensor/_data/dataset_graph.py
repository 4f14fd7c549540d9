"""The tf.data graph of a feed.

    Range(parts) -> Scan(hold a pass) -> FlatMap(load a part)

The number of the part, and how far into it, is all of an iterator's state. So tf.train.Checkpoint
saves an iterator, and another process may restore it.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._protocol.box import boxed_specs

# So many datasets of a spec are made op by op. To trace costs as much as about five datasets.
_UNTRACED = 4


class Steps(NamedTuple):
    """The functions of a graph.

    Attributes:
        hold: Returns a tensor that keeps a pass alive.
        load: Returns the dataset of a part.
        goes_on: Returns whether the source has more parts.
    """

    hold: Any
    load: Any
    goes_on: Any


@functools.lru_cache(maxsize=128)
def graph_of(spec: Any, steps: Steps, is_endless: bool, is_counted: bool) -> Graph:
    """Returns the graph of the feeds of a spec; see `Graph`."""
    return Graph(spec, steps, is_endless, is_counted)


class Graph:
    """The graph of the feeds of one spec.

    An eager op that makes a dataset costs about half a millisecond, because TensorFlow builds a
    function for each call. A function of ours is built once for all datasets of a spec.

    Args:
        spec: The spec of the elements.
        steps: The functions.
        is_endless: Whether the number of parts is not known.
        is_counted: Whether the number of elements is known.
    """

    def __init__(self, spec: Any, steps: Steps, is_endless: bool, is_counted: bool) -> None:
        self._spec = spec
        self._steps = steps
        self._is_endless = is_endless
        self._is_counted = is_counted
        self._untraced = _UNTRACED

    def datasets(
        self, spec: Any, own: tf.Tensor, serialized: tf.Tensor, parts: int, count: int
    ) -> list[tf.data.Dataset]:
        """Returns a dataset of a feed, and the same without tuning.

        Args:
            spec: The spec of the elements. It equals that of the graph, and says more: whether
                strings are text.
            own: Numbers by which the functions find the feed.
            serialized: The serialized form of the feed.
            parts: The number of parts.
            count: The number of elements, if it is known.
        """
        arguments = own, serialized, np.int64(parts), np.int64(count)
        if self._untraced > 0 or not tf.executing_eagerly():
            self._untraced -= 1
            made = self._made(*arguments)
            if spec is self._spec:
                return made
            variants = list(map(tf.data.experimental.to_variant, made))
        else:
            with tf.device("CPU:0"):
                variants = tf.raw_ops.PartitionedCall(
                    args=arguments, Tout=[tf.variant, tf.variant], f=self._traced
                )
        return [tf.data.experimental.from_variant(each, spec) for each in variants]

    @functools.cached_property
    def _traced(self) -> Any:
        def made(*arguments: tf.Tensor) -> list[tf.Tensor]:
            return [tf.data.experimental.to_variant(each) for each in self._made(*arguments)]

        own, number = tf.TensorSpec([4], tf.int64), tf.TensorSpec([], tf.int64)
        function = tf.function(made, autograph=False)
        return function.get_concrete_function(own, tf.TensorSpec([], tf.string), number, number)

    def _made(self, own: Any, serialized: Any, parts: Any, count: Any) -> list[tf.data.Dataset]:
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
            f=self._steps.hold,
            preserve_cardinality=True,
            **structure,
        )
        if self._is_endless:
            held = tf.raw_ops.TakeWhileDataset(
                input_dataset=held, other_arguments=[], predicate=self._steps.goes_on, **structure
            )
        elements = tf.raw_ops.FlatMapDataset(
            input_dataset=held,
            other_arguments=[own, serialized],
            f=self._steps.load,
            **_structure_of(self._spec),
        )
        dataset = tf.data.experimental.from_variant(elements, self._spec)
        if self._is_counted:
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
        return [dataset.with_options(options) for options in _options()]


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


def _structure_of(spec: Any) -> dict[str, Any]:
    """Returns the attributes of a dataset op for elements of a spec."""
    specs = boxed_specs(spec)
    return {
        "output_types": [tensor.dtype for tensor in specs],
        "output_shapes": [tensor.shape for tensor in specs],
    }
