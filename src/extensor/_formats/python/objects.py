"""Objects of dataclasses, NamedTuples, attrs and pydantic classes as records.

attrs and pydantic are optional. They are not imported here: a class of theirs can only exist if
its library is imported already.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any


def is_object_class(cls: type) -> bool:
    """Returns whether the objects of a class are records: whether `names_of` knows its fields."""
    return _names(cls) is not None


def as_dict(value: Any) -> Mapping[Any, Any]:
    """Returns a record as a dict of its fields. The values of the fields stay as they are."""
    if isinstance(value, Mapping):
        return value if type(value) is dict else dict(value)
    return {name: getattr(value, name) for name in _names(type(value)) or ()}


@functools.lru_cache(maxsize=256)
def _names(cls: type) -> tuple[str, ...] | None:
    """Returns the names of the fields of a class, or None for other classes."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    for attribute in ("_fields", "model_fields"):  # NamedTuple, pydantic
        names = getattr(cls, attribute, None)
        if attribute == "_fields" and not issubclass(cls, tuple):
            continue
        if isinstance(names, (tuple, Mapping)):
            return tuple(names)
    described = getattr(cls, "__attrs_attrs__", None)
    return None if described is None else tuple(attribute.name for attribute in described)
