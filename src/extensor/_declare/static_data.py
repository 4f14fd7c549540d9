"""Static data: freezes it, compares it by content, and encodes it for SavedModels.

Frozen data consists of tuples, namedtuples, `FrozenList`s and `FrozenDict`s of immutable leaves.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import importlib
import numbers
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.tree import Static, TreeComparison, with_items
from extensor._tf._tf_symbol import public_name
from extensor._typing import Nest
from extensor.errors import DTypeError, FormatError, ImmutableError, RegistrationError

Part = Any
"""A part of a spec: a TypeSpec for a tensor, frozen static data, or a container of both."""

Code = Any
"""Frozen data, encoded with types that TensorFlow can write into a SavedModel."""


class FrozenDict(Mapping[Any, Any]):
    """An immutable dict that is compared by content and can be hashed.

    >>> import extensor as xt
    >>> xt.authoring.FrozenDict({"a": 1}) == {"a": 1}
    True
    """

    __slots__ = ("_items",)

    _items: dict[Any, Any]

    def __init__(self, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        object.__setattr__(self, "_items", dict(items))

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __setattr__(self, name: str, value: object) -> None:
        raise _immutable(name, "assignment")

    def __delattr__(self, name: str) -> None:
        raise _immutable(name, "deletion")

    def __hash__(self) -> int:
        return hash(key(self))

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[Any, Any]]]:
        return FrozenDict, (self._items,)


def _immutable(name: str, what: str) -> ImmutableError:
    expected = f"no {what}, because a FrozenDict is immutable"
    fix = "Make a new one: FrozenDict({**items, ...})."
    return ImmutableError(f"FrozenDict.{name}", expected, f"{what} of {name!r}", fix)


class FrozenList(tuple[Any, ...]):
    """An immutable list: a tuple that `thaw` converts back to a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(list(self))


class FrozenPartial(NamedTuple):
    """An immutable `functools.partial` that is compared by its function and arguments."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: FrozenDict


class Itself:
    """Wraps an object that cannot be hashed, so that it is compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def freeze(
    value: Nest,
    path: str,
    keep: Callable[[Any], bool] = lambda value: False,
    inside: tuple[Nest, ...] = (),
) -> Part:
    """Returns an immutable copy: lists become tuples, dicts FrozenDicts, arrays read-only copies.

    NumPy scalars become Python's, but times of units that Python does not have arrays of rank 0.

    Args:
        value: Static data.
        path: The path of the value, for errors.
        keep: Returns whether a value inside, such as a tensor, is kept unchanged.
        inside: The containers around the value.

    Raises:
        DTypeError: If a leaf is not hashable, or a container contains itself (also a TypeError).
    """
    if keep(value):
        return value
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        # Python has no nanoseconds and no years: NumPy makes an int of them, without the unit.
        is_time = value.dtype.kind in "mM" and isinstance(value.item(), (int, type(None)))
        value = np.asarray(value) if is_time else value.item()
    if isinstance(value, np.ndarray):
        return _frozen_array(value, path)
    if isinstance(value, (Mapping, list, tuple)):
        if any(value is holder for holder in inside):
            expected, fix = "static data that can be frozen", "Remove the circular reference."
            raise DTypeError(path, expected, f"a {type(value).__name__} that contains itself", fix)
        inside = (*inside, value)
    if isinstance(value, Mapping):
        return FrozenDict(
            (freeze(k, f"{path}, a key"), freeze(v, f"{path}[{k!r}]", keep, inside))
            for k, v in value.items()
        )
    if isinstance(value, (list, tuple)):
        items = [freeze(v, f"{path}[{i}]", keep, inside) for i, v in enumerate(value)]
        stays = hasattr(value, "_fields") or type(value) is FrozenList
        return with_items(value, items) if stays else tuple(items)
    if isinstance(value, (set, frozenset)):
        return frozenset(freeze(v, f"{path}, an element") for v in value)
    try:
        hash(value)
        is_frozen = not is_tensor_like(value)
    except TypeError:
        is_frozen = False
    if is_frozen:
        return value
    fix = "Make it a tensor, or an immutable value that defines __hash__ and __eq__."
    if is_tensor_like(value):
        fix = "Put a tensor into a field of tensors, or of a tuple or mapping of tensors."
    raise DTypeError(path, "static data that can be frozen", type(value).__name__, fix)


