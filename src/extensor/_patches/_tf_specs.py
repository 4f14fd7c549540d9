"""Comparisons of TensorFlow's specs with stand-ins of extensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from extensor._patches.patch import overrides
from extensor._protocol.stand_in import plain_spec


@overrides(
    "tf.TypeSpec.is_compatible_with",
    reason="Datasets call it on the spec of a value with the declared spec, which may be a "
    "stand-in; it compares the classes.",
    probe="stand_in_compatibility",
)
def is_compatible_with(
    self: tf.TypeSpec, spec_or_value: object, *, plain: Callable[..., bool]
) -> bool:
    """Calls TensorFlow's method with the spec that a stand-in replaces."""
    return plain(self, plain_spec(spec_or_value))


@overrides(
    "tf.TypeSpec.most_specific_common_supertype",
    reason="tf.nest calls it to compare the spec of a value with another spec, which may be a "
    "stand-in; it compares the classes.",
    probe="stand_in_supertype",
)
def most_specific_common_supertype(
    self: tf.TypeSpec, others: Sequence[tf.TypeSpec], *, plain: Callable[..., tf.TypeSpec | None]
) -> tf.TypeSpec | None:
    """Calls TensorFlow's method with the specs that stand-ins replace."""
    return plain(self, list(map(plain_spec, others)))
