"""What each of many fields costs, compared to the same calls of tensors or of Arrow."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within

_MANY = 10_000
_MORE, _FEW = 4_000, 1_000


def rows() -> list[Row]:
    fields = f"{_MANY:,} fields"
    return [
        Row("st[0], 8 fields, vs raw kernels", Within(1.5), functools.partial(_part, key=0)),
        Row(
            "st[:1], 8 fields, vs raw kernels",
            Within(1.3),
            functools.partial(_part, key=slice(0, 1)),
        ),
        Row(
            "for record in records, 64 records of 8 fields, vs tf.unstack of the tensors",
            Within(3),
            _iterate,
        ),
        Row(f"{fields}: st[0], vs raw kernels", Within(1.5), _one),
        Row(f"{fields}: to_py, vs to_pylist of Arrow", Within(3), _to_py),
        Row(f"{fields}: to_arrow, vs a RecordBatch of the same arrays", Within(3), _to_arrow),
        *(
            Row(
                f"{name} of {_MORE:,} fields, vs {_FEW:,}",
                Within(5),
                functools.partial(_growth, call=call),
            )
            for name, call in _EACH.items()
        ),
    ]


def _names(count: int) -> list[str]:
    return [f"f{i}" for i in range(count)]


def _table(count: int) -> pa.Table:
    return pa.table({name: np.arange(8.0) for name in _names(count)})


def _few() -> tuple[Any, list[Any]]:
    fields = {f"x{i}": tf.fill([64], float(i)) for i in range(8)}
    return xt.DenseStructuredTensor([64], fields), list(fields.values())


def _part(folder: Path, key: Any) -> tuple[Call, Call]:
    records, tensors = _few()
    start, end = tf.constant([0]), tf.constant([1])
    cut, shrink = tf.raw_ops.StridedSlice, int(key == 0)

    def by_hand() -> list[Any]:
        return [
            cut(input=x, begin=start, end=end, strides=end, shrink_axis_mask=shrink)
            for x in tensors
        ]

    return lambda: records[key], by_hand


def _iterate(folder: Path) -> tuple[Call, Call]:
    records, tensors = _few()
    return lambda: list(records), lambda: [tf.unstack(x) for x in tensors]


def _one(folder: Path) -> tuple[Call, Call]:
    records = xt.from_arrow(_table(_MANY))
    tensors = [records.field_value((name,)) for name in _names(_MANY)]
    start, end = tf.constant([0]), tf.constant([1])

    def by_hand() -> list[Any]:
        cut = tf.raw_ops.StridedSlice
        return [
            cut(input=x, begin=start, end=end, strides=end, shrink_axis_mask=1) for x in tensors
        ]

    return lambda: records[0], by_hand


def _to_py(folder: Path) -> tuple[Call, Call]:
    table = _table(_MANY)
    return xt.from_arrow(table).to_py, table.to_pylist


def _to_arrow(folder: Path) -> tuple[Call, Call]:
    records = xt.from_arrow(_table(_MANY))
    arrays = [np.arange(8.0) for _ in range(_MANY)]
    names = _names(_MANY)
    return (
        lambda: xt.to_arrow(records),
        lambda: pa.RecordBatch.from_arrays([pa.array(array) for array in arrays], names),
    )


_EACH: dict[str, Callable[[Any, list[str]], Any]] = {
    "every field by name": lambda st, names: [st[name] for name in names],
    "with_only(all)": lambda st, names: st.with_only(*names),
    "with_updates(all)": lambda st, names: st.with_updates(dict.fromkeys(names, st["f0"])),
    "without(all but one)": lambda st, names: st.without(*names[1:]),
    "in": lambda st, names: [name in st for name in names],
    "from_arrow": lambda st, names: xt.from_arrow(_table(len(names))),
    "struct.constant of a dict": lambda st, names: xt.struct.constant({n: [1.5] for n in names}),
}


def _growth(folder: Path, call: Callable[[Any, list[str]], Any]) -> tuple[Call, Call]:
    def of(count: int) -> Call:
        records, names = xt.from_arrow(_table(count)), _names(count)
        return lambda: call(records, names)

    return of(_MORE), of(_FEW)
