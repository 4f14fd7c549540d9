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
from extensor._testing.subject import StrangerSpec, Subject, merged, spec_of
from extensor._testing.variation import alike, generalised, opened, twin

_ALLOWED = (bool, int, float, str, type(None), tf.DType, tf.TensorShape, tf.TypeSpec, np.ndarray)

_STATIC = (*_ALLOWED, bytes, enum.Enum)

_EQUALITY = "Leave __eq__, __ne__ and __hash__ out: their defaults follow from serialize()."
_COMPATIBLE = "Leave is_compatible_with out: its default follows from serialize()."
_MERGE = "Leave most_specific_compatible_type out: its default follows from serialize()."


@law(
    "spec-has-repr",
    mend="Leave __repr__ out, or write only what the constructor keeps.",
)
def spec_has_repr(subject: Subject) -> None:
    """A spec can be written down: its repr is a text."""
    for spec in subject.specs:
        repr(spec)


@law(
    "spec-is-stable",
    "spec-has-repr",
    mend="Make the spec from the value's static parts and nothing else.",
)
def spec_is_stable(subject: Subject) -> None:
    """A value gives the same TypeSpec each time it is asked."""
    for value, spec in subject.pairs:
        again = spec_of(value)
        expect(alike(spec, again), f"{spec} again", again)


# Job 2: serialize.


@law(
    "serialization-types",
    "spec-is-stable",
    mend="Write such a part as a tuple of these, and make it again in deserialize.",
)
def serialization_types(subject: Subject) -> None:
    """A serialization holds bool, int, float, str, None, tf.DType, tf.TensorShape, TypeSpecs,
    np.ndarray, and tuples, namedtuples, dicts and OrderedDicts of them.
    """  # noqa: D205 - the docstring of a law is its sentence

    def parts(part: Any) -> None:
        if isinstance(part, dict):
            part = (*part.keys(), *part.values())
        if isinstance(part, tuple):
            for item in part:
                parts(item)
        elif not isinstance(part, _ALLOWED) or isinstance(part, enum.Enum):
            raise BreachError("parts of the allowed types only", f"a {type(part).__name__}")

    for spec in subject.specs:
        serialization = _tf.serialize(spec)
        expect(isinstance(serialization, tuple), "a tuple", f"a {type(serialization).__name__}")
        parts(serialization)


@law(
    "serialization-round-trip",
    "serialization-types",
    mend="Return the constructor's arguments from serialize(), in their order, or override "
    "deserialize too.",
)
def serialization_round_trip(subject: Subject) -> None:
    """Deserializing what a spec serialized gives an equal spec, with the same static attributes."""
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


def _static_attributes(spec: Any) -> dict[str, Any]:
    """Returns what a spec keeps under public names, as far as it is known to be static data."""

    def is_static(part: Any) -> bool:
        if isinstance(part, dict):
            return all(map(is_static, part.values()))
        if isinstance(part, (list, tuple, set, frozenset)):
            return all(map(is_static, part))
        return isinstance(part, _STATIC)

    attributes = getattr(spec, "__dict__", {})
    return {n: part for n, part in attributes.items() if n[:1] != "_" and is_static(part)}


def _agree(a: Any, b: Any) -> bool:
    """Whether two attributes say the same, be it in a list or a tuple, or as a TensorShape."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_agree, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_agree(a[k], b[k]) for k in a)
    return alike(a, b) or bool(np.all(a == b))


class _Pickler(pickle.Pickler):
    """Passes on classes that live in a function only, which pickle would look up in vain."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.local: list[type] = []

    def persistent_id(self, obj: Any) -> Any:
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

    def persistent_load(self, pid: Any) -> type:
        return self._local[pid]


@law(
    "pickle-round-trip",
    "serialization-round-trip",
    mend="Leave __reduce__ out: its default follows from serialize().",
)
def pickle_round_trip(subject: Subject) -> None:
    """Pickling a spec gives an equal spec."""
    for spec in subject.specs:
        stream = io.BytesIO()
        pickler = _Pickler(stream)
        pickler.dump(spec)
        stream.seek(0)
        again = _Unpickler(pickler, stream).load()
        expect(alike(spec, again), str(spec), again)


# Job 4: equality.


