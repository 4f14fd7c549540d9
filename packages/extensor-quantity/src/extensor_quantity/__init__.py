"""Amounts with a unit, as values for TensorFlow."""

from extensor_quantity.quantity import Quantity
from extensor_quantity.spec import QuantitySpec
from extensor_quantity.unit import Unit, UnitError

__all__ = ["Quantity", "QuantitySpec", "Unit", "UnitError"]
