"""Conversion of recipes between Arrow and tensors."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from bench import byhand, peers, recipe
from bench.measure import Call, cpu_medians, warm_medians
from bench.row import Faster, NoLimit, Row, Within

_COUNT = 50_000
_PYVAL_COUNT = 1_000
_FEW, _MANY = 100_000, 1_000_000


def rows() -> list[Row]:
    ours = f"from_arrow, {_COUNT:,} recipes"
    return [
        Row(
            f"{ours}, vs tf from_pyval(to_pylist()) of {_PYVAL_COUNT:,}, scaled up",
            Faster(250),
            _against_pyval,
            peer_scale=_COUNT / _PYVAL_COUNT,
        ),
        Row(
            f"{ours}, CPU, vs tf from_pyval(to_pylist()) of {_PYVAL_COUNT:,}, scaled up",
            Faster(100),
            _against_pyval,
            peer_scale=_COUNT / _PYVAL_COUNT,
            statistic=cpu_medians,
        ),
        Row(f"{ours}, vs TFRecord, batch(2048), parse_example", Faster(5), _against_tfrecord),
        Row(f"{ours}, vs by hand", Within(1.5), _against_hand),
        Row(
            f"from_arrow, 8 numeric columns, {_MANY:,} rows, vs {_FEW:,} rows",
            Within(1.3),
            _many_against_few,
        ),
        Row(f"to_arrow, {_COUNT:,} recipes, vs by hand", Within(1.5), _back_against_hand),
        Row(
            f"write_arrow, {_COUNT:,} recipes whose table lives, CPU, vs pyarrow's writer alone",
            Within(1.3),
            _untouched,
            statistic=cpu_medians,
        ),
        *(
            Row(
                f"read_parquet, {_COUNT:,} recipes, {how}, vs pq.read_table alone, "
                "each after itself",
                Within(1.4),
                functools.partial(_parquet, options=options),
                statistic=warm_medians,
            )
            for how, options in _WRITERS.items()
        ),
        Row(
            f"read_parquet, {_COUNT:,} recipes, CPU, vs pq.read_table and an op a string column",
            Within(1.2),
            _parquet_against_least,
            statistic=cpu_medians,
        ),
        Row("from_arrow, one record of 8 leaves, vs tf.constant of its tensors", Within(3), _one),
        Row("from_arrow, one recipe, vs tf.constant of its tensors", Within(3), _one_recipe),
        *(
            Row(
                f"from_arrow, {kind} with nulls masked, vs the same without nulls",
                Within(1.5),
                functools.partial(_masked, kind=kind),
            )
            for kind in ("recipes", "strings", "numbers", "lists", "one record")
        ),
        *(
            Row(
                f"from_arrow, {kind} with nulls masked, and the masks read, vs without nulls",
                NoLimit(),
                functools.partial(_masks_read, kind=kind),
            )
            for kind in ("numbers", "lists")
        ),
        Row(
            "from_arrow, lists with nulls masked, whose values are left out, vs without nulls",
            NoLimit(),
            functools.partial(_masked, kind="lists over values"),
        ),
    ]


@functools.cache
def _recipes() -> pa.Table:
    return recipe.recipes(_COUNT)


@functools.cache
def _check_round_trip() -> None:
    """Checks that the measured calls give the right results."""
    table = _recipes()
    if not byhand.to_arrow(byhand.from_arrow(table)).equals(table.to_batches()[0]):
        raise AssertionError("The conversion by hand changed the records.")
    batch = xt.to_arrow(xt.from_arrow(table))
    # Compared as Python values: extensor may choose the nullability and metadata of the schema.
    for start in (0, _COUNT - 1_000):
        if batch.slice(start, 1_000).to_pylist() != table.slice(start, 1_000).to_pylist():
            raise AssertionError("extensor's conversion changed the records.")


def _against_pyval(folder: Path) -> tuple[Call, Call]:
    _check_round_trip()
    table = _recipes()
    part = table.slice(0, _PYVAL_COUNT)
    return lambda: xt.from_arrow(table), lambda: peers.from_pyval(part)


def _against_tfrecord(folder: Path) -> tuple[Call, Call]:
    _check_round_trip()
    table = _recipes()
    path = folder / "recipes.tfrecord"
    peers.write_tfrecord(table, path)
    read = peers.read_tfrecord(path)
    if read() != _COUNT:
        raise AssertionError(f"{path.name} does not hold {_COUNT:,} records.")
    return lambda: xt.from_arrow(table), read


def _against_hand(folder: Path) -> tuple[Call, Call]:
    _check_round_trip()
    table = _recipes()
    return lambda: xt.from_arrow(table), lambda: byhand.from_arrow(table)


def _many_against_few(folder: Path) -> tuple[Call, Call]:
    many, few = recipe.numbers(_MANY), recipe.numbers(_FEW)
    last = xt.from_arrow(many).field_value(many.column_names[-1])
    if not np.array_equal(last, many.columns[-1]):
        raise AssertionError("extensor's conversion changed the numbers.")
    return lambda: xt.from_arrow(many), lambda: xt.from_arrow(few)


def _untouched(folder: Path) -> tuple[Call, Call]:
    table = recipe.recipes(_COUNT)
    records = xt.from_arrow(table)
    ours, peer = folder / "untouched.arrow", folder / "table.arrow"

    def write() -> None:
        with pa.OSFile(str(peer), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    return lambda: xt.write_arrow(records, ours), write


def _back_against_hand(folder: Path) -> tuple[Call, Call]:
    _check_round_trip()
    # Of a table that is gone: what lives would be shared.
    value, tensors = xt.from_arrow(recipe.recipes(_COUNT)), byhand.from_arrow(_recipes())
    return lambda: xt.to_arrow(value), lambda: byhand.to_arrow(tensors)


def _one(folder: Path) -> tuple[Call, Call]:
    numbers = {"a": [1.5], "b": [2], "c": [True], "d": [0.5], "e": [7]}
    lists = {"f": [[1.0, 2.0]], "g": [["a", "b"]]}
    table = pa.table({"title": ["bread"], **numbers, **lists})
    leaves = [["bread"], *numbers.values(), [1.0, 2.0], [0, 2], ["a", "b"], [0, 2]]
    return lambda: xt.from_arrow(table), lambda: [tf.constant(leaf) for leaf in leaves]


def _one_recipe(folder: Path) -> tuple[Call, Call]:
    table = recipe.recipes(1)
    tensors = tf.nest.flatten(xt.from_arrow(table), expand_composites=True)
    leaves = [tensor.numpy() for tensor in tensors]
    return lambda: xt.from_arrow(table), lambda: [tf.constant(leaf) for leaf in leaves]


def _masked(folder: Path, kind: str) -> tuple[Call, Call]:
    count = 1 if kind == "one record" else 1_000_000
    whole = recipe.numbers(count, 2 if count > 1 else 8)
    mask = pa.array(np.arange(count) % 3 == 0)
    if kind == "strings":
        whole = pa.table({"x": pa.array([f"word {i}" for i in range(200_000)])})
        mask = mask.slice(0, 200_000)
    if kind == "recipes":
        whole = _recipes()
        mask = mask.slice(0, _COUNT)
    if kind.startswith("lists"):
        values, starts = whole.column(0).combine_chunks(), np.arange(0, count + 1, 4, np.int32)
        mask = mask.slice(0, count // 4)
        over = pa.ListArray.from_arrays(pa.array(starts), values, mask=mask)
        if kind == "lists":  # null lists without values, as most writers leave them
            empty = pc.if_else(mask, pa.scalar(None, over.type), over)
            whole = pa.table({"x": pa.ListArray.from_arrays(empty.offsets, empty.values)})
            over = empty
        else:
            whole = pa.table({"x": pa.ListArray.from_arrays(pa.array(starts), values)})
        some = pa.table({"x": over})
    else:
        names = whole.column_names
        some = pa.table({n: _with_nulls(whole[n].combine_chunks(), mask) for n in names})
    few = some.slice(0, 9)
    back = xt.to_arrow(xt.from_arrow(few, nulls="mask"))
    if back.to_pylist() != few.to_pylist():
        raise AssertionError("extensor's conversion changed the records.")
    return lambda: xt.from_arrow(some, nulls="mask"), lambda: xt.from_arrow(whole)


def _masks_read(folder: Path, kind: str) -> tuple[Call, Call]:
    ours, peer = _masked(folder, kind)

    def read() -> None:
        records: Any = ours()
        for name in records.field_names():
            records[name].mask  # noqa: B018 - reading it makes it

    return read, peer


def _with_nulls(array: pa.Array, mask: pa.Array) -> pa.Array:
    return pc.if_else(mask, pa.scalar(None, array.type), array)


_WRITERS: dict[str, dict[str, Any]] = {
    "written as usual": {},
    "without compression": {"compression": "none"},
    "without dictionaries, zstd": {"compression": "zstd", "use_dictionary": False},
    "row groups of 1,000": {"row_group_size": 1_000},
}


def _parquet_against_least(folder: Path) -> tuple[Call, Call]:
    """Compares with the least that any conversion does: what reads the file, and makes strings."""
    read, read_table = _parquet(folder, {})

    def least() -> None:
        read_table()
        for strings in _columns_of_strings(_recipes()):
            _, offsets, data = strings.buffers()
            ends = np.frombuffer(offsets, np.int32, len(strings) + 1, 4 * strings.offset)
            blob = tf.constant([memoryview(data)[ends[0] : ends[-1]].tobytes()])
            tf.raw_ops.Substr(input=blob, pos=ends[:-1] - ends[0], len=np.diff(ends))

    return read, least


def _columns_of_strings(table: pa.Table) -> list[pa.Array]:
    found: list[pa.Array] = []
    inner = [column.combine_chunks() for column in table.columns]
    while inner:
        array = inner.pop()
        if pa.types.is_struct(array.type):
            inner += [array.field(i) for i in range(array.type.num_fields)]
        elif pa.types.is_list(array.type):
            inner.append(array.values)
        elif pa.types.is_string(array.type):
            found.append(array)
    return found


def _parquet(folder: Path, options: dict[str, Any]) -> tuple[Call, Call]:
    path = str(folder / "recipes.parquet")
    pq.write_table(_recipes(), path, **options)
    titles = xt.read_parquet(path).field_value("title")
    if not tf.reduce_all(titles == byhand.from_arrow(_recipes())["title"]):
        raise AssertionError("read_parquet changed the records.")
    return lambda: xt.read_parquet(path), lambda: pq.read_table(path)
