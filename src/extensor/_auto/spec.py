"""AutoSpec: the spec of a class, derived from the arguments of its constructor."""

# The methods of composite tensors that TensorFlow calls are private.

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._auto.constructor import Constructor, static_value
from extensor._declare import static_data
from extensor._declare.derived_spec import (
    DerivedSpec,
    check_names,
    leaves_of,
    part_of,
    plain,
    tensors_of,
)
from extensor._declare.static_data import (
    FrozenDict,
    FrozenList,
    FrozenPartial,
    Itself,
    Part,
    freeze,
    thaw,
)
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.registry import register_type_spec
from extensor._protocol.stackable_spec import ChangeShape, ChangeSpec, StackableTypeSpec
from extensor._protocol.tree import Static, with_items
from extensor._tf import CompositeTensor
from extensor._tf._tf_probability import Deferred
from extensor._tf._tf_value_spec import converted_spec
from extensor._typing import Nest, Value
from extensor.errors import ArgumentError, DTypeError, RegistrationError

if TYPE_CHECKING:
    from typing_extensions import Self

_LEAVES = (type(None), bool, int, float, str, bytes, tf.DType, tf.TensorShape)


def part_of_argument(value: Nest, path: str, is_part: bool = False) -> Part:
    """Returns the part for an argument, with a TypeSpec in place of each tensor.

    Args:
        value: Any object. Lists, tuples, namedtuples, mappings and partials are traversed. An
            object that cannot be hashed is compared by identity.
        path: The path of the argument, for errors.
        is_part: Whether `value` is a part already: its TypeSpecs describe tensors.
    """
    if type(value) in _LEAVES or isinstance(value, Static):
        return value
    if isinstance(value, tf.TypeSpec):
        return value if is_part else Static(value)
    if (is_tensor_like(value) or isinstance(value, tf.Variable)) and not is_part:
        return part_of(value)

    def inner(item: Nest, place: str) -> Part:
        return part_of_argument(item, f"{path}{place}", is_part)

    if isinstance(value, (list, tuple)):
        items = [inner(item, f"[{i}]") for i, item in enumerate(value)]
        if hasattr(value, "_fields"):
            return with_items(value, items)
        return FrozenList(items) if isinstance(value, (list, FrozenList)) else tuple(items)
    if isinstance(value, Mapping):
        return FrozenDict(
            (freeze(k, f"{path}, a key"), inner(v, f"[{k!r}]")) for k, v in value.items()
        )
    if type(value) is functools.partial:
        return FrozenPartial(
            inner(value.func, ".func"),
            inner(value.args, ".args"),
            inner(value.keywords, ".keywords"),
        )
    if isinstance(value, np.generic):  # an array of rank 0, which keeps its dtype
        value = np.asarray(value)
    # NumPy arrays also have a registered conversion in TensorFlow, but here they are static data.
    spec = None if isinstance(value, np.ndarray) else converted_spec(value)
    if spec is not None:
        return ConvertedSpec(spec)
    try:
        return freeze(value, path)
    except DTypeError:
        if is_tensor_like(value):
            raise
        return Itself(value)


class Converted:
    """Wraps a value that is no composite tensor, but that TensorFlow converts to one."""

    __slots__ = ("spec", "value")

    def __init__(self, value: object, spec: ConvertedSpec) -> None:
        self.value = value
        self.spec = spec

    def __tf_type_spec__(self) -> ConvertedSpec:
        """Returns the `ConvertedSpec` of the value."""
        return self.spec