@law("equality-is-equivalence", "serialization-round-trip", mend=_EQUALITY)
def equality_is_equivalence(subject: Subject) -> None:
    """Specs of one serialization are equal; equality is symmetric and transitive, and takes no
    other thing for a spec.
    """  # noqa: D205
    pool = subject.pool
    for spec in subject.specs:
        for same in (spec, twin(spec)):
            expect(spec == same, f"{spec} equal to one that says the same", "two that differ")
        for other in (None, object(), StrangerSpec()):
            expect(not (spec == other), f"{spec} unlike a {type(other).__name__}", "equality")  # noqa: SIM201
    for a, b in itertools.product(pool, repeat=2):
        expect((a == b) == (b == a), f"{a} == {b} to say the same both ways", "two answers")
    for a, b, c in itertools.product(pool, repeat=3):
        expect(
            a == c or not (a == b and b == c),
            f"{a} equal to {c}, as both are to {b}",
            "two that differ",
        )


@law("hash-follows-equality", "equality-is-equivalence", mend=_EQUALITY)
def hash_follows_equality(subject: Subject) -> None:
    """Equal specs have equal hashes."""
    for a, b in itertools.product(subject.pool, repeat=2):
        if a == b:
            expect(hash(a) == hash(b), f"one hash of equal specs {a}", "two hashes")


@law("equality-tells-components-apart", "equality-is-equivalence", mend=_EQUALITY)
def equality_tells_components_apart(subject: Subject) -> None:
    """Equal specs have equal component specs: the same structure, dtypes and shapes."""
    for a, b in subject.variations:
        expect(
            a != b or alike(_tf.component_specs(a), _tf.component_specs(b)),
            f"{a} unlike one of the components {_tf.component_specs(b)}",
            "equality",
        )


@law(
    "repr-shows-all",
    "equality-is-equivalence",
    mend="Leave __repr__ out, or write the class and every static part.",
)
def repr_shows_all(subject: Subject) -> None:
    """The repr of a spec shows its class, and tells it apart from every spec that differs."""
    for spec in subject.specs:
        name = type(spec).__name__
        expect(name in repr(spec), f"{name} in the repr", repr(spec))
    for spec, other in subject.variations:
        expect(
            spec == other or repr(spec) != repr(other),
            f"another repr of a spec whose serialization is {_tf.serialize(other)}",
            f"{spec!r} again",
        )


@law("inequality-negates-equality", "equality-is-equivalence", mend=_EQUALITY)
def inequality_negates_equality(subject: Subject) -> None:
    """`a != b` is `not a == b`."""
    for a, b in itertools.product((*subject.pool, StrangerSpec()), repeat=2):
        expect((a != b) is not (a == b), f"one of == and != for {a} and {b}", "both or neither")


def _registered(part: Any) -> bool:
    """Whether a spec has a name to be written under, and every spec in its serialization."""
    if isinstance(part, dict):
        part = tuple(part.values())
    if isinstance(part, tf.TypeSpec) and not isinstance(part, tf.TensorSpec):
        if _tf.registered_name(type(part)) is None:
            return False
        part = _tf.serialize(part)
    return not isinstance(part, (list, tuple)) or all(map(_registered, part))


@law(
    "proto-round-trip",
    "equality-is-equivalence",
    mend="A SavedModel keeps a namedtuple as another class of its name and fields, and an "
    "OrderedDict as a dict: take these too in deserialize.",
    applies=lambda subject: all(map(_registered, subject.specs)),
)
def proto_round_trip(subject: Subject) -> None:
    """A registered spec that goes into a SavedModel's proto and back is an equal spec."""
    for spec in subject.specs:
        with warnings.catch_warnings():
            # TensorFlow says of every registered spec that it writes its name into a file.
            warnings.simplefilter("ignore", UserWarning)
            proto = spec.experimental_as_proto()
        again = type(spec).experimental_from_proto(proto)
        expect(spec == again, str(spec), again)


# Job 4: compatibility.


@law("compatibility-is-reflexive", "serialization-round-trip", mend=_COMPATIBLE)
def compatibility_is_reflexive(subject: Subject) -> None:
    """A spec is compatible with itself, and with one that says the same."""
    for spec in subject.specs:
        for same in (spec, twin(spec)):
            expect(spec.is_compatible_with(same), f"{spec} compatible with itself", "it is not")


@law(
    "compatibility-takes-values",
    "serialization-types",
    mend="Ask tf.type_spec_from_value of what is no TypeSpec, or " + _COMPATIBLE[0].lower()
    + _COMPATIBLE[1:],
)  # fmt: skip
def compatibility_takes_values(subject: Subject) -> None:
    """A spec is compatible with a value if and only if it is with the value's spec."""
    for a, (value, b) in itertools.product(subject.specs, subject.pairs):
        wanted = a.is_compatible_with(b)
        expect(
            a.is_compatible_with(value) == wanted,
            f"{a} {'' if wanted else 'in'}compatible with a value of {b}",
            "the other answer than for the spec",
        )


