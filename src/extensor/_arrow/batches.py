"""The batches of records that a function writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError


def batches_of(records: Any, function: str) -> Iterator[StructuredTensor]:
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
        yield checked_batch(batch, function)


def count_of(records: Any) -> int | None:
    """Returns the number of records that a function writes, or None if it is not known."""
    is_one = isinstance(records, StructuredTensor) and records.rank == 1
    return records.shape[0] if is_one else None


def counted(
    batches: Iterable[Any], advance: Callable[[int], Any], size: Callable[[Any], int] = len
) -> Iterator[Any]:
    """Yields batches, and counts the records of each when the next one is wanted."""
    for batch in batches:
        yield batch
        advance(size(batch))


def checked_batch(records: Any, function: str) -> StructuredTensor:
    """Returns records; raises DTypeError if they are not a StructuredTensor of rank 1."""
    is_records = isinstance(records, StructuredTensor)
    if is_records and records.rank == 1:
        return records
    kind = type(records).__name__
    raise DTypeError(
        function,
        "StructuredTensors of rank 1",
        f"{kind} of shape {records.shape}" if is_records else kind,
        "Give batches of records; a record may have lists of records.",
    )
