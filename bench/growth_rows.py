"""What grows: the calls of the second table."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from bench.file_rows import small_files
from bench.growth import Growth
from bench.measure import Call
from bench.python_rows import flat

_FIELDS = (10, 100, 1_000, 10_000)
_DEPTHS = (1, 2, 4, 8, 16, 32)
_ROWS = (1, 1_000, 1_000_000)
_FEWER_ROWS = (1, 1_000, 100_000)
_FILES = (1, 10, 100, 1_000)
_TYPES = (1, 10, 100)


def growths() -> list[Growth]:
    return [
        *_each("fields", _FIELDS, _of_fields, _FIELD_CALLS),
        Growth("fields", "read_parquet of 1 column", _FIELDS, _one_column),
        *_each("depth", _DEPTHS, _of_depth, _DEPTH_CALLS),
        *_each("rows", _ROWS, _of_rows, _ROW_CALLS),
        *_each("rows", _FEWER_ROWS, _of_rows, _PYTHON_CALLS),
        *_each("files", _FILES, _of_files, _FILE_CALLS),
        *_each("registered types", _TYPES, _of_types, _TYPE_CALLS),
    ]


def _each(
    axis: str,
    sizes: tuple[int, ...],
    make: Callable[[Path, int], Any],
    calls: dict[str, Callable[[Any], Call]],
) -> list[Growth]:
    def prepare(folder: Path, size: int, of: Callable[[Any], Call]) -> Call:
        return of(make(folder, size))

    return [
        Growth(axis, name, sizes, functools.partial(prepare, of=of)) for name, of in calls.items()
    ]


# Fields.


def _table(count: int) -> pa.Table:
    return pa.table({f"f{i}": np.arange(8.0) for i in range(count)})


def _of_fields(folder: Path, count: int) -> Any:
    return xt.from_arrow(_table(count))


def _anew(records: Any) -> Callable[[], Any]:
    fields = {name: records[name] for name in records.field_names()}
    return lambda: xt.DenseStructuredTensor([8], fields)


def _supertype(records: Any) -> Call:
    one, other = records[:3].__tf_type_spec__(), records[:5].__tf_type_spec__()
    return lambda: one.most_specific_common_supertype([other])


def _each_name(records: Any) -> Call:
    names = records.field_names()
    return lambda: [records[name] for name in names]


def _all_updated(records: Any) -> Call:
    changes = dict.fromkeys(records.field_names(), records["f0"])
    return lambda: records.with_updates(changes)


def _function(records: Any) -> Call:
    first = tf.function(lambda value: value["f0"] + 1)
    return lambda: first(records)


def _one_column(folder: Path, count: int) -> Call:
    path = str(folder / f"{count} columns.parquet")
    pq.write_table(_table(count), path)
    return lambda: xt.read_parquet(path, ["f5"])


_FIELD_CALLS: dict[str, Callable[[Any], Call]] = {
    "DenseStructuredTensor(...)": _anew,
    "DenseStructuredTensor(...) and its spec": lambda st: lambda: _anew(st)().__tf_type_spec__(),
    "every field by name": _each_name,
    "with_updates(all)": _all_updated,
    "st[0]": lambda st: lambda: st[0],
    "xt.nest.flatten": lambda st: lambda: xt.nest.flatten(st, expand_composites=True),
    "call of a tf.function": _function,
    "supertype of two specs": _supertype,
    "from_arrow": lambda st: functools.partial(xt.from_arrow, _table(len(st.field_names()))),
    "to_arrow": lambda st: lambda: xt.to_arrow(st),
    "to_py": lambda st: st.to_py,
    "struct.constant": lambda st: functools.partial(xt.struct.constant, st.to_py()),
}


# Depth: lists of lists of records.


def _of_depth(folder: Path, depth: int) -> Any:
    value = xt.DenseStructuredTensor([2], {"x": tf.range(2.0)})
    for _ in range(depth):
        lists = xt.RaggedStructuredTensor.from_row_splits(value, tf.constant([0, 1, 2], tf.int64))
        value = xt.DenseStructuredTensor([2], {"list": lists})
    return value


def _path(records: Any) -> Call:
    path, value = [], records
    while "list" in value.field_names():
        path.append("list")
        value = value["list"]
    return lambda: records[(*path, "x")]


def _iterated(records: Any) -> Call:
    dataset = tf.data.Dataset.from_tensors(records).repeat(10)
    return lambda: [None for _ in dataset]


_DEPTH_CALLS: dict[str, Callable[[Any], Call]] = {
    "spec": lambda st: lambda: st.with_updates(n=tf.range(2)).__tf_type_spec__(),
    "the innermost field by its path": _path,
    "spec of one row": lambda st: st.__tf_type_spec__().unstacked,
    "10 elements of a dataset": _iterated,
    "st[0]": lambda st: lambda: st[0],
    "to_py": lambda st: st.to_py,
    "to_arrow": lambda st: lambda: xt.to_arrow(st),
    "from_arrow": lambda st: functools.partial(xt.from_arrow, xt.to_arrow(st)),
    "spec.cast of Python records": lambda st: functools.partial(
        st.__tf_type_spec__().cast, st.to_py()
    ),
}


# Rows.


@functools.lru_cache(1)
def _flat(count: int) -> pa.Table:
    return flat(count)


def _of_rows(folder: Path, count: int) -> Any:
    return xt.from_arrow(_flat(count))


_ROW_CALLS: dict[str, Callable[[Any], Call]] = {
    "from_arrow": lambda st: functools.partial(xt.from_arrow, _flat(st.shape[0])),
    "to_arrow": lambda st: lambda: xt.to_arrow(st),
    "st[0]": lambda st: lambda: st[0],
    "st[:1]": lambda st: lambda: st[:1],
    "xt.nest.flatten": lambda st: lambda: xt.nest.flatten(st, expand_composites=True),
}

_PYTHON_CALLS: dict[str, Callable[[Any], Call]] = {
    "to_py": lambda st: st.to_py,
    "spec.cast of Python records": lambda st: functools.partial(
        xt.spec_from_schema(_flat(st.shape[0]).schema).cast, st.to_py()
    ),
    "struct.constant": lambda st: functools.partial(xt.struct.constant, st.to_py()),
    "every record of a loop": lambda st: lambda: [None for _ in st[:10_000]],
}


# Files.


def _of_files(folder: Path, count: int) -> Path:
    return small_files(folder, count)


def _pass(files: Path) -> Call:
    dataset = xt.data.parquet(files, 1_024)
    return lambda: [None for _ in dataset]


_FILE_CALLS: dict[str, Callable[[Any], Call]] = {
    "read_parquet": lambda files: lambda: xt.read_parquet(files),
    "xt.data.parquet, made": lambda files: lambda: xt.data.parquet(files, 1_024),
    "xt.data.parquet, one pass": _pass,
}


# Registered types, each with a handler of tf.add. They stay registered.

_made: list[Any] = []


def _of_types(folder: Path, count: int) -> Any:
    while len(_made) < count:
        name = f"Type{len(_made)}"
        fields = {"__annotations__": {"x": tf.Tensor}, "__module__": "bench.growth_rows"}
        kind = xt.extension_type(name=f"bench.{name}")(type(name, (), fields))
        xt.dispatch.implements(tf.add, on=kind)(lambda x, y, *_: type(x)(tf.add(x.x, y.x)))
        _made.append(kind)
    return _made[-1](tf.constant([1.0]))


def _plain(value: Any) -> Call:
    tensor = value.x
    return lambda: tf.add(tensor, tensor)


def _identity(value: Any) -> Call:
    function = tf.function(lambda value: value)
    return lambda: function(value)


_TYPE_CALLS: dict[str, Callable[[Any], Call]] = {
    "tf.add of the last type": lambda value: lambda: tf.add(value, value),
    "tf.add of tensors": _plain,
    "made anew, and its spec": lambda value: lambda: tf.type_spec_from_value(type(value)(value.x)),
    "xt.nest.flatten": lambda value: lambda: xt.nest.flatten(value, expand_composites=True),
    "call of a tf.function": _identity,
}
