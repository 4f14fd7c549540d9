"""Datasets of feeds, and which of their records models read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import tensorflow as tf

from extensor._arrow.wanted_table import WantedTable
from extensor._data.feed import RecordFeed
from extensor._data.position import Passes
from extensor._data.prunable import prunable
from extensor._data.serialize import feed_of_files
from extensor._data.stream import stream
from extensor._files.files import FilePath
from extensor._files.store import Reading
from extensor._path import PathLike
from extensor._typing import DTypeLike, NullsLike, SchemaLike


class Wanted(WantedTable):
    """The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`; models may choose fields.

    Args:
        columns: As in `WantedTable`; or "auto" for all fields, of which models choose some.
        schema: As in `WantedTable`.
        nulls: As in `WantedTable`.
        row_splits_dtype: As in `WantedTable`.
    """

    def __init__(
        self,
        columns: Iterable[PathLike] | Literal["auto"] | None,
        schema: SchemaLike | None = None,
        nulls: NullsLike | None = None,
        row_splits_dtype: DTypeLike | None = None,
    ) -> None:
        self.is_auto = isinstance(columns, str) and columns == "auto"
        """Whether models choose the fields."""
        super().__init__(None if self.is_auto else columns, schema, nulls, row_splits_dtype)


def dataset_of_files(
    format: str,
    paths: FilePath | Iterable[FilePath],
    wanted: Wanted,
    passes: Passes,
    reading: Reading,
    **own: Any,
) -> tf.data.Dataset:
    """Returns a dataset of the records of files.

    Args:
        format: The format, one of `SOURCES`.
        paths: The files.
        wanted: Which records it yields.
        passes: Which batches its passes have.
        reading: How files that are not local are read.
        **own: The arguments that only this format has.
    """
    feed = feed_of_files(format, paths, wanted, passes, reading, own)
    return dataset_of_feed(feed, wanted, passes)


def dataset_of_feed(feed: RecordFeed, wanted: Wanted, passes: Passes) -> tf.data.Dataset:
    """Returns a dataset of a feed, which begins at the state, and models may read in part."""
    if passes.state is not None:
        feed.plan.begin_at(passes.state)
        feed.serialized = ""  # another process would begin with the first batch
    if not wanted.is_auto:
        return stream(feed)
    return prunable(stream(feed), lambda fields: stream(feed.with_fields(fields)))
