"""The result of a Spanner query as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from extensor._data.database import dataset_of_query, in_order, missing_order
from extensor._data.ordered import OrderedPlan
from extensor._data.position import Passes, Shuffle
from extensor._data.wanted import Wanted
from extensor._formats.spanner.read import result_of
from extensor._path import PathLike
from extensor._typing import DTypeLike, NullsLike, SchemaLike

if TYPE_CHECKING:
    from google.cloud.spanner_v1.database import BatchSnapshot, Database
    from google.cloud.spanner_v1.snapshot import Snapshot
    from google.cloud.spanner_v1.transaction import Transaction


def spanner(
    source: Database | BatchSnapshot | Snapshot | Transaction,
    query: str,
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
    params: Mapping[str, Any] | None = None,
    param_types: Mapping[str, Any] | None = None,
    timeout: float = 60.0,
    order_by: Iterable[str] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams the rows of a Spanner query in structured batches.

    Each epoch runs the query, and reads the result from its beginning. `shard` and `state` need
    `order_by`, because Spanner gives rows in any order otherwise.

    Args:
        source: A Database of the package google-cloud-spanner, of which each epoch reads a new
            snapshot; or a snapshot for several reads: `database.snapshot(multi_use=True)`.
        query: The query, in SQL.
        batch_size: The number of records in a batch.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always. The database reads the columns that the query
            names.
        schema: The spec or pyarrow schema of the result. Without it, the query begins once more,
            when the dataset is made.
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
            the whole source. To read less, choose the records of the shard in the query.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`. The batches before are read and
            dropped.
        params: The values of the parameters of the query, by name.
        param_types: The types of parameters, by name, as in google-cloud-spanner. They are needed
            for None and for lists that are empty; the others follow from the values.
        timeout: For how many seconds a request is repeated while the server is not available.
        order_by: The names of columns of the result, such as `["id"]`, that together differ between
            any two records. The database orders the result by them. `shard` and `state` need it.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`, of unknown cardinality.

    Raises:
        StructureError, RowError: As in `database`.
        MissingDependencyError, QueryError, AccessError, ServerError, DTypeError, FieldError: As in
            `read_spanner`; those that depend on contents during iteration.
    """
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    query = in_order(query, order_by, quote="`")
    identity = [query, repr(params)]
    plan = OrderedPlan("xt.data.spanner", identity, missing_order(order_by), passes)

    def run() -> Generator[Any]:
        return result_of(source, query, params, param_types, wanted, timeout)

    return dataset_of_query(plan, run, wanted, passes)
