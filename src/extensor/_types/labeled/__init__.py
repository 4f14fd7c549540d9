"""LabeledTensor: a tensor whose axes have names."""

# Importing them says what TensorFlow's operations do with the type.
from extensor._types.labeled import handlers as handlers
