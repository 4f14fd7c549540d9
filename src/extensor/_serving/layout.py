"""Which tensors the values of a nest are made of, and under which names they go."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._declare.derived_spec import DerivedSpec, parts_of
from extensor._path import Path
from extensor._protocol.casting import cast_value, not_castable
from extensor._serving.name import names_of
from extensor._struct.dense import DenseStructuredTensorSpec
from extensor._struct.ragged import RaggedStructuredTensorSpec
from extensor._tf import VariableSpec, component_specs, describes
from extensor.errors import DTypeError, FieldError, StructureError, UnsupportedTypeError

RAGGED = ("row_splits", "row_lengths")
"""How rows of differing lengths may be told, as a choice for all of a layout."""

Names = tuple[str, ...]


@dataclass(frozen=True)
class Component:
    """One of the tensors that values are made of.

    >>> layout = xt.serving.Layout({"tags": tf.RaggedTensorSpec([None, None], tf.string)})
    >>> for c in layout.components:
    ...     print(c.name, c.path, c.part or "-", c.spec.dtype.name)
    tags tags - string
    tags___row_splits tags row_splits int64
    """

    name: str
    """What it is called in a signature and in a request."""

    path: Path
    """Where it stands: the argument or the key of the result, and the fields below."""

    part: str
    """The empty text for a field's own values. `row_splits` or `row_lengths` if it tells how a
    field's rows are cut; of lists in lists those of the inner ones end with `_1`, `_2` and so on.
    `rows` if it counts records without fields."""

    spec: tf.TensorSpec
    """Its shape and dtype."""


class Layout:
    """The names of all the tensors in a nest of values, in and out.

    Args:
        structure: A nest of TypeSpecs: dicts, lists, tuples and namedtuples. What else stands in
            it is static: it has no tensors and every decoded nest has it. The items of an outermost
            dict or namedtuple are named by their keys, those of a list or tuple, or a single one,
            `output_0` and so on.
        ragged: Whether ragged rows are told by their `row_splits`, as TensorFlow keeps them, or by
            their `row_lengths`.

    Raises:
        UnsupportedTypeError: If a component is a variable, or something that is sent to no server
            (also a TypeError).

    >>> layout = xt.serving.Layout({"tags": tf.RaggedTensorSpec([None, None], tf.string)},
    ...                            ragged="row_lengths")
    >>> tensors = layout.encode({"tags": tf.ragged.constant([["quick", "sweet"], []])})
    >>> tensors["tags"].numpy(), tensors["tags___row_lengths"].numpy()
    (array([b'quick', b'sweet'], dtype=object), array([2, 0]))
    >>> layout.decode(tensors)
    {'tags': <tf.RaggedTensor [[b'quick', b'sweet'], []]>}
    """

    def __init__(self, structure: Any, ragged: str = "row_splits") -> None:
        if ragged not in RAGGED:
            raise StructureError(
                path="ragged",
                expected=" or ".join(map(repr, RAGGED)),
                received=repr(ragged),
                mend="Leave it out for the row splits that TensorFlow itself keeps.",
            )
        self._structure = structure
        self._ragged = ragged
        found = [
            tensor
            for names, leaf in _leaves(structure)
            if isinstance(leaf, tf.TypeSpec)
            for tensor in _tensors(leaf, names, 0)
        ]
        places = [(Path(*place.names), self._part(place)) for place, _ in found]
        twice = next((place for place, count in Counter(places).items() if count > 1), None)
        if twice is not None:
            raise StructureError(
                path=twice[0],
                expected="a path of its own for every tensor",
                received="two tensors of one path",
                mend="Use strings as keys, and names that differ.",
            )
        self._components = {
            place: Component(name, path, part, _sent(spec, part))
            for name, (path, part), (place, spec) in zip(
                names_of(places), places, found, strict=True
            )
        }

    @property
    def structure(self) -> Any:
        """The nest of specs."""
        return self._structure

    @property
    def ragged(self) -> str:
        """How ragged rows are told: `row_splits` or `row_lengths`."""
        return self._ragged

    @property
    def components(self) -> tuple[Component, ...]:
        """The tensors, in the order of the nest."""
        return tuple(self._components.values())

    def __repr__(self) -> str:
        return f"Layout({', '.join(component.name for component in self.components)})"

    def encode(self, values: Any, optional: Collection[str] = ()) -> dict[str, Any]:
        """Returns the tensors of a nest of values by their names.

        Args:
            values: A nest of the structure that the layout describes, of values or of what can be
                cast to them: lists and arrays for tensors, dicts for records.
            optional: The keys of an outermost dict that may be missing.

        Raises:
            DTypeError: If a value cannot be cast to the type of its spec (also a TypeError).
            StructureError: If the nest has another structure, or a tensor another shape (also a
                ValueError).
        """
        structure = self._structure
        if optional:
            structure = {k: s for k, s in structure.items() if k in values or k not in optional}
        tensors: dict[str, Any] = {}
        for names, spec, value in typed_leaves(structure, values):
            parts = _tensors_of(spec, value, str(Path(*names)))
            for (place, _), tensor in zip(_tensors(spec, names, 0), parts, strict=True):
                component = self._components[place]
                tensors[component.name] = (
                    tensor[1:] - tensor[:-1] if _is_lengths(component) else tensor
                )
        return tensors

    def decode(self, tensors: Mapping[str, Any]) -> Any:
        """Returns the nest of values that tensors of these names make.

        Args:
            tensors: For each name a tensor, or an array or list that converts to one, as a
                response in JSON has it.

        Raises:
            FieldError: If a name is missing, or means nothing here (also a KeyError).
            DTypeError: If a tensor has another dtype (also a TypeError).
            StructureError: If one has another shape (also a ValueError).
        """
        unknown = tensors.keys() - {component.name for component in self.components}
        if unknown:
            raise _wrong_names(min(unknown), "the name of a tensor of the signature", "another one")
        ready = iter([_received(component, tensors) for component in self.components])
        leaves = [
            leaf.from_tensors(ready) if isinstance(leaf, tf.TypeSpec) else leaf
            for leaf in tf.nest.flatten(self._structure)
        ]
        return tf.nest.pack_sequence_as(self._structure, leaves)

    def _part(self, place: _Place) -> str:
        if place.part != "row_splits":
            return place.part
        return f"{self._ragged}_{place.level}" if place.level else self._ragged


def _sent(spec: tf.TensorSpec, part: str) -> tf.TensorSpec:
    """Returns the spec of what is sent for a tensor."""
    if not part.startswith("row_lengths"):
        return tf.TensorSpec(spec.shape, spec.dtype)
    nsplits = spec.shape[0]
    return tf.TensorSpec([None if nsplits is None else nsplits - 1], spec.dtype)


def _is_lengths(component: Component) -> bool:
    return component.part.startswith("row_lengths")


def _received(component: Component, tensors: Mapping[str, Any]) -> Any:
    if component.name not in tensors:
        raise _wrong_names(component.name, "a tensor of this name", "none")
    [tensor] = _tensors_of(component.spec, tensors[component.name], component.name)
    if _is_lengths(component):
        return tf.concat([tf.zeros([1], tensor.dtype), tf.cumsum(tensor)], axis=0)
    return tensor


def typed_leaves(structure: Any, values: Any) -> Iterator[tuple[Names, Any, Any]]:
    """Yields names, spec and value of each leaf of a nest that is not static.

    Args:
        structure: A nest of specs, and of static data.
        values: A nest of the same structure.

    Raises:
        StructureError: If it has another structure (also a ValueError).
    """
    for (names, spec), value in zip(
        _leaves(structure), _matched(structure, values, ()), strict=True
    ):
        if isinstance(spec, tf.TypeSpec):
            yield names, spec, value


def _leaves(structure: Any) -> Iterator[tuple[Names, Any]]:
    """Yields the leaves of a nest with their names, in the order of `tf.nest`."""
    inner = _items(structure)
    if inner is None:
        yield ("output_0",), structure
    elif isinstance(structure, Mapping) or hasattr(structure, "_fields"):
        yield from _below(structure, ())
    else:
        for name, item in inner:
            yield from _below(item, (f"output_{name}",))


def _below(structure: Any, names: Names) -> Iterator[tuple[Names, Any]]:
    inner = _items(structure)
    if inner is None:
        yield names, structure
    else:
        for name, item in inner:
            yield from _below(item, (*names, name))


def _items(structure: Any) -> list[tuple[str, Any]] | None:
    """Returns the items of one container of a nest with their names; None if it is a leaf."""
    if isinstance(structure, Mapping):
        return [(_text(key), structure[key]) for key in sorted(structure)]
    if isinstance(structure, (list, tuple)):
        names: Any = getattr(structure, "_fields", None) or map(str, range(len(structure)))
        return list(zip(names, structure, strict=True))
    if tf.nest.is_nested(structure):
        raise UnsupportedTypeError(
            path="structure",
            expected="dicts, lists, tuples and namedtuples",
            received=type(structure).__name__,
            mend="Take and return one of these.",
        )
    return None


def _text(key: Any) -> str:
    if isinstance(key, enum.Enum):
        return key.name
    return key if isinstance(key, str) else repr(key)


class _Place(NamedTuple):
    names: Names
    part: str
    level: int


def _tensors(spec: Any, names: Names, level: int) -> Iterator[tuple[_Place, tf.TensorSpec]]:
    """Yields the place and spec of each tensor of a value, in the order of `tf.nest`.

    Args:
        spec: The spec of the value.
        names: Where it stands.
        level: How many times it was cut into rows already, under the same names.
    """
    if isinstance(spec, VariableSpec):
        raise _not_sent(names, "a variable")
    if isinstance(spec, tf.TensorSpec):
        if spec.dtype in (tf.resource, tf.variant):
            raise _not_sent(names, f"a tensor of dtype {spec.dtype.name}")
        yield _Place(names, "", level), spec
    elif isinstance(spec, tf.RaggedTensorSpec):
        values, *splits = component_specs(spec)
        yield from _tensors(values, names, level + len(splits))
        for i, one in enumerate(splits):
            yield _Place(names, "row_splits", level + i), one
    elif isinstance(spec, RaggedStructuredTensorSpec):
        yield from _tensors(spec.values_spec, names, level if spec.is_row else level + 1)
        if not spec.is_row:
            yield _Place(names, "row_splits", level), spec.component_specs[1]
    elif isinstance(spec, DenseStructuredTensorSpec) and not spec.field_specs:
        yield _Place(names, "rows", level), spec.component_specs[0]
    else:
        for below, one in components(spec):
            yield from _tensors(one, (*names, *below), 0 if below else level)


def _not_sent(names: Names, received: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        path=Path(*names),
        expected="tensors of numbers, strings or booleans, which a server can be sent",
        received=received,
        mend="Keep it in the module, and take or return its value.",
    )


def components(spec: Any) -> list[tuple[Names, Any]]:
    """Returns the specs of a value's components with their names, in the order of `tf.nest`."""
    specs = component_specs(spec)
    if isinstance(spec, DenseStructuredTensorSpec) and spec.field_specs:
        return [((name,), spec.field_specs[name]) for name in sorted(spec.field_specs)]
    if isinstance(spec, tf.SparseTensorSpec):
        return list(zip([("indices",), ("values",), ("dense_shape",)], specs, strict=True))
    if isinstance(spec, tf.IndexedSlicesSpec):
        return list(zip([("values",), ("indices",), ("dense_shape",)], specs, strict=False))
    if isinstance(spec, DerivedSpec) and isinstance(specs, dict):
        parts = parts_of(spec).items()
        names = {k: n for f, part in parts for k, n in _keys(part, f, (f,)) if k in specs}
        return [leaf for k in sorted(specs) for leaf in _below(specs[k], names.get(k, (k,)))]
    if describes(spec, tf.experimental.ExtensionType):
        found = [leaf for name, part in vars(spec).items() for leaf in _below(part, (name,))]
        return [(names, leaf) for names, leaf in found if isinstance(leaf, tf.TypeSpec)]
    return list(_below(specs, ()))


