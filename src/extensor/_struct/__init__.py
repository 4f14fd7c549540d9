"""StructuredTensor: nested records as tensors, in Arrow's own layout."""
