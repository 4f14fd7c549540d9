"""The parts of TensorFlow that casting uses.

| name | why |
| --- | --- |
| `trace_type.InternalCastContext` | The context argument of `TypeSpec.cast`, which TensorFlow's own specs require. |
| `convert_variables_to_tensors` | `tf.while_loop` reads variables before it compares values. extensor must do the same before it compares types. |
| `func_graph` | To try a cast without adding ops to a graph, and to flatten the outputs of a branch as TensorFlow does. |
"""  # noqa: E501 - a table row is one line

# pyright: reportUnusedImport=false

from __future__ import annotations

from tensorflow.core.function import trace_type
from tensorflow.python.framework import func_graph
from tensorflow.python.util.variable_utils import convert_variables_to_tensors

__all__ = ["CAST_CONTEXT", "convert_variables_to_tensors", "func_graph"]

CAST_CONTEXT = trace_type.InternalCastContext()