@law("compatibility-is-symmetric", "serialization-round-trip", mend=_COMPATIBLE)
def compatibility_is_symmetric(subject: Subject) -> None:
    """Compatibility says the same both ways."""
    for a, b in itertools.product(subject.pool, repeat=2):
        expect(
            a.is_compatible_with(b) == b.is_compatible_with(a),
            f"{a} and {b} compatible both ways or neither",
            "one way only",
        )


@law("compatibility-keeps-to-type", "serialization-types", mend=_COMPATIBLE)
def compatibility_keeps_to_type(subject: Subject) -> None:
    """A spec is not compatible with one of another value type."""
    for spec in subject.specs:
        expect(
            not spec.is_compatible_with(StrangerSpec()),
            f"{spec} incompatible with the spec of another type",
            "compatibility",
        )


@law(
    "compatibility-follows-components",
    *("compatibility-is-symmetric", "equality-tells-components-apart"),
    mend=_COMPATIBLE,
)
def compatibility_follows_components(subject: Subject) -> None:
    """A spec is not compatible with one whose components are of another structure, dtype or
    incompatible shape.
    """  # noqa: D205
    for a, b in subject.variations:
        expect(
            _compatible(_tf.component_specs(a), _tf.component_specs(b))
            or not a.is_compatible_with(b),
            f"{a} incompatible with one of the components {_tf.component_specs(b)}",
            "compatibility",
        )


def _compatible(specs: Any, others: Any) -> bool:
    """Whether two nests of specs have one structure and are compatible one by one."""
    try:
        tf.nest.assert_same_structure(specs, others)
    except (TypeError, ValueError):
        return False
    pairs = zip(tf.nest.flatten(specs), tf.nest.flatten(others), strict=True)
    return all(a.is_compatible_with(b) for a, b in pairs)


@law(
    "compatibility-with-generalisation",
    *("serialization-round-trip", "compatibility-is-reflexive"),
    mend=_COMPATIBLE,
)
def compatibility_with_generalisation(subject: Subject) -> None:
    """A spec is compatible with the spec that leaves its sizes open."""
    for spec in subject.specs:
        general = generalised(spec)
        expect(general.is_compatible_with(spec), f"{general} compatible with {spec}", "it is not")


_MERGE_NEEDS = ("equality-is-equivalence", "serialization-round-trip")


@law("merge-is-idempotent", *_MERGE_NEEDS, mend=_MERGE)
def merge_is_idempotent(subject: Subject) -> None:
    """The most specific type compatible with a spec and itself is the spec."""
    for spec in subject.pool:
        result = merged(spec, twin(spec))
        expect(result == spec, str(spec), result)


@law("merge-is-commutative", *_MERGE_NEEDS, mend=_MERGE)
def merge_is_commutative(subject: Subject) -> None:
    """The most specific compatible type of two specs is the same both ways."""
    for a, b in itertools.combinations(subject.pool, 2):
        result, reverse = merged(a, b), merged(b, a)
        expect(result == reverse, f"one type for {a} and {b}", f"{result} and {reverse}")


@law(
    "merge-holds-both",
    *(*_MERGE_NEEDS, "compatibility-is-symmetric", "compatibility-with-generalisation"),
    mend=_MERGE,
)
def merge_holds_both(subject: Subject) -> None:
    """The most specific compatible type of two specs is compatible with both."""
    for a, b in itertools.product(subject.pool, repeat=2):
        result = merged(a, b)
        for spec in (a, b):
            expect(
                result is None or result.is_compatible_with(spec),
                f"a type compatible with {spec}",
                result,
            )


@law(
    "merge-is-most-specific",
    *("merge-is-idempotent", "merge-is-commutative", "merge-holds-both"),
    mend=_MERGE,
)
def merge_is_most_specific(subject: Subject) -> None:
    """The most specific type compatible with a spec and one that leaves a size open is the latter,
    with no other size open.
    """  # noqa: D205
    for spec in subject.specs:
        for general in opened(spec):
            result = merged(spec, general)
            expect(result == general, f"{general} for it and {spec}", result)


@law(
    "merge-keeps-to-type",
    "serialization-types",
    mend="Return None (raise nothing) where no type is compatible with both, or "
    + _MERGE[0].lower() + _MERGE[1:],
)  # fmt: skip
def merge_keeps_to_type(subject: Subject) -> None:
    """Specs of two value types have no compatible type: the answer is None."""
    for spec in subject.specs:
        result = merged(spec, StrangerSpec())
        expect(result is None, f"None for {spec} and the spec of another type", result)
