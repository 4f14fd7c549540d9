"""Types of values that tensors alone do not make, each also an example of how to write one."""

from extensor.types.alignment.tensor import DimensionAlignment

# Importing it says what TensorFlow's operations do with the type.
from extensor.types.csr import handler as handler
from extensor.types.csr.tensor import CSRSparseTensor
from extensor.types.digraph.tensor import LabeledDigraph, TensorDigraph
from extensor.types.labeled.tensor import LabeledTensor
from extensor.types.masked.handler import MaskedTensor

CSRSparseTensorSpec = CSRSparseTensor.Spec
DimensionAlignmentSpec = DimensionAlignment.Spec
LabeledDigraphSpec = LabeledDigraph.Spec
LabeledTensorSpec = LabeledTensor.Spec
MaskedTensorSpec = MaskedTensor.Spec
TensorDigraphSpec = TensorDigraph.Spec

__all__ = [
    "CSRSparseTensor",
    "CSRSparseTensorSpec",
    "DimensionAlignment",
    "DimensionAlignmentSpec",
    "LabeledDigraph",
    "LabeledDigraphSpec",
    "LabeledTensor",
    "LabeledTensorSpec",
    "MaskedTensor",
    "MaskedTensorSpec",
    "TensorDigraph",
    "TensorDigraphSpec",
]


def __dir__() -> list[str]:
    # Not the modules that it is made of.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
