"""Specs that are derived from the fields of a value.

A spec has one part for each field: the frozen field (see `static_data`) with a TypeSpec in place of
each tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from extensor import _tf
from extensor._declare import static_data
from extensor._declare.static_data import FROZEN, FrozenDict, FrozenPartial, Part, freeze, key, thaw
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.spec import not_overridden
from extensor._protocol.stackable_spec import (
    ChangeShape,
    ChangeSpec,
    StackableTypeSpec,
    as_row,
)
from extensor._protocol.stand_in import plain_spec
from extensor._protocol.symbolic import symbolic_spec
from extensor._protocol.tree import Static, are_compatible, map_leaves, map_shapes, merge
from extensor._tf import spec_of_variable
from extensor._typing import Nest, Value
from extensor.errors import (
    DTypeError,
    ExtensorError,
    FieldError,
    ImmutableError,
    MissingAttributeError,
    ProtocolError,
    StructureError,
)

if TYPE_CHECKING:
    from typing_extensions import Self


def part_of(value: Value) -> Part:
    """Returns the part for a leaf: a TypeSpec for a tensor, static data for static data.

    Args:
        value: A leaf of a frozen value.
    """
    if isinstance(value, tf.Tensor):
        return tf.TensorSpec(value.shape, value.dtype)
    if isinstance(value, tf.Variable):
        return spec_of_variable(value)
    if is_tensor_like(value):
        return tf.type_spec_from_value(value)
    if isinstance(value, tf.TypeSpec):
        return Static(value)
    symbol = symbolic_spec(value)
    return value if symbol is None else symbol


def is_spec(value: object) -> bool:
    """Returns whether a leaf of a part is a TypeSpec: of a tensor, or as static data."""
    return isinstance(value, (tf.TypeSpec, Static))


def leaves_of(part: Part, name: str = "") -> Iterator[tuple[str, tf.TypeSpec]]:
    """Yields the name and spec of each tensor in a part."""
    if isinstance(part, tf.TypeSpec):
        yield name, part
    elif isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from leaves_of(item, f"{name}[{i}]")
    elif isinstance(part, FrozenDict):
        for key, item in part.items():
            yield from leaves_of(item, f"{name}[{key!r}]")


def tensors_of(part: Part, value: Nest) -> Iterator[Value]:
    """Yields the tensors of a value, in the order of `leaves_of`."""
    if isinstance(part, tf.TypeSpec):
        yield value
    elif isinstance(part, tuple):
        if type(part) is FrozenPartial:
            value = value.func, value.args, value.keywords
        for inner, item in zip(part, value, strict=True):
            yield from tensors_of(inner, item)
    elif isinstance(part, FrozenDict):
        for key, inner in part.items():
            yield from tensors_of(inner, value[key])


def plain(leaf: Part) -> Part:
    """Returns the static data of a leaf of a part."""
    return leaf.spec if isinstance(leaf, Static) else leaf


class DerivedSpec(StackableTypeSpec):
    """The spec of a class with fields; it has one part for each field.

    Args:
        *args: Parts by position.
        **parts: Parts by name. A part is a TypeSpec for a tensor, static data, or a container of
            these.

    Raises:
        FieldError: If a part is missing, or is not a field (also a KeyError).
    """

    field_names: ClassVar[tuple[str, ...]]
    """The names of the fields, in their order."""

    ignored: ClassVar[Collection[str]] = ()
    """The names of the fields whose static data is ignored when specs are compared."""

    def __init__(self, /, *args: Part, **parts: Part) -> None:
        cls = type(self)
        given = dict(zip(cls.field_names, args, strict=False))
        twice = given.keys() & parts.keys()
        if len(args) > len(cls.field_names) or twice:
            expected = f"one part for each field: {', '.join(cls.field_names)}"
            received = f"{', '.join(sorted(twice))} twice" if twice else f"{len(args)} parts"
            raise FieldError(cls.__qualname__, expected, received, "Pass the parts by name.")
        given.update(parts)
        check_names(cls, given)
        read = {name: cls.read_part(name, given[name]) for name in cls.field_names}
        self._take({name: map_leaves(plain_spec, part) for name, part in read.items()})

    @classmethod
    def read_part(cls, name: str, part: Part) -> Part:
        """Returns a part of the constructor's arguments, frozen.

        Args:
            name: The field's name.
            part: A TypeSpec, static data, or a container of these.
        """
        return freeze(part, f"{cls.__qualname__}.{name}", is_spec)

    @classmethod
    def from_parts(cls, parts: Mapping[str, Part]) -> Self:
        """Returns the spec with the given frozen parts, without running the constructor."""
        spec = object.__new__(cls)
        spec._take(parts)
        return spec

    @classmethod
    def of(cls, value: Value) -> Self:
        """Returns the spec of a value, whose fields are frozen."""
        return cls.from_parts({n: map_leaves(part_of, getattr(value, n)) for n in cls.field_names})

    _parts: Mapping[str, Part]
    _components: dict[str, Nest]
    _static: dict[str, Part]
    _is_flat: bool
    _boxed_names: list[str] | None
    _key: Hashable
    _hash: int | None

    def _take(self, parts: Mapping[str, Part]) -> None:
        # Assignment raises an error once `_parts` is set.
        self.__dict__.update(self._attributes_of_parts(parts), _parts=parts, _key=None, _hash=None)

    def _attributes_of_parts(self, parts: Mapping[str, Part]) -> dict[str, Any]:
        """Returns attributes computed from the parts: component specs, static data, and so on."""
        leaves = [leaf for name, part in parts.items() for leaf in leaves_of(part, name)]
        # A dict, because tf.nest rebuilds it twice as fast as a tuple.
        components = dict(leaves)
        if len(leaves) != len(components):
            at = type(self).__qualname__
            expected = "keys of mappings that differ in their repr"
            fix = "Use strings, numbers or the members of one enum as keys."
            raise ProtocolError(at, expected, ", ".join(name for name, _ in leaves), fix)
        with_tensors = {name.partition("[")[0] for name in components}
        is_dense = all(isinstance(spec, tf.TensorSpec) for _, spec in leaves)
        return {
            "_components": components,
            "_static": {n: map_leaves(plain, p) for n, p in parts.items() if n not in with_tensors},
            "_is_flat": components.keys() == with_tensors,
            "_boxed_names": sorted(components) if is_dense else None,
        }

    def __setattr__(self, name: str, value: object) -> None:
        # An author's `__init__` may assign the parts; methods may cache values in `_` attributes.
        parts = self.__dict__.get("_parts")
        if parts is not None and (name in parts or not name.startswith("_")):
            raise _immutable(self, name, "assignment")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise _immutable(self, name, "deletion")

    def __getattr__(self, name: str) -> Part:
        # Fields are readable as on the value: a spec for a tensor, else the static data.
        parts = self.__dict__.get("_parts", {})
        if name in parts:
            return map_leaves(plain, parts[name])
        if name.startswith("_"):
            raise AttributeError(name)  # a cheap error: Python and TensorFlow look these up often
        at = type(self).__qualname__
        fix = "Check the spelling."
        raise MissingAttributeError(at, f"one of the fields {', '.join(parts)}", repr(name), fix)

    def from_fields(self, fields: dict[str, Nest]) -> Value:
        """Returns the value with the given fields. Subclasses override it."""
        raise not_overridden(self, "from_fields")

    @property
    def component_specs(self) -> dict[str, tf.TypeSpec]:
        """The specs of the tensors, by field, or by field and position in it: `columns[0]`."""
        return self._components

    def to_components(self, value: Value) -> dict[str, Nest]:
        """Returns the tensors of a value by name."""
        if self._is_flat:
            return {name: getattr(value, name) for name in self._components}
        return dict(zip(self._components, self.tensors(value), strict=True))

    def from_components(self, components: Mapping[str, Nest]) -> Value:
        """Returns a value with the given tensors."""
        if self._is_flat:
            return self.from_fields({**self._static, **components})
        tensors = iter([components[name] for name in self._components])

        def build(leaf: Part) -> Value:
            return next(tensors) if isinstance(leaf, tf.TypeSpec) else plain(leaf)

        return self.from_fields(
            {name: map_leaves(build, part) for name, part in self._parts.items()}
        )

    def tensors(self, value: Value) -> Iterator[Value]:
        """Yields the tensors of a value in the order of its parts."""
        for name, part in self._parts.items():
            yield from tensors_of(part, getattr(value, name))

    def serialize(self) -> tuple[Any, ...]:
        """Returns the fields and their parts, encoded for a SavedModel."""
        return tuple((name, static_data.encode(part)) for name, part in self._parts.items())

    @classmethod
    def deserialize(cls, serialization: Nest) -> Self:
        """Returns the spec that `serialize` described.

        Raises:
            FieldError: If the fields of the class have changed (also a KeyError).
            RegistrationError: If an enum or namedtuple cannot be imported (also a ValueError).
            FormatError: If a key is a spec (also a ValueError).
        """
        parts = {name: static_data.decode(code) for name, code in serialization}
        check_names(cls, parts)
        return cls.from_parts({name: parts[name] for name in cls.field_names})

    def cast(self, value: Value, casting_context: object = None, **request: Any) -> Value:
        """Returns a value that is equivalent to `value` and has this type; see `TypeSpec.cast`.

        Args:
            value: As in `TypeSpec.cast`. A dict has the fields by name, also the static ones, whose
                data must be that of this spec. Those with a default may be missing.
            casting_context: The context that TensorFlow passes when it casts arguments.
            **request: As in `TypeSpec.cast`.
        """
        if isinstance(value, Mapping):
            checked = {name: self._is_compared(name) for name in self._parts}
            value = _components_of_fields(self, self._parts, checked, value)
        return super().cast(value, casting_context, **request)

    def _agrees(self, other: Self) -> bool:
        return all(
            are_compatible(part, other._parts[name], FROZEN)
            for name, part in self._parts.items()
            if self._is_compared(name) or other._is_compared(name)
        )

    def _merged(self, other: Self) -> Self | None:
        others = {
            name: other._parts[name]
            if self._is_compared(name) or other._is_compared(name)
            else part
            for name, part in self._parts.items()
        }
        parts = merge(dict(self._parts), others, by=FROZEN)
        return None if parts is None else self.from_parts(parts)

    def _is_compared(self, name: str) -> bool:
        """Returns whether a field is compared when specs are; fields with tensors always are."""
        return name not in self.ignored or any(leaves_of(self._parts[name]))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpickle, (type(self), self._parts)

    def _cmp_key(self) -> Hashable:
        if self._key is None:
            compared = [part for name, part in self._parts.items() if self._is_compared(name)]
            self.__dict__["_key"] = tuple(map(static_data.key, compared))
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DerivedSpec)
            and type(self) is type(other)
            and self._cmp_key() == other._cmp_key()
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        known = self._hash
        if known is None:
            known = self.__dict__["_hash"] = hash((type(self), self._cmp_key()))
        return known

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={part!r}" for name, part in self._parts.items())
        return f"{type(self).__qualname__}({fields})"

    def _unbox(self, boxes: list[tf.Tensor]) -> Value:
        names = self._boxed_names
        if names is None:
            return super()._unbox(boxes)
        # The box of a tensor is the tensor. This fast path runs for each element of a dataset.
        return self.from_components(dict(zip(names, boxes, strict=True)))

    def _change_shapes(self, change_shape: ChangeShape, change_spec: ChangeSpec) -> Self:
        return self.from_parts(
            {
                name: map_shapes(part, change_shape, change_spec)
                for name, part in self._parts.items()
            }
        )

    def _restack(self, change_shape: ChangeShape, change_spec: ChangeSpec) -> Self:
        result = self._change_shapes(change_shape, change_spec)
        for name, part in result.stacked(None)._parts.items():
            self.read_part(name, part)  # raises if the field's hint does not accept the part
        return result

    def _as_row(self) -> Self:
        parts = dict(self._parts)
        for name, part in self.stacked(None)._parts.items():
            try:
                self.read_part(name, part)
            except ExtensorError:  # the field's hint accepts no dense stack
                parts[name] = map_shapes(parts[name], lambda shape: shape, _ragged)
        return self.from_parts(parts)

    def _with_tensor_ranks_only(self) -> Self:
        def relax(leaf: Part) -> Part:
            if isinstance(leaf, tf.TypeSpec):
                return _tf.ranks_only(leaf)
            if isinstance(leaf, tf.TensorShape) and leaf.rank is not None:
                return tf.TensorShape([None] * leaf.rank)
            return leaf

        return self._once("_ranks_only", lambda: self._map_leaves(relax))

    def _without_tensor_names(self) -> Self:
        def unname(leaf: Part) -> Part:
            return _tf.without_names(leaf) if isinstance(leaf, tf.TypeSpec) else leaf

        return self._once("_unnamed_tensors", lambda: self._map_leaves(unname))

    def _map_leaves(self, function: Callable[[Part], Part]) -> Self:
        """Returns the spec with a function applied to the leaves of every part."""
        return self.from_parts({n: map_leaves(function, part) for n, part in self._parts.items()})


def _ragged(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of a row of a ragged tensor for that of a dense tensor."""
    if type(spec) is tf.TensorSpec and spec.shape.rank:
        return tf.RaggedTensorSpec(spec.shape, spec.dtype, ragged_rank=0)
    return as_row(spec)


