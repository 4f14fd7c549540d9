"""Encodes and decodes specs of extension types, for SavedModels and other files of TensorFlow."""

from __future__ import annotations

import base64
import contextlib
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError

from extensor._anonymous import description_of, stand_in
from extensor._lookup import full_name
from extensor._patches.patch import changes
from extensor._tf import component_specs, describes_extension, deserialize, serialize
from extensor._tf._tf_registry import DOTLESS, registered_name, registered_spec
from extensor._tf._tf_saving import (
    COMPONENTS_FIELD,
    MODULE_FIELD,
    add_field,
    are_classes_needed,
    field_of,
    fits_deeper,
    import_first,
    nested_structure_coder,
)
from extensor._typing import Nest
from extensor.errors import DTypeError, ExtensorError, FormatError, RegistrationError

_Proto = Any
"""A message of protocol buffers: a StructuredValue or a TypeSpecProto of TensorFlow."""

_Encode = Callable[[Nest], _Proto]


class UnregisteredError(RegistrationError, nested_structure_coder.NotEncodableError):
    """A spec without a registered name cannot be saved (also TensorFlow's NotEncodableError)."""


class UnsavableError(DTypeError, ValueError, nested_structure_coder.NotEncodableError):
    """The static data of a spec cannot be saved (also a ValueError, and TensorFlow's error)."""


class _ExtensionCodec(nested_structure_coder._TypeSpecCodec):
    """Encodes specs of extension types, with the module that defines each."""

    def can_encode(self, pyobj: object) -> bool:
        return isinstance(pyobj, tf.TypeSpec) and describes_extension(pyobj)

    def do_encode(self, type_spec_value: tf.TypeSpec, encode_fn: _Encode) -> _Proto:
        cls = type(type_spec_value)
        saved_as = getattr(type_spec_value, "_extensor_saved_as", None)
        if saved_as is not None:  # a stand-in for a type that is not imported
            return self._encode_again(type_spec_value, saved_as, encode_fn)
        if registered_name(cls) is None:
            name = cls.__qualname__.rpartition("<locals>.")[2]
            expected = "a spec with a registered name, under which it is saved"
            fix = (
                "Register it where it is defined: "
                f'xt.register_type_spec({name}, "{cls.__module__}.{name}").'
            )
            raise UnregisteredError(full_name(cls), expected, "a spec without a name", fix)
        try:
            encoded = super().do_encode(type_spec_value, encode_fn)
        except (UnregisteredError, UnsavableError):  # of a nested spec, which says more
            raise
        except nested_structure_coder.NotEncodableError as error:
            raise _unsavable(type_spec_value, encode_fn) from error
        except DecodeError as error:
            expected = "static data of about 45 levels at most, which protocol buffers can read"
            fix = "Make it flatter."
            raise UnsavableError(full_name(cls), expected, "more levels", fix) from error
        _add_fields(encoded.type_spec_value, type_spec_value, cls.__module__, encode_fn)
        return encoded

    def _encode_again(
        self, spec: tf.TypeSpec, saved_as: tuple[str, str, Nest], encode_fn: _Encode
    ) -> _Proto:
        name, module, state = saved_as
        encoded = _struct_pb2.StructuredValue()
        encoded.type_spec_value.type_spec_class = _REGISTERED
        encoded.type_spec_value.type_spec_class_name = name
        encoded.type_spec_value.type_state.CopyFrom(encode_fn(state))
        flat = tf.nest.flatten(component_specs(spec), expand_composites=True)
        encoded.type_spec_value.num_flat_components = len(flat)
        _add_fields(encoded.type_spec_value, spec, module, encode_fn)
        return encoded

    def can_decode(self, value: _Proto) -> bool:
        is_spec = super().can_decode(value)
        return is_spec and (
            field_of(value.type_spec_value, MODULE_FIELD) is not None
            or value.type_spec_value.type_state.string_value.startswith(_PACKED)
        )

    def do_decode(self, value: _Proto, decode_fn: Callable[[_Proto], Nest]) -> tf.TypeSpec:
        name = value.type_spec_value.type_spec_class_name
        try:
            return self._decode(value.type_spec_value, name, decode_fn)
        except ExtensorError:
            raise
        except Exception as error:  # a damaged file can raise any error
            at = name.removeprefix(DOTLESS)
            expected = "a valid type spec"
            fix = "The file is damaged, or the class has changed: save the model again."
            raise FormatError(at, expected, f"{type(error).__name__}: {error}", fix) from error

    def _decode(self, proto: _Proto, name: str, decode_fn: Callable[[_Proto], Nest]) -> tf.TypeSpec:
        if proto.type_spec_class != _REGISTERED:
            at = name.removeprefix(DOTLESS)
            fix = "The file is damaged: save the model again."
            raise FormatError(at, f"type_spec_class {_REGISTERED}", f"{proto.type_spec_class}", fix)
        module = (field_of(proto, MODULE_FIELD) or b"").decode()
        state: Any = proto.type_state
        if state.string_value.startswith(_PACKED):
            content = base64.b64decode(state.string_value.removeprefix(_PACKED))
            state = _struct_pb2.StructuredValue.FromString(content)
        cls: Any = _class_of(name, module)
        if cls is not None:
            return _expect_own(deserialize(cls, decode_fn(state)))
        if are_classes_needed():
            at = name.removeprefix(DOTLESS)
            expected = "a registered TypeSpec of this name"
            raise RegistrationError(at, expected, "no registered TypeSpec", import_first(module))
        description = field_of(proto, COMPONENTS_FIELD)
        if description is not None:
            description = decode_fn(_struct_pb2.StructuredValue.FromString(description))
        saved_as = name, module, decode_fn(state)
        spec = stand_in(saved_as, description, proto.num_flat_components)
        warnings.warn(
            f"The type {spec.shown_name!r} is not registered: its values are stand-ins with the "
            f"same components, but without its methods. {import_first(module)}",
            stacklevel=2,
        )
        return spec


