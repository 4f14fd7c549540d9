"""Versions of a declared type: reads and writes values that were saved by an older version.

A saved spec keeps its version and the fields of that version. If the type has a newer version now,
the spec describes values in the older encoding. These are instances of the type too: the fields of
the newest version are computed from the older ones when they are read.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from extensor._declare import static_data
from extensor._declare.derived_spec import DerivedSpec, part_of
from extensor._declare.static_data import freeze
from extensor._lookup import full_name
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.spec import from_serialization
from extensor._protocol.tree import map_leaves
from extensor._tf import name_for_saving, registered_name
from extensor._typing import Nest, Value
from extensor.errors import FieldError, ProtocolError, RegistrationError

if TYPE_CHECKING:
    from typing_extensions import Self


class VersionedSpec(DerivedSpec):
    """A derived spec that supports the encodings of older versions of its type."""

    __version__: ClassVar[int] = 1
    """The version of the fields. Increase it when a field is renamed or changes its content."""

    _extensor_older: ClassVar[dict[tuple[Any, ...], type[OlderSpec]]]
    """The spec classes of older versions, by version and field names."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._extensor_older = {}
        version: object = cls.__version__
        if not isinstance(version, int) or version < 1:
            at = f"{full_name(cls)}.__version__"
            fix = "Start with 1, and add 1 when a field is renamed or changes its content."
            raise ProtocolError(at, "1, 2, 3 and so on", repr(version), fix)

    def upgraded(self, fields: Mapping[str, Nest]) -> Value:
        """Returns the value of the newest version for the fields of an older version.

        Override it in the `class Spec` of a type that has older versions. `self` is the spec of
        the older version, `self.__version__` its number. May call ops.

        Args:
            fields: The tensors and the static data of a value, by their older names.
        """
        raise self._missing("upgraded(self, fields)")

    def downgraded(self, value: Value) -> Mapping[str, Nest]:
        """Returns the fields of an older version for a value of the newest version.

        Override it, beside `upgraded`, if functions that were saved with an older version are
        called with values of the newest version. May call ops.

        Args:
            value: A value of the newest version.
        """
        raise self._missing("downgraded(self, value)")

    def _missing(self, method: str) -> ProtocolError:
        expected = f"a conversion between the saved version {self.__version__} and the newest"
        fix = f"Define {method} in `class Spec` of the type."
        return ProtocolError(type(self).__qualname__, expected, f"a class without {method}", fix)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the fields and their parts, after the version if it is not 1."""
        fields = super().serialize()
        return fields if self.__version__ == 1 else (self.__version__, *fields)

    @classmethod
    def deserialize(cls, serialization: Nest) -> Self:
        """Returns the spec that `serialize` described, which may be of an older version.

        Raises:
            FieldError: If the version is the same but the fields differ (also a KeyError).
            RegistrationError: If the spec was saved by a newer version (also a ValueError).
        """
        version, fields = _split_version(serialization)
        if version < cls.__version__:
            return _older(cls, version, fields)
        if version > cls.__version__:
            expected = f"version {cls.__version__} of the type, or an older one"
            fix = "Import the version of the type that was saved, or a newer one."
            raise RegistrationError(cls.__qualname__, expected, f"version {version}", fix)
        return super().deserialize(fields)

    def cast(self, value: Value, casting_context: object | None = None, **request: Any) -> Value:
        """Returns a value cast to this type, also from an older version."""
        return super().cast(newest(value), casting_context, **request)

    def castable_type(self, spec: tf.TypeSpec) -> tf.TypeSpec | None:
        """Returns a common spec, in the newest version, of this spec and another; or None."""
        return super().castable_type(spec._upgraded_spec() if isinstance(spec, OlderSpec) else spec)


class OlderSpec(VersionedSpec):
    """The spec of values in the encoding of an older version."""

    _newest: ClassVar[Any]

    @classmethod
    def deserialize(cls, serialization: Nest) -> Any:
        """Returns the spec that `serialize` described."""
        return _older(cls._newest, *_split_version(serialization))

    @classmethod
    def of(cls, value: Value) -> Self:
        """Returns the spec of a value in the older encoding."""
        fields = vars(value._extensor_older)
        return cls.from_parts(
            {n: map_leaves(part_of, fields[n]) for n in value._extensor_of._parts}
        )

    def from_fields(self, fields: dict[str, Nest]) -> Value:
        """Returns the value in the older encoding with the given fields."""
        value = object.__new__(self.value_type)
        value.__dict__.update(_extensor_older=types.SimpleNamespace(**fields), _extensor_of=self)
        return value

    def to_components(self, value: Value) -> dict[str, Nest]:
        """Returns the tensors of a value by name."""
        return super().to_components(getattr(value, "_extensor_older", value))

    def tensors(self, value: Value) -> Iterator[Value]:
        """Yields the tensors of a value in the order of its parts."""
        return super().tensors(getattr(value, "_extensor_older", value))

    def _upgraded_spec(self) -> Any:
        """Returns the spec of the values of this spec after an upgrade to the newest version."""
        function = tf.function(newest, autograph=False).get_concrete_function(self)
        return tf.type_spec_from_value(function.structured_outputs)

    def cast(self, value: Value, casting_context: object | None = None, **request: Any) -> Value:
        """Returns a value cast to this type; a value of the newest version is downgraded."""
        if isinstance(value, Older) and type(value.__tf_type_spec__()) is not type(self):
            value = newest(value)
        if isinstance(value, self._newest.value_type) and not isinstance(value, Older):
            value = self.from_fields(self._fields(self.downgraded(value)))
        return super(VersionedSpec, self).cast(value, casting_context, **request)

    def _fields(self, given: Mapping[str, Nest]) -> dict[str, Nest]:
        path = f"{type(self).__qualname__}.downgraded"
        if set(given) != set(self._parts):
            expected = f"the fields of version {self.__version__}: {', '.join(self._parts)}"
            fix = "Return all fields of the older version, by their older names."
            raise FieldError(path, expected, ", ".join(given) or "an empty mapping", fix)
        return {n: freeze(given[n], f"{path}: {n}", is_tensor_like) for n in self._parts}

    def castable_type(self, spec: tf.TypeSpec) -> tf.TypeSpec | None:
        """Returns a common spec of this spec and another: the same version, or the newest."""
        if type(spec) is type(self):
            return super(VersionedSpec, self).castable_type(spec)
        return self._upgraded_spec().castable_type(spec)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return from_serialization, (self._newest, self.serialize())

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, version={self.__version__})"


class Older:
    """Mixin for values in an older encoding, placed before their type in the MRO."""

    _extensor_older: types.SimpleNamespace
    _extensor_of: OlderSpec

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Returns a value of the newest version, also for `type(value)(...)`."""
        return cls.__mro__[2](*args, **kwargs)

    def __tf_type_spec__(self) -> OlderSpec:
        """Returns the spec of the older version."""
        spec = self.__dict__.get("_extensor_spec")
        if spec is None:
            spec = self.__dict__["_extensor_spec"] = type(self._extensor_of).of(self)
        return spec


