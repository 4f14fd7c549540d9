"""Values of your own types in every TensorFlow API, and nested records as tensors."""

import importlib
from typing import TYPE_CHECKING, Any

from extensor import _tf as _tf  # before all others: it says so where TensorFlow is missing
from extensor import data, dispatch, errors, struct
from extensor.arrow.read import from_arrow
from extensor.arrow.schema import spec_from_schema
from extensor.arrow.write import to_arrow
from extensor.core import anonymous as _anonymous  # noqa: F401  # pyright: ignore[reportUnusedImport]
from extensor.core import elements as _elements  # noqa: F401  # pyright: ignore[reportUnusedImport]
from extensor.core import nest
from extensor.core.auto import (
    AutoCompositeTensor,
    auto_composite_tensor,
    is_deferred_assertion_context,
)
from extensor.core.box import StackableTypeSpec
from extensor.core.declare import extension_type, replace
from extensor.core.extension import ExtensionType
from extensor.core.foreign import spec_of
from extensor.core.functional import (
    ForwardAccumulator,
    foldl,
    foldr,
    numpy_function,
    print_,
    recompute_grad,
    scan,
    tuple_,
)
from extensor.core.registry import (
    register_extension_type,
    register_type_spec,
    registered_types,
)
from extensor.core.spec import TypeSpec
from extensor.dispatch.protocol import DispatchableType
from extensor.errors import ExtensorError
from extensor.formats.parquet import read_parquet, write_parquet
from extensor.path import Path
from extensor.struct.dense import DenseStructuredTensor
from extensor.struct.ragged import RaggedStructuredTensor
from extensor.struct.ragged_spec import RaggedStructuredTensorSpec
from extensor.struct.spec import DenseStructuredTensorSpec, StructuredTensorSpec
from extensor.struct.tensor import StructuredTensor

if TYPE_CHECKING:
    from extensor import keras, serving, testing, types

__version__ = "0.1.0"

__all__ = [
    "AutoCompositeTensor",
    "DenseStructuredTensor",
    "DenseStructuredTensorSpec",
    "DispatchableType",
    "ExtensionType",
    "ExtensorError",
    "ForwardAccumulator",
    "Path",
    "RaggedStructuredTensor",
    "RaggedStructuredTensorSpec",
    "StackableTypeSpec",
    "StructuredTensor",
    "StructuredTensorSpec",
    "TypeSpec",
    "auto_composite_tensor",
    "data",
    "dispatch",
    "errors",
    "extension_type",
    "foldl",
    "foldr",
    "from_arrow",
    "is_deferred_assertion_context",
    "keras",
    "nest",
    "numpy_function",
    "read_parquet",
    "recompute_grad",
    "register_extension_type",
    "register_type_spec",
    "registered_types",
    "replace",
    "scan",
    "serving",
    "spec_from_schema",
    "spec_of",
    "struct",
    "testing",
    "to_arrow",
    "types",
    "write_parquet",
]

# Public, but not in `__all__`: a star-import must not replace the builtins of these names.
print = print_
tuple = tuple_


def __dir__() -> list[str]:
    # Also what is imported when it is first used; not the modules that extensor is made of.
    return [*__all__, "print", "tuple", *(name for name in globals() if name.startswith("__"))]


def __getattr__(name: str) -> Any:
    # Who needs none of these should not wait for them.
    if name in ("keras", "serving", "testing", "types"):
        return importlib.import_module(f"extensor.{name}")
    raise AttributeError(f"module 'extensor' has no attribute {name!r}")
