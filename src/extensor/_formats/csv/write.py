"""write_csv: StructuredTensors as CSV files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pacsv

from extensor._arrow.batches import batches_of, num_records_of, with_one_schema
from extensor._arrow.encoded_types import plain_values
from extensor._arrow.times_of_text import expect_text
from extensor._arrow.write import to_arrow
from extensor._files.files import FilePath
from extensor._files.output import text_output
from extensor._formats.csv.lines import Dialect, check_delimiter, expect_different
from extensor._formats.csv.table import expect_scalars
from extensor._path import Path
from extensor._progress import progress_bar
from extensor._raised import first_line
from extensor._struct.tensor import StructuredTensor
from extensor.errors import FormatError, StructureError, UnsupportedTypeError

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time


def write_csv(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath | Any,
    schema: pa.Schema | None = None,
    *,
    delimiter: str | None = None,
    progress: bool | None = None,
) -> None:
    """Writes records whose fields have one value each as CSV, with a header.

    A file appears at `path` only when it is complete. A null is nothing between delimiters; text is
    in quotes, also if it is empty. Timestamps, dates and times are text in ISO 8601, decimals are
    text, durations are integers in their unit: `read_csv` reads all of them with `schema=`.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches, such as a dataset.
        path: The file, or a binary or text file object. `.gz`, `.zst`, `.bz2` and `.lz4` are
            compressed.
        schema: The Arrow schema to write, as in `to_arrow`.
        delimiter: The character between values. Default: a comma, and a tab in `.tsv` files.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        DTypeError: If `records` is or yields anything but StructuredTensors of rank 1 (also a
            TypeError).
        UnsupportedTypeError: If a field has lists or records: JSON and Parquet have them (also a
            TypeError).
        FormatError: If a string is not UTF-8, a time has no text in ISO 8601, or `path` is a device
            (also a ValueError).
        StructureError: If there is no field, or batches have other fields (also a ValueError).
        MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
            directory (also a FileNotFoundError, an IsADirectoryError).

    >>> import extensor as xt
    >>> import pathlib
    >>> path = "recipes.csv"
    >>> xt.write_csv(xt.DenseStructuredTensor([2], {"title": ["a", "b"], "x": [1.0, 2.5]}), path)
    >>> print(pathlib.Path(path).read_text())
    "title","x"
    "a",1
    "b",2.5
    """
    if delimiter is not None:
        check_delimiter(delimiter)
    batches = (to_arrow(batch, schema) for batch in batches_of(records, "write_csv"))
    with progress_bar("write_csv", progress, num_records_of(records)) as advance:
        for count in _written(batches, path, delimiter):
            advance(count)


def write(batches: Iterable[pa.RecordBatch], path: FilePath | Any) -> None:
    """Writes Arrow record batches as CSV."""
    for _ in _written(batches, path, None):
        pass


def _written(batches: Iterable[pa.RecordBatch], path: Any, delimiter: str | None) -> Iterator[int]:
    """Writes batches, and yields the number of the records of each."""
    options = pacsv.WriteOptions(delimiter=Dialect(delimiter).delimiter_of(path))
    _, found = with_one_schema(batches, "write_csv")
    plain = map(_plain, found)
    first = next(plain)
    with (
        text_output(path) as output,
        pacsv.CSVWriter(output, first.schema, write_options=options) as writer,
    ):
        for batch in itertools.chain([first], plain):
            try:
                writer.write_batch(batch)
            except pa.ArrowInvalid as error:
                fix = "Give schema= with pa.string() for text; CSV has no bytes that are not text."
                text = first_line(error)
                raise FormatError("write_csv", "text in UTF-8", text, fix) from error
            yield batch.num_rows


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch with the types that pyarrow writes."""
    if not batch.num_columns:
        fix = "Use JSON: xt.write_json."
        raise StructureError("write_csv", "at least one field", "records without fields", fix)
    expect_different("write_csv", batch.schema.names)
    columns = [_plain_column(f.name, c) for f, c in zip(batch.schema, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _plain_column(name: str, column: pa.Array) -> pa.Array:
    path = Path(name)
    expect_scalars(path, column.type)
    column = plain_values(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.binary())
    if pa.types.is_interval(column.type):
        fix = "Write Parquet or JSON, or leave the field out."
        raise UnsupportedTypeError(path, "a type that CSV has text for", str(column.type), fix)
    expect_text(column, path)
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        _expect_whole_minutes(column, path)
    return column


def _expect_whole_minutes(times: pa.Array, path: Path) -> None:
    """Raises FormatError if the zone is not whole minutes from UTC, as before about 1937."""
    try:
        local = pc.local_timestamp(times)
    except pa.ArrowInvalid:  # a zone that Arrow does not know, which is an error of its writer too
        return
    ahead = pc.subtract(local, times.cast(pa.timestamp(times.type.unit)))
    seconds = ahead.cast(pa.duration("s")).cast(pa.int64()).drop_null().to_numpy()
    if (odd := seconds[seconds % 60 != 0]).size:
        expected = "times of a zone that is whole minutes from UTC, as the text says"
        fix = (
            f"Give schema= with pa.timestamp({times.type.unit!r}, 'UTC'), or write JSON or Parquet."
        )
        raise FormatError(path, expected, f"{odd[0]} seconds, in {times.type.tz}", fix)
