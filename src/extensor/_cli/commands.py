"""The commands and their options."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pyarrow as pa

from extensor import __version__
from extensor._arrow.arrow_type import is_list
from extensor._cli.data_service import data_service
from extensor._cli.laws_command import check_laws
from extensor._cli.nulls_option import fill_of, option_for, paths_in
from extensor._cli.serve_check import serve_report
from extensor._describe.describe import describe as describe_records
from extensor._formats.json.text import json_text
from extensor._path import Path
from extensor._progress import progress_bar
from extensor._streams.formats import SUFFIXES, known_format
from extensor._streams.read import open_stream
from extensor._streams.sink import write_stream
from extensor.errors import NullError

FINE, FOUND = 0, 1
"""The exit codes: all is well; a check found a fault."""

_FORMATS = click.Choice(list(SUFFIXES))
_EXIT = (
    "Exit codes: 0, all is well; 1, a check found a fault; 2, the command could not do its work."
)

_files = click.argument("files", metavar="FILE...", nargs=-1, required=True)
_format = click.option(
    "--format", type=_FORMATS, help="The format of the files. Default: that of their suffix."
)
_columns = click.option(
    "--column",
    "-c",
    "columns",
    metavar="PATH",
    multiple=True,
    help="A field to read, such as steps.minutes; give it again for more. Default: all.",
)
_progress = click.option(
    "--progress/--no-progress",
    default=None,
    help="Whether to show a progress bar. Default: on a terminal, after a second.",
)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXIT,
)
@click.version_option(__version__, "-V", "--version", prog_name="extensor")
def extensor() -> None:
    """Look at, convert and check files of nested records, and models that take them.

    The formats are parquet, arrow (also Feather), csv, json (an object a line, or one array) and
    tfrecord (of tf.Example or tf.SequenceExample). FILE may be a folder, a pattern such as
    'part-*.parquet', or a URL.
    """


@extensor.command(epilog="Example: extensor schema recipes.parquet")
@_files
@_format
def schema(files: tuple[str, ...], format: str | None) -> None:
    """Print the type of each path of the records."""
    source = open_stream(files, None, format)
    rows = [(path, _label(field)) for path, field in paths_in(source.schema)]
    width = max((len(path) for path, _ in rows), default=0)
    number = source.num_records
    noun = "record" if number == 1 else "records"
    click.echo(source.format if number is None else f"{source.format}, {number:,} {noun}")
    for path, text in rows:
        click.echo(f"{path:{width}}  {text}".rstrip())


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


@extensor.command(
    short_help="Print the first records as JSON.",
    epilog="Example: extensor head -n 2 -c title recipes.parquet",
)
@_files
@click.option("-n", "count", type=click.IntRange(0), default=5, help="How many. Default: 5.")
@_columns
@_format
def head(files: tuple[str, ...], count: int, columns: tuple[str, ...], format: str | None) -> None:
    """Print the first records as JSON, one a line."""
    source = open_stream(files, columns or None, format)
    for batch in source.batches() if count else ():
        for text in json_text(batch.slice(0, count).to_struct_array(), Path(), True).to_pylist():
            click.echo(text)
        count -= min(count, batch.num_rows)
        if not count:
            break


@extensor.command(
    short_help="Write records in another format.",
    epilog="Example: extensor convert recipes.jsonl.gz recipes.parquet",
)
@click.argument("sources", metavar="IN...", nargs=-1, required=True)
@click.argument("target", metavar="OUT")
@click.option("--from", "source_format", type=_FORMATS, help="The format of IN.")
@click.option("--to", "target_format", type=_FORMATS, help="The format of OUT.")
@click.option("--float32", is_flag=True, help="Write float64 as float32, with fewer digits.")
@click.option("--allow-nan", is_flag=True, help="Write NaN and Infinity, which are not JSON.")
@click.option(
    "--nulls",
    metavar="PATH=VALUE",
    multiple=True,
    help="A value in place of the nulls of a path, such as 'scores[*]=0' or 'tags[*]=none'; for "
    "TFRecord, which has no nulls in lists. Lists, records and bools are JSON. Give it again for "
    "more.",
)
@_columns
@_progress
def convert(
    sources: tuple[str, ...],
    target: str,
    source_format: str | None,
    target_format: str | None,
    float32: bool,
    allow_nan: bool,
    nulls: tuple[str, ...],
    columns: tuple[str, ...],
    progress: bool | None,
) -> None:
    """Write the records of IN to OUT, in the format of its suffix.

    Memory holds some megabytes at a time. OUT appears only when it is complete; an existing file
    is replaced. JSON and TFRecord files are read twice, the first time to find out their types.
    TFRecord holds no float64 (give --float32), and no lists of lists of lists.
    """
    kind = known_format(target, target_format)  # raises before anything is read
    source = open_stream(sources, columns or None, source_format)
    with progress_bar("convert", progress, source.num_records, extra="cli") as advance:

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in source.batches():
                yield batch
                advance(batch.num_rows)

        filled = dict(fill_of(each, source.schema) for each in nulls)
        try:
            write_stream(counted(), source.schema, target, kind, float32, allow_nan, filled)
        except NullError as error:
            fix = (
                f"Give a value in place of the nulls: {option_for(str(error.path), source.schema)}"
            )
            raise NullError(error.path, error.expected, error.received, fix) from error


@extensor.command(
    short_help="Print statistics of each path.",
    epilog="Example: extensor describe train.parquet --compare serving.parquet",
)
@_files
@click.option("--html", metavar="OUT", help="Also write a page with histograms.")
@click.option(
    "--compare",
    metavar="OTHER",
    multiple=True,
    help="Other files; exit with 1 if the values of a path have drifted there.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.1,
    help="The largest distance that is no drift. Default: 0.1.",
)
@_columns
@_format
@_progress
def describe(
    files: tuple[str, ...],
    html: str | None,
    compare: tuple[str, ...],
    threshold: float,
    columns: tuple[str, ...],
    format: str | None,
    progress: bool | None,
) -> int:
    """Print statistics of each path: counts, nulls, lengths, quantiles, frequent strings."""
    found = describe_records(files, columns or None, format=format, progress=progress)
    shown, code = found, FINE
    if compare:
        other = describe_records(compare, columns or None, format=format, progress=progress)
        shown = found.compare(other, threshold)
        code = FOUND if shown.drifted else FINE
    if html is not None:
        shown.write_html(html)
    click.echo(shown)
    return code


@extensor.command(
    short_help="Check the laws of extension types.",
    epilog="Example: extensor check recipes.types:small_recipe",
)
@click.argument("value", metavar="MODULE:VALUE")
def check(value: str) -> int:
    """Check a value, or a list of values, against the laws of extension types.

    MODULE is imported, also from the working directory. VALUE is a name in it: a value, a list of
    values of one type, a spec, or a function without arguments that returns one of these.
    """
    broken = check_laws(value)
    click.echo(broken or f"{value} keeps the laws of extension types.")
    return FOUND if broken else FINE


@extensor.command(
    "serve-check",
    short_help="Check that a server can run a SavedModel.",
    epilog="Example: extensor serve-check models/recipes/1",
)
@click.argument("model", metavar="MODEL")
def serve_check(model: str) -> int:
    """Check that a server can run a SavedModel, and print its signatures and example requests.

    Each signature is called once, with an example that the request shows: its JSON is that of
    TensorFlow Serving.
    """
    lines, faults = serve_report(model)
    for line in [*lines, *(f"Fault: {fault}" for fault in faults)]:
        click.echo(line)
    return FOUND if faults else FINE


extensor.add_command(data_service)
