"""Protocol buffers: outside of graphs by ptars, inside of graphs by tf.io.decode_proto."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pyarrow as pa
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

import extensor as xt
from bench import recipe
from bench.measure import Call
from bench.row import Row, Within

_COUNT = 10_000
_FLOAT, _STRING = (Proto.TYPE_FLOAT, tf.float32), (Proto.TYPE_STRING, tf.string)
_TYPES: dict[str, dict[str, Any]] = {
    "Ingredient": {"amount": _FLOAT, "unit": _STRING, "name": _STRING},
    "Step": {"description": _STRING},
    "Rating": {"user_embedding": _FLOAT, "score": _FLOAT},
    "Recipe": {
        "title": _STRING,
        "est_time": _FLOAT,
        "ingredients": "Ingredient",
        "steps": "Step",
        "user_ratings": "Rating",
    },
}


def rows() -> list[Row]:
    return [
        Row(
            f"from_proto, {_COUNT:,} recipes, vs ptars and from_arrow",
            Within(1.5),
            _against_ptars,
        ),
        Row(
            f"from_proto in a graph, {_COUNT:,} recipes, vs decode_proto by hand",
            Within(1.2),
            _against_decode_proto,
        ),
    ]


@functools.cache
def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="bench.proto", package="b", syntax="proto3")
    for name, fields in _TYPES.items():
        message = file.message_type.add(name=name)
        for i, (field, kind) in enumerate(fields.items()):
            made = message.field.add(name=field, number=i + 1, label=1)
            if isinstance(kind, str):
                made.label, made.type, made.type_name = 3, Proto.TYPE_MESSAGE, f".b.{kind}"
            else:
                made.type = kind[0]
                made.label = 3 if field == "user_embedding" else 1
    return file


@functools.cache
def _class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file().SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("b.Recipe"))


@functools.cache
def _serialize() -> list[bytes]:
    cls = _class()
    return [cls(**row).SerializeToString() for row in recipe.recipes(_COUNT).to_pylist()]


def _against_ptars(folder: Path) -> tuple[Call, Call]:
    from ptars import HandlerPool

    messages, cls = _serialize(), _class()
    handler = HandlerPool([cls.DESCRIPTOR.file]).get_for_message(cls.DESCRIPTOR)
    expected = recipe.recipes(_COUNT).slice(0, 1000).to_pylist()
    if xt.to_arrow(xt.from_proto(messages[:1000], cls)).to_pylist() != expected:
        raise AssertionError("from_proto changed the records.")
    return (
        lambda: xt.from_proto(messages, cls),
        lambda: xt.from_arrow(handler.list_to_record_batch(messages)),
    )


def _against_decode_proto(folder: Path) -> tuple[Call, Call]:
    messages, cls = tf.constant(_serialize()), _class()
    signature = [tf.TensorSpec([None], tf.string)]
    ours = tf.function(lambda s: xt.from_proto(s, cls), input_signature=signature, autograph=False)
    by_hand = tf.function(lambda s: _by_hand(s, "Recipe"), input_signature=signature)
    got, expected = ours(messages), by_hand(messages)
    names = pa.array(got["ingredients.name"].flat_values.numpy())
    if names != pa.array(expected["ingredients"]["name"].numpy()):
        raise AssertionError("from_proto changed the records.")
    return lambda: ours(messages), lambda: by_hand(messages)


def _by_hand(messages: Any, name: str) -> dict[str, Any]:
    """Decodes a message type, and cuts the padding off, as users of decode_proto do."""
    source = b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[_file()]).SerializeToString()
    fields = _TYPES[name]
    dtypes = [tf.string if isinstance(kind, str) else kind[1] for kind in fields.values()]
    sizes, values = tf.io.decode_proto(messages, f"b.{name}", list(fields), dtypes, source)
    decoded: dict[str, Any] = {}
    for i, ((field, kind), value) in enumerate(zip(fields.items(), values, strict=True)):
        if isinstance(kind, str) or field == "user_embedding":
            value = tf.RaggedTensor.from_tensor(value, lengths=sizes[:, i])
            decoded[f"{field} rows"] = value.row_splits
            value = value.values
            decoded[field] = _by_hand(value, kind) if isinstance(kind, str) else value
        else:
            decoded[field] = value[:, 0]
    return decoded
