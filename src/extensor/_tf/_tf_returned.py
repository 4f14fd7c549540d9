"""What is declared to be of a type, and comes of another: results of functions, and datasets.

| name | why |
| --- | --- |
| `map_fn._result_value_flat_to_batchable` | `tf.map_fn` refuses a result that is not what `fn_output_signature` says. This function compares them. |
| `from_generator_op` | `Dataset.from_generator` (`_from_generator`) refuses an element that is not what `output_signature` says. |
| `directed_interleave_op` | `Dataset.choose_from_datasets` and `sample_from_datasets` (`_directed_interleave`) refuse datasets whose elements are of different types. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import directed_interleave_op, from_generator_op
from tensorflow.python.ops import map_fn

from extensor._tf import _tf_casting
from extensor._tf._tf_data import data_nest
from extensor._tf._tf_protocol import CompositeTensor, describes_extension


def as_declared(spec: Any, value: Any) -> Any:
    """Returns a value cast to the spec that it was declared by.

    What belongs to the spec comes back as it is, and so does what cannot be cast to a spec of
    TensorFlow's own, of which TensorFlow says itself what is wrong.

    Args:
        spec: Of any type. What is declared to be a plain tensor TensorFlow converts itself.
        value: What somebody's function returned.

    Raises:
        DTypeError: If it cannot be cast to an extension type (also a TypeError).
        StructureError: If its shape does not fit (also a ValueError).
    """
    if not casts(spec):
        return value
    is_value = isinstance(value, (tf.Tensor, CompositeTensor))
    if is_value and spec.is_compatible_with(value):
        return value
    try:
        return _tf_casting._cast(spec, value)
    except (TypeError, ValueError):
        if describes_extension(spec):
            raise
        return value


def casts(spec: Any) -> bool:
    """Whether values are cast to a spec where they are declared by it."""
    return isinstance(spec, tf.RaggedTensorSpec) or describes_extension(spec)


_plain_to_batchable = map_fn._result_value_flat_to_batchable


def _to_batchable(result_value_flat: Any, result_flat_signature: Any) -> Any:
    """As TensorFlow's own, of what `fn` returned, cast to what was declared."""
    pairs = zip(result_flat_signature, result_value_flat, strict=True)
    values = [as_declared(spec, value) for spec, value in pairs]
    return _plain_to_batchable(values, result_flat_signature)


map_fn._result_value_flat_to_batchable = _to_batchable


_plain_from_generator = from_generator_op._from_generator


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
        return _plain_from_generator(generator, *rest)

    def cast(element: Any) -> Any:
        try:
            values: Any = data_nest.flatten_up_to(output_signature, element)
        except (TypeError, ValueError):
            return element  # TensorFlow says what is wrong
        values = [as_declared(spec, value) for spec, value in zip(declared, values, strict=True)]
        return data_nest.pack_sequence_as(output_signature, values)

    def cast_generator(*args: Any) -> Any:
        elements: Any = generator(*args)
        return map(cast, elements)

    return _plain_from_generator(cast_generator, *rest)


from_generator_op._from_generator = _from_generator


_plain_directed_interleave = directed_interleave_op._directed_interleave


def _directed_interleave(
    selector_input: Any, data_inputs: Any, stop_on_empty_dataset: Any = False
) -> Any:
    """As TensorFlow's own; the elements are cast to the type where they meet."""
    datasets = _tf_casting.cast_together(list(data_inputs))
    return _plain_directed_interleave(selector_input, datasets, stop_on_empty_dataset)


directed_interleave_op._directed_interleave = _directed_interleave
