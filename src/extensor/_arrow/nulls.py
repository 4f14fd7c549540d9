"""Nulls: the one place where they are refused.

Each column is asked before it is read, from `ColumnType.read`; columns are not asked whether their
type may hold nulls, but whether they do.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from extensor._arrow.location import Location
from extensor.errors import NullError


def refuse_nulls(array: pa.Array, location: Location) -> None:
    """Raises if there is a null in a column.

    Raises:
        NullError: If so; it names the path and the first record (also a ValueError).
    """
    count = array.null_count
    if count:
        first = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise NullError(
            path=location.path,
            expected="no nulls",
            received=f"{count}, the first in record {location.record(first)}",
            mend="Fill them (pyarrow.compute.fill_null) or drop those records (Table.filter, "
            "Table.drop_null) before the conversion.",
        )
