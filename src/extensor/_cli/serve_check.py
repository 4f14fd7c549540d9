"""serve_report: what a server of a SavedModel needs to know, and what would stop it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._raised import first_line
from extensor._serving.client import Client, request_text
from extensor._serving.client_file import load_client
from extensor._struct.spec import StructuredTensorSpec
from extensor.errors import ExtensorError, FormatError, MissingFileError, UnsupportedTypeError

_TEXT = "example"


def serve_report(path: str) -> tuple[list[str], list[str]]:
    """Returns the lines of a report on a SavedModel, and its faults.

    Raises:
        MissingFileError: If there is no such folder (also a FileNotFoundError).
        FormatError: If it is not a SavedModel, or cannot be loaded (also a ValueError).
    """
    signatures = _load(path).signatures
    lines, faults = [f"{path}: {len(signatures)} signatures"], list[str]()
    if not signatures:
        faults.append("there is no signature; save the model with xt.serving.save")
    for key, function in signatures.items():
        inputs = _tensors(function.structured_input_signature[1])
        outputs = _tensors(function.structured_outputs)
        lines += ["", f"{key}", *_table("input", inputs), *_table("output", outputs)]
        client, note = _client(path, key)
        if client is not None:
            faults += _differences(key, client, inputs, outputs)
        elif note:
            faults.append(f"{key}: {note}")
        lines += _call(key, function, inputs, client, faults)
    return lines, faults


def _load(path: str) -> Any:
    if not tf.io.gfile.exists(path):
        expected = "the folder of a SavedModel"
        raise MissingFileError(path, expected, "a path that does not exist", "Check the path.")
    if not tf.saved_model.contains_saved_model(path):
        versions = [name for name in _as_list(path) if name.rstrip("/").isdigit()]
        received = "a folder without it" if tf.io.gfile.isdir(path) else "a file"
        fix = "Save the model with xt.serving.save, or model.export."
        if versions:
            fix = f"Give the folder of a version: {os.path.join(path, versions[0])}."
        raise FormatError(path, "the folder of a SavedModel, with saved_model.pb", received, fix)
    try:
        return tf.saved_model.load(path)
    # TensorFlow raises errors of many classes for a damaged or incomplete SavedModel.
    except Exception as error:
        received = f"{type(error).__name__}: {first_line(error)}"
        fix = "Save it with xt.serving.save: its models load without the types of their values."
        raise FormatError(path, "a SavedModel that loads", received, fix) from error


def _as_list(path: str) -> list[str]:
    return tf.io.gfile.listdir(path) if tf.io.gfile.isdir(path) else []


def _tensors(nest: Any) -> dict[str, tf.TensorSpec]:
    """Returns the tensors of one side of a signature by name, in order."""
    return {
        name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in sorted(nest.items())
    }


def _table(side: str, tensors: dict[str, tf.TensorSpec]) -> Iterator[str]:
    width = max((len(name) for name in tensors), default=0)
    for name, spec in tensors.items():
        shape = spec.shape if spec.shape.rank is not None else "of any rank"
        yield f"  {side:6}  {name:{width}}  {spec.dtype.name} {shape}"


def _client(path: str, key: str) -> tuple[Client | None, str]:
    """Returns the client of a signature, or None and what is wrong."""
    try:
        return load_client(path, key), ""
    except (MissingFileError, KeyError):  # a signature of plain tensors needs no client
        return None, ""
    except ExtensorError as error:
        return None, str(error)


def _differences(
    key: str, client: Client, inputs: dict[str, Any], outputs: dict[str, Any]
) -> Iterator[str]:
    """Yields where the description for clients does not fit the signature."""
    for side, layout, tensors in (
        ("input", client.inputs, inputs),
        ("output", client.outputs, outputs),
    ):
        described = {component.name: component.spec for component in layout.components}
        for name in sorted(described.keys() ^ tensors.keys()):
            where = "client's description" if name in described else "signature"
            yield f"{key}: the {side} {name} is only in the {where}"
        for name in sorted(described.keys() & tensors.keys()):
            if described[name].dtype != tensors[name].dtype:
                yield (
                    f"{key}: the {side} {name} is {tensors[name].dtype.name}, but clients send "
                    f"{described[name].dtype.name}"
                )


def _call(
    key: str, function: Any, inputs: dict[str, Any], client: Client | None, faults: list[str]
) -> list[str]:
    """Calls a signature with an example, and returns the lines of the request."""
    if client is None:
        request = {name: _example(spec) for name, spec in inputs.items()}
        tensors = {name: tf.constant(value, inputs[name].dtype) for name, value in request.items()}
    else:
        structure = client.inputs.structure
        try:
            tensors = client.inputs.encode(tf.nest.map_structure(_example, structure))
        except (ExtensorError, TypeError) as error:
            return [f"  no example request: {first_line(error)}"]
    try:
        lines = ["  request", f"    {request_text(tensors, key)}"]
    except UnsupportedTypeError as error:  # complex numbers
        lines = [f"  no example request: {error}"]
    try:
        result = function(**tensors)
    # Whatever the model does.
    except Exception as error:
        text = first_line(error)
        if client is None:  # zeros need not be what the signature takes
            return [*lines, f"  the model does not take this example: {text}"]
        faults.append(f"{key}: the model fails for the example: {type(error).__name__}: {text}")
        return lines
    shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in sorted(result.items()))
    if client is not None:
        try:
            client.decode(result)
        except ExtensorError as error:
            faults.append(f"{key}: clients cannot decode the response: {error}")
    return [*lines, f"  response: {shapes}"]


def _example(spec: Any) -> Any:
    """Returns Python data of a spec, with one item where any number may be."""
    if isinstance(spec, StructuredTensorSpec):
        if spec.rank:
            size = spec.shape[0]
            return [_example(spec.unstacked())] * (1 if size is None else size)
        return {name: _example(spec.field_spec((name,))) for name in spec.field_names()}
    if not isinstance(spec, tf.TypeSpec):
        return spec  # static data
    if getattr(spec, "dtype", None) is None:
        received, fix = type(spec).__qualname__, "Write the request yourself."
        raise UnsupportedTypeError("request", "records and tensors", received, fix)
    shape = [1] if spec.shape.rank is None else [1 if n is None else n for n in spec.shape]
    if spec.dtype == tf.string:
        return np.full(shape, _TEXT, object).tolist()
    return np.zeros(shape, spec.dtype.as_numpy_dtype).tolist()
