"""TFRecord files as a stream of record batches, and which message a schema needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import is_list
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._files.files import File
from extensor._formats.tfrecord.files import message_of, serialized_batches
from extensor._formats.tfrecord.inferred import inferred
from extensor._formats.tfrecord.layout import EXAMPLE, SEQUENCE
from extensor._formats.tfrecord.parsed import Parser
from extensor.errors import StructureError


class TFRecordFiles:
    """TFRecord files of Examples or SequenceExamples, read batch by batch.

    Reads all records twice to find out their types. Bytes that are UTF-8 everywhere are text, and
    a single value that is missing is null.

    Attributes:
        schema: The schema of the features.
        num_records: The number of records.

    Raises:
        FormatError, DTypeError, StructureError: As `read_tfrecord`.
    """

    def __init__(self, files: list[File]) -> None:
        self._files = files
        self.num_records = 0
        message = EXAMPLE
        for name, serialized in self._serialized():
            self.num_records += int(tf.size(serialized))
            if message_of(serialized, name)[0] == SEQUENCE:
                message = SEQUENCE
        if not self.num_records:
            expected = "at least one record, to find out the schema"
            fix = "TFRecord files have no schema: write records, or another format."
            raise StructureError(", ".join(file.path for file in files), expected, "none", fix)
        self.schema, lists = inferred(self._each(), message, self._name, find_text=True)
        flat = [(field.name,) for field in self.schema if not is_list(field.type)]
        nulls: Any = {"*": "error", **{path: "mask" for path in flat}}
        wanted = WantedTable(schema=self.schema, nulls=nulls)
        context = lists if message == SEQUENCE else ()
        self._parser = Parser(wanted.spec(), message, wanted.nulls, None, context)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the records of all files, in order."""
        for name, serialized in self._serialized():
            yield to_arrow(self._parser.records(serialized, name), self.schema)

    def _serialized(self) -> Iterator[tuple[Any, tf.Tensor]]:
        """Yields batches of messages, each with a function that names one of them."""
        for file in self._files:
            first = 0
            for serialized in serialized_batches(file):
                yield _namer(first, file.path), serialized
                first += int(tf.size(serialized))

    def _each(self) -> Iterator[bytes]:
        for name, serialized in self._serialized():
            for number, one in enumerate(serialized.numpy()):
                self._place = name, number
                yield one

    def _name(self, _: int) -> str:
        name, number = self._place
        return name(number)


def _namer(first: int, path: str) -> Any:
    return lambda number: f"record {first + number} of {path}"


def message_for(schema: pa.Schema) -> str:
    """Returns the message that can hold records of a schema.

    >>> from extensor._formats.tfrecord.stream import message_for
    >>> import pyarrow as pa
    >>> message_for(pa.schema({"words": pa.list_(pa.list_(pa.string()))}))
    'SequenceExample'
    """
    return SEQUENCE if _lists(pa.struct(list(schema))) > 1 else EXAMPLE


def _lists(arrow: pa.DataType) -> int:
    if pa.types.is_struct(arrow):
        return max((_lists(field.type) for field in arrow.fields), default=0)
    # A list of a fixed size is a dense dimension.
    is_ragged = is_list(arrow) and not pa.types.is_fixed_size_list(arrow)
    return is_ragged + _lists(arrow.value_type) if is_list(arrow) else 0
