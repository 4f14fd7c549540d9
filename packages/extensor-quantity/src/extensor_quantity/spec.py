"""What TensorFlow has to know of amounts with a unit."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

import extensor as xt
from extensor_quantity.quantity import Quantity
from extensor_quantity.unit import Unit


@xt.register_type_spec(name="extensor_quantity.QuantitySpec")
class QuantitySpec(xt.StackableTypeSpec):
    """The spec of amounts: their shape, dtype and unit.

    Args:
        shape: The shape of the amounts.
        dtype: Their dtype.
        unit: A unit, or its name.
    """

    def __init__(self, shape: Any, dtype: Any, unit: str | Unit) -> None:
        self._shape = tf.TensorShape(shape)
        self._dtype = tf.as_dtype(dtype)
        self._unit = Unit.of(unit)

    @property
    def shape(self) -> tf.TensorShape:
        """The shape of the amounts."""
        return self._shape

    @property
    def dtype(self) -> tf.DType:
        """Their dtype."""
        return self._dtype

    @property
    def unit(self) -> Unit:
        """What they count."""
        return self._unit

    value_type = Quantity

    @property
    def component_specs(self) -> tf.TensorSpec:
        """The spec of the amounts alone."""
        return tf.TensorSpec(self._shape, self._dtype)

    def to_components(self, value: Quantity) -> tf.Tensor:
        """Returns the amounts."""
        return value.amounts

    def from_components(self, components: Any) -> Quantity:
        """Returns the amounts with their unit."""
        return Quantity(components, self._unit)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments, the unit by its name."""
        return self._shape, self._dtype, self._unit.name
