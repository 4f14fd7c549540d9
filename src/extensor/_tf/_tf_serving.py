"""What stands in a SavedModel, for those who read it without its graph.

| name | why |
| --- | --- |
| `loader_impl` | The operations of a signature, which a client of the C API names, are in the file alone: what is loaded by the public ways has lost their names, or takes a session. |

A nest of specs is written, and read back, as TensorFlow writes that of a function: by the
`nested_structure_coder` of `_tf_saving`, whose message `StructuredValue` has a form in JSON.
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import warnings
from typing import Any

from google.protobuf import json_format
from tensorflow.python.saved_model import loader_impl

from extensor._tf._tf_registry import registered_spec
from extensor._tf._tf_saving import nested_structure_coder
from extensor.errors import FormatError, RegistrationError, UnsupportedTypeError

_struct_pb2: Any = nested_structure_coder.struct_pb2


def structure_to_json(structure: Any) -> dict[str, Any]:
    """Returns a nest of specs and static data in words that JSON can hold.

    Args:
        structure: Dicts, lists, tuples and namedtuples, with TypeSpecs and Python's own scalars.

    Raises:
        RegistrationError: If a spec in it has no registered name (also a ValueError).
        UnsupportedTypeError: If something in it cannot be written (also a TypeError).
    """
    with warnings.catch_warnings():
        # TensorFlow warns that a reader must import the type, which the file itself says.
        warnings.filterwarnings("ignore", "Encoding a StructuredValue", UserWarning)
        try:
            message: Any = nested_structure_coder.encode_structure(structure)
        except RegistrationError:
            raise
        except nested_structure_coder.NotEncodableError as error:
            raise UnsupportedTypeError(
                path="the spec",
                expected="static data that a SavedModel can hold",
                received=str(error),
                mend="Keep to numbers, strings, None, enums, dtypes, shapes and containers.",
            ) from error
    return json_format.MessageToDict(message)


def structure_from_json(words: Any, path: str) -> Any:
    """Returns the nest that `structure_to_json` wrote.

    Args:
        words: What it wrote.
        path: Where it was read, for errors.

    Raises:
        FormatError: If it was not written so (also a ValueError).
        RegistrationError: If a type in it is not registered here (also a ValueError).
    """
    try:
        message = json_format.ParseDict(words, _struct_pb2.StructuredValue())
        return nested_structure_coder.decode_proto(message)
    except RegistrationError:
        raise
    except (json_format.ParseError, nested_structure_coder.NotEncodableError) as error:
        raise FormatError(
            path=path,
            expected="a nest of specs, as TensorFlow writes it",
            received=str(error),
            mend="Save the signature again.",
        ) from error


def types_in(words: Any) -> dict[str, str]:
    """Returns the registered names in what `structure_to_json` wrote, and the modules they need."""
    found: dict[str, str] = {}
    if isinstance(words, dict):
        name = str(words.get("typeSpecClassName"))
        cls = registered_spec(name)
        if cls is not None:
            found[name] = cls.__module__
    if isinstance(words, (dict, list)):
        for item in words.values() if isinstance(words, dict) else words:
            found |= types_in(item)
    return found


def signature_tensors(path: str) -> dict[str, dict[str, str]]:
    """Returns for each signature of a SavedModel the tensor in its graph that a name stands for.

    Args:
        path: The folder of the SavedModel.

    Returns:
        By the keys of the signatures, dicts from `inputs/NAME` and `outputs/NAME` to the names of
        tensors, such as `serving_default_recipe__title:0`.
    """
    signatures = loader_impl.parse_saved_model(path).meta_graphs[0].signature_def
    return {
        key: {
            **{f"inputs/{name}": info.name for name, info in signature.inputs.items()},
            **{f"outputs/{name}": info.name for name, info in signature.outputs.items()},
        }
        for key, signature in signatures.items()
        if not key.startswith("__saved_model_")  # how a model initializes itself
    }
