"""Types of values that tensors alone do not make, each also an example of how to write one."""

from extensor._types.alignment.tensor import DimensionAlignment
from extensor._types.csr.tensor import CSRSparseTensor
from extensor._types.digraph.tensor import LabeledDigraph, TensorDigraph
from extensor._types.labeled.tensor import LabeledTensor
from extensor._types.masked.tensor import MaskedTensor

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
