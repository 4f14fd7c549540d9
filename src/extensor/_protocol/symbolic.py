"""Symbolic values in values: placeholders for tensors while a model is built, such as KerasTensor.

A field of records, or of an extension type, can hold a symbolic value as it is. The class of a
symbolic value belongs to another library and derives from no class of extensor. So extensor uses
two functions with `functools.singledispatch`, and an implementation is registered for the class:

>>> from extensor._protocol.symbolic import symbolic_spec
>>> import tensorflow as tf
>>> import extensor as xt
>>> class Symbol:
...     def __init__(self, spec):
...         self.spec = spec
>>> _ = symbolic_spec.register(Symbol, lambda value: value.spec)
>>> xt.DenseStructuredTensor([2], {"x": Symbol(tf.TensorSpec([2], tf.int32))})
<StructuredTensor shape=(2,) {x: int32}>
"""

from __future__ import annotations

import functools

import tensorflow as tf

from extensor._typing import Value


@functools.singledispatch
def symbolic_spec(value: object) -> tf.TypeSpec | None:
    """Returns the spec of the TensorFlow value behind a symbolic value; None for other values.

    Register a function of the value for each class of symbolic values.
    """
    return None


@functools.singledispatch
def symbolic_rows(values: object, row_splits: tf.Tensor) -> Value | None:
    """Returns symbolic values cut into rows; None for other values.

    Register a function of the values and the row splits for each class that can be cut.
    """
    return None


def is_symbolic(value: object) -> bool:
    """Returns whether `symbolic_spec` is registered for a value's class."""
    return symbolic_spec.dispatch(type(value)) is not symbolic_spec.dispatch(object)
