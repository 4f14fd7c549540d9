"""extensor: values of your own types in every TensorFlow API, and nested records as tensors."""

from extensor import struct
from extensor.arrow.read import from_arrow
from extensor.arrow.schema import spec_from_schema
from extensor.arrow.write import to_arrow
from extensor.core import nest
from extensor.core.box import StackableTypeSpec
from extensor.core.extension import ExtensionType
from extensor.core.registry import register_type_spec
from extensor.core.spec import TypeSpec
from extensor.errors import ExtensorError
from extensor.path import Path
from extensor.struct.ragged_spec import RaggedStructuredTensorSpec
from extensor.struct.spec import DenseStructuredTensorSpec, StructuredTensorSpec
from extensor.struct.tensor import (
    DenseStructuredTensor,
    RaggedStructuredTensor,
    StructuredTensor,
)
