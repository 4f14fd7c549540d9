"""Which format a file has, by its suffix."""

from __future__ import annotations

import os
from collections.abc import Sequence

from extensor._files.compression import COMPRESSED
from extensor._files.files import File
from extensor.errors import FormatError

SUFFIXES = {
    "parquet": (".parquet", ".parq", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "csv": (".csv", ".tsv"),
    "json": (".json", ".jsonl", ".ndjson", ".geojson"),
    "tfrecord": (".tfrecord", ".tfrecords"),
}
"""The suffixes of the files of each format."""


def format_of(path: str) -> str | None:
    """Returns the format of a path by its suffix, or None.

    >>> from extensor._streams.formats import format_of
    >>> format_of("gs://bucket/recipes.jsonl.gz")
    'json'
    """
    name = os.path.basename(path).lower()
    for end in COMPRESSED:
        name = name.removesuffix(end)
    return next((known for known, ends in SUFFIXES.items() if name.endswith(ends)), None)


def format_of_files(files: Sequence[File], given: str | None) -> str:
    """Returns the format of files.

    Args:
        files: At least one file.
        given: The format that the caller names; None to go by the suffixes.

    Raises:
        FormatError: If a suffix is not known, or the files have several formats.
    """
    first = known_format(files[0].path, given)
    for file in files[1:]:
        if known_format(file.path, given) != first:
            expected = f"a file of format {first}, as {files[0].path}"
            fix = "Give files of one format, or name the format."
            raise FormatError(file.path, expected, f"format {format_of(file.path)}", fix)
    return first


def known_format(path: str, given: str | None = None) -> str:
    """Returns the format of a path.

    Args:
        path: The path.
        given: The format that the caller names; None to go by the suffix.

    Raises:
        FormatError: If the suffix is not known, or `given` is no format (also a ValueError).
    """
    if given is not None and given not in SUFFIXES:
        fix = "Leave it out to go by the suffix of the file."
        raise FormatError("format", f"one of {', '.join(SUFFIXES)}", repr(given)[:60], fix)
    found = given or format_of(path)
    if found is None:
        known = ", ".join(ends[0] for ends in SUFFIXES.values())
        expected = f"a suffix of a known format, such as {known}"
        received = f"the suffix {os.path.splitext(path)[1]!r}"
        raise FormatError(path, expected, received, f"Name the format: {', '.join(SUFFIXES)}.")
    return found
