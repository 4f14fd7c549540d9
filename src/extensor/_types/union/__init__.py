"""UnionTensor: values of several variants, each row of one of them."""

# The import registers the handlers of TensorFlow's operations.
from extensor._types.union import handlers as handlers
