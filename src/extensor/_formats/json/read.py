"""read_json: JSON files, or text in memory, as StructuredTensors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import IO, Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._choice import expect_one_of
from extensor._files.file_path import FilePath
from extensor._files.part_cache import Cache
from extensor._files.store import READ_AHEAD, reading_as, reading_of
from extensor._formats.json.exact import exact_records
from extensor._formats.json.fast import fast_table
from extensor._formats.json.maps import map_paths, wide_objects
from extensor._formats.json.source import texts_of
from extensor._formats.json.types import InexactError
from extensor._path import Path, PathLike
from extensor._progress import progress_bar
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike


def read_json(
    source: FilePath | bytes | IO[Any] | Iterable[FilePath | bytes | IO[Any]],
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    conflicts: str = "error",
    row_splits_dtype: DTypeLike | None = None,
    *,
    records: PathLike | None = None,
    maps: Iterable[PathLike] = (),
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
    progress: bool | None = None,
) -> StructuredTensor:
    r"""Returns the records of JSON files, or of JSON text in memory, as a StructuredTensor.

    A text has one object after another, such as one a line; or one array of objects; or, with
    `records=`, one object that contains the records.

    Numbers are int64 and float64. Text stays text, also if it looks like a date. The fields follow
    from all records. Compressed text (gzip, zstd, bz2, lz4) is decompressed.

    Args:
        source: A path, a URL, a folder, a glob pattern; bytes of JSON text; a file object; or a
            list of these, whose records are concatenated.
        columns: Paths of the fields to read, such as `["title", "steps.minutes"]`. Fields come in
            this order. Default: all.
        schema: A spec, such as `xt.spec_of(records)`, or a pyarrow Schema. Other fields are not
            read. Text in ISO 8601 becomes timestamps, dates and times, and base64 becomes bytes,
            where the schema has these types.
        nulls: What becomes of nulls and missing fields: `"error"` (the default), `"mask"` for a
            MaskedTensor, `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by
            path. More in `xt.from_arrow`.
        conflicts: What becomes of a field whose values have different types: `"error"` (the
            default), or `"union"` for a UnionTensor.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        records: The path of the records in a text that is one object: an array of objects, or an
            object whose values are the records, which become records of `key` and `value`. `()` is
            the object itself.
        maps: The paths of objects whose keys are data, such as ids. They become lists of records
            of `key` and `value`.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingFileError: If a file does not exist (also a FileNotFoundError).
        FormatError: If a text is not JSON or not UTF-8, or a file is truncated (also a ValueError).
        StructureError: If a value is not a record, or records and lists are in one field (also a
            ValueError).
        DTypeError: If values of one field have several types, or a number does not fit (also a
            TypeError).
        FieldError: If a path of `columns`, `records` or `maps` does not exist (also a KeyError).
        NullError: If a value is null or missing, and `nulls` does not say what to do (also a
            ValueError).

    >>> import extensor as xt
    >>> xt.read_json(b'{"title": "Tea", "minutes": [5]}\n{"title": "Bread", "minutes": []}')
    <StructuredTensor shape=(2,) {title: string, minutes: int64[*]}
     [{title: 'Tea', minutes: [5]}, {title: 'Bread', minutes: []}]>
    """
    expect_one_of(("error", "union"), conflicts, "read_json: conflicts")
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    path = None if records is None else Path.of(records).names
    keyed = map_paths(maps, wanted.schema)
    with reading_as(reading_of(read_ahead, cache)):
        texts = texts_of(source)
    size = sum(text.buffer.size for text in texts)
    try:
        if keyed:
            raise InexactError
        with progress_bar("read_json", progress, size, "B") as advance:
            table = fast_table(texts, wanted.schema, path, advance)
    except InexactError:
        with progress_bar("read_json, parsing", progress, size, "B") as advance:
            table = exact_records(texts, wanted, conflicts, path, keyed, advance)
        if isinstance(table, StructuredTensor):
            return table
    if wanted.schema is None:
        chunks = [batch.to_struct_array() for batch in table.to_batches()]
        for text in wide_objects(pa.struct(list(table.schema)), chunks):
            warnings.warn(text, UserWarning, stacklevel=2)
    return wanted.records(table)
