"""Whether tensors that came from elsewhere fit each other, asked in a graph or outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._tf import component_specs, to_components
from extensor.errors import StructureError
from extensor.path import Path
from extensor.serving.layout import components, typed_leaves
from extensor.struct.ragged_spec import RaggedStructuredTensorSpec
from extensor.struct.spec import DenseStructuredTensorSpec


def check(structure: Any, values: Any, ragged: str = "row_splits") -> list[Any]:
    """Checks that the tensors in values fit each other.

    Row splits must begin with 0, never decrease and end with the number of values; the fields of
    records must have as many rows as there are records; the indices of a sparse tensor must lie
    within its shape. What else the tensors of a type of one's own have in common is not known here.

    Args:
        structure: A nest of specs, and of static data.
        values: A nest of values of these specs.
        ragged: Whether ragged rows came as `row_splits` or as `row_lengths`, to say what is wrong.

    Returns:
        In a graph, operations to depend on, which fail where something does not fit.

    Raises:
        StructureError: Outside a graph, where something does not fit (also a ValueError).
    """
    found = _Found(_TOLD[ragged])
    for names, spec, value in typed_leaves(structure, values):
        found.sizes(spec, value, Path(*names))
    return found.assertions


_TOLD = {
    "row_splits": (
        "row splits that never decrease",
        "row splits that end with the number of values",
    ),
    "row_lengths": (
        "row lengths of which none is negative",
        "row lengths that add up to the number of values",
    ),
}
"""What is expected of rows, and of the last one, by how they are told."""


class _Found:
    """What was found so far. The arithmetic is NumPy's outside a graph, and TensorFlow's inside."""

    def __init__(self, told: tuple[str, str]) -> None:
        self._rows, self._end = told
        self.assertions: list[Any] = []
        self._is_eager = tf.executing_eagerly()

    def sizes(self, spec: Any, value: Any, path: Path) -> Any:
        """Checks a value, and returns its leading sizes, as far as they have to be the same.

        Returns:
            A vector of static length, or None.
        """
        if isinstance(value, tf.Tensor):
            return self._shape(value) if value.shape.rank else None
        if isinstance(spec, tf.RaggedTensorSpec):
            flat_spec, *_ = component_specs(spec)
            rows = self.sizes(flat_spec, value.flat_values, path)
            for splits in reversed(value.nested_row_splits):
                rows = self._cut(splits, rows, path)
            return rows
        if isinstance(spec, tf.SparseTensorSpec):
            return self._sparse(value, path)
        if isinstance(spec, RaggedStructuredTensorSpec):
            if not spec.is_row:
                rows = self.sizes(spec.values_spec, value.values, path)
                return self._cut(value.row_splits, rows, path)
            spec = spec.values_spec
        known: list[tuple[Path, Any]] = []
        parts = tf.nest.flatten(to_components(spec, value))
        for (names, part_spec), part in zip(components(spec), parts, strict=True):
            inner = Path(*path, *names)
            size = self.sizes(part_spec, part, inner)
            if size is not None:
                known.append((inner, size))
        if isinstance(spec, DenseStructuredTensorSpec) and spec.rank and known:
            return self._common(known, spec.rank)
        return None

    def _common(self, known: list[tuple[Path, Any]], rank: int) -> Any:
        """Returns the sizes that all fields of records share."""
        _, most = max(known, key=lambda item: item[1].shape[0])
        for path, size in known:
            if size is not most:
                both = min(size.shape[0], rank)
                self._require(size[:both] == most[:both], path, "as many rows as the other fields")
        return most[:rank]

    def _cut(self, splits: Any, rows: Any, path: Path) -> Any:
        splits = self._numbers(splits)
        self._require(self._shape(splits) > 0, path, "row splits that begin with 0")
        self._require(splits[0] == 0, path, "row splits that begin with 0")
        lengths = splits[1:] - splits[:-1]
        self._require(lengths >= 0, path, self._rows)
        if rows is not None:
            last = splits[-1] if self._is_eager else tf.cast(splits[-1], tf.int64)
            self._require(last == rows[0], path, self._end)
        return self._shape(lengths)

    def _sparse(self, value: Any, path: Path) -> Any:
        indices, shape = self._numbers(value.indices), self._numbers(value.dense_shape)
        count = self._shape(value.values)
        self._require(self._shape(indices)[:1] == count, path, "one index a value")
        inside = (indices >= 0) & (indices < shape)
        self._require(inside, path, "indices that lie within the shape")
        return shape if value.dense_shape.shape[0] else None

    def _shape(self, tensor: Any) -> Any:
        if self._is_eager:
            return np.array(tensor.shape, np.int64)
        return tf.shape(tensor, tf.int64)

    def _numbers(self, tensor: Any) -> Any:
        return tensor.numpy() if self._is_eager else tensor

    def _require(self, condition: Any, path: Path, expected: str) -> None:
        if not self._is_eager:
            message = f"{path}: expected {expected}"
            self.assertions.append(tf.debugging.Assert(tf.reduce_all(condition), [message]))
        elif not np.all(condition):
            raise StructureError(
                path=path,
                expected=expected,
                received="others",
                mend="Give the tensors as they were made, all of one value.",
            )
