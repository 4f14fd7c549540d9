"""The protocol that makes a class an extension type."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import tensorflow as tf


@runtime_checkable
class ExtensionType(Protocol):
    """The protocol of classes whose values every generic TensorFlow API accepts.

    A value must be immutable and decompose into two parts: tensors (dynamic data, which may
    differ from one run of a graph to the next) and a `TypeSpec` (static data, which may not).
    The class needs no base class and no import of extensor, only this method:

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class MaskedTensor:
    ...     def __init__(self, values, mask):
    ...         self.values, self.mask = values, mask
    ...
    ...     def __tf_type_spec__(self):
    ...         return MaskedTensorSpec(self.values.shape, self.values.dtype)
    >>> class MaskedTensorSpec(xt.TypeSpec):
    ...     def __init__(self, shape, dtype):
    ...         self.shape, self.dtype = tf.TensorShape(shape), tf.dtypes.as_dtype(dtype)
    ...
    ...     value_type = MaskedTensor
    ...
    ...     @property
    ...     def component_specs(self):
    ...         return tf.TensorSpec(self.shape, self.dtype), tf.TensorSpec(self.shape, tf.bool)
    ...
    ...     def to_components(self, value):
    ...         return value.values, value.mask
    ...
    ...     def from_components(self, components):
    ...         return MaskedTensor(*components)
    ...
    ...     def serialize(self):
    ...         return self.shape, self.dtype
    >>> masked = MaskedTensor(tf.constant([3.0, 1.0]), tf.constant([True, False]))
    >>> tf.function(lambda x: MaskedTensor(x.values * 2, x.mask))(masked).values
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([6., 2.], dtype=float32)>
    """

    def __tf_type_spec__(self) -> tf.TypeSpec:
        """Returns the `TypeSpec` that describes the type of this value."""
        ...
