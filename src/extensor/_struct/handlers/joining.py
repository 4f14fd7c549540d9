"""Operations that join collections of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from extensor._dispatch.handlers import implements
from extensor._struct.handlers.each_field import appended, axis_of, joined
from extensor._struct.tensor import StructuredTensor
from extensor.errors import StructureError


@implements(tf.concat, on=StructuredTensor)
def concat(values: Any, axis: Any, *_: Any) -> Any:
    """Returns the records of all collections, one after another along an axis.

    Dense and ragged collections may be mixed; the result is ragged where rows differ in length.
    """
    values = _listed(values)
    place = axis_of(axis, _rank(values), "tf.concat")
    if place == 0:
        return appended(values, "tf.concat")  # needs no gather
    return joined(values, lambda parts: tf.concat(parts, place), values[0].rank, "tf.concat")


@implements(tf.stack, on=StructuredTensor)
def stack(values: Any, axis: Any = 0, *_: Any) -> Any:
    """Returns collections of one rank, stacked along a new axis."""
    values = _listed(values)
    rank = _rank(values) + 1
    place = axis_of(axis, rank, "tf.stack")
    return joined(values, lambda parts: tf.stack(parts, place), rank, "tf.stack")


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, Sequence) else [values]


def _rank(values: list[Any]) -> int:
    first = values[0]
    if isinstance(first, StructuredTensor):
        return first.rank
    raise StructureError(
        path="tf.concat or tf.stack",
        expected="records only",
        received=f"a {type(first).__name__}",
        mend="Join records with records, and fields with fields.",
    )
