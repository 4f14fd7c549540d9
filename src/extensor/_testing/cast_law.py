"""The laws of casting: values of other types as values of this one, and where two types meet."""

from __future__ import annotations

import itertools
from typing import Any

from extensor._protocol.casting import cast_value, castable_type
from extensor._testing.law import expect, law
from extensor._testing.subject import Subject, spec_of

_CAST = "Leave cast out, or call super().cast(value) for every value that it does not know."
_CASTABLE = (
    "Leave castable_type out, or return super().castable_type(spec) for every spec that it does "
    "not know."
)


@law("cast-keeps-own-values", "spec-is-stable", "equality-is-equivalence", mend=_CAST)
def cast_keeps_own_values(subject: Subject) -> None:
    """A spec casts a value of its own to that value."""
    for value, spec in subject.pairs:
        received = cast_value(spec, value)
        expect(received is value, "the value itself", f"another {type(received).__name__}")


@law("castable-type-is-symmetric", "merge-is-commutative", mend=_CASTABLE)
def castable_type_is_symmetric(subject: Subject) -> None:
    """Two specs meet at one type, whichever comes first."""
    for a, b in itertools.product(subject.pool, repeat=2):
        there, back = _castable(a, b), _castable(b, a)
        expect(there == back, f"{a} and {b} to meet at {there} both ways", back)


@law(
    "cast-reaches-castable-type",
    *("castable-type-is-symmetric", "cast-keeps-own-values", "merge-holds-both"),
    mend="Let castable_type return a spec to which cast takes values of both.",
)
def cast_reaches_castable_type(subject: Subject) -> None:
    """Values of two specs can both be cast to the type where the specs meet."""
    for (a, spec_a), (b, spec_b) in itertools.product(subject.pairs, repeat=2):
        met = _castable(spec_a, spec_b)
        for value in () if met is None else (a, b):
            received = spec_of(cast_value(met, value))
            expect(received.is_subtype_of(met), f"a value of {met}", received)


def _castable(a: Any, b: Any) -> Any:
    return a.castable_type(b) if hasattr(a, "castable_type") else castable_type(a, b)
