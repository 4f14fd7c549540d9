"""The specs of variables of a tf.distribute.Strategy, such as a MirroredVariable.

| name | why |
| --- | --- |
| `VariableSpec.placeholder_value` | tf.nest takes its values for leaves. A variable of a strategy is no ResourceVariable: it has one on each device, and TensorFlow takes none as an argument of a tf.function. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from extensor._tf._tf_spec import VariableSpec
from extensor._typing import Value


class DistributedVariableSpec(VariableSpec):
    """The spec of one variable of a strategy: a function captures it, and it has no tensor.

    This is what TensorFlow does with such a variable as an argument of a tf.function.

    Args:
        variable: The variable.
    """

    value_type = tf.Variable

    def __init__(self, variable: Any) -> None:
        super().__init__(variable.shape, variable.dtype, variable.trainable)
        self.variable = variable

    def is_compatible_with(self, spec_or_value: object) -> bool:
        return getattr(spec_or_value, "variable", spec_or_value) is self.variable

    def is_subtype_of(self, other: object) -> bool:
        return self == other

    def most_specific_common_supertype(
        self, others: Sequence[tf.types.experimental.TraceType]
    ) -> DistributedVariableSpec | None:
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context: object) -> Value:
        return self.variable

    def to_tensors(self, value: Value) -> list[tf.Tensor]:
        return []

    def from_tensors(self, tensors: Iterator[tf.Tensor]) -> Value:
        return self.variable

    def flatten(self) -> list[tf.types.experimental.TraceType]:
        return []

    def cast(self, value: Value, _: object) -> Value:
        return value

    def _serialize(self) -> Any:
        return (self.variable,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DistributedVariableSpec) and self.variable is other.variable

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return id(self.variable)

    def __repr__(self) -> str:
        return f"DistributedVariableSpec(shape={self.shape}, dtype={self.dtype!r})"


def spec_of_variable(variable: Any) -> VariableSpec:
    """Returns the spec of a variable, of a strategy or not."""
    if isinstance(variable, tf.distribute.DistributedValues):
        return DistributedVariableSpec(variable)
    return VariableSpec.from_value(variable)
