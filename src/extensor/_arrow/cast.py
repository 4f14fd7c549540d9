"""Casts of Arrow columns that keep the meaning of numbers."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import contains_type, decoded_type, inner_fields, is_list, is_text
from extensor._path import Path
from extensor._struct.meaning import are_apart, different_meanings, meaning_of
from extensor.errors import DTypeError

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time


def cast_column(
    column: pa.Array | pa.ChunkedArray,
    arrow: pa.DataType,
    path: Path,
    fix: str,
    is_typed: bool = True,
) -> pa.Array | pa.ChunkedArray:
    """Returns a column as another Arrow type, by Arrow's safe cast.

    Args:
        column: An array or a chunked array.
        arrow: The type.
        path: The path of the column, for errors.
        fix: How to correct a cast that fails.
        is_typed: Whether the type of the column says what its numbers count.

    Raises:
        DTypeError: If the cast loses information, or the numbers of the type count something else
            (also a TypeError).
    """
    if is_typed:
        _expect_meaning(arrow, column.type, path)
    try:
        if isinstance(arrow, pa.UuidType) and is_text(column.type):
            column = _uuids(column)
        made = column.cast(arrow)
    except (ValueError, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        expected = f"values of Arrow type {arrow}, as schema= says"
        received = f"Arrow type {column.type} ({str(error).splitlines()[0]})"
        raise DTypeError(path, expected, received, fix) from error
    # Of a number that is too large, Arrow makes an infinite one without an error.
    if contains_type(arrow, _is_narrow_float) and _num_infinite(made) > _num_infinite(column):
        received = f"Arrow type {column.type} (a number is too large)"
        raise DTypeError(path, f"values of Arrow type {arrow}, as schema= says", received, fix)
    return made


def _is_narrow_float(arrow: pa.DataType) -> bool:
    return pa.types.is_floating(arrow) and arrow.bit_width < 64


def _num_infinite(column: pa.Array | pa.ChunkedArray) -> int:
    """Returns how many floats of a column, also in lists and records, are infinite."""
    if isinstance(column, pa.ChunkedArray):
        return sum(map(_num_infinite, column.chunks))
    if pa.types.is_floating(column.type):
        return pc.sum(pc.is_inf(column)).as_py() or 0
    if pa.types.is_struct(column.type):
        return sum(_num_infinite(column.field(i)) for i in range(column.type.num_fields))
    return _num_infinite(column.flatten()) if is_list(column.type) else 0


def _uuids(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the bytes of UUIDs of text."""
    found = [text if text is None else uuid.UUID(text).bytes for text in texts.to_pylist()]
    return pa.array(found, pa.binary(16))


def _expect_meaning(want: pa.DataType, have: pa.DataType, path: Path) -> None:
    """Raises a DTypeError if the numbers of a column count something else than wanted.

    Arrow itself takes a time without a zone for one of UTC, and drops the hours of a date.
    """
    meanings = meaning_of(want), meaning_of(have)
    if are_apart(*meanings):
        raise different_meanings(*meanings, path)
    want, have = decoded_type(want), decoded_type(have)
    wanted, found = inner_fields(want), inner_fields(have)
    if pa.types.is_struct(want) and pa.types.is_struct(have):
        types = {field.name: field.type for field in found}
        for field in wanted:
            if field.name in types:
                _expect_meaning(field.type, types[field.name], path / field.name)
        return
    for inner, other in zip(wanted, found, strict=False):
        _expect_meaning(inner.type, other.type, path)
