"""The reader of a schema: what `from_arrow` knows from schema and policy alone, made once."""

from __future__ import annotations

import copy
import datetime
import decimal
import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

import pyarrow as pa

from extensor._arrow.column_type import ColumnType
from extensor._arrow.dim_names import dim_of
from extensor._arrow.nested_types import StructType
from extensor._arrow.null_policy import Fill
from extensor._arrow.type_table import column_type, described_nulls, inner_types
from extensor._path import Path
from extensor._struct.dims import to_dims
from extensor._typing import NullsLike

_PLAIN = (
    *(int, float, bool, str, bytes, type(None), decimal.Decimal),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
)


def records_reader(schema: pa.Schema, nulls: NullsLike | None) -> StructType:
    """Returns the type of records of a schema, with the policies for nulls.

    Args:
        schema: The schema.
        nulls: The argument of `from_arrow`.

    Raises:
        UnsupportedTypeError, StructureError, FieldError, DTypeError: As in `from_arrow`.
    """
    return _reader(schema, nulls, _records_reader)


def rows_reader(arrow: pa.DataType, nulls: NullsLike | None) -> ColumnType:
    """Returns the type of a column of records, or of lists of records; see `records_reader`."""
    return _reader(pa.schema([pa.field("", arrow)]), nulls, _rows_reader)


def _reader(
    schema: pa.Schema, nulls: NullsLike | None, make: Callable[[pa.Schema, Any], Any]
) -> Any:
    """Returns what a function makes of a schema and policies; the last ones are kept."""
    try:
        key = _Key(schema, nulls)
    except (_NotPlainError, TypeError, pa.ArrowException, UnicodeDecodeError):
        return make(schema, nulls)
    return _kept(key, make)


class _NotPlainError(Exception):
    """A policy holds a value that may change, so its reader is not kept."""


class _Key:
    """A schema and the policies for nulls, compared by all that readers depend on."""

    __slots__ = ("_hash", "_policies", "_text", "nulls", "schema")

    def __init__(self, schema: pa.Schema, nulls: NullsLike | None) -> None:
        self.schema = schema
        self.nulls = nulls
        self._text = schema.serialize().to_pybytes()  # metadata is not in the equality of schemas
        self._policies = _key_of(nulls)
        self._hash = hash((self._text, self._policies))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> bool:
        # Extension types of two classes may have one text.
        return (
            self._text == other._text
            and self._policies == other._policies
            and self.schema.equals(other.schema)
        )


def _key_of(nulls: object) -> Any:
    """Returns a policy as a value that hashes, and that differs for 1, 1.0 and True.

    Raises:
        _NotPlainError: If the policy is of a type that is not known to be plain data.
    """
    if type(nulls) is str:
        return nulls
    if isinstance(nulls, Fill):
        return "fill", _key_of(nulls.value)
    if isinstance(nulls, Mapping):
        pairs = cast("Mapping[Any, Any]", nulls).items()
        return "dict", tuple((_key_of(k), _key_of(v)) for k, v in pairs)
    if isinstance(nulls, Path):
        return nulls
    if type(nulls) in (list, tuple):
        return type(nulls), tuple(map(_key_of, cast("list[Any]", nulls)))
    if type(nulls) in _PLAIN:
        return type(nulls), repr(nulls)
    raise _NotPlainError


@functools.lru_cache(128)
def _kept(key: _Key, make: Callable[[pa.Schema, Any], Any]) -> Any:
    # Copied, because lists and dicts in it may change.
    return make(key.schema, copy.deepcopy(key.nulls))


def _rows_reader(schema: pa.Schema, nulls: NullsLike | None) -> ColumnType:
    policies = described_nulls(nulls)
    rows = column_type(schema.field(0).type, Path(), policies)
    if policies is not None:
        policies.nulls.expect_all_seen()
    return rows


def _records_reader(schema: pa.Schema, nulls: NullsLike | None) -> StructType:
    policies = described_nulls(nulls)
    arrow = pa.struct(list(schema))
    dims = to_dims([dim_of(schema)])
    records = StructType.from_arrow_type(arrow, Path(), inner_types(arrow, Path(), policies), dims)
    if policies is not None:
        policies.nulls.expect_all_seen()
    return records
