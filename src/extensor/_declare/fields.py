"""How the fields of a declared class are read: what their annotations ask for.

What is kept in the class: `_extensor_own`, the readings of its fields, with the paths of the
classes that annotate them; `_extensor_caller`, the frame in which names in the annotations may be
found, until they are; `_extensor_readings`, the readings with its own paths.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from typing import Any, NamedTuple

from extensor._declare.annotation import (
    Converter,
    filled,
    part_reader,
    type_arguments,
    value_reader,
)
from extensor.errors import DTypeError, ProtocolError


class Reading(NamedTuple):
    """How a field is read."""

    path: str
    convert: Converter
    convert_part: Converter
    hint: Any


def readings(cls: Any) -> dict[str, Reading]:
    """Returns how each field of a declared class is read, in the fields' order."""
    known = vars(cls).get("_extensor_readings")
    if known is None:
        if "Spec" not in vars(cls):
            base = next(base for base in cls.__mro__ if "Spec" in vars(base))
            raise ProtocolError(
                path=cls.__qualname__,
                expected=f"a declared class, as its base {base.__qualname__} is",
                received="one that is not, whose values would become ones of the base",
                mend=f"Write @xt.extension_type above {cls.__qualname__}.",
            )
        read_annotations(cls, names_may_be_missing=False)
        own = cls._extensor_own
        known = {
            field.name: own[field.name]._replace(path=f"{cls.__qualname__}.{field.name}")
            for field in dataclasses.fields(cls)
        }
        cls._extensor_readings = known
    return known


def read_annotations(cls: Any, names_may_be_missing: bool) -> None:
    """Reads the annotations of a class's fields, with the type arguments that it gives its bases.

    Args:
        cls: A declared class.
        names_may_be_missing: Whether to wait, rather than raise, if a name is not there (yet).
    """
    caller = cls._extensor_caller
    if caller is None:
        return
    names: dict[str, Any] = {**caller.f_globals, **caller.f_locals, cls.__name__: cls}
    names.update((p.__name__, p) for p in getattr(cls, "__type_params__", ()))
    fields = {field.name for field in dataclasses.fields(cls)}
    arguments = type_arguments(cls)
    own: dict[str, Reading] = {}
    for base in reversed(cls.__mro__):
        members = vars(base)
        if base is not cls and "__dataclass_fields__" not in members:
            continue
        # A base that is a mere dataclass is read here; one that is declared has read itself.
        inherited: dict[str, Reading] = {}
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
                    hint = _hint(filled(hint, arguments[base]), module, names)
                own[name] = Reading(
                    path, value_reader.converter(hint), part_reader.converter(hint), hint
                )
            except (NameError, AttributeError) as error:
                if names_may_be_missing:
                    return
                raise DTypeError(
                    path=path,
                    expected="an annotation of names that are defined by now",
                    received=f"{annotation!r}: {error}",
                    mend="Define or import it outside of `if TYPE_CHECKING`.",
                ) from error
            except DTypeError as error:
                raise DTypeError(
                    path=path,
                    expected=error.expected,
                    received=error.received,
                    mend=error.mend,
                ) from None
    cls._extensor_own = own
    cls._extensor_caller = None  # lets go of the caller's variables


def _hint(annotation: Any, module: dict[str, Any], names: dict[str, Any]) -> Any:
    holder = type("Holder", (), {"__annotations__": {"field": annotation}})
    return typing.get_type_hints(holder, module, names, True)["field"]
