"""The batches of records that a function writes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, StructureError


def batches_of(records: object, function: str) -> Iterator[StructuredTensor]:
    """Yields the batches of records, each checked.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of them.
        function: The name of the function that writes them, for errors.

    Raises:
        DTypeError: If anything else is given or yielded (also a TypeError).
    """
    if isinstance(records, StructuredTensor) or not isinstance(records, Iterable):
        records = [records]
    for batch in records:
        yield expect_batch(batch, function)


def num_records_of(records: object) -> int | None:
    """Returns the number of records that a function writes, or None if it is not known."""
    if isinstance(records, StructuredTensor) and records.rank == 1:
        return records.shape[0]
    return None


def with_progress(
    batches: Iterable[StructuredTensor], advance: Callable[[int], object]
) -> Iterator[StructuredTensor]:
    """Yields batches, and counts the records of each when the next one is wanted."""
    for batch in batches:
        yield batch
        advance(len(batch))


def with_one_schema(
    batches: Iterable[pa.RecordBatch], function: str, target: str = "file"
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Returns the schema of batches, and the batches, each of which is checked.

    Args:
        batches: The batches.
        function: The name of the function that writes them, for errors.
        target: What it writes, for errors.

    Raises:
        StructureError: If there is no batch, or, later, if one has another schema (also a
            ValueError).
    """
    found = iter(batches)
    first = next(found, None)
    if first is None:
        fix = f"To write an empty {target}, give a batch of 0 records."
        raise StructureError(function, "at least one batch of records", "0 batches", fix)
    schema = first.schema

    def check() -> Iterator[pa.RecordBatch]:
        for batch in itertools.chain([first], found):
            if batch.schema != schema:
                expected = f"batches of one schema: {schema_text(schema)}"
                fix = "Give schema=, or convert the batches to one schema."
                raise StructureError(function, expected, schema_text(batch.schema), fix)
            yield batch

    return schema, check()


def schema_text(schema: pa.Schema) -> str:
    """Returns the fields of a schema in one line, cut where it is long."""
    text = ", ".join(
        f"{field.name}: {field.type}" + ("" if field.nullable else " not null") for field in schema
    )
    return text if len(text) < 500 else f"{text[:500]}..."


def common_schema(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Returns the schema of all parts, whose columns may have any order.

    A field is nullable if it is so in one of them.

    Args:
        schemas: The name and the schema of each part.

    Raises:
        StructureError: If they have different columns, or two of one name (also a ValueError).
    """
    first, common = schemas[0]
    types = {field.name: field.type for field in common}
    if len(types) < len(common):
        expected, fix = "one column of each name", "Rename the columns in the source."
        raise StructureError(first, expected, schema_text(common), fix)
    for name, schema in schemas[1:]:
        own = {field.name: field.type for field in schema}
        if len(schema) != len(common) or own != types:
            expected = f"the columns of {first}: {schema_text(common)}"
            fix = "Give columns= of what is equal in all of them, or schema=."
            raise StructureError(name, expected, schema_text(schema), fix)
        if schema.names != common.names:
            schema = pa.schema([schema.field(each) for each in common.names])
        common = pa.unify_schemas([common, schema])
    return common


def tables_of_size(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Yields the records of batches in tables of a number of records, and the rest."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        if rows < size:
            continue
        table, end = pa.Table.from_batches(pending), rows - rows % size
        yield from (table.slice(start, size) for start in range(0, end, size))
        # With their number, which Arrow does not know of records without fields.
        pending, rows = table.slice(end, rows - end).to_batches(), rows - end
    if rows:
        yield pa.Table.from_batches(pending)


def expect_batch(records: object, function: str) -> StructuredTensor:
    """Returns records; raises DTypeError if they are not a StructuredTensor of rank 1."""
    kind = type(records).__name__
    if isinstance(records, StructuredTensor):
        if records.rank == 1:
            return records
        kind += f" of shape {records.shape}"
    fix = "Give a batch of records; a record may have lists of records."
    raise DTypeError(function, "StructuredTensors of rank 1", kind, fix)
