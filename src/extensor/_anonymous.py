"""Stand-ins for values of types that a file holds and whose classes are not imported here."""

# What TensorFlow asks of any spec has private names, and so have the parts of a stand-in.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor._auto.spec import AutoSpec
from extensor._declare import static_data
from extensor._declare.derived_spec import DerivedSpec, leaves_of
from extensor._protocol.casting import cast_components, not_castable
from extensor._protocol.spec import TypeSpec
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._protocol.tree import rebuilt
from extensor._tf import DOTLESS, BatchableTypeSpec, registered_name, registered_spec
from extensor._tf._tf_saving import import_first
from extensor.errors import (
    FormatError,
    ImmutableError,
    MissingTypeError,
    RegistrationError,
)

# How the values of a type are put into datasets: as their components, boxed one by one; as their
# components, as they are; or in a way that only the class knows.
_BOXED, _FLAT, _OWN = "boxed", "flat", "own"


class AnonymousValue:
    """A value of a type whose class is not imported: its components, and its static data by name.

    Components are read as attributes, by the names that the type gives them; those of a tuple are
    `component_0`, `component_1` and so on. `components` has them all.
    """

    def __init__(self, spec: AnonymousSpec, components: Any) -> None:
        self.__dict__.update(_spec=spec, components=components)

    def __tf_type_spec__(self) -> Any:
        """Returns the spec, which is a stand-in too."""
        return self.__dict__["_spec"]

    def __getattr__(self, name: str) -> Any:
        spec = self.__dict__.get("_spec")
        if spec is None or name.startswith("_"):
            raise AttributeError(name)  # Python and TensorFlow ask for such names all the time
        named = spec.named(self.__dict__["components"])
        if name in named:
            return named[name]
        raise spec.missing(f"a class that has {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        raise ImmutableError(
            path=f"{self._spec.shown_name}.{name}",
            expected="no assignment, because extension values are immutable",
            received=f"one of {name!r}",
            mend="Make a new value by the class.",
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._spec.named(self.components)]

    def __repr__(self) -> str:
        return self._spec.shown(self.components)


