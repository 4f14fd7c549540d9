"""Several LabeledTensors put together."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.labeled import check
from extensor._types.labeled.align import has_its_own_say, same_axes
from extensor._types.labeled.handling import handles
from extensor._types.labeled.tensor import LabeledTensor


def _listed(values: Any) -> list[Any]:
    return [values] if isinstance(values, LabeledTensor) else list(values)


def _first(values: list[Any]) -> LabeledTensor | None:
    # In a nested list there may be none.
    return next((x for x in values if isinstance(x, LabeledTensor)), None)


@handles(tf.concat)
def concat(values: Any, axis: Any, *_: Any) -> Any:
    """Returns tensors of the same axes, one after another along one of these."""
    values = _listed(values)
    first = _first(values)
    if first is None or any(map(has_its_own_say, values)):
        return NotImplemented
    number = check.number(first, axis, "tf.concat")
    parts = same_axes(values, "tf.concat", but=first.axes[number])
    return first.of_parts(tf.concat(parts, number), first.axes)


@handles(tf.stack)
def stack(values: Any, axis: Any = None, *_: Any) -> Any:
    """Returns tensors of the same axes beside one another, along a new axis in front."""
    values = _listed(values)
    first = _first(values)
    if first is None or any(map(has_its_own_say, values)):
        return NotImplemented
    name = check.new(first.axes, axis, "tf.stack")
    return first.of_parts(tf.stack(same_axes(values, "tf.stack")), (name, *first.axes))
