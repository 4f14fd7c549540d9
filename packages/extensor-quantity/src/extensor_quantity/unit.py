"""The units of a kitchen."""

from __future__ import annotations

from dataclasses import dataclass


class UnitError(ValueError):
    """A unit is not known, or two units have different dimensions."""


@dataclass(frozen=True)
class Unit:
    """A unit of measure.

    Attributes:
        name: Its symbol.
        dimension: The dimension: mass or volume.
        size: The size of the unit, in the smallest unit of its dimension.
    """

    name: str
    dimension: str
    size: float

    @staticmethod
    def of(name: str | Unit) -> Unit:
        """Returns the unit of a name.

        Raises:
            UnitError: If there is no unit of this name.
        """
        if isinstance(name, Unit):
            return name
        try:
            return _UNITS[name]
        except KeyError:
            known = ", ".join(_UNITS)
            raise UnitError(f"{name!r}: expected one of the units {known}.") from None

    def factor_to(self, other: Unit) -> float:
        """Returns the number of the other unit in one of this unit.

        Raises:
            UnitError: If they have different dimensions.
        """
        if self.dimension != other.dimension:
            raise UnitError(
                f"{self.name}: expected another unit of {self.dimension}, got {other.name}, one of "
                f"{other.dimension}. Convert by a density first."
            )
        return self.size / other.size


_UNITS = {
    unit.name: unit
    for unit in (
        Unit("mg", "mass", 1.0),
        Unit("g", "mass", 1000.0),
        Unit("kg", "mass", 1000000.0),
        Unit("oz", "mass", 28349.523125),
        Unit("lb", "mass", 453592.37),
        Unit("ml", "volume", 1.0),
        Unit("l", "volume", 1000.0),
        Unit("tsp", "volume", 4.92892159375),
        Unit("tbsp", "volume", 14.78676478125),
        Unit("cup", "volume", 236.5882365),
    )
}
