"""How TensorFlow writes specs into SavedModels and other files.

| name | why |
| --- | --- |
| `nested_structure_coder` | The encoder and decoder of nests of specs and static data. |
| `_parent_trackable` | The table of a handle that a function captured. Keras does not track the tables of layers in dicts. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Generator

import tensorflow as tf
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from tensorflow.python.saved_model import nested_structure_coder

__all__ = [
    "COMPONENTS_FIELD",
    "MODULE_FIELD",
    "add_field",
    "are_classes_needed",
    "classes_needed",
    "field_of",
    "fits_deeper",
    "import_first",
    "nested_structure_coder",
    "resources_of",
]

# Field numbers that TensorFlow will not reach by counting. Readers keep and ignore unknown fields.
MODULE_FIELD = 0x7865  # "xe"
COMPONENTS_FIELD = 0x7866

# Fields of StructuredValue and ListValue: a list is two levels of messages.
_LIST_VALUE = 51
_VALUES = 1

_CLASSES_NEEDED = contextvars.ContextVar("_CLASSES_NEEDED", default=False)


@contextlib.contextmanager
def classes_needed() -> Generator[None, None, None]:
    """Makes it an error to read a spec whose class is not imported."""
    token = _CLASSES_NEEDED.set(True)
    try:
        yield
    finally:
        _CLASSES_NEEDED.reset(token)


def are_classes_needed() -> bool:
    """Returns whether it is an error to read a spec whose class is not imported."""
    return _CLASSES_NEEDED.get()


def resources_of(
    function: tf.types.experimental.ConcreteFunction,
) -> list[tf.saved_model.experimental.TrackableResource]:
    """Returns the tables, and other resources but variables, that a ConcreteFunction uses."""
    owners = [getattr(handle, "_parent_trackable", None) for handle in function.captured_inputs]
    found = [owner() for owner in owners if owner is not None]
    return [one for one in found if isinstance(one, tf.saved_model.experimental.TrackableResource)]


def import_first(module: str) -> str:
    """Returns the fix for a type whose module is not imported."""
    if module == "__main__":
        return "Run the program or notebook cell that defines it before loading."
    return (
        f"It is defined in {module}: `import {module}`, or the module that registers it, before "
        "loading."
    )


def _varint(number: int) -> bytes:
    """Returns a number as a varint of protocol buffers: seven bits a byte, the lowest first."""
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])


def add_field(proto: Message, number: int, content: bytes) -> None:
    """Adds a field to a message; readers keep unknown fields."""
    proto.MergeFromString(_field(number, content))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def fits_deeper(structure: Message) -> bool:
    """Returns whether a StructuredValue has few levels of messages: 24 more can be read.

    Protocol buffers read at most 100 levels. Files and the arguments of functions have some.
    """
    content = structure.SerializeToString()
    for _ in range(12):
        content = _field(_LIST_VALUE, _field(_VALUES, content))
    try:
        type(structure).FromString(content)
    except DecodeError:
        return False
    return True


def field_of(proto: Message, number: int) -> bytes | None:
    """Returns the content of a field that `add_field` added, or None."""
    for field in UnknownFieldSet(proto):
        if field.field_number == number and isinstance(field.data, bytes):
            return field.data
    return None
