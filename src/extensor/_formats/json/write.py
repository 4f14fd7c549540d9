"""write_json: StructuredTensors as JSON files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import pyarrow as pa

from extensor._arrow.batches import batches_of, num_records_of
from extensor._arrow.write import to_arrow
from extensor._files.files import FilePath
from extensor._files.output import text_output
from extensor._formats.json.text import json_lines
from extensor._progress import no_bar, progress_bar
from extensor._struct.tensor import StructuredTensor

_SLICE = 1 << 23  # bytes of Arrow data


def write_json(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath | IO[Any],
    schema: pa.Schema | None = None,
    *,
    lines: bool = True,
    allow_nan: bool = False,
    progress: bool | None = None,
) -> None:
    """Writes records as JSON: one object a line, or one array.

    A file appears at `path` only when it is complete. An invalid value is `null`. Timestamps,
    dates and times are text in ISO 8601, decimals are text, durations are integers in their unit,
    and bytes (Arrow's binary types) are base64: `read_json` reads all of them with `schema=`. A
    field of Arrow's map type becomes an object.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches, such as a dataset.
        path: The file, or a binary or text file object. `.gz`, `.zst`, `.bz2` and `.lz4` are
            compressed.
        schema: The Arrow schema to write, as in `to_arrow`.
        lines: Whether to write one object a line; otherwise, one array.
        allow_nan: Whether to write `NaN` and `Infinity`, which are not JSON, but which Python
            reads.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        DTypeError: If `records` is or yields anything but StructuredTensors of rank 1 (also a
            TypeError).
        FormatError: If a string is not UTF-8, a number is not finite, a time has no text in
            ISO 8601, or `path` is a device (also a ValueError).
        UnsupportedTypeError: If JSON has nothing for a type (also a TypeError).
        MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
            directory (also a FileNotFoundError, an IsADirectoryError).

    >>> import extensor as xt
    >>> import pathlib
    >>> path = "recipes.jsonl"
    >>> xt.write_json(xt.DenseStructuredTensor([2], {"title": ["a", "b"], "x": [1.0, 2.5]}), path)
    >>> print(pathlib.Path(path).read_text())
    {"title":"a","x":1.0}
    {"title":"b","x":2.5}
    """
    batches = (to_arrow(batch, schema) for batch in batches_of(records, "write_json"))
    with progress_bar("write_json", progress, num_records_of(records)) as advance:
        _write(batches, path, lines, allow_nan, advance)


def write(
    batches: Iterable[pa.RecordBatch], path: FilePath | IO[Any], allow_nan: bool = False
) -> None:
    """Writes Arrow record batches as JSON, one object a line."""
    _write(batches, path, True, allow_nan)


def _write(
    batches: Iterable[pa.RecordBatch],
    path: FilePath | IO[Any],
    lines: bool,
    allow_nan: bool,
    advance: Callable[[int], object] = no_bar,
) -> None:
    with text_output(path) as output:
        write = output.write
        if not lines:
            write(b"[")
        is_first = True
        for text, count in _texts(batches, allow_nan):
            # JSON text has no line breaks of its own.
            part = text if lines else text.to_pybytes()[:-1].replace(b"\n", b",\n")
            write(part if lines or is_first else b",\n" + part)
            is_first = False
            advance(count)
        if not lines:
            write(b"]\n")


def _texts(batches: Iterable[pa.RecordBatch], allow_nan: bool) -> Iterator[tuple[pa.Buffer, int]]:
    """Yields the text of some records, with a line break after each, and their number."""
    for batch in batches:
        array = batch.to_struct_array()
        count = max(1, len(array) * _SLICE // max(1, array.get_total_buffer_size()))
        for start in range(0, len(array), count):
            part = array.slice(start, count)
            yield json_lines(part, allow_nan), len(part)
