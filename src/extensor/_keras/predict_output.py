"""Extension values as outputs of `predict`, which concatenates batches tensor by tensor.

Keras joins what a model returns for each batch, and for each replica, along the first dimension.
Row splits do not join that way, but the lengths of rows do. So an output passes through the loops
of Keras as tensors that join, `joinable`, and what comes out is made a value again, `joined`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._keras.lowering import is_extension
from extensor._keras.spec_key import any_sizes, mark, marked_spec
from extensor._path import Path
from extensor._protocol.box import StackableTypeSpec, box, boxed_specs, unbox
from extensor._protocol.tree import rebuilt
from extensor._struct.dense import DenseStructuredTensorSpec
from extensor._struct.ragged import RaggedStructuredTensorSpec
from extensor.errors import StructureError

_JOINABLE = "joinable "


def joinable(outputs: Any) -> Any:
    """Returns a nest of outputs with tensors that join in the place of each extension value."""
    return tf.nest.map_structure(_joinable, outputs)


def joined(outputs: Any) -> Any:
    """Returns what Keras made of joinable outputs, with the extension values themselves.

    Raises:
        StructureError: If a field has another size in some batch (also a ValueError).
    """
    if isinstance(outputs, dict):
        key = next(iter(outputs), None)
        if isinstance(key, str) and key.startswith(_JOINABLE):
            spec = marked_spec(key[len(_JOINABLE) :])
            return _join(spec, iter(outputs[key]), Path())
        return {name: joined(output) for name, output in outputs.items()}
    if isinstance(outputs, (list, tuple)):
        return rebuilt(outputs, [joined(output) for output in outputs])
    return outputs


def _joinable(value: Any) -> Any:
    if not is_extension(value):
        return value
    spec = any_sizes(tf.type_spec_from_value(value))
    return {_JOINABLE + mark(spec): tuple(_split(spec, value))}


def _has_parts(spec: Any) -> bool:
    """Returns whether values join if their components do."""
    if isinstance(spec, DenseStructuredTensorSpec):
        return True
    by_default = getattr(type(spec), "to_boxed_tensor", None) is StackableTypeSpec.to_boxed_tensor
    return isinstance(spec, StackableTypeSpec) and by_default


def _is_cut(spec: Any) -> bool:
    return isinstance(spec, RaggedStructuredTensorSpec) and not spec.is_row


def _split(spec: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, tf.RaggedTensor):
        yield value.flat_values
        yield from value.nested_row_lengths()
    elif isinstance(value, tf.Tensor):
        yield value
    elif _is_cut(spec):
        yield from _split(spec.values_spec, value.values)
        yield value.row_lengths()
    elif _has_parts(spec):
        parts = spec.to_components(value)
        tf.nest.assert_same_structure(spec.component_specs, parts)
        flat = zip(tf.nest.flatten(spec.component_specs), tf.nest.flatten(parts), strict=True)
        for inner, part in flat:
            yield from _split(inner, part)
    else:
        for tensor in box(spec, value, 1):
            # Keras makes NumPy arrays of tensors, which variants do not become.
            is_variant = tensor.dtype == tf.variant
            yield tf.io.serialize_tensor(tensor)[tf.newaxis] if is_variant else tensor


def _join(spec: Any, tensors: Iterator[Any], path: Path) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return _tensor(next(tensors), path)
    if isinstance(spec, tf.RaggedTensorSpec):
        flat_values = _tensor(next(tensors), path)
        lengths = [_tensor(next(tensors), path) for _ in range(spec.ragged_rank)]
        if not lengths:
            return flat_values
        return tf.RaggedTensor.from_nested_row_lengths(flat_values, lengths, validate=False)
    if _is_cut(spec):
        values = _join(spec.values_spec, tensors, path)
        lengths = _tensor(next(tensors), path)
        start = tf.zeros([1], lengths.dtype)
        return spec.from_components((values, tf.concat([start, tf.cumsum(lengths)], 0)))
    if _has_parts(spec):
        is_record = isinstance(spec, DenseStructuredTensorSpec)
        names = sorted(spec.field_names()) if is_record else []
        inner = tf.nest.flatten(spec.component_specs)
        paths = [path / name for name in names] or [path] * len(inner)
        parts = [_join(s, tensors, at) for s, at in zip(inner, paths, strict=True)]
        return spec.from_components(tf.nest.pack_sequence_as(spec.component_specs, parts))
    boxes = [
        _stitched(next(tensors)) if box.dtype == tf.variant else _tensor(next(tensors), path)
        for box in boxed_specs(spec, 1)
    ]
    return unbox(spec, boxes)


def _stitched(batches: Any) -> tf.Tensor:
    """Returns the variants of serialized batches, one batch after another."""
    tensors = [tf.io.parse_tensor(batch, tf.variant) for batch in batches]
    # Which is how variants are concatenated.
    ends = np.cumsum([0, *(len(tensor) for tensor in tensors)])
    rows = [tf.range(a, b) for a, b in itertools.pairwise(ends.tolist())]
    return tf.dynamic_stitch(rows, tensors)


def _tensor(array: Any, path: Path) -> tf.Tensor:
    if isinstance(array, tf.RaggedTensor):
        raise StructureError(
            path=f"predict: {path}" if path.names else "predict",
            expected="one size in all batches",
            received="batches that were padded to different sizes",
            mend="Return a ragged field, or call the model on each batch.",
        )
    return tf.convert_to_tensor(array)