@register_type_spec(name="extensor.ConvertedSpec")
class ConvertedSpec(StackableTypeSpec):
    """The spec of a value that TensorFlow converts with a registered function.

    Args:
        inner: The spec that the function returned.
    """

    def __init__(self, inner: tf.TypeSpec) -> None:
        self.inner = inner

    @property
    def value_type(self) -> type:
        """The wrapper class of values."""
        return Converted

    @property
    def component_specs(self) -> Nest:
        """The component specs of the inner spec."""
        return _tf.component_specs(self.inner)

    def to_components(self, value: Converted) -> Nest:
        """Returns the components of the wrapped value."""
        return _tf.to_components(self.inner, value.value)

    def from_components(self, components: Nest) -> Converted:
        """Returns a wrapper of the value with the given components."""
        return Converted(_tf.from_components(self.inner, components), self)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the inner spec."""
        return (self.inner,)


_VERSION = 4
"""The first item of a serialization. TensorFlow Probability writes versions 1 to 3."""

_MAX_KNOWN = 1000
"""The maximum number of specs in a cache."""

_KEYS = (type(None), bool, int, str, bytes, tf.DType, tf.TensorShape)
"""Types of arguments that are part of a cache key unchanged."""

_MANY = 10
"""An array with this many numbers or more is not used as a cache key."""


class AutoSpec(DerivedSpec):
    """The spec of a decorated class; each has a subclass of its own."""

    omitted: ClassVar[tuple[str, ...]]
    """The arguments that keep their defaults."""

    _constructor: ClassVar[Constructor | None] = None
    _known: ClassVar[dict[Any, AutoSpec]]

    def __init__(self, /, *args: Part, **parts: Part) -> None:
        type(self).constructor()
        super().__init__(*args, **parts)

    @classmethod
    def constructor(cls) -> Constructor:
        """Returns the constructor of the class.

        It is read again if a later decorator, such as `dataclass`, has replaced `__init__`.
        """
        made: Any = cls.value_type
        if cls._constructor is None or cls._constructor.init is not made.__init__:
            cls._constructor = Constructor(made, cls.omitted, cls.ignored)
            cls.field_names = cls._constructor.names
            cls._known = {}
        return cls._constructor

    @classmethod
    def read_part(cls, name: str, part: Part) -> Part:
        """Returns a part, frozen."""
        return part_of_argument(part, f"{cls.__qualname__}.{name}", is_part=True)

    @classmethod
    def of(cls, value: Value) -> AutoSpec:
        """Returns the spec of a value.

        Raises:
            ArgumentError: If an argument is not found in the value, or the value is of a subclass
                that is not decorated (also a TypeError and a ValueError).
        """
        made: Any = cls.value_type
        if type(value) is not made:
            raise not_decorated(type(value), made.__qualname__)
        constructor = cls.constructor()
        arguments = constructor.arguments_of(value)
        for name in constructor.static_names(value):
            if name in arguments:
                arguments[name] = static_value(arguments[name])
        # A cache, because specs are expensive to construct and most values share a spec.
        key = tuple([_key(argument) for argument in arguments.values()])
        spec = cls._known.get(key)
        if spec is None:
            spec = cls.from_parts(
                {
                    name: part_of_argument(argument, f"{made.__qualname__}.{name}")
                    for name, argument in arguments.items()
                }
            )
            if not _has_unknown(key):
                if len(cls._known) >= _MAX_KNOWN:
                    cls._known.clear()
                cls._known[key] = spec
        return spec

    _constants: dict[str, Nest]
    _fresh: dict[str, Part]
    """Static containers, by argument: copied for each value, which may change its copy."""
    _mixed: dict[str, Part]
    """Arguments with both tensors and static data: their component is a tuple of the tensors."""

    def _attributes_of_parts(self, parts: Mapping[str, Part]) -> dict[str, Any]:
        components: dict[str, Nest] = {}
        constants: dict[str, Nest] = {}
        fresh: dict[str, Part] = {}
        mixed: dict[str, Part] = {}
        for name, part in parts.items():
            specs = tuple(spec for _, spec in leaves_of(part))
            if not specs:
                if isinstance(part, (tuple, FrozenDict)):
                    fresh[name] = part
                else:
                    constants[name] = thaw(part, _plain)
            elif _is_nest(part):
                components[name] = thaw(part, plain)
            else:
                mixed[name] = part
                components[name] = specs
        dense = all(isinstance(spec, tf.TensorSpec) for spec in components.values())
        return {
            "_components": components,
            "_constants": constants,
            "_fresh": fresh,
            "_mixed": mixed,
            "_boxed_names": sorted(components) if dense else None,
        }

    def tensors(self, value: Value) -> Iterator[Value]:
        """Yields the tensors of a value in the order of its parts."""
        for name in self._components:
            yield from self._tensors(value, name)

    def _tensors(self, value: Value, name: str) -> Iterator[Value]:
        part = self._parts[name]
        tensors = tensors_of(part, self.constructor().argument_of(value, name))
        for (_, spec), tensor in zip(leaves_of(part), tensors, strict=True):
            yield Converted(tensor, spec) if isinstance(spec, ConvertedSpec) else tensor

    def to_components(self, value: Value) -> dict[str, Nest]:
        """Returns the arguments that hold tensors, by name."""
        argument_of = self.constructor().argument_of
        return {
            name: tuple(self._tensors(value, name))
            if name in self._mixed
            else argument_of(value, name)
            for name in self._components
        }

    def from_components(self, components: Mapping[str, Nest]) -> Value:
        """Returns a value, constructed with the given components and the static arguments.

        See `is_deferred_assertion_context`.
        """
        arguments = {**self._constants, **components}
        for name, part in self._fresh.items():
            arguments[name] = thaw(part, _plain)
        for name, part in self._mixed.items():
            arguments[name] = thaw(part, functools.partial(_fill, iter(components[name])))
        with Deferred():
            return self.constructor().call(arguments)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the format version and the arguments' parts, encoded for a SavedModel."""
        return (_VERSION, *super().serialize())

    @classmethod
    def deserialize(cls, serialization: Nest) -> Self:
        """Returns the spec for a serialization by extensor or TensorFlow Probability.

        Arguments that were added to the constructor since then have their defaults.

        Raises:
            FieldError: If an argument was removed from the constructor (also a KeyError).
            RegistrationError: If a later version wrote the serialization, or a class or callable
                in it cannot be imported (also a ValueError).
        """
        version, *rest = serialization
        if version == _VERSION:
            parts = {name: static_data.decode(code) for name, code in rest}
        elif version in (1, 2, 3):
            tensors, others, *_ = rest
            parts = {
                name: part_of_argument(part, f"{cls.__qualname__}.{name}", is_part=True)
                for name, part in {**tensors, **others}.items()
            }
        else:
            expected = f"a serialization of version 1 to {_VERSION}"
            fix = "Install the release of extensor that wrote it, or a later release."
            raise RegistrationError(cls.__qualname__, expected, f"version {version}", fix)
        for name, default in cls.constructor().defaults.items():
            if name not in parts:
                parts[name] = part_of_argument(default, f"{cls.__qualname__}.{name}")
        for name in parts.keys() & set(cls.omitted):
            del parts[name]
        check_names(cls, parts)
        return cls.from_parts({name: parts[name] for name in cls.field_names})

    def _change_shapes(self, change_shape: ChangeShape, change_spec: ChangeSpec) -> Self:
        # The meaning of a shape argument is unknown, so shapes do not change with the stack.
        return super()._change_shapes(lambda shape: shape, change_spec)

    def __reduce__(self) -> tuple[Callable[..., AutoSpec], tuple[Any, ...]]:
        return _unpickle, (self.value_type, self.serialize())


