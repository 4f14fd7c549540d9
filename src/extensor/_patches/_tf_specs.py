"""What TensorFlow compares, of specs that stand in for its own."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from extensor._patches.patch import replaces
from extensor._protocol.stand_in import plain_spec


@replaces(
    "tf.TypeSpec.is_compatible_with",
    reason="Datasets ask it of the spec of a value about the spec that they were given, and it "
    "compares the classes.",
    probe="stand_in_compatibility",
)
def is_compatible_with(plain: Any) -> Any:
    def is_compatible_with(self: Any, spec_or_value: Any) -> bool:
        """As TensorFlow's own, of what a stand-in stands for."""
        return plain(self, plain_spec(spec_or_value))

    return is_compatible_with


@replaces(
    "tf.TypeSpec.most_specific_common_supertype",
    reason="tf.nest asks it of the spec of a value about a spec that is said to be of one "
    "structure with it, and it compares the classes.",
    probe="stand_in_supertype",
)
def most_specific_common_supertype(plain: Any) -> Any:
    def most_specific_common_supertype(self: Any, others: Any) -> Any:
        """As TensorFlow's own, of what stand-ins stand for."""
        return plain(self, list(map(plain_spec, others)))

    return most_specific_common_supertype