def newest(value: Value) -> Value:
    """Returns a value in the newest encoding of its type. Calls ops if an upgrade is needed.

    Args:
        value: A value of any type. Returned unchanged unless it has an older encoding.
    """
    if not isinstance(value, Older):
        return value
    kept = value.__dict__.get("_extensor_newest")
    if kept is not None:
        return kept
    spec = value._extensor_of
    made = spec.upgraded(types.MappingProxyType(vars(value._extensor_older)))
    if type(made) is not spec._newest.value_type:
        at = f"{type(spec).__qualname__}.upgraded"
        expected = f"a {spec._newest.value_type.__qualname__}"
        fix = "Return a value of the newest version."
        raise ProtocolError(at, expected, f"a {type(made).__qualname__}", fix)
    if tf.executing_eagerly():  # a tensor of one graph cannot be used in another
        value.__dict__["_extensor_newest"] = made
    return made


def _split_version(serialization: Nest) -> tuple[int, Nest]:
    """Returns the version and the fields of a serialization."""
    if serialization and isinstance(serialization[0], int):
        return serialization[0], serialization[1:]
    return 1, serialization


def _older(cls: Any, version: int, fields: Nest) -> Any:
    """Returns a spec of an older version; its class is created once per version and field names."""
    parts = {name: static_data.decode(code) for name, code in fields}
    key = version, *parts
    if key not in cls._extensor_older:
        members = {
            "__doc__": f"The spec of {cls.value_type.__qualname__}, version {version}.",
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__version__": version,
            "_newest": cls,
            "value_type": _older_value_class(cls),
        }
        older: Any = type(cls)(cls.__name__, (OlderSpec, cls), members)
        name = registered_name(cls)
        if name is not None:
            name_for_saving(older, name)
        cls._extensor_older.setdefault(key, older)  # another thread may have set it
    return cls._extensor_older[key].from_parts(parts)


def _older_value_class(cls: Any) -> type:
    """Returns the class of values in older encodings: a subclass of the type."""

    def reader(name: str) -> property:
        return property(lambda value: getattr(newest(value), name))

    value_type = cls.value_type
    members = {
        "__module__": value_type.__module__,
        "__qualname__": value_type.__qualname__,
        **{name: reader(name) for name in cls.field_names},
    }
    return type(value_type)(value_type.__name__, (Older, value_type), members)
