"""Ready extension types; each is also an example of how to write one."""

from extensor._types.alignment.value import DimensionAlignment
from extensor._types.csr.value import CSRSparseTensor
from extensor._types.digraph.value import LabeledDigraph, TensorDigraph
from extensor._types.labeled.value import LabeledTensor
from extensor._types.masked.value import MaskedTensor
from extensor._types.union.value import UnionTensor

CSRSparseTensorSpec = CSRSparseTensor.Spec
DimensionAlignmentSpec = DimensionAlignment.Spec
LabeledDigraphSpec = LabeledDigraph.Spec
LabeledTensorSpec = LabeledTensor.Spec
MaskedTensorSpec = MaskedTensor.Spec
TensorDigraphSpec = TensorDigraph.Spec
UnionTensorSpec = UnionTensor.Spec

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
    "UnionTensor",
    "UnionTensorSpec",
]
