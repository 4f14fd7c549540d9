"""Handlers of TensorFlow's operations for UnionTensors; the import registers them."""

from extensor._types.union.handlers import arrangement as arrangement
from extensor._types.union.handlers import refused as refused
from extensor._types.union.handlers import shape as shape
