"""Stand-ins for values in files whose classes are not imported."""

# TensorFlow calls private methods of specs; stand-ins use private attributes of each other.

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._auto.spec import AutoSpec
from extensor._declare import static_data
from extensor._declare.derived_spec import DerivedSpec, leaves_of
from extensor._declare.static_data import Code, Part
from extensor._protocol.casting import cast_components, not_castable
from extensor._protocol.spec import TypeSpec
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._protocol.tree import with_items
from extensor._tf import DOTLESS, BatchableTypeSpec, registered_name, registered_spec
from extensor._tf._tf_saving import import_first
from extensor._typing import Nest, Value
from extensor.errors import FormatError, ImmutableError, MissingTypeError, RegistrationError

# How datasets store the values of a type: as boxed components, as components without boxing, or in
# a form that the class defines.
_BOXED, _FLAT, _OWN = "boxed", "flat", "own"


class AnonymousValue:
    """A value whose class is not imported: its components and static data by name.

    Components are attributes with the names that the type gives them. The components of a tuple are
    `component_0`, `component_1` and so on. `components` holds all of them.
    """

    def __init__(self, spec: AnonymousSpec, components: Nest) -> None:
        self.__dict__.update(_spec=spec, components=components)

    def __tf_type_spec__(self) -> AnonymousSpec:
        """Returns the spec, which is also a stand-in."""
        return self.__dict__["_spec"]

    def __getattr__(self, name: str) -> Nest:
        spec = self.__dict__.get("_spec")
        if spec is None or name.startswith("_"):
            raise AttributeError(name)  # Python and TensorFlow ask for such names all the time
        named = spec.named(self.__dict__["components"])
        if name in named:
            return named[name]
        raise spec.missing(f"a class with the attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        at = f"{self._spec.shown_name}.{name}"
        expected = "no assignment to an immutable value"
        fix = "Import the class and create a new value."
        raise ImmutableError(at, expected, f"an assignment to {name!r}", fix)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._spec.named(self.components)]

    def __repr__(self) -> str:
        return self._spec.shown(self.components)


