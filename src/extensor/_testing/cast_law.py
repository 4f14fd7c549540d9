"""The laws of casting: casts from other types, and the common type of two specs."""

from __future__ import annotations

import itertools

import tensorflow as tf

from extensor._protocol.casting import cast_value, castable_type
from extensor._testing.law import expect, law
from extensor._testing.subject import Subject, spec_of

_CAST = "Remove cast, or call super().cast(value) for all other values."
_CASTABLE = "Remove castable_type, or return super().castable_type(spec) for all other specs."


@law("cast-keeps-own-values", "spec-is-stable", "equality-is-equivalence", fix=_CAST)
def cast_keeps_own_values(subject: Subject) -> None:
    """A spec casts a value of its own type to the same value."""
    for value, spec in subject.pairs:
        received = cast_value(spec, value)
        expect(received is value, "the value itself", f"another {type(received).__name__}")


@law("castable-type-is-symmetric", "merge-is-commutative", fix=_CASTABLE)
def castable_type_is_symmetric(subject: Subject) -> None:
    """The castable type of two specs does not depend on their order."""
    for a, b in itertools.product(subject.pool, repeat=2):
        there, back = _castable(a, b), _castable(b, a)
        expect(there == back, "the castable type {} of {} and {} in both orders", back, there, a, b)


@law(
    "cast-reaches-castable-type",
    *("castable-type-is-symmetric", "cast-keeps-own-values", "merge-holds-both"),
    fix="Return from castable_type a spec whose cast accepts values of both.",
)
def cast_reaches_castable_type(subject: Subject) -> None:
    """Values of two specs can be cast to their castable type."""
    for (a, spec_a), (b, spec_b) in itertools.product(subject.pairs, repeat=2):
        common = _castable(spec_a, spec_b)
        for value in () if common is None else (a, b):
            received = spec_of(cast_value(common, value))
            expect(received.is_subtype_of(common), f"a value of {common}", received)


def _castable(a: tf.TypeSpec, b: tf.TypeSpec) -> tf.TypeSpec | None:
    return a.castable_type(b) if hasattr(a, "castable_type") else castable_type(a, b)
