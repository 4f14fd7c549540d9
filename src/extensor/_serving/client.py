"""Client: encodes values as the tensors of a signature, and decodes them."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from extensor._path import Path
from extensor._serving.layout import Layout
from extensor._serving.tensor_check import check_tensors
from extensor._typing import Nest
from extensor.errors import DTypeError, FormatError, UnsupportedTypeError


class Client:
    """Encodes the arguments of a function as the tensors of a request, and decodes a response.

    A client needs no model and no connection to a server. Send the tensors by any protocol with
    named tensors. `load_client` reads a client from a SavedModel.

    Args:
        parameters: The parameters of the function that are sent. Those with a default are optional.
        inputs: The layout of the arguments, by name.
        outputs: The layout of the result.
        unused: The paths of the fields that the function does not use, which are not sent. Records
            may have them.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.DenseStructuredTensorSpec([None], {"minutes": tf.TensorSpec([None])})
    >>> client = xt.serving.flat_signature(lambda recipes: recipes["minutes"] * 2.0, spec)
    >>> client.encode([{"minutes": 5.0}])["minutes"].numpy()
    array([5.], dtype=float32)
    """

    _signature: str | None = None
    """The key of the signature, if it is not the default one."""

    def __init__(
        self,
        parameters: inspect.Signature,
        inputs: Layout,
        outputs: Layout,
        unused: Collection[Path] = (),
    ) -> None:
        self._parameters = parameters
        self._unused = tuple(unused)
        self._inputs = inputs
        self._outputs = outputs

    @property
    def parameters(self) -> inspect.Signature:
        """The parameters of `encode`."""
        return self._parameters

    @property
    def inputs(self) -> Layout:
        """The layout of the arguments."""
        return self._inputs

    @property
    def outputs(self) -> Layout:
        """The layout of the result."""
        return self._outputs

    @property
    def unused(self) -> tuple[Path, ...]:
        """The paths of the fields that records may have, but that are not sent."""
        return self._unused

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parameters} of {self._inputs} to {self._outputs}"

    def encode(self, *args: object, **kwargs: Any) -> dict[str, Any]:
        """Returns the tensors of a request, by name.

        Args:
            *args: The arguments of the function, or values that are cast to these without loss:
                lists for tensors; for records also dicts, Arrow tables, and the text of JSON lines
                as str or bytes, of which other fields are left out.
            **kwargs: The keyword arguments. If an argument with a default is missing, its tensors
                are missing too. And `extra`, what becomes of fields of records that the function
                does not take: `"error"` (the default), `"ignore"`, or a list of the paths to leave
                out, with or without the argument's name; and `times="text"`, to take text in
                ISO 8601 for times. For a function with an argument of this name, it is that
                argument.

        Raises:
            DTypeError: If a value cannot be cast to the type of its argument (also a TypeError).
            StructureError: If a nest has another structure, or a tensor another shape (also a
                ValueError).
            DTypeError: If arguments are missing, or there are too many (also a TypeError).
        """
        own = {n: kwargs.pop(n) for n in ("extra", "times")
               if n in kwargs and n not in self._parameters.parameters}  # fmt: skip
        own["extra"] = self._left_out(own.get("extra", ()))
        optional = [n for n, p in self._parameters.parameters.items() if p.default is not p.empty]
        try:
            given = self._parameters.bind(*args, **kwargs).arguments
        except TypeError as error:
            expected = f"the arguments {self._parameters}"
            fix = "Give the arguments of the function that was saved, in order or by name."
            raise DTypeError("encode", expected, f"others ({error})", fix) from None
        return self._inputs.encode(given, optional, **own)

    def _left_out(self, extra: Any) -> Any:
        """Returns the argument `extra` of `Layout.encode`, in which all paths have arguments."""
        if extra == "error":
            extra = ()
        if isinstance(extra, str) or not isinstance(extra, Iterable):
            return extra
        paths = [Path.of(path) for path in extra]
        named = [Path(name, *path) for name in self._inputs.structure for path in paths]
        return [*self._unused, *paths, *named]

    def decode(self, tensors: Mapping[str, Any], validate: bool = True) -> Nest:
        """Returns the result of the function from the tensors of a response.

        Args:
            tensors: The tensors of the response by name; arrays and lists work too.
            validate: Whether to validate that the tensors fit each other: that row splits fit the
                values, and that fields have one row for each record.

        Raises:
            FieldError: If a name is missing or unknown (also a KeyError).
            DTypeError: If a tensor has another dtype (also a TypeError).
            StructureError: If a tensor has another shape, or the tensors do not fit each other
                (also a ValueError).
        """
        result = self._outputs.decode(tensors)
        if validate:
            check_tensors(self._outputs.structure, result, self._outputs.ragged)
        return result

    def encode_json(self, *args: object, **kwargs: Any) -> str:
        """Returns the body of a request of TensorFlow Serving's REST API, as text.

        POST it to `http://HOST:8501/v1/models/NAME:predict`. It has the column format, the tensors
        under `inputs`. Text is UTF-8; other bytes are base64. It names the signature that
        `load_client` read, unless it is the default one.

        Args:
            *args: The arguments of `encode`, such as the text of JSON lines.
            **kwargs: The keyword arguments of `encode`.

        Raises:
            DTypeError: If a value does not fit its argument (also a TypeError).
            StructureError: If a nest or a shape does not fit (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> recipes = xt.struct.constant([{"title": "Tea", "minutes": [5, 2]}])
        >>> spec = xt.spec_of(recipes).unstacked().stacked(None)
        >>> client = xt.serving.flat_signature(
        ...     lambda recipes: tf.reduce_sum(recipes["minutes"], axis=1), spec)
        >>> client.encode_json(b'{"title": "Bread", "minutes": [10, 45]}')
        '{"inputs": {"minutes": [10, 45], "minutes__row_splits": [0, 2]}}'
        """
        return request_text(self.encode(*args, **kwargs), self._signature)

    def decode_json(self, text: str | bytes, validate: bool = True) -> Nest:
        """Returns the result of the function from a response of TensorFlow Serving's REST API.

        Args:
            text: The body of the response to a request of `encode_json`. Where there is one
                output, the server leaves out its name.
            validate: Whether to validate that the tensors fit each other.

        Raises:
            FormatError: If the text is no such response, or has the error of a server (also a
                ValueError).
            FieldError: If a name is missing or unknown (also a KeyError).
            DTypeError: If a tensor has another dtype (also a TypeError).
            StructureError: If a tensor has another shape, or the tensors do not fit each other
                (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> client = xt.serving.flat_signature(tf.square, tf.TensorSpec([None]))
        >>> client.decode_json('{"outputs": [4.0, 9.0]}').numpy()
        array([4., 9.], dtype=float32)
        """
        names = [component.name for component in self._outputs.components]
        return self.decode(response_tensors(text, names), validate)


_FIX = "Give the body of a response to a request of the column format, which encode_json writes."


def request_text(tensors: Mapping[str, Any], signature: str | None = None) -> str:
    """Returns the body of a request for tensors by name.

    >>> import tensorflow as tf
    >>> from extensor._serving.client import request_text
    >>> request_text({"title": tf.constant(["tea"]), "minutes": tf.constant([5])})
    '{"inputs": {"title": ["tea"], "minutes": [5]}}'
    """
    named = {} if signature is None else {"signature_name": signature}
    inputs = {n: _plain(np.asarray(tensor).tolist(), n) for n, tensor in tensors.items()}
    return json.dumps({**named, "inputs": inputs}, ensure_ascii=False)


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
    if isinstance(text, bytes):  # the server writes strings as they are, also if they are no text
        text = text.decode("utf-8-sig", "surrogateescape")
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
    if not isinstance(value, (str, dict)):
        return value
    try:
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        return base64.b64decode(value["b64"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        expected = 'text, numbers, or {"b64": text in base64}'
        raise FormatError(f"response: {name}", expected, f"{error!r}", _FIX) from None
