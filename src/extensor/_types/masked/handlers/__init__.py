"""Handlers of TensorFlow's operations for MaskedTensors; the import registers them."""

from extensor._types.masked.handlers import along_axis as along_axis
from extensor._types.masked.handlers import arrangement as arrangement
from extensor._types.masked.handlers import elementwise as elementwise
from extensor._types.masked.handlers import reduction as reduction
