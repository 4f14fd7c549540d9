"""What pandas knows of a column and Arrow does not, in the metadata of an Arrow field.

This is another dtype for the same Arrow type, a label that is no string, or the name of an index.
"""

from __future__ import annotations

import datetime
import functools
import json
from typing import Any

import numpy as np
import pyarrow as pa

from extensor.errors import UnsupportedTypeError

INDEX = "_index_"
"""The field of an index that is not the default one."""

_KEY = b"extensor.pandas"


def field_of(name: str, array: pa.Array, known: dict[str, Any]) -> pa.Field:
    nullable = array.null_count > 0 or pa.types.is_null(array.type)
    return with_known(pa.field(name, array.type, nullable), known)


def with_known(field: pa.Field, known: dict[str, Any]) -> pa.Field:
    """Returns a field that also keeps what pandas knows of it."""
    kept = {**known_of(field), **known}
    return field.with_metadata({_KEY: json.dumps(kept)}) if kept else field


def known_of(field: pa.Field) -> dict[str, Any]:
    """Returns what pandas knew of a field."""
    return json.loads((field.metadata or {}).get(_KEY, b"{}"))


def encoded_label(label: object, what: str) -> Any:
    """Returns a label of pandas as JSON has it."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, (str, int, float)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [encoded_label(part, what) for part in label]}
    if isinstance(label, datetime.datetime):  # a Timestamp, among others
        zone = getattr(label.tzinfo, "key", getattr(label.tzinfo, "zone", None))  # that of pytz
        return {"time": str(label), "zone": zone}
    expected = f"{what} that is a string, a number or a time"
    received = f"{type(label).__name__} {str(label)[:40]}"
    fix = "Rename it: df.rename(columns=str)."
    raise UnsupportedTypeError("from_pandas", expected, received, fix)


def decoded_label(pd: Any, label: Any) -> Any:
    """Returns the label that `encoded_label` got."""
    if not isinstance(label, dict):
        return label
    if "tuple" in label:
        return tuple(decoded_label(pd, part) for part in label["tuple"])
    found, zone = pd.Timestamp(label["time"]), label.get("zone")
    return found if zone is None else found.tz_convert(zone)


def is_default_dtype(dtype: object, arrow: pa.DataType) -> bool:
    """Returns whether Arrow converts a type to a dtype by itself."""
    if pa.types.is_dictionary(arrow):
        return str(dtype) == "category"
    if str(dtype).startswith("datetime64["):  # with a zone of any package
        return default_dtype(arrow).kind == "M"
    return default_dtype(arrow) == dtype


@functools.lru_cache(256)
def default_dtype(arrow: pa.DataType) -> Any:
    try:
        return pa.array([], arrow).to_pandas().dtype
    except NotImplementedError:  # unions, and tensors of one shape
        return np.dtype(object)
