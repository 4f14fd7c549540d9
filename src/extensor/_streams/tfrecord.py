"""TFRecord files of Examples or SequenceExamples: some records are a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.null_policy import policies_of
from extensor._arrow.schema import spec_from_schema
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._files.files import FilePath, files_at
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
        self.groups = groups_of_records(self.files, block)
        if wanted.schema is None and not self.num_records:
            expected = "at least one record, to find out the schema"
            fix = "TFRecord files have no schema: write records, or give schema=."
            raise StructureError(", ".join(file.path for file in self.files), expected, "none", fix)
        if message is None:
            chosen = range(len(self.groups) if wanted.schema is None else min(1, len(self.groups)))
            message = _message(self.in_order(chosen))
        records = _Messages(self)
        self.schema, context = wanted_features(
            wanted, records, message, records.name, keys, context, find_text
        )
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


def _message(groups: Iterable[tuple[int, Group]]) -> str:
    found = [
        message_of(each, name)[0] for _, group in groups for name, each in read_serialized([group])
    ]
    return SEQUENCE if SEQUENCE in found else EXAMPLE


class _Messages:
    """The messages of a source, one by one, and the name of the last one."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        for _, group in self._source.in_order(range(len(self._source.groups))):
            for name_of, each in read_serialized([group]):
                for number, one in enumerate(each.numpy()):
                    self._last = name_of, number
                    yield one

    def name(self, _: int) -> str:
        name_of, number = self._last
        return name_of(number)
