"""Records from values with the same rows, one for each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extensor._authoring.comparison import SizeComparison
from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._struct.dense import dense_of_fields
from extensor._struct.field import as_field, expect_fields, shape_of
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import uncut
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue
from extensor.errors import StructureError


def zip_(
    fields: Mapping[str, Any], depth: int | None = None, validate: bool = True
) -> StructuredTensor:
    """Returns records with the given values as their fields.

    Args:
        fields: A tensor, RaggedTensor, StructuredTensor or other value for each field. All have
            the same rows.
        depth: How many outer dimensions become the dimensions of the records. Default: all
            dimensions down to the innermost ragged one that every value has; 1 if one of them is
            dense.
        validate: Whether a graph compares the rows that are not known while it is traced. It
            compares those that its ops do not show to be the same.

    Returns:
        A RaggedStructuredTensor where a dimension is ragged, else a DenseStructuredTensor.

    Raises:
        StructureError: If the values have different rows, or fewer dimensions (also a ValueError).
            Running a graph raises an InvalidArgumentError instead.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> amounts = tf.ragged.constant([[3.0, 1.0], [2.0]])
    >>> names = tf.ragged.constant([["flour", "sugar"], ["oats"]])
    >>> xt.struct.zip({"amount": amounts, "name": names})
    <StructuredTensor shape=(2, None) {amount: float32, name: string}
     [[{amount: 3.0, name: b'flour'}, {amount: 1.0, name: b'sugar'}],
      [{amount: 2.0, name: b'oats'}]]>
    """
    expect_fields(fields, "xt.struct.zip", "values", "titles")
    if not fields:
        fix = "For records without fields, write xt.DenseStructuredTensor([count], {})."
        raise StructureError("xt.struct.zip", "at least one field", "an empty dict", fix)
    parts = {name: as_field(value, Path(name)) for name, value in fields.items()}
    if depth is None:
        depth = min(_ragged_levels(value) for value in parts.values()) + 1
    for name, value in parts.items():
        rank = shape_of(value).rank
        if depth < 0 or (rank is not None and rank < depth):
            expected, received = f"a value of rank {depth} or more", f"shape {shape_of(value)}"
            fix = "Give a smaller depth."
            raise StructureError(f"xt.struct.zip: {Path(name)}", expected, received, fix)
    return zip_fields(parts, depth, SizeComparison.in_graph(validate))


def zip_fields(
    parts: dict[str, Any], depth: int, comparison: SizeComparison | None = None
) -> StructuredTensor:
    """Returns `zip_` of values of fields. Without a comparison, a graph compares no rows."""
    ragged = [rows for value in parts.values() if (rows := uncut_rows(value))]
    if depth < 2 or not ragged:
        return dense_of_fields(parts, depth, comparison)
    for name, value in parts.items():
        if not _ragged_levels(value):
            expected = "a ragged value, like the other fields"
            received = f"a dense value of shape {shape_of(value)}"
            fix = "Convert it with tf.RaggedTensor.from_tensor, or give depth=1."
            raise StructureError(f"xt.struct.zip: {Path(name)}", expected, received, fix)
    splits = ragged[0][1]
    inner = {name: uncut(value, splits, Path(name), comparison) for name, value in parts.items()}
    below = comparison and comparison.inside_rows()
    return RaggedStructuredTensor._of_parts(zip_fields(inner, depth - 1, below), splits)


def _ragged_levels(value: FieldValue) -> int:
    rows = uncut_rows(value)
    return 0 if rows is None else 1 + _ragged_levels(rows[0])
