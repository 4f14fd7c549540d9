"""StructuredTensor: nested records as tensors, in Arrow's own layout."""

from extensor._struct.display import tree

__all__ = ["tree"]