def _immutable(spec: DerivedSpec, name: str, what: str) -> ImmutableError:
    cls = type(spec).__qualname__
    at = f"{cls}.{name}"
    fix = f"Make a new spec: {cls}(...)."
    return ImmutableError(at, f"no {what}, because specs are immutable", f"{what} of {name!r}", fix)


def parts_of(spec: DerivedSpec) -> Mapping[str, Part]:
    """Returns the frozen parts of a spec by name; the names may be those of an older version."""
    # Not a method, because a public name could conflict with a field.
    return spec._parts


def check_names(cls: type[DerivedSpec], parts: Mapping[str, Part]) -> None:
    """Raises unless there is one part for each field of a spec."""
    listed = ", ".join(cls.field_names)
    for name in cls.field_names:
        if name not in parts:
            at = f"{cls.__qualname__}.{name}"
            fix = f"A {cls.__qualname__} has the fields {listed}."
            raise FieldError(at, "a spec or static data for this field", "no argument", fix)
    for name in parts:
        if name not in cls.field_names:
            at = f"{cls.__qualname__}.{name}"
            raise FieldError(at, f"one of the fields {listed}", repr(name), "Check the spelling.")


def _unpickle(cls: type[DerivedSpec], parts: Mapping[str, Part]) -> DerivedSpec:
    # Arrays that pickle or deepcopy restored are writeable: freeze them again.
    return cls.from_parts({name: freeze(part, name, is_spec) for name, part in parts.items()})


