"""LabeledTensor: a tensor whose axes have names."""

# The import registers the handlers of TensorFlow's operations.
from extensor._types.labeled import handlers as handlers
