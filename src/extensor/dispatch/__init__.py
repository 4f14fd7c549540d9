"""How a type says what TensorFlow's operations do with its values."""

from extensor.dispatch.handlers import handle, implements
from extensor.dispatch.kind import (
    is_binary_elementwise_op,
    is_comparison_op,
    is_logical_op,
    is_rearranging_op,
    is_reduction_op,
    is_shape_only_op,
    is_stacking_op,
    is_unary_elementwise_op,
)
from extensor.dispatch.operation import tensor_parameters
from extensor.dispatch.operators import OperatorsMixin
from extensor.dispatch.protocol import DispatchableType

__all__ = [
    "DispatchableType",
    "OperatorsMixin",
    "handle",
    "implements",
    "is_binary_elementwise_op",
    "is_comparison_op",
    "is_logical_op",
    "is_rearranging_op",
    "is_reduction_op",
    "is_shape_only_op",
    "is_stacking_op",
    "is_unary_elementwise_op",
    "tensor_parameters",
]


def __dir__() -> list[str]:
    # Not the modules that it is made of.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