def _frozen_array(array: np.ndarray[Any, Any], path: str) -> np.ndarray[Any, Any]:
    if array.dtype.hasobject or isinstance(array, np.ma.MaskedArray):
        expected = "an array of numbers, strings, bytes or times"
        fix = "Convert it to such a dtype, or to a tuple."
        raise DTypeError(path, expected, f"a {type(array).__name__} of dtype {array.dtype}", fix)
    dtype = array.dtype.newbyteorder("=")
    # An array over the memory of `bytes` cannot be made writeable.
    return np.frombuffer(array.astype(dtype).tobytes(), dtype).reshape(array.shape)


def thaw(frozen: Part, leaf: Callable[[Any], Any]) -> Nest:
    """Returns frozen data as the original lists, dicts, partials and NumPy scalars.

    Args:
        frozen: Frozen data. Arrays of rank 0 become scalars.
        leaf: The function to apply to leaves.

    >>> from extensor._declare.static_data import FrozenList
    >>> from extensor._declare.static_data import thaw
    >>> from extensor.authoring import FrozenDict
    >>> thaw(FrozenDict({"sizes": FrozenList([1, 2])}), str)
    {'sizes': ['1', '2']}
    """
    if isinstance(frozen, FrozenDict):
        return {k: thaw(v, leaf) for k, v in frozen.items()}
    if isinstance(frozen, tuple):
        items = [thaw(item, leaf) for item in frozen]
        if type(frozen) is FrozenPartial:
            return functools.partial(items[0], *items[1], **items[2])
        return items if type(frozen) is FrozenList else with_items(frozen, items)
    if isinstance(frozen, np.ndarray):
        return frozen[()]
    return leaf(frozen)


_TEXT_TELLS = (decimal.Decimal, datetime.datetime, datetime.time)
"""Types of which equal values differ: in digits, or in the time zone."""


def key(frozen: Part) -> Hashable:
    """Returns a hashable key that is equal only for equal frozen data.

    Unlike with Python's `==`, types are compared: `1`, `1.0` and `True` differ. NaN equals NaN.
    """
    if isinstance(frozen, tf.TypeSpec):
        return frozen
    if isinstance(frozen, np.ndarray):
        return np.ndarray, frozen.dtype, frozen.shape, frozen.tobytes()
    if isinstance(frozen, FrozenDict):
        return FrozenDict, frozenset((key(k), key(v)) for k, v in frozen.items())
    if isinstance(frozen, tuple):
        return type(frozen), *map(key, frozen)
    if isinstance(frozen, frozenset):
        return frozenset, frozenset(map(key, frozen))
    if type(frozen) is float:
        return float, frozen.hex()
    if type(frozen) is complex:
        return complex, frozen.real.hex(), frozen.imag.hex()
    if isinstance(frozen, _TEXT_TELLS) or (isinstance(frozen, numbers.Number) and frozen != frozen):
        return type(frozen), repr(frozen)
    return type(frozen), frozen


def _same_kind(a: Part, b: Part) -> bool:
    """Returns whether two subtrees have the same class, and if they are dicts, the same keys."""
    if type(a) is not type(b):
        return False
    return not isinstance(a, FrozenDict) or set(map(key, a)) == set(map(key, b))


FROZEN = TreeComparison(_same_kind, lambda a, b: key(a) == key(b))
"""Compares frozen data by content and types."""

_SCALARS = (bool, int, float, str, bytes)
_TUPLES: dict[type, str] = {tuple: "tuple", FrozenList: "list", FrozenPartial: "partial"}


