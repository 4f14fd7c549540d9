"""Versions of a type: values that an older version of it encoded are values of the newest too.

A spec that was saved keeps its version and the fields of that version. Where the type is newer by
now, such a spec describes values in the older encoding. They are of the type all the same: its
fields are made of the older ones when they are read.
"""

# The classes of this room look into each other.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, ClassVar

import tensorflow as tf

from extensor._declare import static_data
from extensor._declare.derived_spec import DerivedSpec, part_of
from extensor._declare.static_data import freeze
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.spec import deserialized
from extensor._protocol.tree import mapped
from extensor._tf import name_for_saving, registered_name
from extensor.errors import FieldError, ProtocolError, RegistrationError


class VersionedSpec(DerivedSpec):
    """A derived spec that knows the encodings of older versions of its type."""

    __version__: ClassVar[int] = 1
    """The version of the fields, counted on whenever one is renamed or holds something else."""

    _extensor_older: ClassVar[dict[Any, Any]]
    """The spec classes of older versions, by version and names of the fields."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._extensor_older = {}
        version: object = cls.__version__
        if not isinstance(version, int) or version < 1:
            raise ProtocolError(
                path=f"{cls.__module__}.{cls.__qualname__}.__version__",
                expected="1, 2, 3 and so on",
                received=repr(version),
                mend="Count on by one when a field is renamed or holds something else.",
            )

    def upgraded(self, fields: Mapping[str, Any]) -> Any:
        """Returns the value that the fields of an older version stand for.

        Overridden in the `class Spec` of a type that has older versions, of which `self` is the
        spec: `self.__version__` tells which one. May call ops.

        Args:
            fields: The tensors and the static data of a value, by the names that they had.
        """
        raise self._missing("upgraded(self, fields)")

    def downgraded(self, value: Any) -> Mapping[str, Any]:
        """Returns the fields of an older version that stand for a value.

        Overridden beside `upgraded` where functions that were saved with an older version are
        called with values of the newest. May call ops.

        Args:
            value: A value of the newest version.
        """
        raise self._missing("downgraded(self, value)")

    def _missing(self, method: str) -> ProtocolError:
        return ProtocolError(
            path=type(self).__qualname__,
            expected=f"a way between version {self.__version__}, which was saved, and the newest",
            received="none",
            mend=f"Define {method} in `class Spec` of the type.",
        )

    def serialize(self) -> tuple[Any, ...]:
        """Returns the fields and their parts; before them the version, unless it is the first."""
        fields = super().serialize()
        return fields if self.__version__ == 1 else (self.__version__, *fields)

    @classmethod
    def deserialize(cls, serialization: Any) -> Any:
        """Returns the spec that `serialize` described, perhaps one of an older version.

        Raises:
            FieldError: If the class has other fields by now and the same version (also a
                KeyError).
            RegistrationError: If it was saved by a newer version (also a ValueError).
        """
        version, fields = _parted(serialization)
        if version < cls.__version__:
            return _older(cls, version, fields)
        if version > cls.__version__:
            raise RegistrationError(
                path=cls.__qualname__,
                expected=f"version {cls.__version__} of the type, or an older one",
                received=f"version {version}",
                mend="Import the type as it was when it was saved, or newer.",
            )
        return super().deserialize(fields)

    def cast(self, value: Any, casting_context: Any = None) -> Any:
        """Returns a value as one of this spec's, also from the encoding of another version."""
        return super().cast(newest(value), casting_context)

    def castable_type(self, spec: tf.TypeSpec) -> Any:
        """Returns where values of this spec and another meet: in the newest version, or None."""
        return super().castable_type(spec._upgraded_spec() if isinstance(spec, OlderSpec) else spec)


