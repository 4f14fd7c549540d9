"""MaskedTensor: a tensor of which some elements are no values."""

# Importing them says what TensorFlow's operations do with the type; all others refuse it.
from extensor._types.masked import arrangement as arrangement
from extensor._types.masked import elementwise as elementwise
from extensor._types.masked import reduction as reduction