def _components_of_fields(
    spec: DerivedSpec,
    parts: Mapping[str, Part],
    checked: Mapping[str, bool],
    given: Mapping[str, Nest],
) -> dict[str, Value]:
    """Returns the components of a dict of fields, by the names that the spec has for them.

    Args:
        spec: The spec of the declared type.
        parts: Its parts by name.
        checked: Whether the static data of a field is compared, by name.
        given: The dict. A field with a default may be missing, if its default is that of the spec.
            A component of a container may be given by its own name: `columns[0]`.

    Raises:
        DTypeError: If a field is missing or unknown, or its static data differs (also a TypeError).
        StructureError: If a container has another structure (also a ValueError).
    """
    cls = type(spec).__qualname__
    components: dict[str, Value] = {}
    used = set[str]()
    missing: list[str] = []
    for name, part in parts.items():
        inner = [each for each in spec.component_specs if each.partition("[")[0] == name]
        if name in given:
            used.add(name)
            found = dict(_match(part, given[name], name, cls, checked[name]))
        else:
            used.update(each for each in inner if each in given)
            found = {each: given[each] for each in inner if each in given}
            if len(found) < len(inner):
                missing.append(f"{name!r}: ...")
            elif not inner and checked[name] and not _is_default(spec.value_type, name, part):
                missing.append(f"{name!r}: {_show(part)}")
        components.update(found)
    unknown = [name for name in given if name not in used]
    if missing or unknown:
        received = f"a dict with {', '.join(map(str, given)) or '0 fields'}"
        fix = " ".join(
            [f"Add {', '.join(missing)}."] * bool(missing)
            + [f"Leave out {', '.join(map(str, unknown))}."] * bool(unknown)
        )
        raise DTypeError(cls, f"a dict with the fields {', '.join(parts)}", received, fix)
    return components


