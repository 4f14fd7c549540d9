"""Handlers of TensorFlow's operations for CSRSparseTensors; the import registers them."""

from extensor._types.csr.handlers import arrangement as arrangement
from extensor._types.csr.handlers import elementwise as elementwise
from extensor._types.csr.handlers import product as product
from extensor._types.csr.handlers import reduction as reduction
from extensor._types.csr.handlers import shape as shape
