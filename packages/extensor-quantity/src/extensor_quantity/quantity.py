"""Amounts with a unit."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor_quantity.unit import Unit


class Quantity:
    """Amounts of one unit: a tensor, and a unit that is known when a graph is traced.

    Args:
        amounts: A floating point tensor, or numbers.
        unit: A unit, or its name.

    Raises:
        UnitError: If there is no such unit (also a ValueError).
    """

    def __init__(self, amounts: Any, unit: str | Unit) -> None:
        self._amounts = tf.convert_to_tensor(amounts)
        self._unit = Unit.of(unit)

    @property
    def amounts(self) -> tf.Tensor:
        """The tensor of amounts."""
        return self._amounts

    @property
    def unit(self) -> Unit:
        """The unit of the amounts."""
        return self._unit

    def to(self, unit: str | Unit) -> Quantity:
        """Returns the same amounts in another unit.

        Raises:
            UnitError: If the unit has another dimension (also a ValueError).
        """
        other = Unit.of(unit)
        factor = self._unit.factor_to(other)
        return Quantity(self._amounts * tf.cast(factor, self._amounts.dtype), other)

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self._amounts + other.to(self._unit).amounts, self._unit)

    def __mul__(self, factor: Any) -> Quantity:
        return Quantity(self._amounts * factor, self._unit)

    def __repr__(self) -> str:
        is_eager = hasattr(self._amounts, "numpy")
        shown = self._amounts.numpy() if is_eager else self._amounts
        return f"Quantity({shown}, {self._unit.name!r})"

    # All that TensorFlow needs.

    def __tf_type_spec__(self) -> Any:
        # Not at the top: the spec names this class.
        from extensor_quantity.spec import QuantitySpec

        return QuantitySpec(self._amounts.shape, self._amounts.dtype, self._unit)
