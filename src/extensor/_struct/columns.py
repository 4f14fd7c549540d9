"""Columns: the tensors that have the rows of records, for records that are in lists.

A row of records in lists is boxed column by column: each tensor or RaggedTensor is boxed like a
RaggedTensor with the same row splits. This repeats the row splits for every column, but it needs
only TensorFlow's own kernels, and keeps their gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._path import Path
from extensor._protocol.box import box, boxed_specs, unbox
from extensor._protocol.box_ragged import ragged_of_parts
from extensor._protocol.stackable_spec import stacks_by_components
from extensor._tf import unstacked
from extensor._typing import FieldValue
from extensor.errors import ProtocolError


class Cuts(NamedTuple):
    """Rows in rows, into which columns are cut.

    A column is cut once for all of them: the shape of a spec has a dimension for each.

    Attributes:
        levels: The number of dimensions that the cuts add.
        nrows: The number of the outermost rows, if it is known.
        row_splits_dtype: The dtype of the row splits.
    """

    levels: int
    nrows: int | None
    row_splits_dtype: tf.DType

    def cut_spec(self, column: tf.TypeSpec) -> tf.TypeSpec:
        """Returns the spec of a column that is cut into these rows."""
        if is_cut_by_type(column):
            for left in reversed(range(self.levels)):
                nrows = None if left else self.nrows
                column = column.__tf_cut_rows__(nrows, self.row_splits_dtype)
            return column
        return tf.RaggedTensorSpec(
            tf.TensorShape([self.nrows, *[None] * self.levels]).concatenate(column.shape[1:]),
            column.dtype,
            column.ragged_rank + self.levels,
            self.row_splits_dtype,
        )


class Columns:
    """What has the rows of values of one type: converts between values and columns.

    By default, these are the columns of the components.
    """

    component_specs: Any
    to_components: Any
    from_components: Any
    _parts: Any
    """The Columns of each component."""

    def _column_specs(self, rows: Cuts | None = None) -> list[Any]:
        """Returns the spec of each column.

        Args:
            rows: The rows that the values are in. The specs are those of the cut columns.
        """
        return [column for part in self._parts for column in part._column_specs(rows)]

    def _to_columns(self, value: FieldValue) -> list[Any]:
        """Returns the columns of a value."""
        pairs = zip(self._parts, tf.nest.flatten(self.to_components(value)), strict=True)
        return [column for part, component in pairs for column in part._to_columns(component)]

    def _from_columns(self, columns: Iterator[Any]) -> FieldValue:
        """Returns the value of the next columns. Consumes these columns."""
        components = [part._from_columns(columns) for part in self._parts]
        return self.from_components(tf.nest.pack_sequence_as(self.component_specs, components))


def columns_of(spec: tf.TypeSpec, path: Path) -> Columns:
    """Returns what has the rows of a field.

    Args:
        spec: The spec of the field.
        path: The path of the field, for errors.
    """
    if isinstance(spec, Columns):  # records
        return spec
    if isinstance(spec, tf.RaggedTensorSpec) or is_cut_by_type(spec):
        return _OneColumn(spec)
    return _Components(spec, path) if stacks_by_components(spec) else _Boxes(spec, path)


def is_cut_by_type(spec: tf.TypeSpec) -> bool:
    """Returns whether the spec of a field describes its values after they are cut into rows.

    Its method `__tf_cut_rows__(num_rows, row_splits_dtype)` returns the spec of the result of
    `value.__tf_cut_rows__(row_splits)`. Such a value is one column, boxed as its own spec says.
    """
    return hasattr(spec, "__tf_cut_rows__")


class _OneColumn(Columns):
    """A value that is a column: a RaggedTensor, or a value whose type cuts it into rows."""

    def __init__(self, spec: tf.TypeSpec) -> None:
        self._spec = spec

    def _column_specs(self, rows: Cuts | None = None) -> list[Any]:
        column = self._spec
        if is_cut_by_type(column):
            dtype = tf.int64 if rows is None else rows.row_splits_dtype
            column = unstacked(column.__tf_cut_rows__(None, dtype))
        return [column if rows is None else rows.cut_spec(column)]

    def _to_columns(self, value: FieldValue) -> list[Any]:
        return [value]

    def _from_columns(self, columns: Iterator[Any]) -> FieldValue:
        return ragged_of_parts(self._spec, next(columns))


class _Components(Columns):
    """A value whose components have its rows."""

    def __init__(self, spec: tf.TypeSpec, path: Path) -> None:
        self.component_specs = spec.component_specs
        self.to_components, self.from_components = spec.to_components, spec.from_components
        self._parts = [columns_of(part, path) for part in tf.nest.flatten(spec.component_specs)]


class _Boxes(Columns):
    """A value whose boxes are plain tensors that have its rows, such as a tensor."""

    def __init__(self, spec: tf.TypeSpec, path: Path) -> None:
        self._spec, self._path = spec, path

    def _column_specs(self, rows: Cuts | None = None) -> list[Any]:
        boxes = boxed_specs(self._spec, 1)
        if any(tensor.dtype == tf.variant or tensor.shape.rank is None for tensor in boxes):
            expected = "a type that boxes into plain tensors, because the field is in ragged rows"
            fix = "Do not stack or unstack lists of records that have a field of this type."
            raise ProtocolError(self._path, expected, type(self._spec).__name__, fix)
        columns = [tf.RaggedTensorSpec(tensor.shape, tensor.dtype, 0) for tensor in boxes]
        return columns if rows is None else list(map(rows.cut_spec, columns))

    def _to_columns(self, value: FieldValue) -> list[Any]:
        return box(self._spec, value, 1)

    def _from_columns(self, columns: Iterator[Any]) -> FieldValue:
        return unbox(self._spec, [next(columns) for _ in boxed_specs(self._spec, 1)])
