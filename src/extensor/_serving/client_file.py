"""Saving of clients in a SavedModel, and loading them."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._serving.client import Client
from extensor._serving.layout import Component, Layout
from extensor._tf import registered_spec
from extensor._tf._tf_serving import (
    signature_tensors,
    structure_from_json,
    structure_to_json,
    types_in,
)
from extensor.errors import (
    ExtensorError,
    FieldError,
    FormatError,
    MissingFileError,
    RegistrationError,
    StructureError,
)

_FILE = ("assets.extra", "extensor.json")
"""The folder in a SavedModel for files of other programs, and the name of the file."""

_FORMAT = "extensor flat signatures, version 2"
_FORMATS = (_FORMAT, "extensor flat signatures, version 1")
"""The formats that are read."""

_OLD_WORDS = {"values", "variants", "codes"}
"""What paths of version 1 have that paths no longer have, such as `x.values` of masked values."""

_KINDS = {kind.name: kind for kind in type(inspect.Parameter.KEYWORD_ONLY)}


def save_clients(path: str | os.PathLike[str], clients: Mapping[str, Client]) -> None:
    """Writes clients into a SavedModel, for `load_client`.

    `save` calls this. Call it yourself if you save the functions of `flat_signature` in another
    way: by `tf.saved_model.save` or with an `ExportArchive` of Keras.

    Args:
        path: The folder of the SavedModel.
        clients: The results of `flat_signature`, by the keys of the signatures.

    Raises:
        FieldError: If the SavedModel does not have a signature (also a KeyError).
        RegistrationError: If the spec of an argument or result is not registered (also a
            ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> module = tf.Module()
    >>> signature = xt.serving.flat_signature(tf.square, tf.TensorSpec([None]))
    >>> tf.saved_model.save(module, "square/1", {"serving_default": signature.function})
    >>> xt.serving.save_clients("square/1", {"serving_default": signature})
    >>> xt.serving.load_client("square/1").parameters
    <Signature (x)>
    """
    path = os.fspath(path)
    described = {key: client_description(client) for key, client in clients.items()}
    tensors = signature_tensors(path)
    for key, description in described.items():
        if key not in tensors:
            received = f"a SavedModel with {', '.join(map(repr, tensors)) or '0 signatures'}"
            fix = "Save the functions of the signatures under the same keys."
            raise FieldError(path, f"a SavedModel with the signature {key!r}", received, fix)
        for side in ("inputs", "outputs"):
            for component in description[side]["tensors"]:
                component["tensor"] = tensors[key][f"{side}/{component['name']}"]
    tf.io.gfile.makedirs(os.path.join(path, *_FILE[:-1]))
    with tf.io.gfile.GFile(os.path.join(path, *_FILE), "w") as file:
        json.dump({"format": _FORMAT, "signatures": described}, file, indent=1)


def client_description(client: Client) -> dict[str, Any]:
    """Returns the description of a client, in a form that JSON can store.

    Raises:
        RegistrationError: If a spec has no registered name (also a ValueError).
    """
    sides = {
        side: {"tensors": _tensors_of(layout), "structure": structure_to_json(layout.structure)}
        for side, layout in (("inputs", client.inputs), ("outputs", client.outputs))
    }
    return {
        "arguments": [
            {"name": p.name, "kind": p.kind.name, "optional": p.default is not p.empty}
            for p in client.parameters.parameters.values()
        ],
        "ragged": client.inputs.ragged,
        "unused": [str(path) for path in client.unused],
        "types": types_in(sides),
        **sides,
    }


def _tensors_of(layout: Layout) -> list[dict[str, Any]]:
    """Returns the description of the tensors of a layout."""
    return [
        {
            "name": one.name,
            "path": str(one.path),
            "part": one.part,
            "dtype": one.spec.dtype.name,
            "shape": None if one.spec.shape.rank is None else one.spec.shape.as_list(),
        }
        for one in layout.components
    ]


def load_client(path: str | os.PathLike[str], signature: str = "serving_default") -> Client:
    """Returns the client of a signature that `save` wrote.

    Reads one small file and not the model, so the rest of the SavedModel need not be there.

    Args:
        path: The folder of the SavedModel.
        signature: The key of the signature.

    Raises:
        MissingFileError: If the file does not exist (also a FileNotFoundError).
        FormatError: If the file does not have the format of `save` (also a ValueError).
        FieldError: If the file does not describe the signature (also a KeyError).
        RegistrationError: If a type of the values is not registered in this process (also a
            ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> module = tf.Module()
    >>> signature = xt.serving.flat_signature(tf.square, tf.TensorSpec([None]))
    >>> xt.serving.save(module, "square/1", signature)
    >>> xt.serving.load_client("square/1").encode([2.0])
    {'x': <tf.Tensor: shape=(1,), dtype=float32, numpy=array([2.], dtype=float32)>}
    """
    file = os.path.join(os.fspath(path), *_FILE)
    signatures = _read(file)
    if signature not in signatures:
        expected = f"the signature {signature!r}"
        received = ", ".join(map(repr, signatures)) or "0 signatures"
        raise FieldError(file, expected, received, "Set signature= to an existing key.")
    try:
        client = _client(signatures[signature], file)
    except (AttributeError, LookupError, TypeError) as error:
        if isinstance(error, ExtensorError):
            raise
        raise _wrong_format(file, f"other contents ({type(error).__name__}: {error})") from error
    if signature != tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY:
        client._signature = signature
    return client


def _read(file: str) -> dict[str, Any]:
    try:
        with tf.io.gfile.GFile(file) as stream:
            document: Any = json.load(stream)
    except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError) as error:
        expected = "a file that describes flat signatures"
        fix = "Save the model with xt.serving.save, or add the file with xt.serving.save_clients."
        raise MissingFileError(file, expected, "a path that does not exist", fix) from error
    except ValueError as error:
        raise _wrong_format(file, "a file that is not JSON") from error
    if not isinstance(document, dict) or document.get("format") not in _FORMATS:
        raise _wrong_format(file, "JSON of another format")
    return document["signatures"]


def _client(description: Mapping[str, Any], file: str) -> Client:
    for name, module in description["types"].items():
        if registered_spec(name) is None:
            received = "a name that is not registered in this process"
            fix = f"Import the module that registers it first; it is defined in {module}."
            raise RegistrationError(name, "a registered TypeSpec of this name", received, fix)
    sides: list[Layout] = []
    for side in ("inputs", "outputs"):
        layout = Layout(
            structure_from_json(description[side]["structure"], file), description["ragged"]
        )
        saved = description[side]["tensors"]
        own = layout.components
        if len(saved) != len(own) or not all(map(_is_same, saved, own)):
            expected = f"types with the saved components {', '.join(map(_place, saved))}"
            received = "types with the components " + ", ".join(map(_place, _tensors_of(layout)))
            fix = "Import the types of the version that saved the model, or save the model again."
            raise StructureError(file, expected, received, fix)
        sides.append(layout.with_names([one["name"] for one in saved]))
    parameters = [
        inspect.Parameter(
            argument["name"],
            _KINDS[argument["kind"]],
            default=None if argument["optional"] else inspect.Parameter.empty,
        )
        for argument in description["arguments"]
    ]
    unused = [Path.parse(path) for path in description.get("unused", ())]
    return Client(inspect.Signature(parameters), sides[0], sides[1], unused)


def _place(tensor: Mapping[str, Any]) -> str:
    return f"{tensor['path']} ({tensor['part']})" if tensor["part"] else tensor["path"]


def _is_same(saved: Mapping[str, Any], component: Component) -> bool:
    """Returns whether a tensor has the dtype, path and part that a file says."""
    left = [*component.path, *_words(component.part)]
    others = set[str]()
    for word in [*Path.parse(saved["path"]), *_words(saved["part"])]:
        if left[:1] == [word]:
            del left[0]
        else:
            others.add(word)
    return not left and others <= _OLD_WORDS and saved["dtype"] == component.spec.dtype.name


def _words(part: str) -> list[str]:
    """Returns the words of a part, without their numbers: version 1 counts them anew at a mask."""
    return [re.sub(r"_\d+$", "", word) for word in part.split("__")] if part else []


def _wrong_format(file: str, received: str) -> FormatError:
    fix = "Save the model again with this release of extensor."
    return FormatError(file, f"JSON of the format {_FORMAT!r}", received, fix)
