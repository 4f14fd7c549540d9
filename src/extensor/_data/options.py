"""The arguments that the functions of `xt.data` share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extensor._arrow.wanted_table import WantedTable
from extensor._data.position import Passes


class Options:
    """The arguments that all functions of `xt.data` have, in the order of their signatures.

    Attributes:
        passes: What the passes over the dataset have.
        wanted: The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`.
        is_auto: Whether models choose the fields: `columns="auto"`.
        state: Where the first pass begins.
    """

    def __init__(
        self,
        batch_size: Any,
        columns: Any,
        schema: Any,
        drop_remainder: bool,
        row_splits_dtype: Any,
        nulls: Any,
        shuffle: Any,
        shard: Any,
        epochs: Any,
        state: Any,
    ) -> None:
        self.is_auto = isinstance(columns, str) and columns == "auto"
        if self.is_auto:
            columns = None
        elif isinstance(columns, Iterable) and not isinstance(columns, (str, bytes)):
            columns = list(columns)
        self.wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
        self.passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs)
        self.state = state
