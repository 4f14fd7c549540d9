"""The laws of specs: serialization, equality, compatibility."""

from __future__ import annotations

import enum
import io
import itertools
import pickle
import sys
import warnings
from typing import Any

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._testing.law import BreachError, expect, law
from extensor._testing.subject import StrangerSpec, Subject, common_spec, spec_of
from extensor._testing.variation import alike, generalise, open_axes, twin

_ALLOWED = (bool, int, float, str, type(None), tf.DType, tf.TensorShape, tf.TypeSpec, np.ndarray)

_STATIC = (*_ALLOWED, bytes, enum.Enum)

_EQUALITY = "Remove __eq__, __ne__ and __hash__: the defaults use serialize()."
_COMPATIBLE = "Remove is_compatible_with: the default uses serialize()."
_MERGE = "Remove most_specific_compatible_type: the default uses serialize()."


@law("spec-has-repr", fix="Remove __repr__, or show only what the constructor stores.")
def spec_has_repr(subject: Subject) -> None:
    """The repr of a spec returns a string."""
    for spec in subject.specs:
        repr(spec)


@law(
    "spec-is-stable",
    "spec-has-repr",
    fix="Create the spec only from the static parts of the value.",
)
def spec_is_stable(subject: Subject) -> None:
    """A value returns the same TypeSpec every time."""
    for value, spec in subject.pairs:
        again = spec_of(value)
        expect(alike(spec, again), f"{spec} the second time too", again)


# Serialization.


@law(
    "serialization-types",
    "spec-is-stable",
    fix="Serialize other data as a tuple of these types, and rebuild it in deserialize.",
)
def serialization_types(subject: Subject) -> None:
    """A serialization contains only bool, int, float, str, None, tf.DType, tf.TensorShape,
    TypeSpecs, np.ndarray, and tuples, namedtuples, dicts and OrderedDicts of them.
    """  # noqa: D205 - the docstring is the statement of the law

    def parts(part: object) -> None:
        if isinstance(part, dict):
            part = (*part.keys(), *part.values())
        if isinstance(part, tuple):
            for item in part:
                parts(item)
        elif not isinstance(part, _ALLOWED) or isinstance(part, enum.Enum):
            raise BreachError("only parts of the allowed types", f"a {type(part).__name__}")

    for spec in subject.specs:
        serialization = _tf.serialize(spec)
        expect(isinstance(serialization, tuple), "a tuple", f"a {type(serialization).__name__}")
        parts(serialization)


@law(
    "serialization-round-trip",
    "serialization-types",
    fix="Return the arguments of the constructor from serialize(), in their order, or override "
    "deserialize too.",
)
def serialization_round_trip(subject: Subject) -> None:
    """A deserialized spec is equal to the original and has the same static attributes."""
    for spec in subject.specs:
        again = twin(spec)
        expect(alike(spec, again), str(spec), again)
        attributes = _static_attributes(spec)
        for name, received in _static_attributes(again).items():
            part = attributes.get(name, received)
            expect(_agree(part, received), f"{name} {part!r}", repr(received))
        expect(
            alike(_tf.component_specs(spec), _tf.component_specs(again)),
            f"the component specs {_tf.component_specs(spec)}",
            _tf.component_specs(again),
        )


def _static_attributes(spec: tf.TypeSpec) -> dict[str, Any]:
    """Returns the public attributes of a spec that hold static data."""

    def is_static(part: object) -> bool:
        if isinstance(part, dict):
            return all(map(is_static, part.values()))
        if isinstance(part, (list, tuple, set, frozenset)):
            return all(map(is_static, part))
        return isinstance(part, _STATIC)

    attributes = getattr(spec, "__dict__", {})
    return {n: part for n, part in attributes.items() if n[:1] != "_" and is_static(part)}


def _agree(a: object, b: object) -> bool:
    """Returns whether two attributes are equal; a list may equal a tuple or a TensorShape."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_agree, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_agree(a[k], b[k]) for k in a)
    return alike(a, b) or bool(np.all(a == b))


class _Pickler(pickle.Pickler):
    """Pickles local classes by reference, because pickle cannot look them up by name."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.local: list[type] = []

    def persistent_id(self, obj: object) -> int | None:
        if not isinstance(obj, type):
            return None
        found: Any = sys.modules.get(obj.__module__)
        for name in obj.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is obj:
            return None
        self.local.append(obj)
        return len(self.local) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, pickler: _Pickler, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self._local = pickler.local

    def persistent_load(self, pid: int) -> type:
        return self._local[pid]


@law(
    "pickle-round-trip",
    "serialization-round-trip",
    fix="Remove __reduce__: the default uses serialize().",
)
def pickle_round_trip(subject: Subject) -> None:
    """A spec that is pickled and unpickled is equal to the original."""
    for spec in subject.specs:
        stream = io.BytesIO()
        pickler = _Pickler(stream)
        pickler.dump(spec)
        stream.seek(0)
        again = _Unpickler(pickler, stream).load()
        expect(alike(spec, again), str(spec), again)


# Equality.


