"""Requests and responses of TensorFlow Serving's REST API, in its column format."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from extensor.errors import FormatError, UnsupportedTypeError

_FIX = "Give the body of a response to a request of the column format, which encode_json writes."


def request_text(tensors: Mapping[str, Any]) -> str:
    """Returns the body of a request for tensors by name.

    >>> import tensorflow as tf
    >>> from extensor._serving.rest import request_text
    >>> request_text({"title": tf.constant(["tea"]), "minutes": tf.constant([5])})
    '{"inputs": {"title": ["tea"], "minutes": [5]}}'
    """
    return json.dumps({"inputs": columns_of(tensors)}, ensure_ascii=False)


def columns_of(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Returns tensors by name as data of JSON, in the column format."""
    return {name: _plain(np.asarray(tensor).tolist(), name) for name, tensor in tensors.items()}


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_plain(each, name) for each in value]
    if isinstance(value, complex):
        fix = "Send real and imaginary parts as two tensors, or use gRPC."
        raise UnsupportedTypeError(name, "a type that JSON has", "complex numbers", fix)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    return value


def response_tensors(text: str | bytes, names: Collection[str]) -> dict[str, Any]:
    """Returns the tensors of a response by name, as nested lists.

    Args:
        text: The body of the response.
        names: The names of the outputs. A response leaves out the name of a single one.

    Raises:
        FormatError: If it is no such response, or one with an error (also a ValueError).
    """
    try:
        response = json.loads(text)
    except ValueError as error:
        raise FormatError("response", "JSON", str(error), _FIX) from None
    if isinstance(response, dict) and "error" in response:
        fix = "Correct the request: client.encode_json(records) writes one that fits the model."
        raise FormatError("response", "outputs", f"the error {response['error']!r}", fix)
    if not isinstance(response, dict) or "outputs" not in response:
        received = f"keys {', '.join(response)}" if isinstance(response, dict) else "no object"
        raise FormatError("response", 'an object with the key "outputs"', received, _FIX)
    outputs = response["outputs"]
    is_named = isinstance(outputs, dict) and outputs.keys() != {"b64"}
    if not is_named and len(names) == 1:
        outputs = {next(iter(names)): outputs}
    elif not is_named:
        expected = f"the outputs {', '.join(names)}"
        raise FormatError("response", expected, "outputs without names", _FIX)
    return {name: _with_bytes(value, name) for name, value in outputs.items()}


def _with_bytes(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_with_bytes(each, name) for each in value]
    if isinstance(value, dict):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (KeyError, TypeError, binascii.Error) as error:
            expected = 'text, numbers, or {"b64": text in base64}'
            raise FormatError(f"response: {name}", expected, f"{error!r}", _FIX) from None
    return value
