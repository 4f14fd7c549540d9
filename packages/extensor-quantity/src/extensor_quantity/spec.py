"""The type spec of a Quantity: shape, dtype and unit."""

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
        dtype: The dtype of the amounts.
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
        """The dtype of the amounts."""
        return self._dtype

    @property
    def unit(self) -> Unit:
        """The unit of the amounts."""
        return self._unit

    value_type = Quantity

    @property
    def component_specs(self) -> tf.TensorSpec:
        """The spec of the tensor of amounts."""
        return tf.TensorSpec(self._shape, self._dtype)

    def to_components(self, value: Quantity) -> tf.Tensor:
        """Returns the tensor of amounts."""
        return value.amounts

    def from_components(self, components: Any) -> Quantity:
        """Returns a Quantity of the amounts and the unit of this spec."""
        return Quantity(components, self._unit)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments, the unit by its name."""
        return self._shape, self._dtype, self._unit.name
