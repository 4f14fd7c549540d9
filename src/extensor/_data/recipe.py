"""Recipes: the calls that make a feed again in another process, as text."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import tensorflow as tf
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from extensor._arrow.null_policy import Fill, fill
from extensor._data.plan import Passes
from extensor._data.position import Shuffle
from extensor._formats.protobuf.descriptors import has_extensions
from extensor._path import Path


def recipe(kind: str, **arguments: Any) -> str:
    """Returns the recipe of a call, or "" if an argument is not one that JSON can represent.

    Args:
        kind: The name of the function.
        arguments: Its arguments.
    """
    try:
        return f"{kind} {json.dumps(arguments, default=_as_json)}"
    except (TypeError, ValueError):
        return ""


def arguments_of(text: str) -> dict[str, Any]:
    """Returns the arguments in a recipe, from the text after the kind."""
    return json.loads(text, object_hook=_from_json)


def _as_json(value: Any) -> Any:
    if isinstance(value, Fill):
        return {"extensor.fill": value.value}
    if isinstance(value, tf.DType):
        return {"extensor.dtype": value.name}
    if isinstance(value, pa.Schema):
        return {"extensor.schema": base64.b64encode(value.serialize()).decode()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Descriptor) and not has_extensions(value):
        files = FileDescriptorSet(file=list(_files_of(value.file, {}).values()))
        text = base64.b64encode(files.SerializeToString()).decode()
        return {"extensor.message": [value.full_name, text]}
    return json.JSONEncoder().default(value)  # raises a TypeError


def _from_json(found: dict[str, Any]) -> Any:
    match found:
        case {"extensor.fill": value}:
            return fill(value)
        case {"extensor.dtype": name}:
            return tf.as_dtype(name)
        case {"extensor.schema": text}:
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
        case {"extensor.message": [name, text]}:
            pool = descriptor_pool.DescriptorPool()
            for file in FileDescriptorSet.FromString(base64.b64decode(text)).file:
                pool.Add(file)
            return pool.FindMessageTypeByName(name)
        case _:
            return found


def _files_of(file: Any, found: dict[str, FileDescriptorProto]) -> dict[str, FileDescriptorProto]:
    """Returns the files that a file of descriptors needs, and itself at the end."""
    if file.name not in found:
        for inner in file.dependencies:
            _files_of(inner, found)
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        found[file.name] = proto
    return found


def passes_of(found: list[Any]) -> Passes:
    """Returns the passes in a recipe, which JSON represents as a list, as it does the shuffle."""
    passes = Passes(*found)
    shuffle = passes.shuffle
    return passes._replace(shuffle=None if shuffle is None else Shuffle(*shuffle))