def _match(
    part: Part, value: Nest, name: str, cls: str, is_checked: bool
) -> Iterator[tuple[str, Value]]:
    """Yields the components in a field, and raises where its static data differs."""
    if isinstance(part, tf.TypeSpec):
        yield name, value
    elif not _has_tensors(part):
        if is_checked and not _is_equal(part, value):
            fix = "Convert the value, or give the spec of values with this static data."
            raise DTypeError(f"{cls}.{name}", _show(part), repr(value)[:60], fix)
    elif isinstance(part, tuple) and type(part) is not FrozenPartial:
        if not isinstance(value, (list, tuple)) or len(value) != len(part):
            raise _other_structure(f"a sequence of {len(part)}", value, f"{cls}.{name}")
        for i, (inner, item) in enumerate(zip(part, value, strict=True)):
            yield from _match(inner, item, f"{name}[{i}]", cls, is_checked)
    elif isinstance(part, FrozenDict):
        if not isinstance(value, Mapping) or value.keys() != part.keys():
            keys = ", ".join(map(repr, part))
            raise _other_structure(f"a dict with {keys}", value, f"{cls}.{name}")
        for k, inner in part.items():
            yield from _match(inner, value[k], f"{name}[{k!r}]", cls, is_checked)


def _has_tensors(part: Part) -> bool:
    items = part.values() if isinstance(part, FrozenDict) else part
    is_container = isinstance(part, (tuple, FrozenDict))
    return isinstance(part, tf.TypeSpec) or (is_container and any(map(_has_tensors, items)))


def _is_default(cls: type, name: str, part: Part) -> bool:
    parameter = inspect.signature(cls).parameters.get(name)
    return parameter is not None and _is_equal(part, parameter.default)


def _is_equal(part: Part, value: Nest) -> bool:
    own = part.spec if isinstance(part, Static) else part
    return key(own) == key(freeze(value, "value", is_tensor_like))


def _show(part: Part) -> str:
    return repr(thaw(part.spec if isinstance(part, Static) else part, lambda leaf: leaf))[:60]


def _other_structure(expected: str, value: object, path: str) -> StructureError:
    received = repr(value)[:60]
    return StructureError(path, expected, received, "Give the field as the constructor takes it.")
