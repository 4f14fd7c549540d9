"""Joined or declared datasets whose elements have different types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

from extensor._patches.common_type import cast_to_common_type, cast_to_declared, takes_casts
from extensor._patches.patch import overrides
from extensor._tf._tf_data import data_nest
from extensor._typing import Nest


@overrides(
    "tensorflow.python.data.ops.concatenate_op._concatenate",
    reason="Dataset.concatenate rejects elements of different types.",
    probe="concatenation",
)
def concatenate(
    input_dataset: tf.data.Dataset,
    dataset_to_concatenate: tf.data.Dataset,
    name: str | None = None,
    *,
    plain: Callable[..., tf.data.Dataset],
) -> tf.data.Dataset:
    """Calls TensorFlow's function after casting the elements to their common type."""
    datasets = [input_dataset, dataset_to_concatenate]
    return plain(*cast_to_common_type(datasets, "Dataset.concatenate"), name)


@overrides(
    "tensorflow.python.data.ops.directed_interleave_op._directed_interleave",
    reason="Dataset.choose_from_datasets and sample_from_datasets reject datasets whose elements "
    "have different types.",
    probe="chosen_datasets",
)
def directed_interleave(
    selector_input: tf.data.Dataset,
    data_inputs: Iterable[tf.data.Dataset],
    stop_on_empty_dataset: bool = False,
    *,
    plain: Callable[..., tf.data.Dataset],
) -> tf.data.Dataset:
    """Calls TensorFlow's function after casting the elements to their common type."""
    datasets = cast_to_common_type(list(data_inputs), "Dataset.choose_from_datasets")
    return plain(selector_input, datasets, stop_on_empty_dataset)


@overrides(
    "tensorflow.python.data.ops.from_generator_op._from_generator",
    reason="Dataset.from_generator rejects an element that does not match output_signature.",
    probe="generated_elements",
)
def from_generator(
    generator: Callable[..., Iterable[Nest]],
    output_types: Nest,
    output_shapes: Nest,
    args: Nest,
    output_signature: Nest,
    name: str | None,
    *,
    plain: Callable[..., tf.data.Dataset],
) -> tf.data.Dataset:
    """Calls TensorFlow's function after casting the elements to the declared types."""
    declared = data_nest.flatten(output_signature)

    def cast(element: Nest) -> Nest:
        try:
            values = data_nest.flatten_up_to(output_signature, element)
        except (TypeError, ValueError):
            return element  # TensorFlow raises its own error
        return data_nest.pack_sequence_as(
            output_signature, list(map(cast_to_declared, declared, values))
        )

    def cast_generator(*args: Any) -> Iterator[Nest]:
        return map(cast, generator(*args))

    makes_casts = callable(generator) and any(map(takes_casts, declared))
    elements = cast_generator if makes_casts else generator
    return plain(elements, output_types, output_shapes, args, output_signature, name)
