"""The arguments of the functions of `xt.data` that say which records they yield."""

from __future__ import annotations

from typing import Any

from extensor._arrow.wanted_table import WantedTable


class Wanted(WantedTable):
    """The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`; models may choose fields.

    Args:
        columns: As in `WantedTable`; or "auto" for all fields, of which models choose some.
        schema: As in `WantedTable`.
        nulls: As in `WantedTable`.
        row_splits_dtype: As in `WantedTable`.
    """

    def __init__(
        self, columns: Any, schema: Any = None, nulls: Any = None, row_splits_dtype: Any = None
    ) -> None:
        self.is_auto = isinstance(columns, str) and columns == "auto"
        """Whether models choose the fields."""
        super().__init__(None if self.is_auto else columns, schema, nulls, row_splits_dtype)
