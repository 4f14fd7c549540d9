"""Arrow types of the values that only Firestore has: references, points and vectors.

They are opaque types of Arrow, so that records keep them, and are written as what they were.
"""

from __future__ import annotations

import pyarrow as pa

_VENDOR = "Firestore"

REFERENCE = pa.opaque(pa.string(), "reference", _VENDOR)
POINT = pa.opaque(
    pa.struct({"latitude": pa.float64(), "longitude": pa.float64()}), "geopoint", _VENDOR
)
VECTOR = pa.opaque(pa.list_(pa.float64()), "vector", _VENDOR)


def kind_of(arrow: pa.DataType) -> str | None:
    """Returns "reference", "geopoint" or "vector" for these types, else None."""
    if isinstance(arrow, pa.OpaqueType) and arrow.vendor_name == _VENDOR:
        return arrow.type_name
    return None
