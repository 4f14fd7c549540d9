"""Reads and writes data of a SavedModel without loading its graph.

| name | why |
| --- | --- |
| `loader_impl` | A client of the C API needs the names of the operations of a signature. Only the file has them: the public functions for loading drop them, or need a session. |

Nests of specs are written and read by the `nested_structure_coder` of `_tf_saving`, as TensorFlow
does for functions. Its message `StructuredValue` can be written as JSON.
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import warnings
from typing import Any

from google.protobuf import json_format
from tensorflow.python.saved_model import loader_impl

from extensor._tf._tf_registry import registered_spec
from extensor._tf._tf_saving import classes_needed, nested_structure_coder
from extensor._typing import Nest
from extensor.errors import ExtensorError, FormatError, UnsupportedTypeError

_struct_pb2: Any = nested_structure_coder.struct_pb2


def structure_to_json(structure: Nest) -> dict[str, Any]:
    """Returns a nest of specs and static data as a dict that JSON can represent.

    Args:
        structure: Dicts, lists, tuples and namedtuples, with TypeSpecs and Python's own scalars.

    Raises:
        RegistrationError: If a spec in it has no registered name (also a ValueError).
        DTypeError, UnsupportedTypeError: If static data in it cannot be written (also a TypeError).
    """
    with warnings.catch_warnings():
        # TensorFlow warns that a reader must import the type; the file itself contains the module.
        warnings.filterwarnings("ignore", "Encoding a StructuredValue", UserWarning)
        try:
            message: Any = nested_structure_coder.encode_structure(structure)
        except ExtensorError:
            raise
        except TypeError as error:
            raise UnsupportedTypeError(
                "the spec", "dicts whose keys are strings", f"others ({error})", "Use strings."
            ) from error
        except nested_structure_coder.NotEncodableError as error:
            expected = "static data that a SavedModel can hold"
            fix = "Use only numbers, strings, None, enums, dtypes, shapes and containers."
            raise UnsupportedTypeError("the spec", expected, str(error), fix) from error
    return json_format.MessageToDict(message)


def structure_from_json(words: dict[str, Any], path: str) -> Nest:
    """Returns the nest that `structure_to_json` wrote.

    Args:
        words: The dict that it wrote.
        path: The path of the file, for errors.

    Raises:
        FormatError: If the dict is not valid (also a ValueError).
        RegistrationError: If a type in it is not registered here (also a ValueError).
    """
    try:
        message = json_format.ParseDict(words, _struct_pb2.StructuredValue())
        with classes_needed():
            return nested_structure_coder.decode_proto(message)
    except ExtensorError:
        raise
    except (json_format.ParseError, nested_structure_coder.NotEncodableError) as error:
        expected = "a nest of specs in TensorFlow's format"
        raise FormatError(path, expected, str(error), "Save the signature again.") from error


def types_in(words: object) -> dict[str, str]:
    """Returns the registered type names in a result of `structure_to_json`, and their modules."""
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
    """Returns the tensor names of the inputs and outputs of each signature of a SavedModel.

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
        if not key.startswith("__saved_model_")  # the initializer of the model
    }
