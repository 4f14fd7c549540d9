"""Row splits that TensorFlow computes when it broadcasts ragged tensors.

`a + b` of two RaggedTensors with the same rows computes the row splits of the result anew in a graph,
by functions of `dynamic_ragged_shape.py`. Their names are in the traceback of their ops.

| name | why |
| --- | --- |
| `_broadcast_half` | It makes the row splits of a result from those of an operand and the positions of its rows. |
| `_broadcast_dynamic_shape_first_layer` | It makes the positions of the rows of an operand, from the numbers of rows. Equal numbers give each row its own position. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import tensorflow as tf

_FILE = "dynamic_ragged_shape.py"


def makes_rows(op: tf.Operation) -> bool:
    """Returns whether an op makes row splits, or positions of values, of a broadcast result."""
    return _is_made_by(op, "_broadcast_half")


def makes_positions(op: tf.Operation) -> bool:
    """Returns whether an op makes the positions of rows from the numbers of rows of operands."""
    return _is_made_by(op, "_broadcast_dynamic_shape_first_layer")


def _is_made_by(op: tf.Operation, function: str) -> bool:
    return any(
        frame.name == function and frame.filename.endswith(_FILE) for frame in op.traceback or ()
    )