_struct_pb2: Any = nested_structure_coder.struct_pb2
_REGISTERED = _struct_pb2.TypeSpecProto.REGISTERED_TYPE_SPEC

_PACKED = "extensor packed:"
"""Begins a state that is stored as text, where messages would be nested too deeply to be read."""


def _class_of(name: str, module: str) -> type | None:
    """Returns the spec class that is registered under a name, or None if it is not imported."""
    cls = registered_spec(name)
    if not name.startswith("extensor.") and not module.startswith("extensor."):
        return cls
    # A module of extensor may not be imported yet. Try the public packages in the name first, and
    # last the module that defined the class when it was saved.
    packages = name.split(".")[:-1]
    for end in range(len(packages), 0, -1):
        if cls is None:
            cls = _import(".".join(packages[:end]), name)
    return _import(module, name) if cls is None else cls


def _import(module: str, name: str) -> type | None:
    if module.partition(".")[0] == "extensor":
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    return registered_spec(name)


def _add_fields(proto: _Proto, spec: tf.TypeSpec, module: str, encode_fn: _Encode) -> None:
    """Adds what only this codec reads: two fields, and a deep state as text."""
    if not fits_deeper(proto.type_state):
        content = proto.type_state.SerializeToString(deterministic=True)
        proto.type_state.string_value = _PACKED + base64.b64encode(content).decode()
    add_field(proto, MODULE_FIELD, module.encode())
    # If this fails, the file is complete, but the type cannot have stand-ins.
    with contextlib.suppress(nested_structure_coder.NotEncodableError):
        components = encode_fn(description_of(spec)).SerializeToString(deterministic=True)
        add_field(proto, COMPONENTS_FIELD, components)


def _unsavable(spec: tf.TypeSpec, encode_fn: _Encode) -> UnsavableError:
    """Returns the error that names the object in a spec that cannot be encoded, and its field."""
    code = serialize(spec)
    path = spec.value_type.__qualname__
    for item in code if isinstance(code, tuple) else ():
        name = item[0] if isinstance(item, tuple) and item else None
        if name in getattr(spec, "field_names", ()) and _not_encodable(item, encode_fn):
            path = f"{path}.{name}"
            break
    leaf = [*_not_encodable(code, encode_fn), code][0]
    expected = "static data that a SavedModel can hold"
    fix = "Store numbers, strings, enums, or functions and classes that can be imported."
    return UnsavableError(path, expected, f"a {type(leaf).__name__}", fix)


def _not_encodable(structure: Nest, encode_fn: _Encode) -> list[Nest]:
    """Returns the leaves of a structure that cannot be encoded."""
    try:
        encode_fn(structure)
    except nested_structure_coder.NotEncodableError:
        if isinstance(structure, dict):
            structure = tuple(structure.values())
        if not isinstance(structure, (tuple, list)):
            return [structure]
        return [leaf for item in structure for leaf in _not_encodable(item, encode_fn)]
    return []


def _expect_own(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a spec; raises if the class of its values has another spec in this process."""
    given = getattr(getattr(spec.value_type, "__tf_type_spec__", None), "spec_class", type(spec))
    if given is not type(spec):
        saved = full_name(type(spec))
        at = full_name(spec.value_type)
        received = f"{full_name(given)}, registered in this process"
        fix = "Load the file in a process that registers this spec."
        raise RegistrationError(at, f"the spec that the file contains, {saved}", received, fix)
    return spec


@changes(
    "tensorflow.python.saved_model.nested_structure_coder._codecs",
    reason="The errors of TensorFlow's codec do not say how to register a type, or which module to "
    "import. This codec adds the module and the component specs to the message, in its own "
    "fields.",
    probe="nested_structure_coder",
)
def register_codec() -> None:
    codecs = nested_structure_coder._codecs
    # Remove the codec of an earlier import of extensor.
    codecs[:] = [c for c in codecs if type(c).__module__ != __name__]
    nested_structure_coder.register_codec(_ExtensionCodec())
