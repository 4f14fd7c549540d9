"""Reading of Iceberg tables."""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Iterable
from typing import Any

from extensor._arrow.wanted_table import WantedTable
from extensor._dependency import needed
from extensor._path import PathLike
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, ExtensorError, FormatError, MissingFileError


def read_iceberg(
    table: Any,
    columns: Iterable[PathLike] | None = None,
    schema: Any = None,
    nulls: Any = None,
    row_splits_dtype: Any = None,
    filter: Any = None,
    snapshot_id: int | None = None,
) -> StructuredTensor:
    """Returns the records of an Iceberg table.

    Args:
        table: A table of a catalog of `pyiceberg`, such as
            `pyiceberg.catalog.load_catalog("prod").load_table("shop.recipes")`, or the path or URL
            of a metadata file.
        columns: Paths of the fields to read. Other columns of the table are not read. Default: all.
        schema: The spec of the records, or an Arrow schema. Default: that of the table.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        filter: Which records to read: an expression of `pyiceberg.expressions`, or a text such as
            `"population > 1000"`. Files whose statistics exclude all records are not read.
        snapshot_id: The snapshot to read. Default: the current one.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingFileError: If there is no metadata file, or a data file is missing (also a
            FileNotFoundError).
        FormatError: If the snapshot does not exist, the filter is not valid, or a file is damaged
            (also a ValueError).
        MissingDependencyError: If `pyiceberg` is not installed (also an ImportError).
        DTypeError, NullError, FieldError, StructureError, UnsupportedTypeError: As in
            `from_arrow`.
    """
    needed("pyiceberg", "iceberg", "read_iceberg")
    tables = needed("pyiceberg.table", "iceberg", "read_iceberg")
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    name = "table"
    try:
        if isinstance(table, (str, os.PathLike)):
            name = os.path.expanduser(os.fsdecode(table))
            table = tables.StaticTable.from_metadata(name)
        elif not isinstance(table, tables.Table):
            raise DTypeError(
                "table",
                "a table of a pyiceberg catalog, or the path of a metadata file",
                type(table).__name__,
                'Give pyiceberg.catalog.load_catalog(name).load_table("shop.recipes").',
            )
        name = str(table.metadata_location)
        # The names of the columns, in the schema of the snapshot.
        scan = table.scan(snapshot_id=snapshot_id)
        fields = scan.projection().as_arrow()
        fields = wanted.pruned(fields) if wanted.schema is None else wanted.schema
        known = {field.name for field in scan.projection().fields}
        # The scan takes a name with a dot for a path, so all columns are read.
        names = tuple(field.name for field in fields if field.name in known)
        if any("." in field for field in names) or not names:
            names = ("*",)
        scan = table.scan(snapshot_id=snapshot_id, selected_fields=names)
        scan = scan.update(io=_checked(scan.io))
        found = (scan if filter is None else scan.filter(filter)).to_arrow()
    except FileNotFoundError as error:
        raise MissingFileError(
            name,
            "the metadata file of an Iceberg table, and all its data files",
            _line(error),
            "Load the table from its catalog, or give the newest *.metadata.json.",
        ) from error
    except ExtensorError:
        raise
    except Exception as error:
        # The errors of pyiceberg have no common base. Its compiled reader raises SystemError for
        # damaged lengths.
        raise FormatError(
            name,
            "a complete Iceberg table with this snapshot, and a filter over its columns",
            f"{type(error).__name__}: {_line(error)}",
            "Check snapshot_id=, filter= and the files.",
        ) from error
    return wanted.records(found)


def _checked(files: Any) -> Any:
    """Returns the files of a table, whose manifests are checked when they are opened.

    The compiled decoder of pyiceberg reads past the end of its memory if a length is damaged, which
    may end the process, and pyiceberg has no option for another one. So each manifest is decoded
    first by pyiceberg's decoder in Python. This takes less time than to read the data files that
    the manifest lists.

    Args:
        files: The FileIO of the table.
    """

    def new_input(location: str) -> Any:
        file = files.new_input(location)
        if not location.endswith(".avro"):
            return file
        with file.open() as stream:
            content = stream.read()
        try:
            _decode(content)
        except Exception as error:
            raise FormatError(
                location,
                "a complete manifest of an Iceberg table",
                f"{type(error).__name__}: {_line(error)}",
                "The file is damaged. Restore it, or read another snapshot.",
            ) from error
        return _Content(file, content)

    found = copy.copy(files)  # of the same class, by which pyiceberg finds the data files
    found.new_input = new_input
    return found


class _Content:
    """An input file of pyiceberg whose content was read."""

    def __init__(self, file: Any, content: bytes) -> None:
        self._file, self._content = file, content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def open(self, seekable: bool = True) -> io.BytesIO:
        return io.BytesIO(self._content)


def _decode(content: bytes) -> None:
    """Decodes an Avro file by its own schema, with a decoder that never leaves its memory."""
    from pyiceberg.avro.decoder import StreamingBinaryDecoder
    from pyiceberg.avro.file import META_SCHEMA, AvroFileHeader
    from pyiceberg.avro.resolver import construct_reader

    decoder = StreamingBinaryDecoder(content)
    header: Any = construct_reader(META_SCHEMA, {-1: AvroFileHeader}).read(decoder)
    reader: Any = construct_reader(header.get_schema())
    codec = header.compression_codec()
    while decoder.tell() < len(content):
        count, packed = decoder.read_int(), decoder.read_bytes()
        block = StreamingBinaryDecoder(codec.decompress(packed) if codec else packed)
        for _ in range(count):
            reader.read(block)
        if decoder.read(len(header.sync)) != header.sync:
            raise ValueError("a block without the mark at its end")


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "no reason given")