_UNKNOWN = object()


def _key(argument: Nest) -> Hashable:
    """Returns a cache key that differs for arguments with different parts, or `_UNKNOWN`."""
    if isinstance(argument, tf.Tensor):
        # The id of the dtype, because each dtype is a singleton and its hash is slow.
        return id(argument.dtype), argument.shape
    kind = type(argument)
    if kind in _KEYS:
        return kind, argument
    if kind is list or kind is tuple:
        keys = tuple([_key(item) for item in argument])
        return _UNKNOWN if _has_unknown(keys) else (kind, keys)
    if kind is dict:
        keys = tuple([(name, _key(item)) for name, item in argument.items()])
        is_known = all(type(name) is str and key is not _UNKNOWN for name, key in keys)
        return (kind, keys) if is_known else _UNKNOWN
    if kind is float:
        return kind, argument.hex()
    if isinstance(argument, np.ndarray) and argument.size < _MANY:
        return static_data.key(argument)
    if isinstance(argument, CompositeTensor):
        spec = _tf.own_spec(argument)
        if isinstance(spec, DerivedSpec):  # caches its hash
            return spec
    return _UNKNOWN


def _has_unknown(keys: tuple[Hashable, ...]) -> bool:
    return any(key is _UNKNOWN for key in keys)


def _plain(leaf: Part) -> Nest:
    return leaf.value if isinstance(leaf, Itself) else plain(leaf)


def _fill(tensors: Iterator[Value], leaf: Part) -> Nest:
    if not isinstance(leaf, tf.TypeSpec):
        return _plain(leaf)
    tensor = next(tensors)
    return tensor.value if isinstance(tensor, Converted) else tensor


def _is_nest(part: Part) -> bool:
    """Returns whether a part is a `tf.nest` structure of specs only."""
    if isinstance(part, tuple):
        return type(part) is not FrozenPartial and all(map(_is_nest, part))
    if isinstance(part, FrozenDict):
        try:
            sorted(part)
        except TypeError:
            return False
        return all(map(_is_nest, part.values()))
    return isinstance(part, tf.TypeSpec) and not isinstance(part, ConvertedSpec)


def _unpickle(value_type: Any, serialization: Nest) -> AutoSpec:
    return value_type._extensor_spec.deserialize(serialization)


def not_decorated(cls: type, base: str) -> ArgumentError:
    """Returns the error for a subclass that is not decorated."""
    received = f"a subclass of {base} without the decorator"
    fix = f"Write @xt.auto_composite_tensor above {cls.__qualname__}."
    return ArgumentError(cls.__qualname__, "a class with a spec of its own", received, fix)
