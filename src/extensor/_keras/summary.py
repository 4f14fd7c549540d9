"""The lines of `Model.summary` for the fields of inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Set

import tensorflow as tf

from extensor._path import Path
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import component_specs
from extensor._typing import Nest


def field_lines(nest: Nest, read: Set[str] | None = None) -> list[str]:
    """Returns a line for each tensor in a nest of specs: its path, dtype and shape.

    Args:
        nest: The specs.
        read: The names of the component tensors that are read: only their fields get a line.
            None: all fields.

    >>> from extensor._keras.summary import field_lines
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.DenseStructuredTensorSpec([None], {
    ...     "title": tf.TensorSpec([None], tf.string),
    ...     "steps": tf.RaggedTensorSpec([None, None], tf.float32)})
    >>> field_lines({"recipe": spec})
    ['recipe.title: string (None,)', 'recipe.steps: float32 (None, None) ragged']
    """
    return [
        f"{path}: {text}" if path.names else text
        for path, text in _fields(nest, Path())
        if read is None or any(f"{name}.".startswith(f"{path}.") for name in read)
    ]


def _fields(
    part: Nest, path: Path, outer: tf.TensorShape | None = None, rank: int = 0
) -> Iterator[tuple[Path, str]]:
    """Yields the path of each tensor and the text for it.

    Args:
        part: A spec, or a nest of specs.
        path: The path of `part`.
        outer: If `part` is a field of ragged records, the shape of the records.
        rank: The number of dimensions of `part` that `outer` replaces.
    """
    if isinstance(part, (dict, list, tuple)):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for name, item in items:
            # A single output has the empty name.
            yield from _fields(item, path if name == "" else path / str(name))
    elif isinstance(part, StructuredTensorSpec):
        inner = part._record
        if outer is not None or inner is not part:
            outer = part.shape if outer is None else outer.concatenate(part.shape[rank:])
        for name, item in inner.field_specs.items():
            yield from _fields(item, path / name, outer, inner.rank)
    elif isinstance(part, (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec)):
        shape = part.shape if outer is None else outer.concatenate(part.shape[rank:])
        is_ragged = outer is not None or isinstance(part, tf.RaggedTensorSpec)
        kind = " sparse" if isinstance(part, tf.SparseTensorSpec) else " ragged" * is_ragged
        yield path, f"{part.dtype.name} {shape}{kind}"
    else:
        yield from _fields(component_specs(part), path)
