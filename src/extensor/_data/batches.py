"""Arrow record batches from any Python iterable as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.location import splits_dtype
from extensor._arrow.read import from_arrow
from extensor._arrow.schema import spec_from_schema
from extensor._data.argument import positive
from extensor._data.failing import failing_dataset
from extensor._data.feed import empty_dataset
from extensor._data.plan import PART_BYTES, PART_ROWS
from extensor._data.slab import batches_of
from extensor._data.stream import stream_to_its_end
from extensor.errors import DTypeError, ExtensorError, StructureError


def batches(
    source: Iterable[pa.RecordBatch] | Callable[[], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
    batch_size: int,
    drop_remainder: bool = False,
    row_splits_dtype: Any = tf.int64,
    nulls: Any = "error",
) -> tf.data.Dataset:
    """Returns a dataset that streams Arrow record batches in structured batches.

    Use it for sources that give Arrow data piece by piece, such as queries of a database.

    Args:
        source: The record batches: an iterable that can be iterated again, or a function that
            returns an iterable for each pass. A generator gives one pass only.
        schema: The schema of the record batches.
        batch_size: The number of records in a batch, whatever the sizes of the record batches.
        drop_remainder: Whether to drop a last batch that is not full. The batch size is then part
            of the static shape.
        row_splits_dtype: As in `from_arrow`.
        nulls: What to do with nulls, as in `from_arrow`.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`, of unknown cardinality. An iterator
        that is restored from a checkpoint reads the source from its beginning, and drops what it
        had read.

    Raises:
        StructureError: If `batch_size` is not a positive number (also a ValueError). During
            iteration: if a record batch has another schema, or an iterator is read a second time.
        DTypeError: If `source` is neither iterable nor a function (also a TypeError). During
            iteration: if it yields anything but record batches and tables.
        UnsupportedTypeError: As in `from_arrow`.

    >>> import pyarrow as pa
    >>> import extensor as xt
    >>> pieces = [pa.record_batch({"x": [1, 2, 3]}), pa.record_batch({"x": [4, 5]})]
    >>> for batch in xt.data.batches(pieces, pieces[0].schema, batch_size=2):
    ...     print(batch["x"].numpy())
    [1 2]
    [3 4]
    [5]
    """
    size = positive(batch_size, "batch_size", "Give the number of records in a batch.")
    if not callable(source) and not isinstance(source, Iterable):
        raise DTypeError(
            path="xt.data.batches: source",
            expected="an iterable of record batches, or a function that returns one",
            received=type(source).__name__,
            mend="Give a list, or a function such as lambda: reader().",
        )
    splits = splits_dtype(row_splits_dtype)
    spec = spec_from_schema(schema, size if drop_remainder else None, splits, nulls)
    return stream_to_its_end(_Source(source, schema, size, drop_remainder, spec, splits, nulls))


class _Source:
    """The feed of `batches`."""

    recipe = ""  # another process has no access to a Python iterable

    def __init__(
        self,
        source: Any,
        schema: pa.Schema,
        size: int,
        drop_remainder: bool,
        spec: Any,
        splits: tf.DType,
        nulls: Any,
    ) -> None:
        self.schema = schema
        self.size = size
        self.drop_remainder = drop_remainder
        self.spec = spec
        self.splits = splits
        self.nulls = nulls
        self._source = source
        self._is_read = False

    def begin(self) -> tuple[int, int]:
        """Returns the epoch and step of a pass, which a stream does not count."""
        return 0, 0

    def open(self, epoch: int, step: int) -> _Pass:
        """Begins a pass."""
        source: Any = self._source() if callable(self._source) else self._source
        if iter(source) is source and not callable(self._source):
            if self._is_read:
                raise StructureError(
                    path="xt.data.batches",
                    expected="an iterable that can be iterated again",
                    received=f"a {type(source).__name__}, which was read by another pass",
                    mend="Give a function that returns a new iterator.",
                )
            self._is_read = True
        return _Pass(self, iter(source))


class _Pass:
    """One pass over the record batches."""

    def __init__(self, feed: _Source, pieces: Iterator[Any]) -> None:
        self._feed = feed
        self._pieces = pieces
        self._number = 0
        self._records = 0
        self._parts = self._tables()
        self.is_over = False

    def load(self, number: int) -> tf.data.Dataset:
        """Returns a dataset of the batches of a part."""
        feed = self._feed
        while not self.is_over:
            table = next(self._parts, None)
            self._number += 1
            if table is None:
                self.is_over = True
            elif self._number > number:
                first, self._records = self._records, self._records + table.num_rows
                size = min(feed.size, table.num_rows)
                try:
                    records = from_arrow(table, feed.splits, feed.nulls)
                except ExtensorError as error:
                    received = f"{error.received} of those from record {first} on"
                    return failing_dataset(
                        type(error)(
                            path=error.path,
                            expected=error.expected,
                            received=received,
                            mend=error.mend,
                        ),
                        feed.spec,
                    )
                return batches_of(records, size, feed.spec)
            else:
                self._records += table.num_rows
        return empty_dataset()

    def close(self) -> None:
        """Closes the iterator, if it can be closed."""
        self.is_over = True
        close = cast("Callable[[], None] | None", getattr(self._pieces, "close", None))
        if close is not None and hasattr(self._pieces, "gi_frame"):
            close()

    def _tables(self) -> Iterator[pa.Table]:
        """Yields tables of a multiple of the batch size, and the remainder at the end."""
        size, pending = self._feed.size, list[pa.RecordBatch]()
        rows = nbytes = 0
        for number, piece in enumerate(self._pieces):
            for batch in self._checked(number, piece):
                pending.append(batch)
                rows += batch.num_rows
                nbytes += batch.nbytes
                if rows >= size and (rows >= PART_ROWS or nbytes >= PART_BYTES):
                    table = pa.Table.from_batches(pending)
                    yield table.slice(0, rows - rows % size)
                    pending = table.slice(rows - rows % size).to_batches()
                    rows %= size
                    nbytes = sum(batch.nbytes for batch in pending)
        if rows:
            table = pa.Table.from_batches(pending)
            full = rows - rows % size
            if full:
                yield table.slice(0, full)
            if full < rows and not self._feed.drop_remainder:
                yield table.slice(full)

    def _checked(self, number: int, piece: Any) -> Iterable[pa.RecordBatch]:
        where = f"xt.data.batches, record batch {number}"
        if not isinstance(piece, (pa.RecordBatch, pa.Table)):
            raise DTypeError(
                path=where,
                expected="a pyarrow.RecordBatch or Table",
                received=type(piece).__name__,
                mend="Convert it first, such as with pa.record_batch.",
            )
        if not piece.schema.equals(self._feed.schema):
            raise StructureError(
                path=where,
                expected=f"the schema {', '.join(map(str, self._feed.schema))}",
                received=", ".join(map(str, piece.schema)),
                mend="Cast it to the schema, or give its schema.",
            )
        return [piece] if isinstance(piece, pa.RecordBatch) else piece.to_batches()