@law("equality-is-equivalence", "serialization-round-trip", fix=_EQUALITY)
def equality_is_equivalence(subject: Subject) -> None:
    """Specs with equal serializations are equal; equality is symmetric and transitive, and false
    for objects of other types.
    """  # noqa: D205
    for spec in subject.specs:
        for same in (spec, twin(spec)):
            expected = f"{spec} equal to a spec with the same serialization"
            expect(spec == same, expected, "inequality")
        for other in (None, object(), StrangerSpec()):
            expect(not (spec == other), f"{spec} not equal to a {type(other).__name__}", "equality")  # noqa: SIM201
    equal = [[a == b for b in subject.pool] for a in subject.pool]
    pool = list(enumerate(subject.pool))
    for (i, a), (j, b) in itertools.product(pool, repeat=2):
        expected = "the same result for {} == {} in both orders"
        expect(equal[i][j] == equal[j][i], expected, "different results", a, b)
    for (i, a), (j, b), (k, c) in itertools.product(pool, repeat=3):
        holds = equal[i][k] or not (equal[i][j] and equal[j][k])
        expect(holds, "{} equal to {}, because both are equal to {}", "inequality", a, c, b)


@law("hash-follows-equality", "equality-is-equivalence", fix=_EQUALITY)
def hash_follows_equality(subject: Subject) -> None:
    """Equal specs have equal hashes."""
    for a, b in itertools.product(subject.pool, repeat=2):
        if a == b:
            expect(hash(a) == hash(b), f"the same hash for equal specs {a}", "different hashes")


@law("equality-tells-components-apart", "equality-is-equivalence", fix=_EQUALITY)
def equality_tells_components_apart(subject: Subject) -> None:
    """Equal specs have equal component specs: the same structure, dtypes and shapes."""
    for a, b in subject.variations:
        holds = a != b or alike(_tf.component_specs(a), _tf.component_specs(b))
        if not holds:
            expected = f"{a} not equal to a spec with the components {_tf.component_specs(b)}"
            raise BreachError(expected, "equality")


@law(
    "repr-shows-all",
    "equality-is-equivalence",
    fix="Remove __repr__, or show the class and every static part.",
)
def repr_shows_all(subject: Subject) -> None:
    """The repr of a spec contains its class name; different specs have different reprs."""
    shown = {id(spec): repr(spec) for spec in subject.specs}
    for spec in subject.specs:
        name = getattr(type(spec), "_public_name", type(spec).__name__)
        expect(name in shown[id(spec)], f"{name} in the repr", shown[id(spec)])
    for spec, other in subject.variations:
        holds = spec == other or shown[id(spec)] != repr(other)
        if not holds:
            expected = f"another repr for a spec with the serialization {_tf.serialize(other)}"
            raise BreachError(expected, f"the same repr {spec!r}")


@law("inequality-negates-equality", "equality-is-equivalence", fix=_EQUALITY)
def inequality_negates_equality(subject: Subject) -> None:
    """`a != b` is always `not a == b`."""
    for a, b in itertools.product((*subject.pool, StrangerSpec()), repeat=2):
        expected = "one of == and != for {} and {}"
        expect((a != b) is not (a == b), expected, "both or neither", a, b)


def _is_registered(part: object) -> bool:
    """Returns whether a spec and all specs in its serialization have registered names."""
    if isinstance(part, dict):
        part = tuple(part.values())
    if isinstance(part, tf.TypeSpec) and not isinstance(part, tf.TensorSpec):
        if _tf.registered_name(type(part)) is None:
            return False
        part = _tf.serialize(part)
    return not isinstance(part, (list, tuple)) or all(map(_is_registered, part))


@law(
    "proto-round-trip",
    "equality-is-equivalence",
    fix="A SavedModel returns a namedtuple as another class with the same name and fields, and an "
    "OrderedDict as a dict: accept these too in deserialize.",
    applies=lambda subject: all(map(_is_registered, subject.specs)),
)
def proto_round_trip(subject: Subject) -> None:
    """A registered spec is equal after conversion to a SavedModel's proto and back."""
    for spec in subject.specs:
        with warnings.catch_warnings():
            # TensorFlow warns for every registered spec that it writes its name into a file.
            warnings.simplefilter("ignore", UserWarning)
            proto = spec.experimental_as_proto()
        again = type(spec).experimental_from_proto(proto)
        expect(spec == again, str(spec), again)


# Compatibility.


@law("compatibility-is-reflexive", "serialization-round-trip", fix=_COMPATIBLE)
def compatibility_is_reflexive(subject: Subject) -> None:
    """A spec is compatible with itself, and with a spec of the same serialization."""
    for spec in subject.specs:
        for same in (spec, twin(spec)):
            expected = f"{spec} compatible with itself"
            expect(spec.is_compatible_with(same), expected, "incompatibility")


