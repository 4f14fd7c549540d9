"""What a SavedModel, and whatever else TensorFlow encodes, says of extension types."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import Any

import tensorflow as tf

from extensor._anonymous import described, stand_in
from extensor._patches.patch import changes
from extensor._tf import component_specs, describes_extension, deserialize, serialize
from extensor._tf._tf_registry import DOTLESS, registered_name, registered_spec
from extensor._tf._tf_saving import (
    COMPONENTS_FIELD,
    MODULE_FIELD,
    add_field,
    are_classes_needed,
    field_of,
    import_first,
    nested_structure_coder,
)
from extensor.errors import DTypeError, ExtensorError, FormatError, RegistrationError


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
        saved_as = getattr(type_spec_value, "_extensor_saved_as", None)
        if saved_as is not None:  # by a class that is not imported
            return self._encoded_again(type_spec_value, saved_as, encode_fn)
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
        except (UnregisteredError, UnsavableError):  # of an inner type; its error says more
            raise
        except nested_structure_coder.NotEncodableError as error:
            raise _unsavable(type_spec_value, encode_fn) from error
        _add_fields(encoded.type_spec_value, type_spec_value, cls.__module__, encode_fn)
        return encoded

    def _encoded_again(self, spec: Any, saved_as: tuple[str, str, Any], encode_fn: Any) -> Any:
        name, module, state = saved_as
        encoded = _struct_pb2.StructuredValue()
        encoded.type_spec_value.type_spec_class = _REGISTERED
        encoded.type_spec_value.type_spec_class_name = name
        encoded.type_spec_value.type_state.CopyFrom(encode_fn(state))
        flat = tf.nest.flatten(component_specs(spec), expand_composites=True)
        encoded.type_spec_value.num_flat_components = len(flat)
        _add_fields(encoded.type_spec_value, spec, module, encode_fn)
        return encoded

    def can_decode(self, value: Any) -> bool:
        is_spec = super().can_decode(value)
        return is_spec and field_of(value.type_spec_value, MODULE_FIELD) is not None

    def do_decode(self, value: Any, decode_fn: Any) -> Any:
        name = value.type_spec_value.type_spec_class_name
        try:
            return self._decoded(value.type_spec_value, name, decode_fn)
        except ExtensorError:
            raise
        except Exception as error:  # what a damaged file makes of code that trusts it
            raise FormatError(
                path=name.removeprefix(DOTLESS),
                expected="a type spec, as it was saved under this name",
                received=f"{type(error).__name__}: {error}",
                mend="The file is damaged, or the class has changed: save the model again.",
            ) from error

    def _decoded(self, proto: Any, name: str, decode_fn: Any) -> Any:
        if proto.type_spec_class != _REGISTERED:
            raise FormatError(
                path=name.removeprefix(DOTLESS),
                expected=f"type_spec_class {_REGISTERED}",
                received=f"{proto.type_spec_class}",
                mend="The file is damaged: save the model again.",
            )
        module = (field_of(proto, MODULE_FIELD) or b"").decode()
        cls: Any = _class_of(name, module)
        if cls is not None:
            return _expect_own(deserialize(cls, decode_fn(proto.type_state)))
        if are_classes_needed():
            raise RegistrationError(
                path=name.removeprefix(DOTLESS),
                expected="a TypeSpec of this name, which is saved here",
                received="a process that has registered none",
                mend=import_first(module),
            )
        description = field_of(proto, COMPONENTS_FIELD)
        if description is not None:
            description = decode_fn(_struct_pb2.StructuredValue.FromString(description))
        saved_as = name, module, decode_fn(proto.type_state)
        spec = stand_in(saved_as, description, proto.num_flat_components)
        warnings.warn(
            f"The type {spec.shown_name!r} is not registered: its values are stand-ins, which have "
            f"its components and nothing else of it. {import_first(module)}",
            stacklevel=2,
        )
        return spec


_struct_pb2: Any = nested_structure_coder.struct_pb2
_REGISTERED = _struct_pb2.TypeSpecProto.REGISTERED_TYPE_SPEC


def _class_of(name: str, module: str) -> type | None:
    """Returns the class of specs that are saved under a name, or None if it is not imported."""
    cls = registered_spec(name)
    if not name.startswith("extensor.") and not module.startswith("extensor."):
        return cls
    # A package of extensor that nothing has imported yet: that of the name, which is public, and
    # last the module, which is where the class happened to be.
    packages = name.split(".")[:-1]
    for end in range(len(packages), 0, -1):
        if cls is None:
            cls = _imported(".".join(packages[:end]), name)
    return _imported(module, name) if cls is None else cls


def _imported(module: str, name: str) -> type | None:
    if module.partition(".")[0] == "extensor":
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    return registered_spec(name)


def _add_fields(proto: Any, spec: Any, module: str, encode_fn: Any) -> None:
    """Writes the fields that only this codec knows."""
    add_field(proto, MODULE_FIELD, module.encode())
    # Without what cannot be written the type has no stand-ins.
    with contextlib.suppress(nested_structure_coder.NotEncodableError):
        components = encode_fn(described(spec)).SerializeToString(deterministic=True)
        add_field(proto, COMPONENTS_FIELD, components)


def _unsavable(spec: Any, encode_fn: Any) -> UnsavableError:
    """Returns the error that names what in a spec has no code, and the field that it is in."""
    code = serialize(spec)
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


@changes(
    "tensorflow.python.saved_model.nested_structure_coder._codecs",
    reason="TensorFlow's own codec names a type that it cannot write but not the mend, and a type "
    "that it cannot read but not the module to import; that module, and what the components are, "
    "is written beside the name, in fields of the message of which only this codec knows.",
    probe="nested_structure_coder",
)
def register_codec() -> None:
    codecs = nested_structure_coder._codecs
    # One of extensor as it was imported before.
    codecs[:] = [c for c in codecs if type(c).__module__ != __name__]
    nested_structure_coder.register_codec(_ExtensionCodec())
