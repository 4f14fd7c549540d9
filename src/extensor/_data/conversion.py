"""Tables as datasets of batches, up to the first batch that cannot be converted."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.read import read_records
from extensor._arrow.schema import spec_from_schema
from extensor._data.cut_batches import batches_of
from extensor._data.failing import failing_dataset
from extensor._data.position import Positioned
from extensor._struct.tensor import StructuredTensor
from extensor._typing import NullsLike
from extensor.errors import ExtensorError


class Conversion:
    """How the records of a dataset become batches.

    Args:
        plan: The arguments `batch_size` and `drop_remainder`.
        schema: The schema of the records.
        splits: As `row_splits_dtype` of `from_arrow`.
        nulls: As in `from_arrow`.
    """

    def __init__(
        self, plan: Positioned, schema: pa.Schema, splits: tf.DType, nulls: NullsLike
    ) -> None:
        static = plan.batch_size if plan.drop_remainder else None
        self.spec = spec_from_schema(schema, static, splits, nulls)
        """The spec of a batch."""
        self._schema = schema
        self.splits = splits
        self.nulls: NullsLike = nulls

    def batches(
        self,
        table: pa.Table,
        size: int,
        first: int,
        place: Callable[[int], str] | None = None,
        count: int | None = None,
    ) -> list[tf.data.Dataset]:
        """Returns a dataset of the batches of a table, and one of the batch after them.

        Where records cannot be converted, the last dataset raises the error after the batches
        before it.

        Args:
            table: The records. Strings may be in dictionaries.
            size: The number of records in a batch.
            first: The number of the table's first record, for errors.
            place: Returns where a record is, by its number, for errors.
            count: The number of batches in the first dataset. Default: all that are full.
        """
        count = table.num_rows // size if count is None else count
        if not count:  # one smaller batch
            size, count = table.num_rows, 1
        with contextlib.suppress(ExtensorError):
            return self._convert(table, size, count)
        made: list[tf.data.Dataset] = []
        for at in range(0, table.num_rows, size):
            batch = table.slice(at, size)
            try:
                made += self._convert(batch, batch.num_rows, 1)
            except ExtensorError as error:
                where = f"of the batch that begins with record {first + at}"
                if place is not None:
                    where += f" ({place(first + at + self._first_wrong(batch))})"
                made.append(failing_dataset(_error_at(error, where), self.spec))
                break
        return [concatenate(made[:count]), *made[count:]]

    def _convert(self, table: pa.Table, size: int, count: int) -> list[tf.data.Dataset]:
        return batches_of(self._read(table), size, count, self.spec)

    def _read(self, table: pa.Table) -> StructuredTensor:
        return read_records(table, self.splits, self.nulls, self._schema, is_part=True)

    def _first_wrong(self, table: pa.Table) -> int:
        """Returns the number of the first record that cannot be converted."""
        good, bad = 0, table.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if self._fails(table.slice(0, middle)) else (middle, bad)
        return bad - 1

    def _fails(self, table: pa.Table) -> bool:
        try:
            self._read(table)
        except ExtensorError:
            return True
        return False


def concatenate(datasets: list[tf.data.Dataset]) -> tf.data.Dataset:
    """Returns datasets one after another."""
    return functools.reduce(lambda one, other: one.concatenate(other), datasets)


def _error_at(error: ExtensorError, where: str) -> ExtensorError:
    """Returns an error that says where the record is that cannot be converted."""
    if error.received is None:
        return type(error)(f"{error} The record is one {where}.")
    return type(error)(error.path, error.expected, f"{error.received} {where}", error.fix)
