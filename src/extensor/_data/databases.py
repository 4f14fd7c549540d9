"""The results of queries of databases as datasets of structured batches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.null_policy import policies_of
from extensor._data.dataset import Wanted
from extensor._data.ordered import OrderedPlan, dataset_in_order
from extensor._data.position import Passes, Shuffle
from extensor._formats.firestore.read import batches_of, expect_query
from extensor._formats.spanner import read as spanner_rows
from extensor._formats.sql import database as sql
from extensor._path import Path, PathLike
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError

if TYPE_CHECKING:
    import duckdb
    from adbc_driver_manager import dbapi
    from google.cloud.firestore_v1 import CollectionReference, Query
    from google.cloud.spanner_v1.database import BatchSnapshot, Database
    from google.cloud.spanner_v1.snapshot import Snapshot
    from google.cloud.spanner_v1.transaction import Transaction


def database(
    query: str,
    connection: str | duckdb.DuckDBPyConnection | dbapi.Connection,
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
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    order_by: Iterable[str] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams the records of an SQL query in structured batches.

    Each epoch runs the query, and reads the result from its beginning. `shard` and `state` need
    `order_by`, because a database gives records in any order otherwise.

    Args:
        query: An SQL query.
        connection: A connection of DuckDB, a DB-API connection of an ADBC driver, or a URI, as in
            `read_database`. A connection reads one pass at a time. Of a URI, each pass opens a
            connection of its own.
        batch_size: The number of records in a batch.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always. The database reads the columns that the query
            names.
        schema: The spec of the records, or an Arrow schema. Without it, the query runs once more,
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
        params: The values of the parameters in the query: a list, or a dict where the driver
            supports names.
        order_by: The names of columns of the result, such as `["id"]`, that together differ between
            any two records. The database orders the result by them. `shard` and `state` need it.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`, of unknown cardinality.

    Raises:
        StructureError, RowError: As in `batches`; StructureError also for `shard` or `state`
            without `order_by`.
        DatabaseError, MissingDependencyError, DTypeError, FieldError, UnsupportedTypeError: As in
            `read_database`; those that depend on contents during iteration.

    >>> import extensor as xt
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> query = "select i, [i, i + 1] as pair from range(3) t(i) order by i"
    >>> for batch in xt.data.database(query, connection, batch_size=2):
    ...     print(batch["i"].numpy())
    [0 1]
    [2]
    """
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    query = in_order(query, order_by, quote='"')
    identity = [query, repr(params)]
    plan = OrderedPlan("xt.data.database", identity, missing_order(order_by), passes)
    return dataset_of_query(plan, lambda: sql.result_of(query, connection, params), wanted, passes)


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
        return spanner_rows.result_of(source, query, params, param_types, wanted, timeout)

    return dataset_of_query(plan, run, wanted, passes)


def dataset_of_query(
    plan: OrderedPlan, run: Callable[[], Generator[Any]], wanted: Wanted, passes: Passes
) -> tf.data.Dataset:
    """Returns a dataset of the result of a query.

    Args:
        plan: What is read when.
        run: Runs the query: yields the schema of the result, and then its record batches.
        wanted: Which records the dataset yields.
        passes: Which batches its passes have.
    """
    schema = wanted.schema
    if schema is None:
        with contextlib.closing(run()) as result:
            schema = wanted.pruned(next(result))

    def open_batches(_: pa.Schema) -> Iterator[pa.RecordBatch]:
        result = run()
        next(result)  # the schema
        yield from result

    return dataset_in_order(plan, open_batches, schema, wanted, passes)


def in_order(query: str, order_by: Iterable[str] | None, quote: str) -> str:
    """Returns a query whose result is ordered by columns.

    Args:
        query: The query.
        order_by: The names of the columns; None for the query as it is.
        quote: The quotation mark of names.

    Raises:
        DTypeError: If the columns are not a list of names (also a TypeError).
    """
    if order_by is None:
        return query
    is_listed = isinstance(order_by, Iterable) and not isinstance(order_by, str)
    names = list(order_by) if is_listed else []
    if not names or not all(isinstance(n, str) for n in names):
        expected = "a list of names of columns of the result"
        raise DTypeError("order_by", expected, repr(order_by)[:80], 'Write order_by=["id"].')
    columns = ", ".join(quote + name.replace(quote, quote * 2) + quote for name in names)
    inner = query.rstrip().removesuffix(";")
    # The query ends with its line, because it may end with a comment.
    return f"select * from (\n{inner}\n) as extensor_ordered order by {columns}"


def missing_order(order_by: Iterable[str] | None) -> str | None:
    """Returns what a query lacks to give its records in one order, or None."""
    return None if order_by is not None else "a query without order_by="


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

    def open_batches(fields: pa.Schema) -> Iterator[pa.RecordBatch]:
        nulls = policies_of(wanted.nulls, [str(Path(*names)) for names in leaf_paths(fields)])
        return batches_of(source, fields, nulls, id_field, timeout)

    return dataset_in_order(plan, open_batches, wanted.schema, wanted, passes)
