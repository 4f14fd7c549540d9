"""The fields of a declared class: their type hints and converters.

Attributes that this module sets on a declared class:

- `_extensor_own`: the converters of its fields; each path names the class that annotates the field.
- `_extensor_readings`: the same, but each path names this class.
- `_extensor_caller`: the frame of the caller, for names in hints; None when all are resolved.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from typing import Any, NamedTuple

from extensor._declare.annotation import (
    AnnotationReader,
    Converter,
    Hint,
    PartReader,
    type_arguments,
    with_arguments,
)
from extensor._lookup import defines
from extensor.errors import DTypeError, ProtocolError


class FieldConverters(NamedTuple):
    """The type hint and the converters of a field."""

    path: str
    convert: Converter
    convert_part: Converter
    hint: Hint


def is_declared(cls: type) -> bool:
    """Returns whether a class, or one of its base classes, is declared by `extension_type`."""
    return defines(cls, "_extensor_own")


def readings(cls: Any) -> dict[str, FieldConverters]:
    """Returns the converters of each field of a declared class, by name, in the fields' order."""
    known = vars(cls).get("_extensor_readings")
    if known is None:
        if "Spec" not in vars(cls):
            base = next(base for base in cls.__mro__ if "Spec" in vars(base))
            expected = f"a declared class, because its base {base.__qualname__} is declared"
            fix = f"Write @xt.extension_type above {cls.__qualname__}."
            raise ProtocolError(cls.__qualname__, expected, "a subclass without the decorator", fix)
        read_annotations(cls, names_may_be_missing=False)
        own = cls._extensor_own
        known = {
            field.name: own[field.name]._replace(path=f"{cls.__qualname__}.{field.name}")
            for field in dataclasses.fields(cls)
        }
        cls._extensor_readings = known
    return known


def read_annotations(cls: Any, names_may_be_missing: bool) -> None:
    """Reads the type hints of the fields of a class, with the type arguments of its bases.

    Args:
        cls: A declared class.
        names_may_be_missing: If a name in a hint is undefined: whether to return, so that a later
            call can try again, or to raise.
    """
    caller = cls._extensor_caller
    if caller is None:
        return
    names: dict[str, Any] = {**caller.f_globals, **caller.f_locals, cls.__name__: cls}
    names.update((p.__name__, p) for p in getattr(cls, "__type_params__", ()))
    fields = {field.name for field in dataclasses.fields(cls)}
    arguments = type_arguments(cls)
    own: dict[str, FieldConverters] = {}
    for base in reversed(cls.__mro__):
        members = vars(base)
        if base is not cls and "__dataclass_fields__" not in members:
            continue
        # A declared base has its own readings. The hints of a plain dataclass are read here.
        inherited: dict[str, FieldConverters] = {}
        if base is not cls and "_extensor_own" in members:
            read_annotations(base, names_may_be_missing)
            if base._extensor_caller is not None:
                return
            inherited = base._extensor_own
        module = getattr(sys.modules.get(base.__module__), "__dict__", {})
        for name, annotation in members.get("__annotations__", {}).items():
            if name not in fields:
                continue
            if name in inherited and base not in arguments:
                own[name] = inherited[name]
                continue
            path = f"{cls.__qualname__}.{name}"
            try:
                hint = (
                    inherited[name].hint if name in inherited else _hint(annotation, module, names)
                )
                if base in arguments:
                    hint = _hint(with_arguments(hint, arguments[base]), module, names)
                own[name] = FieldConverters(
                    path, value_reader.converter(hint), part_reader.converter(hint), hint
                )
            except (NameError, AttributeError) as error:
                if names_may_be_missing:
                    return
                expected = "an annotation whose names are defined"
                fix = "Define or import it outside of `if TYPE_CHECKING`."
                raise DTypeError(path, expected, f"{annotation!r}: {error}", fix) from error
            except DTypeError as error:
                raise DTypeError(path, error.expected, error.received, error.fix) from None
    cls._extensor_own = own
    cls._extensor_caller = None  # releases the caller's variables


def _hint(annotation: Hint, module: dict[str, Any], names: dict[str, Any]) -> Hint:
    holder = type("Holder", (), {"__annotations__": {"field": annotation}})
    return typing.get_type_hints(holder, module, names, True)["field"]


value_reader = AnnotationReader()

part_reader = PartReader()
