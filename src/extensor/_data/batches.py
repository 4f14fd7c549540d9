"""Arrow record batches from any Python iterable as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import pyarrow as pa
import tensorflow as tf

from extensor._data.dataset import Wanted
from extensor._data.ordered import OrderedPlan, dataset_in_order
from extensor._data.position import Passes, Shuffle
from extensor._path import PathLike
from extensor._typing import DTypeLike, NullsLike
from extensor.errors import DTypeError, StructureError


def batches(
    source: Iterable[pa.RecordBatch] | Callable[[], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams Arrow record batches in structured batches.

    Use it for sources that give Arrow data piece by piece. They are read from their beginning, so
    `shard`, `state` and checkpoints expect that a source gives the same records in the same order
    each time.

    Args:
        source: The record batches: an iterable that can be iterated again, or a function that
            returns an iterable for each epoch. A generator gives one epoch only.
        schema: The schema of the record batches.
        batch_size: The number of records in a batch.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        shuffle: How to shuffle, an `xt.data.Shuffle`: mixes each `window` records that follow one
            another.
        shard: The number of this shard, and the number of shards. A shard has each record whose
            number, divided by the number of shards, leaves the number of the shard. All shards read
            the whole source.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`. The batches before are read and
            dropped.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`, of unknown cardinality.

    Raises:
        StructureError: If `batch_size` or `epochs` is not a positive number, or `state` is of
            another dataset (also a ValueError). During iteration: if a record batch has another
            schema, or an iterator is read a second time, or the source ends before `state`.
        RowError: If there is no shard of this number (also an IndexError).
        DTypeError: If `source` is neither iterable nor a function (also a TypeError). During
            iteration: if it yields anything but record batches and tables.
        FieldError, UnsupportedTypeError: As in `from_arrow`.

    >>> import pyarrow as pa
    >>> import extensor as xt
    >>> pieces = [pa.record_batch({"x": [1, 2, 3]}), pa.record_batch({"x": [4, 5]})]
    >>> for batch in xt.data.batches(pieces, pieces[0].schema, batch_size=2):
    ...     print(batch["x"].numpy())
    [1 2]
    [3 4]
    [5]
    """
    if not callable(source) and not isinstance(source, Iterable):
        expected = "an iterable of record batches, or a function that returns one"
        fix = "Give a list, or a function such as lambda: reader()."
        raise DTypeError("xt.data.batches: source", expected, type(source).__name__, fix)
    if not isinstance(schema, pa.Schema):
        expected = "the pyarrow Schema of the record batches"
        fix = "Give batch.schema of one of them."
        raise DTypeError("xt.data.batches: schema", expected, repr(schema)[:80], fix)
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    plan = OrderedPlan("xt.data.batches", None, None, passes)
    assert wanted.schema is not None
    return dataset_in_order(plan, _Source(source, schema), wanted.schema, wanted, passes)


class _Source:
    """The record batches of an iterable."""

    def __init__(self, source: Any, schema: pa.Schema) -> None:
        self._source = source
        self._schema = schema
        self._is_read = False

    def __call__(self, fields: pa.Schema) -> Iterator[pa.RecordBatch]:
        source: Any = self._source() if callable(self._source) else self._source
        if iter(source) is source and not callable(self._source):
            if self._is_read:
                expected = "an iterable that can be iterated again"
                received = f"a {type(source).__name__}, which was read by another pass"
                fix = "Give a function that returns a new iterator."
                raise StructureError("xt.data.batches", expected, received, fix)
            self._is_read = True
        return self._batches(source)

    def _batches(self, source: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        pieces = iter(source)
        try:
            for number, piece in enumerate(pieces):
                yield from self._check(number, piece)
        finally:
            if hasattr(pieces, "gi_frame"):
                pieces.close()  # pyright: ignore[reportAttributeAccessIssue]

    def _check(self, number: int, piece: Any) -> Iterable[pa.RecordBatch]:
        where = f"xt.data.batches, record batch {number}"
        if not isinstance(piece, (pa.RecordBatch, pa.Table)):
            fix = "Convert it first, such as with pa.record_batch."
            raise DTypeError(where, "a pyarrow.RecordBatch or Table", type(piece).__name__, fix)
        if not piece.schema.equals(self._schema):
            expected = f"the schema {', '.join(map(str, self._schema))}"
            fix = "Cast it to the schema, or give its schema."
            raise StructureError(where, expected, ", ".join(map(str, piece.schema)), fix)
        return [piece] if isinstance(piece, pa.RecordBatch) else piece.to_batches()
