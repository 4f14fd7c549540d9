"""CSRSparseTensor: a sparse tensor that keeps its entries row by row."""

# Importing them says what TensorFlow's operations do with the type.
from extensor._types.csr import handlers as handlers
