"""What the commands schema, head and convert do with records of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
import pyarrow as pa

from extensor._arrow.arrow_type import is_list
from extensor._cli.nulls_option import fill_of, option_for, paths_in
from extensor._formats.json.text import json_text
from extensor._path import Path
from extensor._progress import progress_bar
from extensor._streams.formats import known_format
from extensor._streams.read import open_stream
from extensor._streams.sink import write_stream
from extensor.errors import NullError


def schema_lines(files: Sequence[str], format: str | None) -> Iterator[str]:
    """Yields a line of the format and the number of records, and one of each path and its type.

    The errors are those of `open_stream`, also in the other functions.
    """
    source = open_stream(files, None, format)
    rows = [(path, _label(field)) for path, field in paths_in(source.schema)]
    width = max((len(path) for path, _ in rows), default=0)
    number = source.num_records
    noun = "record" if number == 1 else "records"
    yield source.format if number is None else f"{source.format}, {number:,} {noun}"
    for path, text in rows:
        yield f"{path:{width}}  {text}".rstrip()


def _label(field: pa.Field) -> str:
    """Returns the type of a path; the paths inside have their own."""
    arrow, note = field.type, "" if field.nullable else " not null"
    if pa.types.is_struct(arrow):
        return f"record{note}"
    if is_list(arrow):
        size = f" of {arrow.list_size}" if pa.types.is_fixed_size_list(arrow) else ""
        return f"list{size}{note}"
    if pa.types.is_map(arrow) or pa.types.is_union(arrow):
        return f"{'map' if pa.types.is_map(arrow) else 'union'}{note}"
    return f"{arrow}{note}"


def first_records(
    files: Sequence[str], count: int, columns: Sequence[str] | None, format: str | None
) -> Iterator[str]:
    """Yields the first records as JSON."""
    source = open_stream(files, columns, format)
    for batch in source.batches() if count else ():
        first = batch.slice(0, count)
        yield from json_text(first.to_struct_array(), Path(), True).to_pylist()
        count -= first.num_rows
        if not count:
            break


def convert_files(
    sources: Sequence[str],
    target: str,
    columns: Sequence[str] | None,
    *,
    formats: tuple[str | None, str | None],
    float32: bool,
    allow_nan: bool,
    nulls: Sequence[str],
    progress: bool | None,
) -> None:
    """Writes the records of files to another one; the arguments are the options of the command.

    Args:
        sources: The files.
        target: The file to write.
        columns: Paths of the fields to write; None for all.
        formats: The format of the files, and that of the target; None to go by the suffix.
        float32: Whether to write float64 as float32.
        allow_nan: Whether JSON may have NaN and Infinity.
        nulls: The options `PATH=VALUE`.
        progress: Whether to show a progress bar.
    """
    kind = known_format(target, formats[1])  # raises before anything is read
    if nulls and kind != "tfrecord":
        problem = f"{kind} keeps nulls: give it for TFRecord, which has none in lists."
        raise click.BadParameter(problem, param_hint="--nulls")
    source = open_stream(sources, columns, formats[0])
    with progress_bar("convert", progress, source.num_records, extra="cli") as advance:

        def count_rows() -> Iterator[pa.RecordBatch]:
            for batch in source.batches():
                yield batch
                advance(batch.num_rows)

        filled = dict(fill_of(each, source.schema) for each in nulls)
        try:
            write_stream(count_rows(), source.schema, target, kind, float32, allow_nan, filled)
        except NullError as error:
            fix = (
                f"Give a value in place of the nulls: {option_for(str(error.path), source.schema)}"
            )
            raise NullError(error.path, error.expected, error.received, fix) from error
