"""Specs derived from the parts of a value: what is a tensor in it, and what is static."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import tensorflow as tf

from extensor._tf import BaseResourceVariable, BatchableTypeSpec, CompositeTensor, VariableSpec
from extensor.core import static
from extensor.core.box import StackableTypeSpec
from extensor.core.static import FrozenDict
from extensor.errors import FieldError, ProtocolError


class Static:
    """A part that is static data."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and static.key(self.value) == static.key(other.value)

    def __hash__(self) -> int:
        return hash(static.key(self.value))

    def __repr__(self) -> str:
        return repr(self.value)


class Branch:
    """A part that is a container with tensors in it."""

    __slots__ = ("keys", "kind", "parts")

    def __init__(self, kind: type, keys: tuple[Any, ...], parts: tuple[Any, ...]) -> None:
        self.kind = kind
        self.keys = keys
        self.parts = parts

    def items(self, value: Any) -> Iterator[Any]:
        """Yields the items of a container that correspond to the parts."""
        return (value[key] for key in self.keys) if self.keys else iter(value)

    def build(self, items: list[Any]) -> Any:
        """Returns the container of the given items."""
        if self.keys:
            return self.kind(zip(self.keys, items, strict=True))
        return self.kind(*items) if hasattr(self.kind, "_fields") else self.kind(items)

    def with_parts(self, parts: Any) -> Branch:
        """Returns a container of the same kind with other parts."""
        return Branch(self.kind, self.keys, tuple(parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Branch) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return self.kind, self.keys, self.parts

    def __repr__(self) -> str:
        if self.keys:
            return repr(dict(zip(self.keys, self.parts, strict=True)))
        return repr(self.parts)


def is_tensor_like(value: Any) -> bool:
    """Returns whether a value is a tensor or decomposes into tensors."""
    return isinstance(value, (tf.Tensor, CompositeTensor))


def part_of(value: Any, path: str) -> Any:
    """Returns the part that a value is: its spec, its static data, or a container of parts.

    Args:
        value: A tensor, an extension value, static data, or a list, tuple or mapping of these.
        path: Where it stands, for errors.
    """
    if isinstance(value, tf.Tensor):
        return tf.TensorSpec(value.shape, value.dtype)
    if isinstance(value, BaseResourceVariable):
        return VariableSpec.from_value(value)
    if isinstance(value, CompositeTensor):
        return tf.type_spec_from_value(value)
    if isinstance(value, Mapping):
        keys = tuple(sorted(value, key=str))
        return _branch(value, keys, [part_of(value[k], f"{path}[{k!r}]") for k in keys], path)
    if isinstance(value, (list, tuple)):
        return _branch(value, (), [part_of(v, f"{path}[{i}]") for i, v in enumerate(value)], path)
    return Static(static.freeze(value, path))


def _branch(value: Any, keys: tuple[Any, ...], parts: list[Any], path: str) -> Any:
    if all(isinstance(part, Static) for part in parts):
        return Static(static.freeze(value, path))
    return Branch(FrozenDict if isinstance(value, Mapping) else type(value), keys, tuple(parts))


def spec_part(value: Any, path: str) -> Any:
    """Returns the part that a spec's argument stands for: specs are components, all else static."""
    if isinstance(value, (tf.TypeSpec, Static, Branch)):
        return value
    if isinstance(value, Mapping):
        keys = tuple(sorted(value, key=str))
        return _branch(value, keys, [spec_part(value[k], f"{path}[{k!r}]") for k in keys], path)
    if isinstance(value, (list, tuple)):
        return _branch(value, (), [spec_part(v, f"{path}[{i}]") for i, v in enumerate(value)], path)
    return Static(static.freeze(value, path))


def _leaves(part: Any, name: str) -> Iterator[tuple[str, tf.TypeSpec]]:
    """Yields the name and spec of each tensor in a part; the names of one value all differ."""
    if isinstance(part, tf.TypeSpec):
        yield name, part
    elif isinstance(part, Branch):
        for key, inner in zip(part.keys or range(len(part.parts)), part.parts, strict=True):
            yield from _leaves(inner, f"{name}[{key!r}]")


def _collect(part: Any, value: Any, out: list[Any]) -> None:
    if isinstance(part, tf.TypeSpec):
        out.append(value)
    elif isinstance(part, Branch):
        for inner, item in zip(part.parts, part.items(value), strict=True):
            _collect(inner, item, out)


def _build(part: Any, components: Iterator[Any]) -> Any:
    if isinstance(part, tf.TypeSpec):
        return next(components)
    if isinstance(part, Branch):
        return part.build([_build(inner, components) for inner in part.parts])
    return part.value


def _encode(part: Any) -> Any:
    if isinstance(part, tf.TypeSpec):
        return part
    if isinstance(part, Static):
        return "static", static.encode(part.value)
    if part.keys:
        keys = (static.encode(key) for key in part.keys)
        return "dict", *zip(keys, map(_encode, part.parts), strict=True)
    if hasattr(part.kind, "_fields"):
        return "namedtuple", part.kind.__module__, part.kind.__qualname__, *map(_encode, part.parts)
    return part.kind.__name__, *map(_encode, part.parts)


def _decode(code: Any) -> Any:
    if isinstance(code, tf.TypeSpec):
        return code
    tag, *rest = code
    if tag == "static":
        return Static(static.decode(rest[0]))
    if tag == "dict":
        keys = tuple(static.decode(k) for k, _ in rest)
        return Branch(FrozenDict, keys, tuple(_decode(part) for _, part in rest))
    if tag == "namedtuple":
        kind = static.named_object(rest[0], rest[1])
        return Branch(kind, (), tuple(map(_decode, rest[2:])))
    return Branch(list if tag == "list" else tuple, (), tuple(map(_decode, rest)))


class DerivedSpec(StackableTypeSpec):
    """The spec of a class whose values fall into parts, one a field.

    Args:
        **parts: For each field the spec of its tensor, static data, or a container of these.
    """

    field_names: ClassVar[tuple[str, ...]]
    """The names of the fields, in their order."""

    def __init__(self, **parts: Any) -> None:
        cls = type(self)
        for name in cls.field_names:
            if name not in parts:
                raise FieldError(
                    path=f"{cls.__qualname__}.{name}",
                    expected="a spec or static data for this field",
                    received="nothing",
                    mend=f"Give {name}= to {cls.__qualname__}.",
                )
        self._parts: dict[str, Any] = {
            name: spec_part(parts.pop(name), f"{cls.__qualname__}.{name}")
            for name in cls.field_names
        }
        for name in parts:
            raise FieldError(
                path=f"{cls.__qualname__}.{name}",
                expected=f"one of the fields {', '.join(cls.field_names)}",
                received=name,
                mend="Check the spelling.",
            )
        # A dict, which TensorFlow's nest rebuilds twice as fast as a tuple.
        self._components = {
            leaf_name: leaf
            for name, part in self._parts.items()
            for leaf_name, leaf in _leaves(part, name)
        }
        self._static = {n: p.value for n, p in self._parts.items() if isinstance(p, Static)}
        self._is_flat = not any(isinstance(p, Branch) for p in self._parts.values())
        self._hash: int | None = None

    def __getattr__(self, name: str) -> Any:
        # Fields read like the value's own: a spec for a tensor, the data for what is static.
        parts = self.__dict__.get("_parts", {})
        if name in parts:
            part = parts[name]
            return part.value if isinstance(part, Static) else part
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @classmethod
    def of(cls, value: Any) -> DerivedSpec:
        """Returns the spec of a value."""
        return cls(
            **{
                name: part_of(getattr(value, name), f"{type(value).__qualname__}.{name}")
                for name in cls.field_names
            }
        )

    def rebuilt(self, fields: dict[str, Any]) -> Any:
        """Returns the value with the given fields. Overridden where a class is derived."""
        raise NotImplementedError

    @property
    def component_specs(self) -> dict[str, tf.TypeSpec]:
        """The specs of the tensors, by field, or by field and place in it: `columns[0]`."""
        return self._components

    def to_components(self, value: Any) -> dict[str, Any]:
        """Returns the tensors of a value by name."""
        if self._is_flat:
            return {name: getattr(value, name) for name in self._components}
        tensors: list[Any] = []
        for name, part in self._parts.items():
            if not isinstance(part, Static):
                _collect(part, getattr(value, name), tensors)
        return dict(zip(self._components, tensors, strict=True))

    def from_components(self, components: dict[str, Any]) -> Any:
        """Returns the value that is made of the given tensors."""
        if self._is_flat:
            return self.rebuilt({**self._static, **components})
        remaining = iter([components[name] for name in self._components])
        return self.rebuilt({name: _build(part, remaining) for name, part in self._parts.items()})

    def serialize(self) -> tuple[Any, ...]:
        """Returns the fields and their parts, in words that a SavedModel can hold."""
        return tuple((name, _encode(part)) for name, part in self._parts.items())

    @classmethod
    def deserialize(cls, serialization: Any) -> Any:
        """Returns the spec that `serialize` described."""
        return cls(**{name: _decode(code) for name, code in serialization})

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DerivedSpec)
            and type(self) is type(other)
            and self._parts == other._parts
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((type(self), tuple(self._parts.values())))
        return self._hash

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={part!r}" for name, part in self._parts.items())
        return f"{type(self).__qualname__}({fields})"

    def stacked(self, num: int | None) -> Any:
        """Returns the spec of `num` stacked values; static shapes gain a dimension too."""
        return self._changed(
            lambda shape: tf.TensorShape([num]).concatenate(shape), lambda spec: spec._batch(num)
        )

    def unstacked(self) -> Any:
        """Returns the spec of one of the values that a value of this spec stacks."""
        return self._changed(lambda shape: shape[1:], lambda spec: spec._unbatch())

    def _changed(self, of_shape: Callable[..., Any], of_spec: Callable[..., Any]) -> Any:
        def change(part: Any, path: str) -> Any:
            if isinstance(part, BatchableTypeSpec):
                return of_spec(part)
            if isinstance(part, tf.TypeSpec):
                raise ProtocolError(
                    path=path,
                    expected="a field whose values stack",
                    received=type(part).__name__,
                    mend=f"Derive {type(part).__name__} from xt.StackableTypeSpec.",
                )
            if isinstance(part, Branch):
                return part.with_parts(change(inner, path) for inner in part.parts)
            shape = part.value
            return Static(of_shape(shape)) if isinstance(shape, tf.TensorShape) else part

        name = type(self).__qualname__
        return type(self)(**{n: change(p, f"{name}.{n}") for n, p in self._parts.items()})