def encode(frozen: Part) -> Code:
    """Returns frozen data, encoded with types that TensorFlow can write into a SavedModel.

    Other types become a tuple that begins with a tag. Data that cannot be encoded is returned
    unchanged, and fails only when it is saved. The TypeSpec of a tensor is kept.
    """
    kind = type(frozen)
    if isinstance(frozen, enum.Enum):
        plain = frozen.value if isinstance(frozen, enum.Flag) else frozen.name
        return "enum", *_address(frozen), plain
    if kind in _TUPLES:
        return _TUPLES[kind], *map(encode, frozen)
    if isinstance(frozen, tuple):
        return "named", *_address(frozen), *map(encode, frozen)
    if isinstance(frozen, FrozenDict):
        return "dict", *((_encode_key(k), encode(v)) for k, v in frozen.items())
    if isinstance(frozen, frozenset):
        return "set", *sorted(map(_encode_key, frozen), key=repr)
    if isinstance(frozen, Static):
        return "spec", frozen.spec
    if isinstance(frozen, Itself):
        return frozen.value  # which no file can hold
    if kind is bytes:
        return "bytes", frozen.decode("latin-1")
    if kind is int and not -(2**63) <= frozen < 2**63:
        return "int", str(frozen)
    if isinstance(frozen, _SCALARS) and kind not in _SCALARS:
        base: Any = next(base for base in _SCALARS if isinstance(frozen, base))
        return "named", *_address(frozen), encode(base(frozen))
    if isinstance(frozen, np.ndarray) and frozen.dtype.kind in "USMm":
        content: bytes = frozen.tobytes()
        return "array", frozen.dtype.str, frozen.shape, content.decode("latin-1")
    if callable(frozen):
        address = _address_of_callable(frozen)
        return frozen if address is None else ("callable", *address)
    return frozen


def _encode_key(static: Part) -> Code:
    """Returns an encoded key or element of a set: a spec there is not that of a tensor."""
    return ("spec", static) if isinstance(static, tf.TypeSpec) else encode(static)


def decode(code: Code) -> Part:
    """Returns the frozen data that `encode` encoded.

    Raises:
        RegistrationError: If a class or callable cannot be imported (also a ValueError).
    """
    if isinstance(code, np.ndarray):
        return _frozen_array(code, "a saved array")
    if not isinstance(code, tuple):
        return code
    tag, *rest = code
    if tag == "tuple":
        return tuple(map(decode, rest))
    if tag == "list":
        return FrozenList(map(decode, rest))
    if tag == "partial":
        return FrozenPartial(*map(decode, rest))
    if tag == "dict":
        return FrozenDict((_decode_key(k), decode(v)) for k, v in rest)
    if tag == "set":
        return frozenset(map(_decode_key, rest))
    if tag == "spec":
        return Static(rest[0])
    if tag == "array":
        dtype, shape, content = rest
        return np.frombuffer(content.encode("latin-1"), dtype).reshape(shape)
    if tag == "bytes":
        return rest[0].encode("latin-1")
    if tag == "int":
        return int(rest[0])
    return _decode_named(tag, *rest)


def _decode_key(code: Code) -> Part:
    """Returns a key or an element of a set, in which a tensor would have no place."""
    static = decode(code)
    if isinstance(static, tf.TypeSpec):
        expected = "keys and elements of sets that are no tensors"
        fix = "The file is damaged, or was edited: save the model again."
        raise FormatError("saved static data", expected, type(static).__name__, fix)
    return static.spec if isinstance(static, Static) else static


_NAMED = {
    "enum": "the enum of saved static data",
    "named": "the class of saved static data",
    "callable": "the callable of saved static data",
}
"""The expected object at an importable name, by the tag before the name."""


def _import(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def _decode_named(tag: str, module: str, name: str, *rest: Code) -> Part:
    try:
        kind = _import(module, name)
        if tag == "callable" and callable(kind):
            return kind
        if tag == "enum" and issubclass(kind, enum.Enum):
            return kind[rest[0]] if isinstance(rest[0], str) else kind(rest[0])
        if tag == "named" and issubclass(kind, (tuple, *_SCALARS)):
            return kind(*map(decode, rest))
        problem = f"{kind!r}"
    except (ImportError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    fix = f"Make {name} importable from the module {module}, as at the time of saving."
    raise RegistrationError(f"{module}.{name}", _NAMED[tag], problem, fix)


def _address(value: object) -> tuple[str, str]:
    return type(value).__module__, type(value).__qualname__


def _address_of_callable(value: Callable[..., Any]) -> tuple[str, str] | None:
    """Returns the module and name under which a callable can be imported, or None."""
    name = public_name(value)
    if name is not None:
        return "tensorflow", name
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    try:
        # `==`, because each access to a bound method creates a new object.
        return (module, name) if _import(module, name) == value else None
    except (ImportError, AttributeError):
        return None
