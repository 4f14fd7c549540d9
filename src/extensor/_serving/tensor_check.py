"""Validation that tensors from another program fit each other, in a graph or eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import uncut_rows
from extensor._count_text import count_text
from extensor._path import Path
from extensor._protocol.row_splits import RULES
from extensor._serving.layout import typed_leaves
from extensor._struct.component import steps_below
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.ragged_spec import RaggedRowSpec, RaggedStructuredTensorSpec
from extensor._tf import component_specs, to_components
from extensor._types.masked.value import MaskedTensor
from extensor._types.union.value import UnionTensor
from extensor._typing import Nest, Value
from extensor.errors import StructureError


def check_tensors(structure: Nest, values: Nest, ragged: str = "row_splits") -> list[Any]:
    """Returns the assertions that the tensors in values fit each other.

    Row splits must begin with 0, never decrease and end with the number of values. Fields must have
    one row for each record. The indices of a sparse tensor must be inside its shape. A mask must
    have the rows of its values, and a union one row of a variant for each of its codes. Other
    conditions of users' types are not validated.

    Args:
        structure: A nest of specs and static data.
        values: A nest of values of these specs.
        ragged: How ragged rows were sent: `row_splits` or `row_lengths`; for errors.

    Returns:
        In a graph, assertion operations for control dependencies. Eagerly, an empty list.

    Raises:
        StructureError: In eager mode, if tensors do not fit each other (also a ValueError).
    """
    checks = _Checks(_EXPECTED[ragged])
    for names, spec, value in typed_leaves(structure, values):
        checks.sizes(spec, value, Path(*names))
    return checks.assertions


_EXPECTED = {
    "row_splits": [f"row {rule.expected.replace('{count}, ', '')}" for rule in RULES],
    "row_lengths": [
        "row lengths",
        "row lengths of 0 or more",
        "row lengths that add up to the number of values",
    ],
}
"""What each of the rules for row splits expects of the rows that were sent."""


_SAME_ROWS = "the rows of the values"


def _count(codes: tf.Tensor, code: int) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(tf.equal(codes, tf.cast(code, codes.dtype)), tf.int64))


class _Checks:
    """Validates values. Computes with NumPy in eager mode, and with TensorFlow in a graph."""

    def __init__(self, expected: list[str]) -> None:
        self._expected = expected
        self.assertions: list[Any] = []
        self._is_eager = tf.executing_eagerly()

    def sizes(self, spec: Any, value: Value, path: Path, min_rank: int = 0) -> tf.Tensor | None:
        """Validates a value, and returns its leading sizes that other fields must share.

        Args:
            spec: The spec of the value.
            value: The value.
            path: The path of the value.
            min_rank: The minimal number of dimensions, for a spec of unknown rank.

        Returns:
            A vector of static length, or None.
        """
        if isinstance(value, tf.Tensor):
            return self._leading(self._shape(value), min_rank, path)
        if isinstance(spec, tf.RaggedTensorSpec):
            flat_spec, *_ = component_specs(spec)
            rows = self.sizes(flat_spec, value.flat_values, path, 1)
            row_sizes = [None] * spec.ragged_rank if spec.shape.rank is None else spec.shape[1:]
            cuts = zip(value.nested_row_splits, row_sizes, strict=False)
            for splits, row_size in reversed(list(cuts)):
                rows = self._cut(splits, rows, path, row_size)
            return rows
        if isinstance(spec, tf.SparseTensorSpec):
            return self._leading(self._sparse(spec, value, path), min_rank, path)
        if isinstance(spec, RaggedStructuredTensorSpec):
            rows = self.sizes(spec.values_spec, value.values, path, 1)
            return self._cut(value.row_splits, rows, path)
        if isinstance(spec, RaggedRowSpec):
            spec = spec.values_spec
        if isinstance(spec, UnionTensor.Spec):
            return self._union(spec, value, path)
        if isinstance(spec, MaskedTensor.Spec):
            return self._mask(spec, value, path)
        records = spec.rank if isinstance(spec, DenseStructuredTensorSpec) else 0
        known: list[tuple[Path, Any]] = []
        parts = tf.nest.flatten(to_components(spec, value))
        for (steps, part_spec), part in zip(steps_below(spec), parts, strict=True):
            inner = Path(*path, *(name for step in steps for name in step.names))
            size = self.sizes(part_spec, part, inner, records)
            if size is not None:
                known.append((inner, size))
        return self._common(known, records) if records and known else None

    def _common(self, known: list[tuple[Path, Any]], rank: int) -> tf.Tensor:
        """Returns the common leading sizes of all fields of records. Requires that they agree."""
        _, most = max(known, key=lambda item: item[1].shape[0])
        for path, size in known:
            if size is not most:
                both = min(size.shape[0], rank)
                same = size[:both] == most[:both]
                self._require(same, path, "the number of rows of the other fields")
        return most[:rank]

    def _leading(self, sizes: tf.Tensor, min_rank: int, path: Path) -> tf.Tensor | None:
        """Returns sizes as a vector of static length, or None if the length is 0 or unknown."""
        if sizes.shape[0] is not None:
            return sizes if sizes.shape[0] else None
        if not min_rank:
            return None
        self._require(tf.size(sizes) >= min_rank, path, f"at least {min_rank} dimensions")
        with tf.control_dependencies(self.assertions[-1:]):  # otherwise the slice may fail first
            return tf.slice(sizes, [0], [min_rank])

    def _cut(
        self, splits: tf.Tensor, rows: tf.Tensor | None, path: Path, row_size: int | None = None
    ) -> tf.Tensor:
        splits = self._numbers(splits)
        self._require(self._shape(splits) > 0, path, self._expected[0])
        with tf.control_dependencies(self.assertions[-1:]):  # as in `_leading`
            splits = splits if self._is_eager else tf.cast(tf.identity(splits), tf.int64)
        count = None if rows is None else rows[0]
        for rule, expected in zip(RULES, self._expected, strict=True):
            self._require(rule.holds(splits, count), path, expected)
        lengths = splits[1:] - splits[:-1]
        if row_size is not None:
            self._require(lengths == row_size, path, f"rows of {count_text(row_size, 'values')}")
        return self._shape(lengths)

    def _union(self, spec: Any, value: Value, path: Path) -> tf.Tensor | None:
        """Validates that a union has a row of a variant for each of its codes."""
        sizes = self.sizes(spec.codes, value.codes, path / "codes")
        codes = value.codes
        flat = self._numbers(codes.flat_values if isinstance(codes, tf.RaggedTensor) else codes)
        known = (flat >= 0) & (flat < len(spec.names))
        self._require(known, path / "codes", f"codes from 0 to {len(spec.names) - 1}")
        for code, name in enumerate(spec.names):
            inner = Path(*path, "variants", name)
            rows = self.sizes(spec.variants[name], value.variants[name], inner, 1)
            count = np.sum(flat == code) if self._is_eager else _count(flat, code)
            if rows is not None:
                self._require(rows[0] == count, inner, f"one row for each code {code}")
        return sizes

    def _mask(self, spec: Any, value: Value, path: Path) -> tf.Tensor | None:
        """Validates that a mask has the rows of its values."""
        rank = spec.mask.shape.rank
        parts = {"values": (spec.values, value.values), "mask": (spec.mask, value.mask)}
        found = {name: self.sizes(s, v, path / name, rank or 0) for name, (s, v) in parts.items()}
        values, mask = value.values, value.mask
        for _ in range(getattr(spec.mask, "ragged_rank", 0)):
            rows, masks = uncut_rows(values), uncut_rows(mask)
            assert rows is not None  # the spec of the mask is ragged
            assert masks is not None
            ours, theirs = self._numbers(rows[1]), self._numbers(masks[1])
            values, mask = rows[0], masks[0]
            self._require(self._shape(ours) == self._shape(theirs), path / "mask", _SAME_ROWS)
            with tf.control_dependencies(self.assertions[-1:]):
                self._require(ours == theirs, path / "mask", _SAME_ROWS)
        known = [(path / name, size) for name, size in found.items() if size is not None]
        return self._common(known, rank) if rank and known else None

    def _sparse(self, spec: tf.TypeSpec, value: tf.SparseTensor, path: Path) -> tf.Tensor:
        indices, shape = self._numbers(value.indices), self._numbers(value.dense_shape)
        count = self._shape(value.values)
        self._require(self._shape(indices)[:1] == count, path, "one index for each value")
        rank = self._shape(indices)[1:] == self._shape(shape)
        self._require(rank, path, "indices with one column for each dimension")
        self._require(shape >= 0, path, "a shape with sizes of 0 or more")
        if spec.shape.rank:
            sizes = np.array([-1 if size is None else size for size in spec.shape], np.int64)
            self._require((shape == sizes) | (sizes < 0), path, f"the shape {spec.shape}")
        inside = (indices >= 0) & (indices < shape)
        self._require(inside, path, "indices inside the shape")
        return shape

    def _shape(self, tensor: tf.Tensor) -> tf.Tensor:
        if self._is_eager:
            return np.array(tensor.shape, np.int64)
        return tf.shape(tensor, tf.int64)

    def _numbers(self, tensor: tf.Tensor) -> tf.Tensor:
        return tensor.numpy() if self._is_eager else tensor

    def _require(self, condition: tf.Tensor, path: Path, expected: str) -> None:
        if not self._is_eager:
            message = f"{path}: expected {expected}"
            self.assertions.append(tf.debugging.Assert(tf.reduce_all(condition), [message]))
        elif not np.all(condition):
            fix = "Give all tensors of one value, without changes."
            raise StructureError(path, expected, "tensors that do not fit each other", fix)
