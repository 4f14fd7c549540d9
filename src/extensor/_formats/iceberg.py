"""Reading of Iceberg tables."""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from extensor._arrow.wanted_table import WantedTable
from extensor._dependency import import_extra
from extensor._path import PathLike
from extensor._raised import first_line
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, ExtensorError, FormatError, MissingFileError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.io import FileIO, InputFile
    from pyiceberg.table import Table

    from extensor._files.files import FilePath


def read_iceberg(
    table: FilePath | Table,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    filter: str | BooleanExpression | None = None,
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
    import_extra("pyiceberg", "iceberg", "read_iceberg")
    tables = import_extra("pyiceberg.table", "iceberg", "read_iceberg")
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    name = "table"
    try:
        opened: Any = table
        if isinstance(table, (str, os.PathLike)):
            name = os.path.expanduser(os.fsdecode(table))
            opened = tables.StaticTable.from_metadata(name)
        elif not isinstance(table, tables.Table):
            expected = "a table of a pyiceberg catalog, or the path of a metadata file"
            fix = 'Give pyiceberg.catalog.load_catalog(name).load_table("shop.recipes").'
            raise DTypeError("table", expected, type(table).__name__, fix)
        name = str(opened.metadata_location)
        # The names of the columns, in the schema of the snapshot.
        scan = opened.scan(snapshot_id=snapshot_id)
        fields = scan.projection().as_arrow()
        known = [field.name for field in scan.projection().fields]
        wanted.expect_columns(known)
        fields = wanted.pruned(fields) if wanted.schema is None else wanted.schema
        # The scan takes a name with a dot for a path, so all columns are read.
        names = tuple(field.name for field in fields if field.name in known)
        if any("." in field for field in names) or not names:
            names = ("*",)
        scan = opened.scan(snapshot_id=snapshot_id, selected_fields=names)
        scan = scan.update(io=_check_manifests(scan.io))
        found = (scan if filter is None else scan.filter(filter)).to_arrow()
    except FileNotFoundError as error:
        expected = "the metadata file of an Iceberg table, and all its data files"
        fix = "Load the table from its catalog, or give the newest *.metadata.json."
        raise MissingFileError(name, expected, first_line(error), fix) from error
    except ExtensorError:
        raise
    except Exception as error:
        # The errors of pyiceberg have no common base. Its compiled reader raises SystemError for
        # damaged lengths.
        expected = "a complete Iceberg table with this snapshot, and a filter over its columns"
        fix = "Check snapshot_id=, filter= and the files."
        received = f"{type(error).__name__}: {first_line(error)}"
        raise FormatError(name, expected, received, fix) from error
    return wanted.records(found)


def _check_manifests(files: FileIO) -> FileIO:
    """Returns the files of a table, whose manifests are checked when they are opened.

    The compiled decoder of pyiceberg reads past the end of its memory if a length is damaged, which
    may end the process, and pyiceberg has no option for another one. So each manifest is decoded
    first by pyiceberg's decoder in Python. This takes less time than to read the data files that
    the manifest lists.

    Args:
        files: The FileIO of the table.
    """

    def new_input(location: str) -> InputFile | _Content:
        file = files.new_input(location)
        if not location.endswith(".avro"):
            return file
        with file.open() as stream:
            content = stream.read()
        try:
            _decode(content)
        except Exception as error:
            expected = "a complete manifest of an Iceberg table"
            received = f"{type(error).__name__}: {first_line(error)}"
            fix = "The file is damaged. Restore it, or read another snapshot."
            raise FormatError(location, expected, received, fix) from error
        return _Content(file, content)

    found: Any = copy.copy(files)  # of the same class, by which pyiceberg finds the data files
    found.new_input = new_input
    return found


class _Content:
    """An input file of pyiceberg whose content was read."""

    def __init__(self, file: InputFile, content: bytes) -> None:
        self._file, self._content = file, content

    def __getattr__(self, name: str) -> object:
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