class AnonymousSpec(TypeSpec):
    """The spec of a type whose class is not imported.

    Args:
        name: The name under which the spec class is registered when it is imported.
        module: The module that defines the class.
        state: The serialization of the spec.
        component_specs: The specs of the components.
        boxing: How datasets store the values.
    """

    def __init__(
        self, name: str, module: str, state: Nest, component_specs: Nest, boxing: str
    ) -> None:
        self.name, self.module, self.state = name, module, state
        self._component_nest, self._boxing = component_specs, boxing

    @property
    def value_type(self) -> type:
        """The class of stand-ins."""
        return AnonymousValue

    @property
    def component_specs(self) -> Nest:
        """The specs of the components."""
        return self._component_nest

    def to_components(self, value: AnonymousValue) -> Nest:
        """Returns the components of a stand-in."""
        return value.components

    def from_components(self, components: Nest) -> AnonymousValue:
        """Returns a stand-in with the given components."""
        return AnonymousValue(self, components)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the arguments of the constructor."""
        return self.name, self.module, self.state, self._component_nest, self._boxing

    def cast(
        self, value: Value, casting_context: object | None = None, **request: Any
    ) -> AnonymousValue:
        """Returns a value as a stand-in, also a value of the class if it was imported later."""
        describe = getattr(value, "__tf_type_spec__", None)
        spec = None if describe is None else describe()
        if spec is None or registered_name(type(spec)) != self.name:
            return super().cast(value, casting_context)
        if self.castable_type(self._of(spec)) is None:
            raise not_castable(self, spec)
        components = cast_components(
            self.component_specs, spec.to_components(value), self.shown_name
        )
        return self.from_components(components)

    def _of(self, spec: TypeSpec) -> AnonymousSpec:
        """Returns a stand-in for a spec of the class, with stand-ins where this one has them."""
        return type(self)(
            self.name,
            self.module,
            _with_stand_ins(self.state, spec.serialize()),
            _with_stand_ins(self._component_nest, spec.component_specs),
            self._boxing,
        )

    @property
    def _extensor_saved_as(self) -> tuple[str, str, Nest]:
        """The name, the module and the state with which the spec is saved again."""
        return self.name, self.module, self.state

    def _extensor_resolved(self) -> tf.TypeSpec:
        """Returns the spec of the class if it is imported now, else this stand-in."""
        if registered_spec(self.name) is None:
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tf.TypeSpec.experimental_from_proto(self.experimental_as_proto())

    @property
    def shown_name(self) -> str:
        """The name that the author of the type chose."""
        return self.name.removeprefix(DOTLESS)

    @functools.cached_property
    def _fields(self) -> dict[str, Part]:
        return _fields_of_state(self.state) or {}

    def named(self, components: Nest) -> dict[str, Nest]:
        """Returns components and static data by name, in the order of the state."""
        named = {n: part for n, part in self._fields.items() if not any(leaves_of(part))}
        named.update(_by_name(components))
        order = {name: place for place, name in enumerate(self._fields)}
        # A file does not store the order of the components; `columns[0]` is one of `columns`.
        return dict(sorted(named.items(), key=lambda item: order.get(item[0].split("[")[0], -1)))

    def missing(self, needed: str) -> MissingTypeError:
        """Returns the error for an operation that needs the class."""
        received = "a stand-in, because the class is not imported"
        return MissingTypeError(self.shown_name, needed, received, import_first(self.module))

    def shown(self, components: Nest) -> str:
        """Returns the repr of a value with the given components."""
        inside = ", ".join(f"{name}={item!r}" for name, item in self.named(components).items())
        return f"<{self.shown_name}({inside}), defined in {self.module}, not imported>"

    # Methods that datasets and other APIs that stack values call.

    def _not_stackable(self) -> MissingTypeError:
        """Returns the error where values are stacked."""
        return self.missing("the class, which defines how its values stack")

    def _expect_boxes(self) -> None:
        """Raises where only the class knows how values are put into datasets."""
        if self._boxing == _OWN:
            raise self.missing("the class, which defines how its values are boxed")


class StackableAnonymousSpec(StackableTypeSpec, AnonymousSpec):
    """The spec of a type whose values stack component by component and whose class is missing."""


def _with_stand_ins(stand_ins: Nest, specs: Nest) -> Nest:
    """Returns a nest of specs with stand-ins at the positions where another nest has stand-ins."""
    if isinstance(stand_ins, AnonymousSpec) and isinstance(specs, tf.TypeSpec):
        same = registered_name(type(specs)) == stand_ins.name
        return stand_ins._of(specs) if same else specs
    if isinstance(specs, Mapping) and isinstance(stand_ins, Mapping):
        return {k: _with_stand_ins(stand_ins.get(k), item) for k, item in specs.items()}
    if isinstance(specs, (list, tuple)) and isinstance(stand_ins, (list, tuple)):
        items = [_with_stand_ins(a, b) for a, b in itertools.zip_longest(stand_ins, specs)]
        items = items[: len(specs)]
        return with_items(specs, items)
    return specs


def _by_name(components: Nest) -> dict[str, Nest]:
    if isinstance(components, Mapping):
        return {str(name): components[name] for name in sorted(components)}
    names = getattr(components, "_fields", None)
    if names is not None:
        return dict(zip(names, components, strict=True))
    if isinstance(components, (list, tuple)):
        return {f"component_{i}": item for i, item in enumerate(components)}
    return {"component": components}


def _fields_of_state(state: Nest) -> dict[str, Part] | None:
    """Returns the fields in the state of a declared or decorated class; None for other classes."""
    if not isinstance(state, tuple):
        return None
    fields = state[1:] if state and type(state[0]) is int else state
    parts: dict[str, Part] = {}
    for field in fields:
        if not (isinstance(field, tuple) and len(field) == 2 and isinstance(field[0], str)):
            return None
        name, code = field
        try:
            parts[name] = static_data.decode(_without_imports(code))
        except Exception:  # not encoded by extensor
            parts[name] = code
    return parts


def _without_imports(code: Code) -> Code:
    """Returns encoded static data in which objects of modules that are not imported are tuples."""
    if not isinstance(code, tuple) or not code:
        return code
    tag, *rest = code
    if tag in ("enum", "named", "callable") and rest[0] not in sys.modules:
        return ("tuple", *map(_without_imports, rest[2:])) if tag == "named" else ("tuple", *code)
    return (tag, *map(_without_imports, rest))


# The description of components in a file. Only the class could derive them from the state.


def description_of(spec: tf.TypeSpec) -> Nest:
    """Returns the description of a spec in a file, for processes that do not have its class.

    A component spec that is also in the state is stored as its index, so that each spec is written
    once, also if specs are nested.
    """
    state = spec.state if isinstance(spec, AnonymousSpec) else _tf.serialize(spec)
    specs = list(_specs_in(state))

    def index_or_spec(component_spec: tf.TypeSpec) -> int | tf.TypeSpec:
        return specs.index(component_spec) if component_spec in specs else component_spec

    return _boxing_of(spec), tf.nest.map_structure(index_or_spec, _tf.component_specs(spec))


def _specs_in(state: Nest) -> Iterator[tf.TypeSpec]:
    if isinstance(state, tf.TypeSpec):
        yield state
    elif isinstance(state, (list, tuple)):
        for item in state:
            yield from _specs_in(item)
    elif isinstance(state, Mapping):
        for key in sorted(state):
            yield from _specs_in(state[key])


_BOXES = ("to_boxed_tensor", "from_boxed_tensor", "boxed_tensor_spec", "stacked", "unstacked")
_STANDARD = (StackableTypeSpec, DerivedSpec, AutoSpec)


def _boxing_of(spec: tf.TypeSpec) -> str:
    if isinstance(spec, AnonymousSpec):
        return spec.serialize()[-1]
    if not isinstance(spec, BatchableTypeSpec):
        return _FLAT
    standard = [{getattr(base, name, None) for base in _STANDARD} for name in _BOXES]
    own = [getattr(type(spec), name, None) for name in _BOXES]
    return _BOXED if all(o in s for o, s in zip(own, standard, strict=True)) else _OWN


def stand_in(saved_as: tuple[str, str, Nest], description: Nest, num_tensors: int) -> AnonymousSpec:
    """Returns the stand-in for a spec whose class is not imported.

    Args:
        saved_as: The name, the module and the state.
        description: The result of `description_of`, or None if an earlier version saved the file.
        num_tensors: The number of tensors of a value.

    Raises:
        RegistrationError: If the file does not describe the components (also a ValueError).
        FormatError: If the description is damaged (also a ValueError).
    """
    name, module, state = saved_as
    if description is None:
        components, boxing = _components_of(state, name), _BOXED
        if components is None:
            at = name.removeprefix(DOTLESS)
            expected = "a registered TypeSpec, because the file does not describe its components"
            fix = import_first(module)
            raise RegistrationError(at, expected, "a name that is not registered", fix)
    else:
        boxing, indices = description
        specs = list(_specs_in(state))
        components = tf.nest.map_structure(
            lambda item: specs[item] if type(item) is int else item, indices
        )
    flat = tf.nest.flatten(components, expand_composites=True)
    if boxing not in (_BOXED, _FLAT, _OWN) or len(flat) != num_tensors:
        at = name.removeprefix(DOTLESS)
        expected = f"the specs of the {num_tensors} tensors of a value"
        fix = "The file is damaged: save the model again."
        raise FormatError(at, expected, f"{len(flat)} specs, and boxing {boxing!r}", fix)
    cls = StackableAnonymousSpec if boxing == _BOXED else AnonymousSpec
    return cls(*saved_as, components, boxing)


def _components_of(state: Nest, name: str) -> Nest:
    """Returns the component specs of a declared or decorated class, derived from its state."""
    parts = _fields_of_state(state)
    if parts is None:
        return None
    cls = _OfDecorated if name.endswith("_ACTTypeSpec") else _OfDeclared
    return cls.from_parts(parts).component_specs


class _OfDeclared(DerivedSpec):
    @property
    def value_type(self) -> type:
        return AnonymousValue


class _OfDecorated(AutoSpec):
    @property
    def value_type(self) -> type:
        return AnonymousValue
