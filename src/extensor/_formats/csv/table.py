"""The text of CSV as Arrow tables, by pyarrow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pacsv

from extensor._arrow.arrow_type import decoded_type, is_encoded
from extensor._formats.csv.lines import CsvBlock, Dialect
from extensor._path import Path
from extensor.errors import DTypeError, ExtensorError, FormatError, UnsupportedTypeError

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

_BLOCK = 1 << 24  # bytes that pyarrow parses at once
_ZERO_OR_ONE = pa.int8()
"""Stands for integers that are all 0 or 1: beside true and false, they are bools."""
_WIDE = pa.uint64()
"""Stands for integers of which float64 does not hold one."""
_MIXED = pa.uint32()
"""Stands for such integers beside numbers with a point: an error, unless there is text too."""

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_ROW = re.compile(r"Row #(\d+): ")
_COUNTS = re.compile(r"Expected (\d+) columns?, got (\d+)")
_VALUE = re.compile(
    r"CSV column #(\d+): .*?CSV conversion error to (.+?): invalid value '(.*)'", re.S
)

_REFUSED = re.compile(r"CSV column #(\d+): (?:Row #\d+: )?(?:CSV conversion error to (.+?): )?(.*)")


def table_of(
    block: CsvBlock, path: str, dialect: Dialect, types: Mapping[str, pa.DataType]
) -> pa.Table:
    """Returns the records of a block.

    Args:
        block: The block.
        path: The path of the file, for errors.
        dialect: How the file is written.
        types: The types of the columns to read, as `parsed_type` returns them; {} to read all
            columns, and find out their types.

    Raises:
        FormatError: If a record has another number of values (also a ValueError).
        DTypeError: If a value is not of the type of its column (also a TypeError).
    """
    try:
        return _parse(block, path, dialect, types, is_serial=False)
    except pa.ArrowInvalid:
        pass
    try:  # one thread knows the numbers of records
        return _parse(block, path, dialect, types, is_serial=True)
    except pa.ArrowInvalid as error:
        raise _bad_text(block, path, str(error)) from error


def types_of(
    block: CsvBlock, path: str, dialect: Dialect, refused: dict[str, DTypeError]
) -> tuple[dict[str, pa.DataType], int]:
    """Returns the types of the columns of a block, and the number of its records.

    The types are null, int64, bool, float64, string and binary, and those that stand for others,
    for `joined_types`. Text stays text, also if it looks like a time.

    Args:
        block: The block.
        path: The path of the file, for errors.
        dialect: How the file is written.
        refused: Gets the error for each column of numbers that neither int64 nor float64 holds.
    """
    table = table_of(block, path, dialect, {})
    types = {name: _type_of(table.column(i)) for i, name in enumerate(block.names)}
    wide = [n for i, n in enumerate(block.names) if _may_be_wide(table.column(i))]
    if wide:
        texts = table_of(block, path, dialect, dict.fromkeys(wide, pa.string()))
        for name, column in zip(wide, texts.columns, strict=True):
            if inexact := _inexact(column):
                types[name] = _MIXED
                refused.setdefault(name, _not_exact(path, name, inexact))
    return types, table.num_rows


def joined_types(
    one: Mapping[str, pa.DataType],
    other: Mapping[str, pa.DataType],
    path: str,
    refused: dict[str, DTypeError],
) -> dict[str, pa.DataType]:
    """Returns the types of columns that have values of `types_of` two texts; see there."""
    joined = {name: _join(arrow, other[name]) for name, arrow in one.items()}
    for name, arrow in joined.items():
        if arrow == _MIXED and name not in refused:
            received = "integers of more than 53 bits beside other numbers"
            refused[name] = _not_exact(path, name, received)
    return joined


def final_type(field: pa.Field, refused: Mapping[str, DTypeError]) -> pa.Field:
    """Returns a field of a type of `types_of` with that of the column.

    Raises:
        DTypeError: If neither int64 nor float64 holds the numbers (also a TypeError).
    """
    if field.type == _MIXED:
        raise refused[field.name]
    return field.with_type(pa.int64()) if field.type in (_ZERO_OR_ONE, _WIDE) else field


def parsed_type(field: pa.Field) -> pa.DataType:
    """Returns the type with which the text of a field is parsed, from which it is cast.

    Raises:
        UnsupportedTypeError: If a value has parts (also a TypeError).
    """
    arrow, t = field.type, pa.types
    expect_scalars(Path(field.name), arrow)
    if t.is_date64(arrow):
        return pa.date32()
    if t.is_float16(arrow) or t.is_float32(arrow):
        return pa.float64()  # the parser makes infinite numbers of those that are too large
    if t.is_decimal32(arrow) or t.is_decimal64(arrow):
        return pa.decimal128(arrow.precision, arrow.scale)
    if isinstance(arrow, pa.Bool8Type):
        return pa.bool_()
    is_text = is_encoded(arrow) or t.is_string_view(arrow) or t.is_decimal256(arrow)
    if is_text or isinstance(arrow, pa.BaseExtensionType):
        return pa.string()
    return pa.binary() if t.is_binary_view(arrow) else arrow


def expect_scalars(path: Path, arrow: pa.DataType) -> None:
    """Raises UnsupportedTypeError for lists, records, maps and unions."""
    stored = decoded_type(arrow)
    if pa.types.is_nested(stored) or pa.types.is_list_view(stored):
        fix = "Use JSON or Parquet: xt.write_json, xt.write_parquet."
        expected = "one value a field, as CSV has"
        raise UnsupportedTypeError(path, expected, f"Arrow type {arrow}", fix)


def _parse(
    block: CsvBlock, path: str, dialect: Dialect, types: Mapping[str, pa.DataType], is_serial: bool
) -> pa.Table:
    if not block.data or (len(block.names) > 1 and not block.data.strip(b"\r\n")):
        return pa.schema(types or dict.fromkeys(block.names, pa.null())).empty_table()
    read = pacsv.ReadOptions(
        column_names=list(block.names),
        use_threads=not is_serial,
        block_size=max(_BLOCK, len(block.data)) if b'"' in block.data else _BLOCK,
    )
    parse = pacsv.ParseOptions(
        delimiter=dialect.delimiter_of(path),
        newlines_in_values=b'"' in block.data,
        ignore_empty_lines=len(block.names) > 1,
    )
    convert = pacsv.ConvertOptions(
        column_types=dict(types),
        include_columns=list(types),
        null_values=list(dialect.null_values),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pacsv.read_csv(pa.BufferReader(block.data), read, parse, convert)


def _type_of(column: pa.ChunkedArray) -> pa.DataType:
    arrow, t = column.type, pa.types
    if t.is_int64(arrow) and pc.all(pc.is_in(column, pa.array([0, 1, None]))).as_py():
        return _ZERO_OR_ONE
    if t.is_int64(arrow):
        numbers = column.drop_null().to_numpy()
        with np.errstate(invalid="ignore"):
            is_kept = (numbers.astype(np.float64).astype(np.int64) == numbers).all()
        return arrow if is_kept else _WIDE
    return pa.string() if t.is_temporal(arrow) else arrow


def _may_be_wide(column: pa.ChunkedArray) -> bool:
    """Returns whether numbers with a point may be integers that float64 does not hold."""
    if not pa.types.is_float64(column.type):
        return False
    sizes = pc.abs(column)
    is_large = pc.and_(pc.greater_equal(sizes, 2.0**53), pc.less(sizes, float("inf")))
    return bool(pc.any(is_large).as_py())


def _inexact(column: pa.ChunkedArray) -> str | None:
    """Returns the text of an integer that float64 does not hold."""
    for text in pc.unique(column).to_pylist():
        if text and _INTEGER.fullmatch(text) and int(text) != int(float(text)):
            return text.strip()
    return None


def _not_exact(path: str, name: str, received: str) -> DTypeError:
    expected = "numbers that int64 or float64 holds exactly"
    fix = f"Give schema= with another type, such as pa.string(), for {name!r}."
    return DTypeError(f"{path}: {Path(name)}", expected, received, fix)


def _join(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    both = {one, other}
    if both == {_ZERO_OR_ONE, pa.bool_()}:
        return pa.bool_()
    if both <= {_ZERO_OR_ONE, pa.int64(), _WIDE}:
        return _WIDE if _WIDE in both else pa.int64()
    if both <= {_ZERO_OR_ONE, pa.int64(), pa.float64()}:
        return pa.float64()
    if both <= {_ZERO_OR_ONE, pa.int64(), pa.float64(), _WIDE, _MIXED}:
        return _MIXED
    return pa.binary() if pa.binary() in both else pa.string()


def _bad_text(block: CsvBlock, path: str, text: str) -> ExtensorError:
    """Returns the error for a text that pyarrow refuses."""
    row = _ROW.search(text)
    place = "" if row is None else f" in record {block.record + int(row[1]) - 1}"
    if counts := _COUNTS.search(text):
        fix = "Quote values that have the delimiter or a line break, or correct delimiter=."
        expected = f"{counts[1]} values in each record, one for each column"
        return FormatError(path, expected, f"{counts[2]}{place}", fix)
    if value := _VALUE.search(text):
        name = Path(block.names[int(value[1])])
        expected = f"text of the type {value[2]}, as schema= says"
        fix = "Correct schema=, or give null_values= for texts that are no values."
        return DTypeError(f"{path}: {name}", expected, f"{value[3]!r}{place}", fix)
    if refused := _REFUSED.search(text):  # such as a time without the zone of its type
        name, reason = Path(block.names[int(refused[1])]), refused[3].split(". ")[0].rstrip(".")
        if "UTF8" in reason:
            fix = 'Give the encoding, such as encoding="latin-1".'
            return FormatError(path, "text in UTF-8", f"other bytes in {name}{place}", fix)
        expected = f"text of the type {refused[2]}" if refused[2] else "text of its type"
        expected, fix = f"{expected}, as schema= says", "Correct schema=, or the text."
        return DTypeError(f"{path}: {name}", expected, f"text of another ({reason}){place}", fix)
    fix = "Write the file again, or correct delimiter= and encoding=."
    return FormatError(path, "CSV", text.splitlines()[0], fix)
