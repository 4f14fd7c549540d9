"""Types as users write them: classes with only the method that the protocol requires.

This module registers nothing with TensorFlow and only creates values, so each class is new to
TensorFlow until a test passes a value to an API.
"""

import tensorflow as tf

import extensor as xt


def fresh_masked_type():
    """Returns a new masked tensor class, and its spec class, which TensorFlow has not used yet."""

    class MaskedTensor:
        def __init__(self, values, mask):
            self.values, self.mask = values, mask

        def __tf_type_spec__(self):
            return MaskedTensorSpec(self.values.shape, self.values.dtype)

    class MaskedTensorSpec(xt.StackableTypeSpec):
        def __init__(self, shape, dtype):
            self.shape, self.dtype = tf.TensorShape(shape), tf.dtypes.as_dtype(dtype)

        value_type = MaskedTensor

        @property
        def component_specs(self):
            return tf.TensorSpec(self.shape, self.dtype), tf.TensorSpec(self.shape, tf.bool)

        def to_components(self, value):
            return value.values, value.mask

        def from_components(self, components):
            return MaskedTensor(*components)

        def serialize(self):
            return self.shape, self.dtype

    return MaskedTensor, MaskedTensorSpec


# The same pair where a module is needed that another process can import.
MaskedTensor, MaskedTensorSpec = fresh_masked_type()
for _cls in (MaskedTensor, MaskedTensorSpec):
    _cls.__module__, _cls.__qualname__ = __name__, _cls.__name__


class Parcel:
    """A value of any components, with the spec that it was made with."""

    def __init__(self, components, spec):
        self.components, self.spec = components, spec

    def __tf_type_spec__(self):
        return self.spec


class ParcelSpec(xt.StackableTypeSpec):
    """A spec of component specs in a nest; it stacks if they stack."""

    def __init__(self, component_specs):
        self._specs = component_specs

    value_type = Parcel

    @property
    def component_specs(self):
        return self._specs

    def to_components(self, value):
        return value.components

    def from_components(self, components):
        return Parcel(components, self)

    def serialize(self):
        return (self._specs,)


class StaticSpec(xt.TypeSpec):
    """A spec with any static data and no components, for the laws of specs."""

    def __init__(self, *data):
        self.data = data

    value_type = tuple
    component_specs = ()

    def to_components(self, value):
        return ()

    def from_components(self, components):
        return ()

    def serialize(self):
        return self.data


def parcel(components):
    """Returns the Parcel of some tensors and extension values."""
    specs = tf.nest.map_structure(tf.type_spec_from_value, components)
    return Parcel(components, ParcelSpec(specs))
