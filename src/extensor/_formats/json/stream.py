"""JSON files as a stream of record batches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import File
from extensor._formats.json.exact import exact_records
from extensor._formats.json.fast import fast_table
from extensor._formats.json.maps import PathTree
from extensor._formats.json.source import Text, compression_of, texts_of
from extensor._formats.json.types import InexactError, converted, joined
from extensor.errors import DTypeError, ExtensorError, FormatError

_CHUNK = 1 << 22
_UTF8_MARK = b"\xef\xbb\xbf"


class JsonFiles:
    """JSON files, read some megabytes at a time where each line is a record.

    Reads all records once to find out their types. A file that is not one object a line is read as
    a whole.

    Attributes:
        schema: The schema of all records.
        num_records: The number of records.

    Raises:
        FormatError, StructureError, DTypeError: As `read_json`.
    """

    def __init__(self, files: list[File]) -> None:
        self._files = files
        self.num_records = 0
        whole = pa.struct([])
        for text, line in self._texts():
            table = _table(text, line)
            found = pa.struct(list(table.schema))
            self.num_records += table.num_rows
            try:
                whole = joined(whole, found)
            except InexactError:
                raise _conflict(text, line, whole, found) from None
        self._record = whole
        self.schema = pa.schema(whole.fields)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the records of all files, in order.

        Raises:
            FormatError: If a file was changed since its types were found out (also a ValueError).
        """
        for text, line in self._texts():
            try:
                for batch in _table(text, line).to_batches():
                    records = converted(batch.to_struct_array(), self._record)
                    yield pa.RecordBatch.from_struct_array(records).cast(self.schema)
            except (InexactError, pa.ArrowException) as error:
                raise FormatError(
                    path=text.name,
                    expected="the records whose types were found out before",
                    received="others: the file was written to",
                    mend="Open the file again.",
                ) from error

    def _texts(self) -> Iterator[tuple[Text, int]]:
        """Yields the texts of the files, each with the number of lines before it."""
        for file in self._files:
            line = 0
            for block in _blocks(file):
                yield Text(file.path, pa.py_buffer(block)), line
                line += block.count(b"\n")


def _blocks(file: File) -> Iterator[bytes]:
    with file.open() as stream:
        compression = compression_of(stream.read(4))
    with file.stream(compression) as stream:
        try:
            block = stream.read(_CHUNK).removeprefix(_UTF8_MARK)
            if not _is_lines(block):
                [whole] = texts_of(file.path)
                yield bytes(whole.buffer)
                return
            while block:
                more = stream.read(_CHUNK)
                end = block.rfind(b"\n") + 1 if more else len(block)
                if end:
                    yield block[:end]
                block = block[end:] + more
        except (OSError, pa.ArrowInvalid) as error:
            if isinstance(error, ExtensorError) or getattr(error, "errno", None):
                raise
            raise FormatError(
                path=file.path,
                expected=f"a complete {compression} file",
                received=f"a file that does not decompress ({str(error).splitlines()[0]})",
                mend="Write or copy the file again.",
            ) from error


def _is_lines(block: bytes) -> bool:
    """Returns whether the first line of a text is a whole record, and other lines follow."""
    first, _, rest = block.lstrip().partition(b"\n")
    if not first.startswith(b"{") or not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _table(text: Text, line: int) -> pa.Table:
    """Returns the records of a text, and raises errors with the lines of the file.

    Args:
        text: The text.
        line: The number of lines before it in the file.
    """
    try:
        try:
            return fast_table([text], None, None)
        except InexactError:
            return exact_records([text], WantedTable(), "error", None, PathTree())[0]
    except ExtensorError as error:
        if not line:
            raise
        parts: dict[str, Any] = {
            part: _shifted(getattr(error, part), text.name, line)
            for part in ("path", "expected", "received")
        }
        raise type(error)(**parts, mend=error.mend) from error


def _shifted(text: str | None, name: str, line: int) -> str | None:
    if text is None:
        return None
    pattern = rf"(?:(?<={re.escape(name)}, )line (\d+)|line (\d+)(?= of {re.escape(name)}))"
    return re.sub(pattern, lambda found: f"line {int(found[1] or found[2]) + line}", text)


def _conflict(text: Text, line: int, one: pa.DataType, other: pa.DataType) -> DTypeError:
    path, ours, theirs = _different(one, other, "")
    return DTypeError(
        path=path,
        expected=f"values of one type, such as {ours} in earlier records",
        received=f"{theirs} after line {line} of {text.name}",
        mend="Correct the values, or read the file with read_json(conflicts='union').",
    )


def _different(one: pa.DataType, other: pa.DataType, path: str) -> tuple[str, str, str]:
    """Returns the path of the first values without a common type, and their types."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        names = {field.name: field.type for field in one.fields}
        for field in other.fields:
            try:
                joined(names.get(field.name, pa.null()), field.type)
            except InexactError:
                inner = f"{path}.{field.name}" if path else field.name
                return _different(names[field.name], field.type, inner)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _different(one.value_type, other.value_type, f"{path}[*]")
    return path, str(one), str(other)
