"""StructuredTensor: nested records as tensors, in Arrow's own layout."""

from extensor.struct.show import tree

__all__ = ["tree"]


def __dir__() -> list[str]:
    # Not the modules that it is made of.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
