"""Types of values that tensors alone do not make, each also an example of how to write one."""

from extensor.types.alignment.tensor import DimensionAlignment

# Importing it says what TensorFlow's operations do with the type.
from extensor.types.csr import handler as handler
from extensor.types.csr.tensor import CSRSparseTensor
from extensor.types.digraph.tensor import LabeledDigraph, TensorDigraph
from extensor.types.labeled.tensor import LabeledTensor
from extensor.types.masked.handler import MaskedTensor

__all__ = [
    "CSRSparseTensor",
    "DimensionAlignment",
    "LabeledDigraph",
    "LabeledTensor",
    "MaskedTensor",
    "TensorDigraph",
]
