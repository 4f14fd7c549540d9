"""How a type says what TensorFlow's operations do with its values."""

from extensor._dispatch.call import follows_protocol
from extensor._dispatch.dispatchable import DispatchableType
from extensor._dispatch.handlers import handle, implements
from extensor._dispatch.kind import (
    is_binary_elementwise_op,
    is_comparison_op,
    is_logical_op,
    is_rearranging_op,
    is_reduction_op,
    is_shape_only_op,
    is_stacking_op,
    is_unary_elementwise_op,
    is_unit_keeping_reduction_op,
)
from extensor._dispatch.operation import name_of, named_arguments, tensor_parameters
from extensor._dispatch.operators import OperatorsMixin

__all__ = [
    "DispatchableType",
    "OperatorsMixin",
    "follows_protocol",
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
    "is_unit_keeping_reduction_op",
    "name_of",
    "named_arguments",
    "tensor_parameters",
]
