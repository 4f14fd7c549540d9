"""Objects of dataclasses, NamedTuples, attrs and pydantic classes as records.

attrs and pydantic are optional. They are not imported here: a class of theirs can only exist if
its library is imported already.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from typing import Any, cast


def as_dict(value: object) -> Mapping[Any, Any]:
    """Returns a record as a dict of its fields. The values of the fields stay as they are."""
    if isinstance(value, Mapping):
        return cast("Any", value if type(value) is dict else dict(cast("Any", value)))
    return {name: getattr(value, name) for name in names_of(type(value)) or ()}


def class_in(hint: Any) -> Any:
    """Returns the class of an annotation: `Box` of `Box[int]`, other annotations as they are."""
    origin = typing.get_origin(hint)
    return origin if isinstance(origin, type) else hint


def is_typed_dict(cls: Any) -> bool:
    """Returns whether a class is a TypedDict, of `typing` or of `typing_extensions`."""
    return isinstance(cls, type) and issubclass(cls, dict) and hasattr(cls, "__required_keys__")


@functools.lru_cache(maxsize=256)
def names_of(cls: Any) -> tuple[str, ...] | None:
    """Returns the names of the fields of a class, or None for other classes."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    if is_typed_dict(cls):
        return tuple(cls.__annotations__)
    described = getattr(cls, "__attrs_attrs__", None)
    if described is not None:
        return tuple(attribute.name for attribute in described)
    names = getattr(cls, "_fields" if issubclass(cls, tuple) else "model_fields", None)
    if isinstance(names, (tuple, Mapping)):
        return tuple(cast("Any", names))
    return None
