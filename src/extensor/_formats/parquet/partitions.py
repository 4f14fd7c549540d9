"""Hive partitions: folders named `key=value`, whose values are columns of the files in them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa

# The name that Hive gives to a folder of records without a value.
NULL_NAME = "__HIVE_DEFAULT_PARTITION__"


def partition_of(path: str) -> dict[str, str | None]:
    """Returns the values in the names of the folders of a file; None for null.

    Args:
        path: The path of the file, with `/` between its parts.
    """
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        key, equal, value = part.partition("=")
        if equal and key:
            text = unquote(value)
            found[unquote(key)] = None if text == NULL_NAME else text
    return found


def partition_fields(partitions: Sequence[dict[str, str | None]]) -> list[pa.Field]:
    """Returns the fields of the keys of all files, in the order of their appearance.

    As in Arrow, a key is int32 if all its values are such numbers, and a string otherwise.
    """
    keys = dict.fromkeys(key for partition in partitions for key in partition)
    return [
        pa.field(key, _type_of({partition.get(key) for partition in partitions})) for key in keys
    ]


def _type_of(values: set[str | None]) -> pa.DataType:
    texts = [value for value in values if value is not None]
    try:
        pa.array(texts, pa.string()).cast(pa.int32())
    except pa.ArrowInvalid:
        return pa.string()
    return pa.int32() if texts else pa.string()


def partition_column(text: str | None, arrow: pa.DataType, count: int) -> pa.Array:
    """Returns the column of a key for the records of one file.

    Raises:
        pa.ArrowInvalid, pa.ArrowNotImplementedError: If the text is no value of this type.
    """
    if text is None:
        return pa.nulls(count, arrow)
    value = pa.array([text], pa.string()).cast(arrow)
    return value.take(pa.repeat(pa.scalar(0, pa.int32()), count))
