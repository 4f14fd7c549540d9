"""Datasets that are joined, or declared, and whose elements are of different types."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from extensor._patches.meeting import as_declared, cast_together, casts
from extensor._patches.patch import replaces
from extensor._tf._tf_data import data_nest


@replaces(
    "tensorflow.python.data.ops.concatenate_op._concatenate",
    reason="Dataset.concatenate refuses elements of different types.",
    probe="concatenation",
)
def concatenate(plain: Any) -> Any:
    def _concatenate(input_dataset: Any, dataset_to_concatenate: Any, name: Any = None) -> Any:
        """As TensorFlow's own; the elements are cast to the type where they meet."""
        return plain(*cast_together([input_dataset, dataset_to_concatenate]), name)

    return _concatenate


@replaces(
    "tensorflow.python.data.ops.directed_interleave_op._directed_interleave",
    reason="Dataset.choose_from_datasets and sample_from_datasets refuse datasets whose elements"
    " are of different types.",
    probe="chosen_datasets",
)
def directed_interleave(plain: Any) -> Any:
    def _directed_interleave(
        selector_input: Any, data_inputs: Any, stop_on_empty_dataset: Any = False
    ) -> Any:
        """As TensorFlow's own; the elements are cast to the type where they meet."""
        datasets = cast_together(list(data_inputs))
        return plain(selector_input, datasets, stop_on_empty_dataset)

    return _directed_interleave


@replaces(
    "tensorflow.python.data.ops.from_generator_op._from_generator",
    reason="Dataset.from_generator refuses an element that is not what output_signature says.",
    probe="generated_elements",
)
def from_generator(plain: Any) -> Any:
    def _from_generator(
        generator: Any,
        output_types: Any,
        output_shapes: Any,
        args: Any,
        output_signature: Any,
        name: Any,
    ) -> Any:
        """As TensorFlow's own, of elements cast to what was declared."""
        rest = (output_types, output_shapes, args, output_signature, name)
        declared: Any = data_nest.flatten(output_signature)
        if not callable(generator) or not any(map(casts, declared)):
            return plain(generator, *rest)

        def cast(element: Any) -> Any:
            try:
                values: Any = data_nest.flatten_up_to(output_signature, element)
            except (TypeError, ValueError):
                return element  # TensorFlow says what is wrong
            values = [
                as_declared(spec, value) for spec, value in zip(declared, values, strict=True)
            ]
            return data_nest.pack_sequence_as(output_signature, values)

        def cast_generator(*args: Any) -> Any:
            elements: Any = generator(*args)
            return map(cast, elements)

        return plain(cast_generator, *rest)

    return _from_generator
