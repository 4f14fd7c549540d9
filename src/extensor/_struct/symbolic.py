"""Symbolic values: what stands for a tensor while a model is put together, such as a KerasTensor.

They may be the value of a field, as they are. The class of a symbolic value belongs to another
library and derives from nothing of ours, so what we need of it are two functions that
`functools.singledispatch` lets the owner of the class write:

>>> class Symbol:
...     def __init__(self, spec):
...         self.spec = spec
>>> _ = symbolic.symbolic_spec.register(Symbol, lambda value: value.spec)
>>> xt.DenseStructuredTensor([2], {"x": Symbol(tf.TensorSpec([2], tf.int32))})
<StructuredTensor shape=(2,) {x: int32}>
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


@functools.singledispatch
def symbolic_spec(value: Any) -> tf.TypeSpec | None:
    """Returns the spec of the TensorFlow values that a symbolic value stands for; None of others.

    Register a function of the value for each class of symbolic values.
    """
    return None


@functools.singledispatch
def symbolic_rows(values: Any, row_splits: Any) -> Any:
    """Returns what stands for symbolic values cut into rows; None of other values.

    Register a function of the values and the row splits for each class that can be cut.
    """
    return None


def is_symbolic(value: Any) -> bool:
    """Returns whether a value is of a class that `symbolic_spec` is registered for."""
    return symbolic_spec.dispatch(type(value)) is not symbolic_spec.dispatch(object)