class AnonymousSpec(TypeSpec):
    """The spec of a type whose class is not imported.

    Args:
        name: The name that the class is registered under where it is imported.
        module: The module that defines it.
        state: What its spec serialized.
        component_specs: The specs of its components.
        boxing: How its values are put into datasets.
    """

    def __init__(
        self, name: str, module: str, state: Any, component_specs: Any, boxing: str
    ) -> None:
        self.name, self.module, self.state = name, module, state
        self._component_nest, self._boxing = component_specs, boxing

    @property
    def value_type(self) -> type:
        """The class of stand-ins."""
        return AnonymousValue

    @property
    def component_specs(self) -> Any:
        """The specs of the components."""
        return self._component_nest

    def to_components(self, value: Any) -> Any:
        """Returns the components of a stand-in."""
        return value.components

    def from_components(self, components: Any) -> Any:
        """Returns a stand-in of the given components."""
        return AnonymousValue(self, components)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the arguments of the constructor."""
        return self.name, self.module, self.state, self._component_nest, self._boxing

    def cast(self, value: Any, casting_context: Any = None) -> Any:
        """Returns a value as a stand-in: also one of the class, if it was imported later."""
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

    def _of(self, spec: Any) -> AnonymousSpec:
        """Returns the stand-in for a spec of the class, in which there are stand-ins as in this."""
        return type(self)(
            self.name,
            self.module,
            _alike(self.state, spec.serialize()),
            _alike(self._component_nest, spec.component_specs),
            self._boxing,
        )

    @property
    def _extensor_saved_as(self) -> tuple[str, str, Any]:
        """The name, the module and the state under which the type is saved again."""
        return self.name, self.module, self.state

    def _extensor_resolved(self) -> tf.TypeSpec:
        """Returns the spec of the class if it is imported by now, else this one."""
        if registered_spec(self.name) is None:
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tf.TypeSpec.experimental_from_proto(self.experimental_as_proto())

    @property
    def shown_name(self) -> str:
        """The name as the author of the type gave it."""
        return self.name.removeprefix(DOTLESS)

    @functools.cached_property
    def _fields(self) -> dict[str, Any]:
        return _parts(self.state) or {}

    def named(self, components: Any) -> dict[str, Any]:
        """Returns components by name, and between them the static data that the state names."""
        named = {n: part for n, part in self._fields.items() if not any(leaves_of(part))}
        named.update(_by_name(components))
        order = {name: place for place, name in enumerate(self._fields)}
        # A file keeps no order of the components.
        return dict(sorted(named.items(), key=lambda item: order.get(_field_of(item[0]), -1)))

    def missing(self, needed: str) -> MissingTypeError:
        """Returns the error for what only the class knows."""
        return MissingTypeError(
            path=self.shown_name,
            expected=needed,
            received="a stand-in with its components, because the class is not imported",
            mend=import_first(self.module),
        )

    def shown(self, components: Any) -> str:
        """Returns the repr of a value with the given components."""
        inside = ", ".join(f"{name}={item!r}" for name, item in self.named(components).items())
        return f"<{self.shown_name}({inside}), defined in {self.module}, not imported>"

    # What datasets ask of a spec, and whatever else stacks values.

    def _batch(self, batch_size: int | None) -> Any:
        raise self._does_not_stack()

    def _unbatch(self) -> Any:
        raise self._does_not_stack()

    def _to_batched_tensor_list(self, value: Any) -> Any:
        raise self._does_not_stack()

    def _does_not_stack(self) -> MissingTypeError:
        return self.missing("a class that knows how its values stack")

    @property
    def _flat_tensor_specs(self) -> Any:
        self._expect_boxing()
        return super()._flat_tensor_specs

    def _to_tensor_list(self, value: Any) -> Any:
        self._expect_boxing()
        return super()._to_tensor_list(value)

    def _from_compatible_tensor_list(self, tensor_list: Any) -> Any:
        self._expect_boxing()
        return super()._from_compatible_tensor_list(tensor_list)

    def _expect_boxing(self) -> None:
        if self._boxing == _OWN:
            raise self.missing("a class that knows how its values are put into datasets")


class StackableAnonymousSpec(StackableTypeSpec, AnonymousSpec):
    """The same of a type whose values stack component by component."""


def _alike(stand_ins: Any, specs: Any) -> Any:
    """Returns what holds specs, with stand-ins for those that another of its kind has them for."""
    if isinstance(stand_ins, AnonymousSpec) and isinstance(specs, tf.TypeSpec):
        same = registered_name(type(specs)) == stand_ins.name
        return stand_ins._of(specs) if same else specs
    if isinstance(specs, Mapping) and isinstance(stand_ins, Mapping):
        return {k: _alike(stand_ins.get(k), item) for k, item in specs.items()}
    if isinstance(specs, (list, tuple)) and isinstance(stand_ins, (list, tuple)):
        items = [_alike(a, b) for a, b in itertools.zip_longest(stand_ins, specs)]
        items = items[: len(specs)]
        return rebuilt(specs, items)
    return specs


def _by_name(components: Any) -> dict[str, Any]:
    if isinstance(components, Mapping):
        return {str(name): components[name] for name in sorted(components)}
    names = getattr(components, "_fields", None)
    if names is not None:
        return dict(zip(names, components, strict=True))
    if isinstance(components, (list, tuple)):
        return {f"component_{i}": item for i, item in enumerate(components)}
    return {"component": components}


def _field_of(name: str) -> str:
    """Returns the field that a component is named after: `columns` of `columns[0]`."""
    return name.partition("[")[0]


def _parts(state: Any) -> dict[str, Any] | None:
    """Returns the frozen parts in the state of a declared or decorated class, or None."""
    if not isinstance(state, tuple):
        return None
    fields = state[1:] if state and type(state[0]) is int else state
    parts: dict[str, Any] = {}
    for field in fields:
        if not (isinstance(field, tuple) and len(field) == 2 and isinstance(field[0], str)):
            return None
        name, code = field
        try:
            parts[name] = static_data.decode(_without_imports(code))
        except Exception:  # no code of ours
            parts[name] = code
    return parts


def _without_imports(code: Any) -> Any:
    """Returns a code of static data, with tuples for what modules have that are not imported."""
    if not isinstance(code, tuple) or not code:
        return code
    tag, *rest = code
    if tag in ("enum", "named", "callable") and rest[0] not in sys.modules:
        return ("tuple", *map(_without_imports, rest[2:])) if tag == "named" else ("tuple", *code)
    return (tag, *map(_without_imports, rest))


# What is saved of the components, because only the class could tell them from the state.


def described(spec: Any) -> Any:
    """Returns what a file holds of a spec for those who do not have its class.

    A component spec that is in the state too is a number there: what is in a spec is written once,
    however deep specs are nested.
    """
    state = spec.state if isinstance(spec, AnonymousSpec) else spec._serialize()
    specs = list(_specs_in(state))

    def place(component_spec: Any) -> Any:
        return specs.index(component_spec) if component_spec in specs else component_spec

    return _boxing_of(spec), tf.nest.map_structure(place, spec._component_specs)


def _specs_in(state: Any) -> Iterator[tf.TypeSpec]:
    if isinstance(state, tf.TypeSpec):
        yield state
    elif isinstance(state, (list, tuple)):
        for item in state:
            yield from _specs_in(item)
    elif isinstance(state, Mapping):
        for key in sorted(state):
            yield from _specs_in(state[key])


_BOXES = ("to_boxed_tensor", "from_boxed_tensor", "boxed_tensor_spec", "stacked", "unstacked")
_USUAL = (StackableTypeSpec, DerivedSpec, AutoSpec)


def _boxing_of(spec: Any) -> str:
    if isinstance(spec, AnonymousSpec):
        return spec.serialize()[-1]
    if not isinstance(spec, BatchableTypeSpec):
        return _FLAT
    usual = [{getattr(base, name, None) for base in _USUAL} for name in _BOXES]
    own = [getattr(type(spec), name, None) for name in _BOXES]
    return _BOXED if all(o in u for o, u in zip(own, usual, strict=True)) else _OWN


def stand_in(saved_as: tuple[str, str, Any], description: Any, num_tensors: int) -> Any:
    """Returns the spec that stands in for one of a class that is not imported.

    Args:
        saved_as: The name, the module and the state.
        description: What `described` returned, or None if an earlier version saved it.
        num_tensors: How many tensors a value has.

    Raises:
        RegistrationError: If what was saved does not tell the components (also a ValueError).
        FormatError: If it is damaged (also a ValueError).
    """
    name, module, state = saved_as
    if description is None:
        components, boxing = _components_of(state, name), _BOXED
        if components is None:
            raise RegistrationError(
                path=name.removeprefix(DOTLESS),
                expected="a TypeSpec of this name, which is saved here without its components",
                received="a process that has registered none",
                mend=import_first(module),
            )
    else:
        boxing, places = description
        specs = list(_specs_in(state))
        components = tf.nest.map_structure(
            lambda place: specs[place] if type(place) is int else place, places
        )
    flat = tf.nest.flatten(components, expand_composites=True)
    if boxing not in (_BOXED, _FLAT, _OWN) or len(flat) != num_tensors:
        raise FormatError(
            path=name.removeprefix(DOTLESS),
            expected=f"the specs of {num_tensors} tensors, of which a value is made",
            received=f"{len(flat)}",
            mend="Save the model again: this file is damaged.",
        )
    return _anonymous(saved_as, components, boxing)


def _anonymous(saved_as: tuple[str, str, Any], components: Any, boxing: str) -> AnonymousSpec:
    cls = StackableAnonymousSpec if boxing == _BOXED else AnonymousSpec
    return cls(*saved_as, components, boxing)


def _components_of(state: Any, name: str) -> Any:
    """Returns the component specs of a declared or decorated class, which follow from its state."""
    parts = _parts(state)
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
