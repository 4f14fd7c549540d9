"""Files of serialized protocol buffers: some messages are a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import tensorflow as tf
from google.protobuf.descriptor import Descriptor

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.null_policy import policies_of
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._files.files import FilePath, files_at
from extensor._formats.protobuf.read import from_proto, spec_from_proto
from extensor._path import Path, PathLike
from extensor._streams.serialized import groups_of_messages, read_serialized
from extensor._streams.source import Group, Source
from extensor._struct.tensor import StructuredTensor
from extensor._typing import NullsLike
from extensor.errors import ExtensorError


class ProtoSource(Source):
    """The messages of TFRecord files, and of files of messages after their lengths.

    Args:
        paths: The files.
        wanted: The spec of the records, as `spec_from_proto` returns it.
        message: The descriptor of the messages.
        columns: As in `from_proto`, like `schema`, `policies` (its `nulls`) and `max_depth`.
        schema: The schema of the records, as the caller gave it.
        policies: What a field becomes that a message does not have.
        max_depth: How often a message type is read inside itself.
    """

    def __init__(
        self,
        paths: FilePath | Iterable[FilePath],
        wanted: WantedTable,
        message: Descriptor,
        columns: Iterable[PathLike] | None,
        schema: pa.Schema | None,
        policies: NullsLike | None,
        max_depth: int | None,
    ) -> None:
        super().__init__(files_at(paths))
        assert wanted.schema is not None
        self.schema = wanted.schema
        self.groups = groups_of_messages(self.files)
        self._arguments = message, columns, schema, policies, wanted.row_splits_dtype, max_depth

    def pruned(self, schema: pa.Schema) -> Source:
        """Returns the same messages with some of their fields; see `Source`."""
        message, _, types, policies, *rest = self._arguments
        names = [str(Path(*path)) for path in leaf_paths(schema)]
        found: Any = super().pruned(schema)
        found._arguments = message, names, types, policies_of(policies, names), *rest
        spec_from_proto(*found._arguments)  # raises for what does not fit
        return found

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the messages of groups of a file; see `Source`."""
        for name_of, messages in read_serialized(groups):
            yield to_arrow(self._records(messages, name_of), self.schema)

    def _records(self, messages: tf.Tensor, name_of: Callable[[int], str]) -> StructuredTensor:
        try:
            return from_proto(messages, *self._arguments)
        except ExtensorError as error:
            if error.received is None:
                raise
            received = f"{error.received} (counted from {name_of(0)})"
            raise type(error)(error.path, error.expected, received, error.fix) from error
