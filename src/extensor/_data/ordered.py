"""Datasets of sources that are read from their beginning, such as the result of a query.

The number of records of such a source is not known. A position in it is a number of batches:
to go on there, the batches before it are read and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.batches import tables_of_size
from extensor._arrow.chosen_columns import chosen_columns, pruned_schema
from extensor._arrow.null_policy import policies_of
from extensor._arrow.wanted_table import WantedTable
from extensor._data.ahead import ReadAhead
from extensor._data.conversion import Conversion, concatenate
from extensor._data.dataset import Wanted, dataset_of_feed
from extensor._data.feed import RecordFeed
from extensor._data.plan import PART_BYTES, PART_ROWS, rows_after, take_rows
from extensor._data.position import Passes, Positioned
from extensor._pruning.fields import FieldsUsed
from extensor._typing import NullsLike
from extensor.errors import StructureError

Opened = Callable[[pa.Schema], Iterator[pa.RecordBatch]]
"""Begins to read a source. Yields record batches with at least the fields of a schema."""


class OrderedPlan(Positioned):
    """What is read when.

    Args:
        name: The name of the function, for errors.
        identity: What differs between sources, as data that JSON can represent.
        unordered: What the source lacks to have one order, as the end of a sentence; None if it has
            one.
        passes: The arguments.
    """

    schema: pa.Schema
    """The schema of the records."""

    def __init__(self, name: str, identity: object, unordered: str | None, passes: Passes) -> None:
        super().__init__(passes)
        self._name = name
        self._identity = identity
        self._unordered = unordered
        self.steps_read: int | None = None
        """The number of batches in the last epoch that was read to its end."""
        self.unfinished: list[OrderedPass] = []
        """Passes that were closed while a part was read: their sources are not closed yet."""
        if self.shard[1] > 1:
            self.expect_order("shard")

    def expect_order(self, argument: str) -> None:
        """Raises StructureError if the source may give its records in another order next time."""
        if self._unordered is not None:
            expected = "a source that gives the same records in the same order each time"
            fix = "Give order_by= with the columns that make a record unique" + (
                ", or choose the records of the shard in WHERE." if argument == "shard" else "."
            )
            raise StructureError(f"{self._name}: {argument}", expected, self._unordered, fix)

    def identity(self) -> object:
        """Returns what differs between sources."""
        return [self._name, self._identity, self.schema.to_string(show_schema_metadata=False)]

    @property
    def steps(self) -> int | None:
        """The number of batches in an epoch, once one was read to its end."""
        return self.steps_read

    @property
    def steps_per_shard(self) -> int:
        """Raises an error, because the number of records is not known.

        Raises:
            StructureError: Always.
        """
        expected = "a dataset of files, whose number of records is known"
        received = "one of a source that is read from its beginning"
        fix = "Count the records first: shards differ by one record at most."
        raise StructureError(self._name, expected, received, fix)


def dataset_in_order(
    plan: OrderedPlan, opened: Opened, schema: pa.Schema, wanted: Wanted, passes: Passes
) -> tf.data.Dataset:
    """Returns a dataset of the records of a source that is read from its beginning.

    Args:
        plan: What is read when.
        opened: Begins to read the source.
        schema: The schema of the records.
        wanted: Which records the dataset yields.
        passes: Which batches its passes have.
    """
    plan.schema = schema
    feed = OrderedFeed(plan, opened, schema, wanted.row_splits_dtype, wanted.nulls)
    return dataset_of_feed(feed, wanted, passes)


class OrderedFeed(RecordFeed):
    """The batches of a source that is read from its beginning.

    Args:
        plan: What is read when.
        opened: Begins to read the source.
        schema: The schema of the records.
        splits: As `row_splits_dtype` of `from_arrow`.
        nulls: As in `from_arrow`.
    """

    def __init__(
        self,
        plan: OrderedPlan,
        opened: Opened,
        schema: pa.Schema,
        splits: tf.DType,
        nulls: NullsLike,
    ) -> None:
        # It has no serialized form: another process has no access to the source.
        super().__init__(plan, Conversion(plan, schema, splits, nulls))
        self.plan = plan
        self.opened = opened
        self.schema = schema

    def with_fields(self, fields: FieldsUsed) -> OrderedFeed:
        """Returns the same batches with some of their fields."""
        schema = pruned_schema(self.schema, chosen_columns(fields, self.schema))
        nulls = policies_of(self.conversion.nulls, fields)
        return OrderedFeed(self.plan, self.opened, schema, self.conversion.splits, nulls)

    def open(self, epoch: int, step: int) -> OrderedPass:
        """Begins a pass."""
        return OrderedPass(self, epoch, step)


class OrderedPass(ReadAhead):
    """One pass over a source; its parts are read one after another, one ahead.

    Args:
        feed: The feed.
        epoch: The number of the first epoch.
        step: The number of batches to drop.
    """

    def __init__(self, feed: OrderedFeed, epoch: int, step: int) -> None:
        super().__init__(place=(epoch, step))
        self._feed = feed
        self._plan = feed.plan
        self._tables = self._all(epoch, step)
        self._number = -1  # of the last part that was read

    def _close_source(self) -> None:
        self._tables.close()

    def _close_later(self) -> None:
        self._plan.unfinished.append(self)

    def _load(self, number: int) -> tf.data.Dataset | None:
        # A source may be a connection that reads one result at a time.
        while self._plan.unfinished and not self._is_closed:
            self._plan.unfinished.pop().finish()
        return super()._load(number)

    def _read(self, number: int) -> tf.data.Dataset | None:
        if number <= self._number:  # an iterator was restored in a part that another one has read
            self._tables.close()
            self._tables, self._number = self._all(*self.entry.place), -1
        found = None
        while self._number < number:
            found = next(self._tables, None)
            if found is None:
                break
            self._number += 1
        if found is None:
            return None
        first, table = found
        return concatenate(self._feed.conversion.batches(table, self._plan.batch_size, first))

    def _all(self, epoch: int, step: int) -> Generator[tuple[int, pa.Table]]:
        """Yields tables of a multiple of the batch size, and the remainder of each epoch.

        Each comes with the number of its first record in the epoch.
        """
        size, left = self._plan.batch_size, step
        for number in range(epoch, self._feed.plan.pass_after((epoch, step))[0]):
            first = steps = 0
            for table in self._cut(self._records(number)):
                count = -(-table.num_rows // size)
                steps += count
                if left < count:
                    yield first + left * size, rows_after(table, left * size)
                left = max(0, left - count)
                first += table.num_rows
            self._plan.steps_read = steps
        if left:
            expected = f"a source of at least {step} batches, as when the state was made"
            fix = "Give the source that the state is of, or begin again."
            raise StructureError("state", expected, f"one of {step - left}", fix)

    def _cut(self, records: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        size, pending = self._plan.batch_size, list[pa.RecordBatch]()
        rows = nbytes = 0
        failed: Exception | None = None  # is raised after the batches before it
        while True:
            try:
                batch = next(records, None)
            except Exception as error:
                failed = error
                break
            if batch is None:
                break
            pending.append(batch)
            rows += batch.num_rows
            nbytes += batch.nbytes
            if rows >= size and (rows >= PART_ROWS or nbytes >= PART_BYTES):
                table = pa.Table.from_batches(pending)
                yield table.slice(0, rows - rows % size)
                pending = rows_after(table, rows - rows % size).to_batches()
                rows %= size
                nbytes = sum(batch.nbytes for batch in pending)
        if rows:
            table = pa.Table.from_batches(pending)
            full = rows - rows % size
            if full:
                yield table.slice(0, full)
            if full < rows and not self._plan.drop_remainder and failed is None:
                yield rows_after(table, full)
        if failed is not None:
            raise failed

    def _records(self, epoch: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of the shard, in the order of an epoch."""
        schema, count = self._feed.schema, 0
        wanted = WantedTable(schema=schema)
        index, shards = self._plan.shard

        def of_shard() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in self._feed.opened(schema):
                own = batch
                if shards > 1:
                    own = batch.take(np.arange((index - count) % shards, len(batch), shards))
                count += len(batch)
                yield from wanted.table(pa.Table.from_batches([own])).to_batches()

        if self._plan.shuffle is None:
            yield from of_shard()
            return
        seed, size = self._plan.shuffle
        for number, table in enumerate(tables_of_size(of_shard(), size)):
            order = np.random.default_rng([seed, epoch, number]).permutation(len(table))
            yield from take_rows(table, order).to_batches()
