"""The error for nulls in a column.

`ColumnType.read` calls `refuse_nulls` before it reads a column. A nullable column without nulls is
accepted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from extensor._arrow.location import Location
from extensor.errors import NullError


def refuse_nulls(array: pa.Array, location: Location) -> None:
    """Raises if there is a null in a column.

    Raises:
        NullError: If there is a null; the error names the path and the first record with a null
            (also a ValueError).
    """
    count = array.null_count
    if count:
        first = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise NullError(
            path=location.path,
            expected="a column without nulls",
            received=f"{count} null{'s' if count > 1 else ''}, the first in record "
            f"{location.record(first)}",
            mend="Before the conversion, fill the nulls (pyarrow.compute.fill_null) or drop the "
            "records (Table.filter, Table.drop_null).",
        )
