"""The spec of DimensionAlignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extensor._types.alignment import check
from extensor._types.pairs_spec import PairsSpec
from extensor.typing import ShapeLike

if TYPE_CHECKING:
    from extensor._types.alignment.value import DimensionAlignment  # noqa: F401


class AlignmentSpec(PairsSpec["DimensionAlignment"]):
    """The spec of alignments with any number of positions and pairs.

    Args:
        shape: The static shape of the batch; its rank must be known.

    >>> import extensor as xt
    >>> xt.types.DimensionAlignment.Spec([None]).is_compatible_with(
    ...     xt.types.DimensionAlignment.batch([xt.types.DimensionAlignment.identity(2)]))
    True
    """

    _pairs = check.PAIRS

    def __init__(self, shape: ShapeLike = ()) -> None:
        self._assign(shape)
