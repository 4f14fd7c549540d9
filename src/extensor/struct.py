"""StructuredTensor: nested records as tensors, in Arrow's own layout."""

from extensor._formats.python.classes import spec_from
from extensor._formats.python.constant import constant, constant_value
from extensor._struct.display import tree

__all__ = ["constant", "constant_value", "spec_from", "tree"]
