"""What TensorFlow's operations do with MaskedTensors: importing it says so.

An operation that is in none of these rooms is not overridden, and its own error says so.
"""

from extensor.types.masked import arrangement as arrangement
from extensor.types.masked import elementwise as elementwise
from extensor.types.masked import reduction as reduction
from extensor.types.masked.tensor import MaskedTensor

__all__ = ["MaskedTensor"]
