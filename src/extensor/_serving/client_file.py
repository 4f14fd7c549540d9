"""What is written of a client beside a model, and read again."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._serving.client import Client
from extensor._serving.layout import Layout
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
"""Where a SavedModel has room for what a program adds to it, and what it is called there."""

_FORMAT = "extensor flat signatures, version 1"
_KINDS = {kind.name: kind for kind in type(inspect.Parameter.KEYWORD_ONLY)}


def save_clients(path: str | os.PathLike[str], clients: Mapping[str, Client]) -> None:
    """Writes into a SavedModel what `load_client` reads.

    `save` does this. It is for models that are written in another way with the functions that
    `flat_signature` made, by `tf.saved_model.save` or an `ExportArchive` of Keras.

    Args:
        path: The folder of the SavedModel.
        clients: What `flat_signature` returned, by the keys of the signatures.

    Raises:
        FieldError: If the SavedModel has no such signature (also a KeyError).
        RegistrationError: If the spec of an argument or result is not registered (also a
            ValueError).
    """
    path = os.fspath(path)
    described = {key: described_client(client) for key, client in clients.items()}
    tensors = signature_tensors(path)
    for key, words in described.items():
        if key not in tensors:
            raise FieldError(
                path=path,
                expected=f"a SavedModel with the signature {key!r}",
                received=f"one with {', '.join(map(repr, tensors)) or 'none'}",
                mend="Save the functions of the signatures under the same keys.",
            )
        for side in ("inputs", "outputs"):
            for component in words[side]["tensors"]:
                component["tensor"] = tensors[key][f"{side}/{component['name']}"]
    tf.io.gfile.makedirs(os.path.join(path, *_FILE[:-1]))
    with tf.io.gfile.GFile(os.path.join(path, *_FILE), "w") as file:
        json.dump({"format": _FORMAT, "signatures": described}, file, indent=1)


def described_client(client: Client) -> dict[str, Any]:
    """Returns what is written of a client, in words that JSON can hold.

    Raises:
        RegistrationError: If a spec has no registered name (also a ValueError).
    """
    sides = {
        side: {
            "tensors": [
                {
                    "name": component.name,
                    "path": str(component.path),
                    "part": component.part,
                    "dtype": component.spec.dtype.name,
                    "shape": None if component.spec.shape.rank is None
                    else component.spec.shape.as_list(),
                }
                for component in layout.components
            ],
            "structure": structure_to_json(layout.structure),
        }
        for side, layout in (("inputs", client.inputs), ("outputs", client.outputs))
    }  # fmt: skip
    return {
        "arguments": [
            {"name": p.name, "kind": p.kind.name, "optional": p.default is not p.empty}
            for p in client.parameters.parameters.values()
        ],
        "ragged": client.inputs.ragged,
        "types": types_in(sides),
        **sides,
    }


def load_client(path: str | os.PathLike[str], signature: str = "serving_default") -> Client:
    """Returns the client of a signature that `save` wrote.

    It reads one small file, not the model, which may lie elsewhere.

    Args:
        path: The folder of the SavedModel.
        signature: The key of the signature.

    Raises:
        MissingFileError: If there is no such file (also a FileNotFoundError).
        FormatError: If it is not what `save` writes (also a ValueError).
        FieldError: If it describes no such signature (also a KeyError).
        RegistrationError: If a type of the values is not registered here (also a ValueError).
    """
    file = os.path.join(os.fspath(path), *_FILE)
    words = _read(file)
    if signature not in words:
        raise FieldError(
            path=file,
            expected=f"the signature {signature!r}",
            received=", ".join(map(repr, words)) or "none",
            mend="Give signature= one of these.",
        )
    try:
        return _client(words[signature], file)
    except (AttributeError, LookupError, TypeError) as error:
        if isinstance(error, ExtensorError):
            raise
        raise _not_ours(file, f"something else ({type(error).__name__}: {error})") from error


def _read(file: str) -> dict[str, Any]:
    try:
        with tf.io.gfile.GFile(file) as stream:
            document: Any = json.load(stream)
    except tf.errors.NotFoundError as error:
        raise MissingFileError(
            path=file,
            expected="the description of flat signatures",
            received="no such file",
            mend="Save the model with xt.serving.save, or add it with xt.serving.save_clients.",
        ) from error
    except ValueError as error:
        raise _not_ours(file, "what is no JSON") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise _not_ours(file, "another format")
    return document["signatures"]


def _client(words: Any, file: str) -> Client:
    for name, module in words["types"].items():
        if registered_spec(name) is None:
            raise RegistrationError(
                path=name,
                expected="a TypeSpec of this name, of which the values are",
                received="a process that has registered none",
                mend=f"It is defined in {module}: import what registers it first.",
            )
    sides: list[Layout] = []
    for side in ("inputs", "outputs"):
        layout = Layout(structure_from_json(words[side]["structure"], file), words["ragged"])
        names = [component.name for component in layout.components]
        saved = [component["name"] for component in words[side]["tensors"]]
        if names != saved:
            raise StructureError(
                path=file,
                expected=f"types of the values that are made of {', '.join(saved)}",
                received=f"types that are made of {', '.join(names)} by now",
                mend="Import the types as they were when the model was saved, or save it anew.",
            )
        sides.append(layout)
    parameters = [
        inspect.Parameter(
            argument["name"],
            _KINDS[argument["kind"]],
            default=None if argument["optional"] else inspect.Parameter.empty,
        )
        for argument in words["arguments"]
    ]
    return Client(inspect.Signature(parameters), *sides)


def _not_ours(file: str, received: str) -> FormatError:
    return FormatError(
        path=file,
        expected=f"JSON of the format {_FORMAT!r}",
        received=received,
        mend="Save the model anew with this release of extensor.",
    )
