"""Classes of another library, which know no extension types, and specs for them.

Nothing is registered here: each test registers a spec for a class in its own process.
"""

import tensorflow as tf

import extensor as xt


class Interval:
    """From `low` to `high`."""

    def __init__(self, low, high, unit="mm"):
        self.low, self.high, self.unit = low, high, unit


class Slotted:
    """The same without a dict or a weak reference."""

    __slots__ = ("high", "low", "unit")

    def __init__(self, low, high, unit="mm"):
        self.low, self.high, self.unit = low, high, unit


class Narrow(Interval):
    """A subclass with more data."""

    def __init__(self, low, high, unit="mm", note="narrow"):
        super().__init__(low, high, unit)
        self.note = note


class _EndsSpec(xt.StackableTypeSpec):
    """A spec whose components are the ends of an interval."""

    def __init__(self, shape, dtype, unit):
        self.shape, self.dtype, self.unit = tf.TensorShape(shape), tf.as_dtype(dtype), unit

    @classmethod
    def from_value(cls, value):
        return cls(value.low.shape, value.low.dtype, value.unit)

    @property
    def component_specs(self):
        return [tf.TensorSpec(self.shape, self.dtype)] * 2

    def to_components(self, value):
        return [value.low, value.high]

    def from_components(self, components):
        return self.value_type(*components, self.unit)

    def serialize(self):
        return self.shape, self.dtype, self.unit


class IntervalSpec(_EndsSpec):
    value_type = Interval


class SlottedSpec(_EndsSpec):
    value_type = Slotted


class NarrowSpec(_EndsSpec):
    value_type = Narrow


class WidthSpec(IntervalSpec):
    """A spec of another library: its components are the low end and the width of an interval."""

    def to_components(self, value):
        return [value.low, value.high - value.low]

    def from_components(self, components):
        low, width = components
        return Interval(low, low + width, self.unit)
