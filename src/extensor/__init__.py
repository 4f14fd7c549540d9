"""Extension types for TensorFlow and Keras, and StructuredTensor for nested records."""

import importlib
from typing import TYPE_CHECKING, Any

from extensor import _tf as _tf  # first, because it raises a clear error if TensorFlow is missing

# isort: split
from extensor import _keras_loading, errors
from extensor._arrow.from_arrow import from_arrow
from extensor._arrow.null_policy import fill
from extensor._arrow.schema import schema_from_spec, spec_from_schema
from extensor._arrow.write import to_arrow
from extensor._auto.decorator import (
    AutoCompositeTensor,
    auto_composite_tensor,
    is_deferred_assertion_context,
)
from extensor._converter import register_converters
from extensor._declare.decorator import extension_type, replace
from extensor._dispatch.dispatchable import DispatchableType
from extensor._functions.gradient import ForwardAccumulator, recompute_grad
from extensor._functions.numpy_function import numpy_function
from extensor._functions.print import print_
from extensor._functions.sequence import foldl, foldr, scan
from extensor._functions.tuple import tuple_
from extensor._keras import _keras_values
from extensor._patches.install import install, patches
from extensor._path import Path
from extensor._protocol.extension import ExtensionType
from extensor._protocol.registry import (
    register_extension_type,
    register_type_spec,
    registered_types,
)
from extensor._protocol.spec import TypeSpec
from extensor._protocol.spec_of import spec_of
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._serving.arrow_function import arrow_function
from extensor._struct import handlers as _  # noqa: F401 - it registers them
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.other_names import OF_MODULE, no_attribute
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._struct.value import StructuredTensorValue
from extensor.errors import ExtensorError

if TYPE_CHECKING:
    from extensor import (
        authoring,
        data,
        dispatch,
        keras,
        nest,
        serving,
        struct,
        testing,
        types,
        typing,
    )
    from extensor._formats.arrow import read_arrow, write_arrow
    from extensor._formats.awkward import from_awkward, to_awkward
    from extensor._formats.csv.read import read_csv
    from extensor._formats.csv.write import write_csv
    from extensor._formats.delta import read_delta
    from extensor._formats.firestore.read import read_firestore
    from extensor._formats.firestore.write import write_firestore
    from extensor._formats.huggingface import from_huggingface, to_huggingface
    from extensor._formats.iceberg import read_iceberg
    from extensor._formats.json.read import read_json
    from extensor._formats.json.write import write_json
    from extensor._formats.pandas.read import from_pandas
    from extensor._formats.pandas.write import to_pandas
    from extensor._formats.parquet.read import read_parquet
    from extensor._formats.parquet.write import write_parquet
    from extensor._formats.protobuf.read import from_proto, spec_from_proto
    from extensor._formats.protobuf.write import to_proto
    from extensor._formats.realtime_database import read_realtime_database, write_realtime_database
    from extensor._formats.spanner.read import read_spanner
    from extensor._formats.spanner.write import write_spanner
    from extensor._formats.sql.database import read_database, write_database
    from extensor._formats.tfrecord.files import read_tfrecord, write_tfrecord
    from extensor._formats.tfrecord.parsed import from_tf_example, from_tf_sequence_example
    from extensor._formats.tfrecord.serialized import to_tf_example, to_tf_sequence_example

