"""What the commands schema, head and convert do with records of files."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
import pyarrow as pa

from extensor._arrow.arrow_type import decoded_type, inner_fields, is_list, is_string
from extensor._arrow.null_policy import fill
from extensor._formats.json.text import json_text
from extensor._path import Path, quote
from extensor._progress import progress_bar
from extensor._streams.read import known_format, open_stream
from extensor._streams.sink import write_stream
from extensor.errors import NullError


def schema_lines(files: Sequence[str], format: str | None) -> Iterator[str]:
    """Yields a line of the format and the number of records, and one of each path and its type.

    The errors are those of `open_stream`, also in the other functions.
    """
    source = open_stream(files, None, format)
    rows = [(path, _label(field)) for path, field in _paths_in(source.schema)]
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

        filled = dict(_fill_of(each, source.schema) for each in nulls)
        try:
            write_stream(count_rows(), source.schema, target, kind, float32, allow_nan, filled)
        except NullError as error:
            fix = (
                f"Give a value in place of the nulls: {_option_for(str(error.path), source.schema)}"
            )
            raise NullError(error.path, error.expected, error.received, fix) from error


def _paths_in(fields: Iterable[pa.Field], outer: str = "") -> Iterator[tuple[str, pa.Field]]:
    """Yields each path of an Arrow schema with its field, outer ones before those inside."""
    for field in fields:
        yield from _below(f"{outer}{quote(field.name)}", field)


def _below(path: str, field: pa.Field) -> Iterator[tuple[str, pa.Field]]:
    yield path, field
    arrow = field.type
    if pa.types.is_struct(arrow) or pa.types.is_union(arrow):
        yield from _paths_in(inner_fields(arrow), f"{path}.")
    elif pa.types.is_map(arrow):
        yield from _paths_in(inner_fields(arrow), f"{path}[*].")
    elif is_list(arrow):
        yield from _below(f"{path}[*]", arrow.value_field)


def _fill_of(text: str, schema: pa.Schema) -> tuple[str, Any]:
    """Returns the path, and the policy that puts the value in place of its nulls.

    Args:
        text: The option: `PATH=VALUE`. The value is text for a path of text, bytes or times, and
            JSON for all others.
        schema: The schema of the records.

    Raises:
        click.BadParameter: If it is not of this form, the records have no such path, or the value
            is not one of its type.
    """
    path, equal, value = text.partition("=")
    if not equal or not path:
        raise click.BadParameter(f"{text!r} is not PATH=VALUE.", param_hint="--nulls")
    types = {path: decoded_type(field.type) for path, field in _paths_in(schema)}
    if path not in types:
        raise click.BadParameter(
            f"there is no path {path!r}, but {', '.join(types)}.", param_hint="--nulls"
        )
    arrow = types[path]
    try:
        if is_string(arrow):
            return path, fill(value)
        if pa.types.is_nested(arrow) or pa.types.is_boolean(arrow) or _is_number(arrow):
            return path, fill(json.loads(value))
        if pa.types.is_time(arrow):
            return path, fill(datetime.time.fromisoformat(value))
        if pa.types.is_duration(arrow):  # Arrow reads no text of it: a number of units
            return path, fill(pa.scalar(int(value), arrow).as_py())
        return path, fill(pa.scalar(value).cast(arrow).as_py())
    except (ValueError, pa.ArrowException):
        problem = f"{value!r} is no value of type {arrow}, such as {_example(arrow)}."
        raise click.BadParameter(problem, param_hint=f"--nulls {path}") from None


def _option_for(path: str, schema: pa.Schema) -> str:
    """Returns the option with an example of a value for the nulls of a path."""
    types = {at: decoded_type(field.type) for at, field in _paths_in(schema)}
    return f"--nulls {shlex.quote(f'{path}={_example(types.get(path, pa.null()))}')}"


def _is_number(arrow: pa.DataType) -> bool:
    return pa.types.is_integer(arrow) or pa.types.is_floating(arrow)


def _example(arrow: pa.DataType) -> str:
    """Returns a value of a type as the option takes it."""
    if is_string(arrow):
        return ""
    if pa.types.is_time(arrow):
        return "00:00:00"
    if pa.types.is_timestamp(arrow):
        return "1970-01-01T00:00:00" + ("Z" if arrow.tz else "")
    if pa.types.is_date(arrow):
        return "1970-01-01"
    return json.dumps(_plain_example(arrow), separators=(",", ":"))


def _plain_example(arrow: pa.DataType) -> Any:
    arrow = decoded_type(arrow)
    if pa.types.is_struct(arrow):
        return {field.name: _plain_example(field.type) for field in arrow.fields}
    if pa.types.is_boolean(arrow):
        return False
    if is_string(arrow):
        return ""
    return [] if pa.types.is_nested(arrow) else 0
