"""What to write for the names that pandas, polars and Arrow have for the same task."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from extensor.errors import DTypeError, MissingAttributeError

OF_RECORDS = {
    "append_column": "records.with_updates(name=values)",
    "assign": "records.with_updates(name=values)",
    "cast": 'xt.struct.cast(records, {"name": dtype})',
    "columns": "records.fields",
    "combine_chunks": "records",
    "describe": "xt.data.describe(records)",
    "drop": 'records.without("name")',
    "drop_columns": 'records.without("name")',
    "drop_duplicates": 'xt.struct.unique(records, by="name")',
    "drop_nulls": 'xt.struct.drop_null(records, (), by="name")',
    "dropna": 'xt.struct.drop_null(records, (), by="name")',
    "dtype": "xt.spec_of(records)",
    "dtypes": "xt.spec_of(records)",
    "explode": 'xt.struct.explode(records, "list")',
    "fill_null": 'xt.struct.fill_null(records, "name", 0)',
    "fillna": 'xt.struct.fill_null(records, "name", 0)',
    "filter": 'tf.boolean_mask(records, records["name"] > 0)',
    "group_by": 'xt.struct.group_by(records, (), by="name")',
    "groupby": 'xt.struct.group_by(records, (), by="name")',
    "head": "records[:5]",
    "height": "len(records)",
    "iloc": "records[0]",
    "isna": 'xt.struct.is_null(records, "name")',
    "items": "records.fields.items()",
    "iterrows": "iter(records)",
    "join": 'xt.from_pandas(records.to_pandas().merge(frame, on="name"))',
    "keys": "records.fields.keys()",
    "loc": 'tf.boolean_mask(records, records["name"] > 0)',
    "merge": 'xt.from_pandas(records.to_pandas().merge(frame, on="name"))',
    "num_rows": "len(records)",
    "rename": 'xt.struct.rename(records, {"name": "new"})',
    "schema": "xt.to_arrow(records).schema",
    "select": 'records.with_only("name")',
    "sort": 'xt.struct.sort(records, by="name")',
    "sort_by": 'xt.struct.sort(records, by="name")',
    "sort_values": 'xt.struct.sort(records, by="name")',
    "tail": "records[-5:]",
    "take": "tf.gather(records, rows)",
    "to_arrow": "xt.to_arrow(records)",
    "to_dict": "records.to_py()",
    "to_dicts": "records.to_py()",
    "to_json": 'xt.write_json(records, "records.jsonl")',
    "to_numpy": "records.numpy()",
    "to_parquet": 'xt.write_parquet(records, "records.parquet")',
    "to_polars": "polars.from_arrow(xt.to_arrow(records))",
    "to_pylist": "records.to_py()",
    "unique": 'xt.struct.unique(records, by="name")',
    "values": "records.fields.values()",
    "with_columns": "records.with_updates(name=values)",
    "write_parquet": 'xt.write_parquet(records, "records.parquet")',
}
"""What to write for an attribute that records do not have."""

OF_MODULE = {
    "DataFrame": 'xt.struct.constant([{"name": 1}])',
    "Table": "xt.from_arrow(table)",
    "concat": "tf.concat([records, records], 0)",
    "from_dict": 'xt.DenseStructuredTensor([2], {"name": values})',
    "from_dicts": 'xt.struct.constant([{"name": 1}])',
    "from_polars": "xt.from_arrow(table)",
    "from_pydict": 'xt.DenseStructuredTensor([2], {"name": values})',
    "from_pylist": 'xt.struct.constant([{"name": 1}])',
    "group_by": 'xt.struct.group_by(records, (), by="name")',
    "table": "xt.from_arrow(table)",
    "to_dict": "records.to_py()",
    "to_polars": "polars.from_arrow(xt.to_arrow(records))",
}
"""What to write for a name that `extensor` does not have; `table` may be a polars DataFrame."""

OF_PATHS = {
    "concat": "tf.concat([records, records], 0)",
    "drop_none": 'xt.struct.drop_null(records, "list")',
    "fill_none": 'xt.struct.fill_null(records, "name", 0)',
    "filter": 'xt.struct.filter_by(records, "list", records["list"] > 0)',
    "is_none": 'xt.struct.is_null(records, "name")',
    "pad_none": 'xt.struct.pad(records, "list", 5)',
}
"""What to write for a name that `extensor.struct` does not have; some are names of awkward."""


def no_attribute(owner: str, name: str, others: dict[str, str]) -> MissingAttributeError:
    """Returns the error for a name that an object does not have.

    Args:
        owner: What has no such name, for the error.
        name: The name.
        others: What to write for the names of other libraries.
    """
    message = f"{owner} has no attribute {name!r}"
    if name in others:
        message += f". Write {others[name]}"
    error = MissingAttributeError(message)
    error.name = name
    return error


def _asks() -> str | None:
    """Returns the name of the module that looked up an attribute which does not exist."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    return frame and frame.f_globals.get("__name__")


class NoDataFrame:
    """Records of which pandas makes no DataFrame: it would make one of the records as objects."""

    __slots__ = ()

    _other_names: ClassVar[dict[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        # `pandas.DataFrame` looks for `__array__` before it iterates. Keras looks for it too, and
        # would convert what has it.
        if name == "__array__" and _asks() == "pandas.core.frame":
            expected = "data of pandas, NumPy or Python"
            fix = "Write records.to_pandas(), or value.to_tensor().to_pandas()."
            raise DTypeError("pandas.DataFrame", expected, type(self).__name__, fix)
        raise no_attribute(f"{type(self).__name__!r} object", name, self._other_names)


class OtherNames(NoDataFrame):
    """A value whose missing attributes are explained by `OF_RECORDS`."""

    __slots__ = ()

    _other_names = OF_RECORDS