__version__ = "0.3.0"

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
    "StructuredTensorValue",
    "TypeSpec",
    "arrow_function",
    "authoring",
    "auto_composite_tensor",
    "data",
    "dispatch",
    "errors",
    "extension_type",
    "fill",
    "foldl",
    "foldr",
    "from_arrow",
    "from_awkward",
    "from_huggingface",
    "from_pandas",
    "from_proto",
    "from_tf_example",
    "from_tf_sequence_example",
    "is_deferred_assertion_context",
    "keras",
    "nest",
    "numpy_function",
    "patches",
    "read_arrow",
    "read_csv",
    "read_database",
    "read_delta",
    "read_firestore",
    "read_iceberg",
    "read_json",
    "read_parquet",
    "read_realtime_database",
    "read_spanner",
    "read_tfrecord",
    "recompute_grad",
    "register_extension_type",
    "register_type_spec",
    "registered_types",
    "replace",
    "scan",
    "schema_from_spec",
    "serving",
    "spec_from_proto",
    "spec_from_schema",
    "spec_of",
    "struct",
    "testing",
    "to_arrow",
    "to_awkward",
    "to_huggingface",
    "to_pandas",
    "to_proto",
    "to_tf_example",
    "to_tf_sequence_example",
    "types",
    "typing",
    "write_arrow",
    "write_csv",
    "write_database",
    "write_firestore",
    "write_json",
    "write_parquet",
    "write_realtime_database",
    "write_spanner",
    "write_tfrecord",
]

_MODULES = frozenset(
    "authoring data dispatch keras nest serving struct testing types typing".split()
)

_FORMATS = {
    name: f"_formats.{module}"
    for module, names in {
        "arrow": "read_arrow write_arrow",
        "awkward": "from_awkward to_awkward",
        "csv.read": "read_csv",
        "csv.write": "write_csv",
        "delta": "read_delta",
        "firestore.read": "read_firestore",
        "firestore.write": "write_firestore",
        "huggingface": "from_huggingface to_huggingface",
        "iceberg": "read_iceberg",
        "json.read": "read_json",
        "json.write": "write_json",
        "pandas.read": "from_pandas",
        "pandas.write": "to_pandas",
        "parquet.read": "read_parquet",
        "parquet.write": "write_parquet",
        "protobuf.read": "from_proto spec_from_proto",
        "protobuf.write": "to_proto",
        "realtime_database": "read_realtime_database write_realtime_database",
        "spanner.read": "read_spanner",
        "spanner.write": "write_spanner",
        "sql.database": "read_database write_database",
        "tfrecord.files": "read_tfrecord write_tfrecord",
        "tfrecord.parsed": "from_tf_example from_tf_sequence_example",
        "tfrecord.serialized": "to_tf_example to_tf_sequence_example",
    }.items()
    for name in names.split()
}
"""The functions of formats, and their modules, which take a third of the time of the import."""

register_converters(
    {
        "extensor._arrow.kept_strings": "kept_texts",
        "extensor._arrow.times_of_text": "records_with_times",
        "extensor._arrow.wanted_table": "records_of_spec",
        "extensor._arrow.write": "array_capsules stream_capsule",
        "extensor._formats.pandas.write": "to_pandas",
        "extensor._formats.python.class_of_spec": "python_class",
        "extensor._formats.python.constant": "is_data of_spec",
        "extensor._formats.python.instances": "to_objects",
        "extensor._formats.python.leaves": "time_or_decimal",
        "extensor._struct.difference": "mismatch mismatch_of_records without_extra",
        "extensor._struct.display.html": "spec_html",
        "extensor._struct.display.text": "tree",
        "extensor._struct.paths.to_static": "to_static",
    }
)
install()
_keras_loading.register()
_keras_values.install()

# Public, but not in `__all__`: a star-import must not replace the builtins of these names.
print = print_
tuple = tuple_


def __dir__() -> list[str]:
    # Includes what is imported on first use.
    return [*__all__, "print", "tuple", *(name for name in globals() if name.startswith("__"))]


def __getattr__(name: str) -> Any:
    # Imported on first use, so that `import extensor` stays fast, and waits for the lock of no
    # public module: one thread may import `extensor` while another imports `extensor.data`.
    if name in _MODULES:
        return importlib.import_module(f"extensor.{name}")
    if name in _FORMATS:
        function = getattr(importlib.import_module(f"extensor.{_FORMATS[name]}"), name)
        globals()[name] = function
        return function
    raise no_attribute("module 'extensor'", name, OF_MODULE)
