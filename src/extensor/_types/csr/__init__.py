"""CSRSparseTensor: a sparse tensor in compressed sparse rows."""

# The import registers the handlers of TensorFlow's operations.
from extensor._types.csr import handlers as handlers
