"""The reader of a schema: what `from_arrow` knows from schema and policy alone, made once."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from extensor._arrow.column_type import ColumnType
from extensor._arrow.dim_names import dim_of
from extensor._arrow.struct_type import StructType
from extensor._arrow.type_table import column_type, described_nulls, inner_types
from extensor._path import Path
from extensor._struct.dims import to_dims
from extensor._typing import NullsLike


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
        # Metadata is not in the equality of schemas. Lists and dicts in policies may change.
        key = _Key(schema.serialize().to_pybytes(), pickle.dumps(nulls), schema)
    except (pickle.PicklingError, AttributeError, TypeError, ValueError, pa.ArrowException):
        return make(schema, nulls)
    return _kept(key, make)


@dataclass(frozen=True)
class _Key:
    """A schema and the policies for nulls, compared by all that readers depend on."""

    text: bytes
    nulls: bytes
    schema: pa.Schema = field(hash=False)
    """Extension types of two classes may have one text."""


@functools.lru_cache(128)
def _kept(key: _Key, make: Callable[[pa.Schema, Any], Any]) -> Any:
    return make(key.schema, pickle.loads(key.nulls))


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
