"""Joined or declared datasets whose elements have different types."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from extensor._patches.common_type import as_declared, cast_together, casts
from extensor._patches.patch import replaces
from extensor._tf._tf_data import data_nest


@replaces(
    "tensorflow.python.data.ops.concatenate_op._concatenate",
    reason="Dataset.concatenate rejects elements of different types.",
    probe="concatenation",
)
def concatenate(plain: Any) -> Any:
    def _concatenate(input_dataset: Any, dataset_to_concatenate: Any, name: Any = None) -> Any:
        """Calls TensorFlow's function after casting the elements to their common type."""
        return plain(
            *cast_together([input_dataset, dataset_to_concatenate], "Dataset.concatenate"), name
        )

    return _concatenate


@replaces(
    "tensorflow.python.data.ops.directed_interleave_op._directed_interleave",
    reason="Dataset.choose_from_datasets and sample_from_datasets reject datasets whose elements "
    "have different types.",
    probe="chosen_datasets",
)
def directed_interleave(plain: Any) -> Any:
    def _directed_interleave(
        selector_input: Any, data_inputs: Any, stop_on_empty_dataset: Any = False
    ) -> Any:
        """Calls TensorFlow's function after casting the elements to their common type."""
        datasets = cast_together(list(data_inputs), "Dataset.choose_from_datasets")
        return plain(selector_input, datasets, stop_on_empty_dataset)

    return _directed_interleave


@replaces(
    "tensorflow.python.data.ops.from_generator_op._from_generator",
    reason="Dataset.from_generator rejects an element that does not match output_signature.",
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
        """Calls TensorFlow's function after casting the elements to the declared types."""
        rest = (output_types, output_shapes, args, output_signature, name)
        declared: Any = data_nest.flatten(output_signature)
        if not callable(generator) or not any(map(casts, declared)):
            return plain(generator, *rest)

        def cast(element: Any) -> Any:
            try:
                values: Any = data_nest.flatten_up_to(output_signature, element)
            except (TypeError, ValueError):
                return element  # TensorFlow raises its own error
            values = [
                as_declared(spec, value) for spec, value in zip(declared, values, strict=True)
            ]
            return data_nest.pack_sequence_as(output_signature, values)

        def cast_generator(*args: Any) -> Any:
            elements: Any = generator(*args)
            return map(cast, elements)

        return plain(cast_generator, *rest)

    return _from_generator