def _keys(part: Any, key: str, names: Names) -> Iterator[tuple[str, Names]]:
    """Yields the keys that a derived spec gives to components, with the names that make them."""
    if isinstance(part, tuple):
        fields: Any = getattr(part, "_fields", None) or range(len(part))
        for i, (name, item) in enumerate(zip(fields, part, strict=True)):
            yield from _keys(item, f"{key}[{i}]", (*names, str(name)))
    elif isinstance(part, Mapping):
        for k, item in part.items():
            yield from _keys(item, f"{key}[{k!r}]", (*names, _text(k)))
    else:
        yield key, names


def _matched(structure: Any, values: Any, names: Names) -> Iterator[Any]:
    """Yields the values that stand in a nest where a nest of specs has its leaves."""
    inner = _items(structure)
    if inner is None:
        yield values
        return
    own = _items(values)
    if own is None or [name for name, _ in own] != [name for name, _ in inner]:
        raise StructureError(
            path=Path(*names) if names else "values",
            expected=f"a {type(structure).__name__} with {', '.join(n for n, _ in inner)}",
            received=type(values).__name__
            if own is None
            else f"a {type(values).__name__} with {', '.join(n for n, _ in own)}",
            mend="Give a nest like the one that the signature was made for.",
        )
    for (name, item), (_, value) in zip(inner, own, strict=True):
        yield from _matched(item, value, (*names, name))


def _tensors_of(spec: Any, value: Any, path: str) -> list[Any]:
    try:
        value = cast_value(spec, value, path)
    except (DTypeError, FieldError, StructureError) as error:
        if error.path == path:
            raise
        # A spec knows where in the value something is wrong, but not where the value stands.
        raise type(error)(
            path=f"{path}: {error.path}",
            expected=error.expected,
            received=error.received,
            mend=error.mend,
        ) from error
    if not spec.is_compatible_with(value):
        raise not_castable(spec, value, path)
    return spec.to_tensors(value)


def _wrong_names(name: str, expected: str, received: str) -> FieldError:
    return FieldError(
        path=name,
        expected=expected,
        received=received,
        mend="Give all tensors of the signature, and no other.",
    )
