"""The spec of LabeledTensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._types.labeled import naming
from extensor.authoring import stacked_spec, unstacked_spec

if TYPE_CHECKING:
    from typing_extensions import Self

_BATCH = "batch"


class LabeledSpec:
    """The spec of labeled tensors with a shape, dtype and names of axes.

    Args:
        values: A TensorSpec of known rank.
        axes: The name of each axis.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.types.LabeledTensor.Spec(tf.TensorSpec([None, 2]), ["word", "feature"])
    >>> spec.is_compatible_with(xt.types.LabeledTensor(tf.zeros([3, 2]), ["word", "feature"]))
    True
    >>> spec.stacked(7).axes
    ('batch', 'word', 'feature')
    """

    values: Any
    axes: tuple[str, ...]

    def __init__(self, values: tf.TypeSpec, axes: str | Sequence[str]) -> None:
        self.values = values
        self.axes = naming.check_names(axes, values.shape, "LabeledTensor.Spec.axes")

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape."""
        return self.values.shape

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values."""
        return self.values.dtype

    def stacked(self, num: int | None) -> Self:
        """Returns the spec of a batch, with a new first axis named "batch".

        If the name exists already, the new axis is named "batch_2", and so on.
        """
        name, count = _BATCH, 1
        while name in self.axes:
            count += 1
            name = f"{_BATCH}_{count}"
        values = stacked_spec(self.values, num, "LabeledTensor.Spec")
        return type(self)(values, (name, *self.axes))

    def unstacked(self) -> Self:
        """Returns the spec of one value of a batch: without the first axis."""
        return type(self)(unstacked_spec(self.values, "LabeledTensor.Spec"), self.axes[1:])