class OlderSpec(VersionedSpec):
    """Describes values of a type in the encoding of an older version."""

    _newest: ClassVar[Any]

    @classmethod
    def deserialize(cls, serialization: Any) -> Any:
        """Returns the spec that `serialize` described."""
        return _older(cls._newest, *_parted(serialization))

    @classmethod
    def of(cls, value: Any) -> Any:
        """Returns the spec of a value in the older encoding."""
        fields = vars(value._extensor_older)
        return cls.from_parts({n: mapped(part_of, fields[n]) for n in value._extensor_of._parts})

    def from_fields(self, fields: dict[str, Any]) -> Any:
        """Returns the value in the older encoding with the given fields."""
        value = object.__new__(self.value_type)
        value.__dict__.update(_extensor_older=types.SimpleNamespace(**fields), _extensor_of=self)
        return value

    def to_components(self, value: Any) -> dict[str, Any]:
        """Returns the tensors of a value by name."""
        return super().to_components(getattr(value, "_extensor_older", value))

    def tensors(self, value: Any) -> Any:
        """Yields the tensors of a value in the order of its parts."""
        return super().tensors(getattr(value, "_extensor_older", value))

    def _upgraded_spec(self) -> Any:
        """Returns the spec of what the values of this spec are in the newest version."""
        function = tf.function(newest, autograph=False).get_concrete_function(self)
        return tf.type_spec_from_value(function.structured_outputs)

    def cast(self, value: Any, casting_context: Any = None) -> Any:
        """Returns a value as one of this spec's: one of the newest version is encoded anew."""
        if isinstance(value, Older) and type(value.__tf_type_spec__()) is not type(self):
            value = newest(value)
        if isinstance(value, self._newest.value_type) and not isinstance(value, Older):
            value = self.from_fields(self._fields(self.downgraded(value)))
        return super(VersionedSpec, self).cast(value, casting_context)

    def _fields(self, given: Mapping[str, Any]) -> dict[str, Any]:
        path = f"{type(self).__qualname__}.downgraded"
        if set(given) != set(self._parts):
            raise FieldError(
                path=path,
                expected=f"the fields of version {self.__version__}: {', '.join(self._parts)}",
                received=", ".join(given) or "none",
                mend="Return them by the names that they had.",
            )
        return {n: freeze(given[n], f"{path}: {n}", is_tensor_like) for n in self._parts}

    def castable_type(self, spec: tf.TypeSpec) -> Any:
        """Returns where values of this spec and another meet: in the newest version, or None."""
        if type(spec) is type(self):
            return super(VersionedSpec, self).castable_type(spec)
        return self._upgraded_spec().castable_type(spec)

    def __reduce__(self) -> Any:
        return deserialized, (self._newest, self.serialize())

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, version={self.__version__})"


class Older:
    """What a value in an older encoding has before what its type has."""

    _extensor_older: types.SimpleNamespace
    _extensor_of: OlderSpec

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Returns a value of the newest version: what is made anew, as by `replace`, is newest."""
        return cls.__mro__[2](*args, **kwargs)

    def __tf_type_spec__(self) -> Any:
        """Returns the spec, which is of the older version."""
        spec = self.__dict__.get("_extensor_spec")
        if spec is None:
            spec = self.__dict__["_extensor_spec"] = type(self._extensor_of).of(self)
        return spec


def newest(value: Any) -> Any:
    """Returns a value in the newest encoding of its type. Calls the ops that this takes.

    Args:
        value: A value of any type; one that has no versions comes back as it is.
    """
    if not isinstance(value, Older):
        return value
    kept = value.__dict__.get("_extensor_newest")
    if kept is not None:
        return kept
    spec = value._extensor_of
    made = spec.upgraded(types.MappingProxyType(vars(value._extensor_older)))
    if type(made) is not spec._newest.value_type:
        raise ProtocolError(
            path=f"{type(spec).__qualname__}.upgraded",
            expected=f"a {spec._newest.value_type.__qualname__}",
            received=f"a {type(made).__qualname__}",
            mend="Return a value of the newest version.",
        )
    if tf.executing_eagerly():  # tensors of one graph are of no use in another
        value.__dict__["_extensor_newest"] = made
    return made


def _parted(serialization: Any) -> tuple[int, Any]:
    """Returns the version that a serialization is of, and its fields."""
    if serialization and isinstance(serialization[0], int):
        return serialization[0], serialization[1:]
    return 1, serialization


def _older(cls: Any, version: int, fields: Any) -> Any:
    """Returns the spec of an older version, of a class for that version and its fields' names."""
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
        cls._extensor_older.setdefault(key, older)  # another thread may have been faster
    return cls._extensor_older[key].from_parts(parts)


def _older_value_class(cls: Any) -> Any:
    """Returns the class of a type's values in older encodings."""

    def reader(name: str) -> property:
        return property(lambda value: getattr(newest(value), name))

    value_type = cls.value_type
    members = {
        "__module__": value_type.__module__,
        "__qualname__": value_type.__qualname__,
        **{name: reader(name) for name in cls.field_names},
    }
    return type(value_type)(value_type.__name__, (Older, value_type), members)
