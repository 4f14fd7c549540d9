"""MaskedTensor: values with a mask that is True where they are valid."""

# The import registers the handlers of TensorFlow's operations.
from extensor._types.masked import handlers as handlers
