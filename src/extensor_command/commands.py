"""The commands and their options. What a command does is imported when it runs."""

from __future__ import annotations

import click

FINE, FOUND = 0, 1
"""The exit codes: all is well; a check found a fault."""

FORMATS = ("parquet", "arrow", "csv", "json", "tfrecord")
"""The formats, as in `extensor._streams.read`, whose import loads TensorFlow."""

_FORMAT = click.Choice(FORMATS)
# Shells complete the names of files; a command checks itself what it is given.
_PATH = click.Path(readable=False)
_EXIT = (
    "Exit codes: 0, all is well; 1, a check found a fault; 2, the command could not do its work."
)

_files = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_PATH)
_format = click.option(
    "--format", type=_FORMAT, help="The format of the files. Default: that of their suffix."
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
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=_EXIT
)
@click.version_option(None, "-V", "--version", package_name="extensor", prog_name="extensor")
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
    from extensor._cli.records import schema_lines

    for line in schema_lines(files, format):
        click.echo(line)


@extensor.command(
    short_help="Print the first records as JSON.",
    epilog="Example: extensor head -n 2 -c title recipes.parquet",
)
@_files
@click.option(
    "-n", "count", type=click.IntRange(0), default=5, help="The number of records. Default: 5."
)
@_columns
@_format
def head(files: tuple[str, ...], count: int, columns: tuple[str, ...], format: str | None) -> None:
    """Print the first records as JSON, one a line."""
    from extensor._cli.records import first_records

    for line in first_records(files, count, columns or None, format):
        click.echo(line)


@extensor.command(
    short_help="Write records in another format.",
    epilog="Example: extensor convert recipes.jsonl.gz recipes.parquet",
)
@click.argument("sources", metavar="IN...", nargs=-1, required=True, type=_PATH)
@click.argument("target", metavar="OUT", type=_PATH)
@click.option("--from", "source_format", type=_FORMAT, help="The format of IN.")
@click.option("--to", "target_format", type=_FORMAT, help="The format of OUT.")
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
    from extensor._cli.records import convert_files

    convert_files(
        sources,
        target,
        columns or None,
        formats=(source_format, target_format),
        float32=float32,
        allow_nan=allow_nan,
        nulls=nulls,
        progress=progress,
    )


@extensor.command(
    short_help="Print statistics of each path.",
    epilog="Example: extensor describe train.parquet --compare serving.parquet",
)
@_files
@click.option("--html", metavar="OUT", type=_PATH, help="Also write a page with histograms.")
@click.option(
    "--compare",
    metavar="OTHER",
    type=_PATH,
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
    from extensor._describe.describe import describe as describe_records

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
    from extensor._cli.laws_command import check_laws

    broken = check_laws(value)
    click.echo(broken or f"{value} keeps the laws of extension types.")
    return FOUND if broken else FINE


@extensor.command(
    "serve-check",
    short_help="Check that a server can run a SavedModel.",
    epilog="Example: extensor serve-check models/recipes/1",
)
@click.argument("model", metavar="MODEL", type=_PATH)
def serve_check(model: str) -> int:
    """Check that a server can run a SavedModel, and print its signatures and example requests.

    Each signature is called once, with an example that the request shows: its JSON is that of
    TensorFlow Serving.
    """
    from extensor._cli.serve_check import serve_report

    lines, faults = serve_report(model)
    for line in [*lines, *(f"Fault: {fault}" for fault in faults)]:
        click.echo(line)
    return FOUND if faults else FINE


_PORT = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port to listen on. Default: any free one.",
)


@extensor.group(
    "data-service",
    short_help="Start a process of tf.data service.",
    epilog="Example: extensor data-service dispatcher --port 5050",
)
def data_service() -> None:
    """Start a process of tf.data service, which reads datasets of xt.data for trainers.

    It prints its address, and runs until it gets SIGINT or SIGTERM.
    """


@data_service.command(
    epilog="Example: extensor data-service dispatcher --port 5050 --work-dir state"
)
@_PORT
@click.option(
    "--work-dir",
    metavar="FOLDER",
    help="A folder for the state, so that a dispatcher with this port and folder can be started "
    "again.",
)
def dispatcher(port: int, work_dir: str | None) -> None:
    """Divide datasets among workers."""
    from extensor._cli.data_service import serve, started_dispatcher

    server = started_dispatcher(port, work_dir)
    serve(server, f"dispatcher: {server.target}")


@data_service.command(
    epilog="Example: extensor data-service worker --dispatcher host:5050 --port 5051"
)
@click.option(
    "--dispatcher", metavar="HOST:PORT", required=True, help="The address of the dispatcher."
)
@_PORT
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="The address by which trainers reach this worker; %port% is its port. "
    "Default: localhost:%port%.",
)
def worker(dispatcher: str, port: int, address: str | None) -> None:
    """Read and convert records."""
    from extensor._cli.data_service import serve, started_worker

    serve(started_worker(dispatcher, port, address), f"worker: of {dispatcher}")
