"""What a SavedModel, and whatever else TensorFlow encodes, says of extension types.

| name | why |
| --- | --- |
| `nested_structure_coder` | TensorFlow writes specs and reads them with the codecs that `register_codec` was given. Its own codec names a type that it cannot write but not the mend, and a type that it cannot read but not the module to import: that module is written beside the name, in a field of the message of which only this codec knows. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import importlib
from typing import Any

import tensorflow as tf
from google.protobuf.unknown_fields import UnknownFieldSet
from tensorflow.python.saved_model import nested_structure_coder

from extensor._tf._tf_protocol import describes_extension
from extensor._tf._tf_registry import registered_name, registered_spec
from extensor.errors import DTypeError, RegistrationError

# The number of the field: none that TensorFlow will come to use by counting on. Readers that do
# not know a field keep it and pass over it.
_MODULE_FIELD = 0x7865  # "xe"


class UnregisteredError(RegistrationError, nested_structure_coder.NotEncodableError):
    """A spec is to be written and has no name to write (also TensorFlow's NotEncodableError)."""


class UnsavableError(DTypeError, nested_structure_coder.NotEncodableError):
    """A spec has static data that cannot be written (also TensorFlow's NotEncodableError)."""


class _ExtensionCodec(nested_structure_coder._TypeSpecCodec):
    """Writes specs of extension types, and says which module knows one that is not known."""

    def can_encode(self, pyobj: Any) -> bool:
        return isinstance(pyobj, tf.TypeSpec) and describes_extension(pyobj)

    def do_encode(self, type_spec_value: Any, encode_fn: Any) -> Any:
        cls = type(type_spec_value)
        if registered_name(cls) is None:
            name = cls.__qualname__.rpartition("<locals>.")[2]
            raise UnregisteredError(
                path=f"{cls.__module__}.{cls.__qualname__}",
                expected="a spec with a registered name, which is what is saved of it",
                received="one without",
                mend="Register it where it is defined: "
                f'xt.register_type_spec({name}, "{cls.__module__}.{name}").',
            )
        try:
            encoded = super().do_encode(type_spec_value, encode_fn)
        except (UnregisteredError, UnsavableError):  # of a type within, which has told more
            raise
        except nested_structure_coder.NotEncodableError as error:
            raise _unsavable(type_spec_value, encode_fn) from error
        module = cls.__module__.encode()
        encoded.type_spec_value.MergeFromString(
            _varint(_MODULE_FIELD << 3 | 2) + _varint(len(module)) + module
        )
        return encoded

    def can_decode(self, value: Any) -> bool:
        return super().can_decode(value) and _module(value.type_spec_value) is not None

    def do_decode(self, value: Any, decode_fn: Any) -> Any:
        module = _module(value.type_spec_value)
        if module is not None and module.startswith("extensor."):
            importlib.import_module(module)  # a room of the house that nobody has asked for yet
        if registered_spec(value.type_spec_value.type_spec_class_name) is not None:
            return _expect_own(super().do_decode(value, decode_fn))
        raise RegistrationError(
            path=value.type_spec_value.type_spec_class_name,
            expected="a TypeSpec of this name, which is saved here",
            received="a process that has registered none",
            mend="Run the program or notebook cell that defines it before loading."
            if module == "__main__"
            else f"It is defined in {module}: `import {module}`, or what registers it, before "
            "loading.",
        )


def _unsavable(spec: Any, encode_fn: Any) -> UnsavableError:
    """Returns the error that names what in a spec has no code, and the field that it is in."""
    code = spec._serialize()
    path = spec.value_type.__qualname__
    for item in code if isinstance(code, tuple) else ():
        name = item[0] if isinstance(item, tuple) and item else None
        if name in getattr(spec, "field_names", ()) and _without_code(item, encode_fn):
            path = f"{path}.{name}"
            break
    leaf = [*_without_code(code, encode_fn), code][0]
    return UnsavableError(
        path=path,
        expected="static data that a SavedModel can hold",
        received=f"a {type(leaf).__name__}",
        mend="Keep it as numbers, texts or enums, or make it a function or class that can be "
        "imported by name.",
    )


def _without_code(structure: Any, encode_fn: Any) -> list[Any]:
    """Returns the leaves of a structure that cannot be encoded."""
    try:
        encode_fn(structure)
    except nested_structure_coder.NotEncodableError:
        if isinstance(structure, dict):
            structure = tuple(structure.values())
        if not isinstance(structure, (tuple, list)):
            return [structure]
        return [leaf for item in structure for leaf in _without_code(item, encode_fn)]
    return []


def _expect_own(spec: Any) -> Any:
    """Returns a spec unless the class of its values was given another one in this process."""
    given = getattr(getattr(spec.value_type, "__tf_type_spec__", None), "spec_class", type(spec))
    if given is not type(spec):
        saved = f"{type(spec).__module__}.{type(spec).__qualname__}"
        raise RegistrationError(
            path=f"{spec.value_type.__module__}.{spec.value_type.__qualname__}",
            expected=f"the spec under which it is saved here, {saved}",
            received=f"{given.__module__}.{given.__qualname__}, registered in this process",
            mend="Register the spec that it was saved under, in another process if need be.",
        )
    return spec


def _varint(number: int) -> bytes:
    """Returns a number as protocol buffers write it: seven bits a byte, the lowest first."""
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])


def _module(type_spec_proto: Any) -> str | None:
    for field in UnknownFieldSet(type_spec_proto):
        if field.field_number == _MODULE_FIELD:
            return field.data.decode()
    return None


nested_structure_coder.register_codec(_ExtensionCodec())
