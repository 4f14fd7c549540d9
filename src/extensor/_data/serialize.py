"""Feeds of files, and their serialized form, of which another process makes them too."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import tensorflow as tf
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from extensor._arrow.found_nulls import with_masks_for_auto
from extensor._arrow.null_argument import has_auto
from extensor._arrow.null_policy import Fill, fill
from extensor._arrow.wanted_table import WantedTable
from extensor._data.conversion import Conversion
from extensor._data.feed import FileFeed
from extensor._data.plan import Plan
from extensor._data.position import Passes, Shuffle
from extensor._files.file_path import FilePath
from extensor._files.part_cache import PartCache
from extensor._files.store import Reading, reading_as
from extensor._formats.protobuf.descriptors import has_extensions
from extensor._path import Path
from extensor._streams.read import SOURCES


def feed_of_files(
    format: str,
    paths: FilePath | Iterable[FilePath],
    wanted: WantedTable,
    passes: Passes,
    reading: Reading,
    own: dict[str, Any],
) -> FileFeed:
    """Returns the feed of the records of files.

    Args:
        format: The format, one of `SOURCES`.
        paths: The files.
        wanted: The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`.
        passes: What the passes have.
        reading: How files that are not local are read.
        own: The arguments that only this format has.
    """
    with reading_as(reading):
        source = SOURCES[format](paths, wanted, **own)
    nulls = wanted.nulls
    if has_auto(nulls):
        nulls = with_masks_for_auto(nulls, source.nulls(nulls))
    plan = Plan(source, passes)
    found = [file.inner if file.is_local else file.path for file in source.files]
    arguments = [wanted.columns, wanted.schema, nulls, wanted.row_splits_dtype]
    serialized = _serialize([format, found, arguments, plan.passes, reading, own])
    conversion = Conversion(plan, source.schema, wanted.row_splits_dtype, nulls)
    return FileFeed(plan, conversion, serialized)


def from_serialized(text: str) -> FileFeed:
    """Returns the feed of a serialized form."""
    format, paths, arguments, passes, reading, own = json.loads(text, object_hook=_from_json)
    wanted, passes = WantedTable(*arguments), Passes(*passes)
    if passes.shuffle is not None:  # a list in JSON
        passes = passes._replace(shuffle=Shuffle(*passes.shuffle))
    return feed_of_files(format, paths, wanted, passes, Reading(*reading), own)


def _serialize(arguments: list[Any]) -> str:
    """Returns arguments as text, or "" if one of them is not what JSON can represent."""
    try:
        return json.dumps(arguments, default=_as_json)
    except (TypeError, ValueError):
        return ""


def _as_json(value: Any) -> Any:
    if isinstance(value, Fill):
        return {"extensor.fill": value.value}
    if isinstance(value, tf.DType):
        return {"extensor.dtype": value.name}
    if isinstance(value, pa.Schema):
        return {"extensor.schema": base64.b64encode(value.serialize()).decode()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, PartCache):
        return {"extensor.cache": [value.folder, value.max_bytes]}
    if isinstance(value, Descriptor) and not has_extensions(value):
        files = FileDescriptorSet(file=list(_files_of(value.file, {}).values()))
        text = base64.b64encode(files.SerializeToString()).decode()
        return {"extensor.message": [value.full_name, text]}
    return json.JSONEncoder().default(value)  # raises a TypeError


def _from_json(found: dict[str, Any]) -> Any:
    match found:
        case {"extensor.fill": value}:
            return fill(value)
        case {"extensor.cache": [folder, max_bytes]}:
            return PartCache(folder, max_bytes)
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
