"""Reading of Delta tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._dependency import import_extra
from extensor._path import PathLike
from extensor._raised import first_line
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, FieldError, FormatError, MissingFileError

if TYPE_CHECKING:
    import deltalake
    import pyarrow.compute as pc

    from extensor._files.files import FilePath

_COLORS = re.compile("\x1b\\[[0-9;]*m")


def read_delta(
    table: FilePath | deltalake.DeltaTable,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    filter: pc.Expression | None = None,
    version: int | None = None,
    storage_options: dict[str, str] | None = None,
) -> StructuredTensor:
    """Returns the records of a Delta table.

    Args:
        table: The folder of the table, its URL, or a `deltalake.DeltaTable`.
        columns: Paths of the fields to read. Other columns of the table are not read. Default: all.
        schema: The spec of the records, or an Arrow schema. Default: that of the table.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        filter: Which records to read, such as `pc.field("population") > 1000`. Files whose
            statistics or partition exclude all records are not read.
        version: The version of the table. Default: the newest.
        storage_options: The options of a remote store, as in `deltalake.DeltaTable`.

    Returns:
        A StructuredTensor of shape `[number of records]`. The order is that of the files.

    Raises:
        MissingFileError: If there is no table, or a file of it is missing (also a
            FileNotFoundError).
        FormatError: If the version does not exist, a file is damaged, or the table uses a feature
            that the library cannot read, such as deletion vectors or column mapping (also a
            ValueError).
        MissingDependencyError: If `deltalake` is not installed (also an ImportError).
        DTypeError, NullError, FieldError, StructureError, UnsupportedTypeError: As in
            `from_arrow`.

    >>> import pyarrow as pa
    >>> import extensor as xt
    >>> import deltalake
    >>> folder = "."
    >>> deltalake.write_deltalake(folder, pa.table({"title": ["Tea"], "minutes": [[5, 2]]}))
    >>> xt.read_delta(folder).to_py()
    [{'title': 'Tea', 'minutes': [5, 2]}]
    """
    import pyarrow.dataset as ds  # here, because it imports pandas

    deltalake = import_extra("deltalake", "delta", "read_delta")
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    opened: Any = table
    if isinstance(table, deltalake.DeltaTable):
        name = str(opened.table_uri)
    elif isinstance(table, (str, os.PathLike)):
        name = os.path.expanduser(os.fsdecode(table))
    else:
        expected = "the path of a Delta table, or a deltalake.DeltaTable"
        fix = "Give the folder that contains _delta_log."
        raise DTypeError("table", expected, type(table).__name__, fix)
    try:
        if version is not None or not isinstance(table, deltalake.DeltaTable):
            # Of a table that is open; the attribute has no public name.
            store = storage_options or getattr(table, "_storage_options", None)
            opened = deltalake.DeltaTable(name, version, store)
        name = f"{name}, version {opened.version()}"
        # The columns of the files have other names, which the library compares where a table asks
        # for it by a feature, but not by the version of its protocol.
        if opened.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            raise _unreadable(name, "columnMapping: the columns of the files have other names")
        # Spark writes times as INT96, of which Arrow makes nanoseconds: 1677 to 2262 only.
        options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        dataset = opened.to_pyarrow_dataset(parquet_read_options=options)
        if filter is not None:
            _expect_filter(filter, dataset.schema, name)
        wanted.expect_columns(dataset.schema.names)
        fields = wanted.pruned(dataset.schema) if wanted.schema is None else wanted.schema
        names = [field.name for field in fields if field.name in dataset.schema.names]
        found = dataset.to_table(names, filter)
    except (deltalake.exceptions.TableNotFoundError, FileNotFoundError) as error:
        fix = "Check the path; the folder of a table contains _delta_log."
        raise MissingFileError(name, "a Delta table", _line(error), fix) from error
    except (pa.ArrowKeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _unreadable(name, _text(error)) from error
    except (deltalake.exceptions.DeltaError, OSError, OverflowError) as error:
        raise _unreadable(name, _text(error)) from error
    return wanted.records(found)


def _expect_filter(filter: Any, schema: pa.Schema, name: str) -> None:
    """Raises if a filter is no Expression, or does not fit the columns of a table."""
    try:
        schema.empty_table().filter(filter)
    except (pa.ArrowException, TypeError) as error:
        if "No match for FieldRef" in str(error):
            raise FieldError(
                f"{name}, filter", "columns of the table", _line(error), "Correct filter=."
            ) from error
        expected = "an Expression of pyarrow.compute that fits the columns"
        received = f"{str(filter)[:100]} ({_line(error)})"
        fix = 'Write filter=pc.field("population") > 1000.'
        raise DTypeError(f"{name}, filter", expected, received, fix) from error


def _unreadable(name: str, received: str) -> FormatError:
    fix = (
        "Check the version and the files; with deletion vectors or column mapping, read "
        "xt.from_arrow(deltalake.DeltaTable(path).scan())."
    )
    return FormatError(name, "a complete Delta table", received, fix)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {_line(error)}"


def _line(error: Exception) -> str:
    return _COLORS.sub("", first_line(error))