@law(
    "compatibility-takes-values",
    "serialization-types",
    fix="For a value, use its tf.type_spec_from_value, or " + _COMPATIBLE[0].lower()
    + _COMPATIBLE[1:],
)  # fmt: skip
def compatibility_takes_values(subject: Subject) -> None:
    """A spec is compatible with a value if and only if it is compatible with the value's spec."""
    for a, (value, b) in itertools.product(subject.specs, subject.pairs):
        wanted = a.is_compatible_with(b)
        expected = f"{a} {'' if wanted else 'in'}compatible with a value of {b}"
        expect(a.is_compatible_with(value) == wanted, expected, "another result than for the spec")


@law("compatibility-is-symmetric", "serialization-round-trip", fix=_COMPATIBLE)
def compatibility_is_symmetric(subject: Subject) -> None:
    """Compatibility does not depend on the order of the specs."""
    for a, b in itertools.product(subject.pool, repeat=2):
        expected = "{} and {} compatible in both orders or in neither"
        received = "compatibility in one order only"
        expect(a.is_compatible_with(b) == b.is_compatible_with(a), expected, received, a, b)


@law("compatibility-keeps-to-type", "serialization-types", fix=_COMPATIBLE)
def compatibility_keeps_to_type(subject: Subject) -> None:
    """A spec is not compatible with a spec of another value type."""
    for spec in subject.specs:
        expected = f"{spec} incompatible with the spec of another type"
        expect(not spec.is_compatible_with(StrangerSpec()), expected, "compatibility")


@law(
    "compatibility-follows-components",
    *("compatibility-is-symmetric", "equality-tells-components-apart"),
    fix=_COMPATIBLE,
)
def compatibility_follows_components(subject: Subject) -> None:
    """A spec is not compatible with a spec whose components have another structure, another dtype
    or an incompatible shape.
    """  # noqa: D205
    for a, b in subject.variations:
        components = _tf.component_specs(b)
        expect(
            _compatible(_tf.component_specs(a), components) or not a.is_compatible_with(b),
            "{} incompatible with a spec with the components {}",
            "compatibility",
            *(a, components),
        )


def _compatible(specs: object, others: object) -> bool:
    """Returns whether two nests of specs have the same structure and compatible leaves."""
    try:
        tf.nest.assert_same_structure(specs, others)
    except (TypeError, ValueError):
        return False
    pairs = zip(tf.nest.flatten(specs), tf.nest.flatten(others), strict=True)
    return all(a.is_compatible_with(b) for a, b in pairs)


@law(
    "compatibility-with-generalisation",
    *("serialization-round-trip", "compatibility-is-reflexive"),
    fix=_COMPATIBLE,
)
def compatibility_with_generalisation(subject: Subject) -> None:
    """A spec is compatible with the same spec without static sizes."""
    for spec in subject.specs:
        general = generalise(spec)
        expected = f"{general} compatible with {spec}"
        expect(general.is_compatible_with(spec), expected, "incompatibility")


_MERGE_NEEDS = ("equality-is-equivalence", "serialization-round-trip")


@law("merge-is-idempotent", *_MERGE_NEEDS, fix=_MERGE)
def merge_is_idempotent(subject: Subject) -> None:
    """The most specific compatible type of a spec and itself is the spec."""
    for spec in subject.pool:
        result = common_spec(spec, twin(spec))
        expect(result == spec, str(spec), result)


@law("merge-is-commutative", *_MERGE_NEEDS, fix=_MERGE)
def merge_is_commutative(subject: Subject) -> None:
    """The most specific compatible type of two specs does not depend on their order."""
    for a, b in itertools.combinations(subject.pool, 2):
        result, reverse = common_spec(a, b), common_spec(b, a)
        holds = result == reverse
        if not holds:
            expected = f"the same type for {a} and {b} in both orders"
            raise BreachError(expected, f"{result} and {reverse}")


@law(
    "merge-holds-both",
    *(*_MERGE_NEEDS, "compatibility-is-symmetric", "compatibility-with-generalisation"),
    fix=_MERGE,
)
def merge_holds_both(subject: Subject) -> None:
    """The most specific compatible type of two specs is compatible with both."""
    for a, b in itertools.product(subject.pool, repeat=2):
        result = common_spec(a, b)
        for spec in (a, b):
            holds = result is None or result.is_compatible_with(spec)
            expect(holds, "a type compatible with {}", result, spec)


@law(
    "merge-is-most-specific",
    *("merge-is-idempotent", "merge-is-commutative", "merge-holds-both"),
    fix=_MERGE,
)
def merge_is_most_specific(subject: Subject) -> None:
    """The most specific compatible type of a spec and the same spec with one unknown size is the
    second spec.
    """  # noqa: D205
    for spec in subject.specs:
        for axis in range(4):
            general = open_axes(spec, {axis})
            result = common_spec(spec, general)
            expect(result == general, f"{general} for this spec and {spec}", result)


@law(
    "merge-keeps-to-type",
    "serialization-types",
    fix="If no type is compatible with both, return None and do not raise, or "
    + _MERGE[0].lower() + _MERGE[1:],
)  # fmt: skip
def merge_keeps_to_type(subject: Subject) -> None:
    """The most specific compatible type of specs of different value types is None."""
    for spec in subject.specs:
        result = common_spec(spec, StrangerSpec())
        expect(result is None, f"None for {spec} and the spec of another type", result)
