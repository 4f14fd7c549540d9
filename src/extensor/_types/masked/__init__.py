"""MaskedTensor: a tensor of which some elements are no values."""

# Importing them says what TensorFlow's operations do with the type.
from extensor._types.masked import handlers as handlers
