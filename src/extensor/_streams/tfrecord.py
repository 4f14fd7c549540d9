"""TFRecord files of Examples or SequenceExamples: some records are a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.null_policy import policies_of
from extensor._arrow.schema import spec_from_schema
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._files.files import File, FilePath, files_at
from extensor._formats.tfrecord.files import message_of, wanted_features
from extensor._formats.tfrecord.layout import EXAMPLE, SEQUENCE
from extensor._formats.tfrecord.parsed import Parser, with_nullable
from extensor._path import Path, PathLike
from extensor._streams.serialized import groups_of_records, read_serialized
from extensor._streams.source import Group, Source
from extensor.errors import StructureError


class TFRecordSource(Source):
    """The records of TFRecord files. Without a schema, all are parsed once, in Python.

    Args:
        paths: The files.
        wanted: The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`.
        message: As in `read_tfrecord`, like `keys` and `context`.
        keys: The names of features by path.
        context: The paths of lists in the context.
        find_text: Whether bytes that are UTF-8 everywhere are text, without a schema.
        block: The approximate size in bytes of the records that are read at once.
    """

    def __init__(
        self,
        paths: FilePath | Iterable[FilePath],
        wanted: WantedTable,
        message: str | None = None,
        keys: Mapping[PathLike, str] | None = None,
        context: Iterable[PathLike] = (),
        find_text: bool = False,
        block: int | None = None,
    ) -> None:
        super().__init__(files_at(paths))
        records = _Messages(self.files, block, message)
        if wanted.schema is not None:
            records.find_groups()
        self.schema, found = wanted_features(
            wanted, records, message or SEQUENCE, records.name, keys, context, find_text
        )
        self.groups, message = records.groups, records.message
        # An Example was parsed as a SequenceExample, of which it is the context.
        context = [] if wanted.schema is None and message == EXAMPLE else found
        self._wanted = wanted = with_nullable(wanted, self.schema)
        self._message, self._keys, self._context = message, keys or {}, context
        # Raises for what names no field.
        self._parser = Parser(wanted.spec(self.schema), message, wanted.nulls, keys, context)

    def pruned(self, schema: pa.Schema) -> Source:
        """Returns the same records with some of their fields; see `Source`."""
        nulls = policies_of(self._wanted.nulls, [str(Path(*path)) for path in leaf_paths(schema)])
        spec = spec_from_schema(schema, None, self._wanted.row_splits_dtype, nulls)
        paths = {path for path, _ in spec.leaves()}
        keys = {path: key for path, key in self._keys.items() if Path.of(path) in paths}
        context = [path for path in self._context if Path.of(path) in paths]
        found: Any = super().pruned(schema)
        found._parser = Parser(spec, self._message, nulls, keys, context)
        return found

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of groups of a file; see `Source`."""
        for name_of, messages in read_serialized(groups):
            yield to_arrow(self._parser.records(messages, name_of), self.schema)


class _Messages:
    """The messages of TFRecord files, one by one; each file is read once.

    Args:
        files: The files.
        block: As in `groups_of_records`.
        message: Which message they are; None to find it out.

    Attributes:
        groups: The groups of those that were read.
        message: Which message they are.
    """

    def __init__(self, files: Sequence[File], block: int | None, message: str | None) -> None:
        self._files, self._given = files, message
        self._pairs = groups_of_records(files, block)
        self.groups: list[Group] = []
        self.message = message or EXAMPLE

    def find_groups(self) -> None:
        """Finds the groups of all files, and by the first which message they are."""
        for group, local in self._pairs:
            if self._given is None and not self.groups:
                for name_of, each in read_serialized([local]):
                    self._find_message(name_of, each)
            self.groups.append(group)

    def __iter__(self) -> Iterator[bytes]:
        for group, local in self._pairs:
            self.groups.append(group)
            for name_of, each in read_serialized([local]):
                self._find_message(name_of, each)
                for number, one in enumerate(each.numpy()):
                    self._last = name_of, number
                    yield one
        if not any(group.rows for group in self.groups):
            expected = "at least one record, to find out the schema"
            fix = "TFRecord files have no schema: write records, or give schema=."
            raise StructureError(
                ", ".join(file.path for file in self._files), expected, "none", fix
            )

    def _find_message(self, name_of: Callable[[int], str], messages: tf.Tensor) -> None:
        if self._given is None and message_of(messages, name_of)[0] == SEQUENCE:
            self.message = SEQUENCE

    def name(self, _: int) -> str:
        """Returns the name of the last message."""
        name_of, number = self._last
        return name_of(number)
