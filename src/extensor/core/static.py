"""Static data: frozen, compared by content, and spelled in the words that a spec may serialize."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor.errors import DTypeError, RegistrationError

_PLAIN = (bool, int, float, str, type(None), tf.DType, tf.TensorShape, tf.TypeSpec)
"""Types whose values a serialization holds as they are. (`np.ndarray` is one more.)"""


class FrozenDict(Mapping[Any, Any]):
    """A dict that cannot be changed, is compared by content and can be hashed.

    >>> from extensor.core.static import FrozenDict
    >>> FrozenDict({"a": 1}) == {"a": 1}
    True
    """

    __slots__ = ("_items",)

    def __init__(self, items: Any = ()) -> None:
        object.__setattr__(self, "_items", dict(items))

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("FrozenDict is immutable")

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> Any:
        return FrozenDict, (self._items,)


def freeze(value: Any, path: str) -> Any:
    """Returns a value that cannot change: lists become tuples, dicts FrozenDicts, arrays copies.

    Args:
        value: Static data.
        path: Where it stands, for errors.

    Raises:
        DTypeError: If it is neither a container of such data nor hashable (also a TypeError).
    """
    if isinstance(value, (*_PLAIN, enum.Enum, bytes)):
        return value
    if isinstance(value, np.ndarray):
        copy = value.copy()
        copy.flags.writeable = False
        return copy
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return FrozenDict((freeze(k, path), freeze(v, f"{path}[{k!r}]")) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        items = [freeze(v, f"{path}[{i}]") for i, v in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, (set, frozenset)):
        return frozenset(value)
    if isinstance(value, Hashable):
        return value
    raise DTypeError(
        path=path,
        expected="tensors, or static data that can be frozen",
        received=f"{type(value).__name__}, which is neither",
        mend="Make it a tensor, or an immutable value that defines __hash__ and __eq__.",
    )


def key(value: Any) -> Any:
    """Returns something hashable that is equal for equal static data only.

    Types count, as they do not for Python's own `==`: `1`, `1.0` and `True` differ.
    """
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return type(value), frozenset((key(k), key(v)) for k, v in value.items())
    if isinstance(value, tuple):
        return type(value), tuple(key(v) for v in value)
    if isinstance(value, frozenset):
        return frozenset, frozenset(key(v) for v in value)
    return type(value), value


def encode(value: Any) -> Any:
    """Returns frozen data in the words that TensorFlow can write into a SavedModel.

    What has no word of its own becomes a tuple that begins with a tag. Data that cannot be
    written stays as it is, which shows when it is saved and not before.
    """
    if isinstance(value, enum.Enum):
        return "enum", *_address(type(value)), value.name
    if isinstance(value, (*_PLAIN, np.ndarray)):
        return value
    if isinstance(value, bytes):
        return "bytes", value.decode("latin-1")
    if isinstance(value, Mapping):
        return "dict", *((encode(k), encode(v)) for k, v in value.items())
    if isinstance(value, tuple):
        items = (encode(v) for v in value)
        if hasattr(value, "_fields"):
            return "namedtuple", *_address(type(value)), *items
        return "tuple", *items
    if isinstance(value, frozenset):
        return "set", *sorted((encode(v) for v in value), key=repr)
    return value


def decode(code: Any) -> Any:
    """Returns the data that `encode` spelled."""
    if not isinstance(code, tuple):
        return code
    tag, *rest = code
    if tag == "bytes":
        return rest[0].encode("latin-1")
    if tag == "dict":
        return FrozenDict((decode(k), decode(v)) for k, v in rest)
    if tag == "tuple":
        return tuple(decode(v) for v in rest)
    if tag == "set":
        return frozenset(decode(v) for v in rest)
    if tag == "enum":
        return named_object(rest[0], rest[1])[rest[2]]
    return named_object(rest[0], rest[1])(*(decode(v) for v in rest[2:]))


def _address(thing: Any) -> tuple[str, str]:
    return thing.__module__, thing.__qualname__


def named_object(module: str, qualname: str) -> Any:
    """Returns what a module knows under a name.

    Raises:
        RegistrationError: If it is not there (also a ValueError).
    """
    try:
        thing = importlib.import_module(module)
        for name in qualname.split("."):
            thing = getattr(thing, name)
    except (ImportError, AttributeError) as error:
        raise RegistrationError(
            path=f"{module}.{qualname}",
            expected="a name that can be imported",
            received=str(error),
            mend=f"Define {qualname} at the top of the module {module}.",
        ) from error
    return thing
