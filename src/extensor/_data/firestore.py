"""The documents of a Firestore query as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.null_policy import policies_of
from extensor._data.ordered import OrderedPlan, ordered
from extensor._data.position import Passes, Shuffle
from extensor._data.wanted import Wanted
from extensor._formats.firestore.read import batches_of, expect_query
from extensor._path import Path, PathLike
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from google.cloud.firestore_v1 import CollectionReference, Query


def firestore(
    source: CollectionReference | Query,
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: SchemaLike | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | None = None,
    id_field: str | None = None,
    timeout: float = 60.0,
) -> tf.data.Dataset:
    """Returns a dataset that streams the documents of a Firestore query in structured batches.

    Each epoch runs the query. Documents come in the order of the query, which is that of their
    names if it has no other.

    Args:
        source: A collection, a collection group or a query of the package google-cloud-firestore.
        batch_size: The number of records in a batch.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always. The server sends only the top-level fields of
            these paths.
        schema: The spec or pyarrow schema of the documents. It is needed, because a collection has
            no schema, and the types of all batches are those of the first one.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: What becomes of nulls and missing fields: `"error"` (the default), `"mask"` for a
            MaskedTensor, `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by
            path. More in `xt.from_arrow`.
        shuffle: How to shuffle, an `xt.data.Shuffle`: mixes each `window` records that follow one
            another.
        shard: The number of this shard, and the number of shards. A shard has each record whose
            number, divided by the number of shards, leaves the number of the shard. All shards read
            the whole source.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`. The batches before are read and
            dropped.
        id_field: The name of a field for the ids of the documents. Default: no such field.
        timeout: For how many seconds a request is repeated while the server is not available.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`, of unknown cardinality.

    Raises:
        StructureError, RowError: As in `batches`.
        DTypeError: If `schema` is not given, or `source` is no query (also a TypeError).
        MissingDependencyError, QueryError, AccessError, ServerError, NullError: As in
            `read_firestore`, during iteration.
    """
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    plan = OrderedPlan("xt.data.firestore", None, None, passes)
    expect_query(source, "xt.data.firestore")
    if schema is None:
        expected = "the spec or schema of the documents"
        fix = "Give schema=xt.spec_of(xt.read_firestore(query.limit(100)))."
        raise DTypeError("xt.data.firestore: schema", expected, "None", fix)
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    assert wanted.schema is not None

    def opened(fields: pa.Schema) -> Iterator[pa.RecordBatch]:
        nulls = policies_of(wanted.nulls, [str(Path(*names)) for names in leaf_paths(fields)])
        return batches_of(source, fields, nulls, id_field, timeout)

    return ordered(plan, opened, wanted.schema, wanted, passes)
