"""What casting asks of TensorFlow.

| name | why |
| --- | --- |
| `trace_type.InternalCastContext` | What TensorFlow hands to `TypeSpec.cast`, which its own specs ask for. |
| `convert_variables_to_tensors` | `tf.while_loop` reads the variables in its values before it compares them. Types can be compared only after the same step. |
| `func_graph` | To try a cast without leaving ops behind, and to flatten what a branch returns, as TensorFlow does in these places. |
"""  # noqa: E501 - a table row is one line

# pyright: reportUnusedImport=false

from __future__ import annotations

from tensorflow.core.function import trace_type
from tensorflow.python.framework import func_graph
from tensorflow.python.util.variable_utils import convert_variables_to_tensors

__all__ = ["CAST_CONTEXT", "convert_variables_to_tensors", "func_graph"]

CAST_CONTEXT = trace_type.InternalCastContext()
