"""The cost of streams of Parquet: shuffling, the loaders of TensorFlow, and CPU time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from bench import peers, recipe
from bench.measure import Call, cpu_medians, medians
from bench.row import Faster, Row, Within

_SMALL = 48 * 1024
_COUNT = 64 * 1024
_RECIPES = 20_000
_LARGE = 8 * _COUNT
_BATCH = 1024


def rows() -> list[Row]:
    return [
        Row(
            f"Shuffled stream of {_COUNT:,} records, vs unbatch().shuffle().batch()",
            Faster(3),
            _shuffle,
        ),
        *(
            Row(f"{name}{unit}", limit, prepare, statistic=statistic)
            for name, limit, prepare in (
                *(
                    (
                        f"Stream of {count:,} records, {size}, vs pyarrow's scanner and from_arrow",
                        Within(1.3),
                        functools.partial(_scanned, count=count),
                    )
                    for count, size in ((_SMALL, "4 MB"), (_LARGE, "43 MB"))
                ),
                (
                    f"Stream of {_COUNT:,} records, vs Dataset.from_generator",
                    Faster(2),
                    _from_generator,
                ),
                (
                    f"Stream of {_RECIPES:,} recipes, vs TFRecord, batch(2048), parse_example",
                    Faster(3),
                    _tfrecord,
                ),
            )
            for unit, statistic in (("", medians), (", CPU time", cpu_medians))
        ),
        *(
            Row(
                f"Rest of an epoch of {_LARGE:,} records{name}, by 3 shards after 4, vs by 4 again",
                Within(1.05),
                functools.partial(_resumed, shuffle=shuffle),
            )
            for name, shuffle in (("", None), (", shuffled", xt.data.Shuffle(0, 2048)))
        ),
        *(
            Row(
                f"Stream of {_LARGE:,} records in the graph by {how}, batches of {size:,}, "
                "vs pq.read_table and one from_arrow, CPU time",
                Within(1.4),
                functools.partial(_drained, size=size, how=how),
                statistic=cpu_medians,
            )
            for how in ("skip", "reduce")
            for size in (256, _BATCH)
        ),
    ]


def _file(folder: Path, count: int = _COUNT) -> str:
    path = folder / f"stream{count}.parquet"
    if not path.exists():
        random = np.random.default_rng(0)
        lists = pa.ListArray.from_arrays(
            pa.array(np.arange(count + 1) * 3, pa.int32()), pa.array(random.random(3 * count))
        )
        columns = {f"number{i}": pa.array(random.random(count), pa.float32()) for i in range(8)}
        names = pa.array([f"record {i}" for i in range(count)])
        pq.write_table(pa.table({**columns, "list": lists, "name": names}), path, 8 * _BATCH)
    return str(path)


def _passes(dataset: tf.data.Dataset) -> Callable[[], None]:
    def whole() -> None:
        for _ in dataset:
            pass

    return whole


def _shuffle(folder: Path) -> tuple[Call, Call]:
    path = _file(folder)
    ours = xt.data.parquet(path, _BATCH, shuffle=xt.data.Shuffle(0, 16 * _BATCH))
    peer = xt.data.parquet(path, _BATCH).unbatch().shuffle(16 * _BATCH, seed=0).batch(_BATCH)
    return _passes(ours), _passes(peer)


def _scanned(folder: Path, count: int) -> tuple[Call, Call]:
    path = _file(folder, count)

    def ours() -> None:
        for _ in xt.data.parquet(path, _BATCH):
            pass

    def peer() -> None:
        for batch in ds.dataset(path).to_batches(batch_size=_BATCH):
            xt.from_arrow(batch)

    return ours, peer


def _tfrecord(folder: Path) -> tuple[Call, Call]:
    records = xt.from_arrow(recipe.recipes(_RECIPES))
    path = folder / "recipes.parquet"
    xt.write_parquet(records, path)
    examples = folder / "recipes.tfrecord"
    peers.write_tfrecord(recipe.recipes(_RECIPES), examples)
    return _passes(xt.data.parquet(path, 2048)), peers.read_tfrecord(examples)


def _resumed(folder: Path, shuffle: xt.data.Shuffle | None) -> tuple[Call, Call]:
    path = folder / "groups.parquet"
    if not path.exists():
        pq.write_table(pq.read_table(_file(folder, _LARGE)), path, _BATCH)

    def shards(count: int, state: Any = None) -> list[Any]:
        return [
            xt.data.parquet(path, 256, shuffle=shuffle, shard=(i, count), state=state)
            for i in range(count)
        ]

    states = [
        xt.data.state(shard, steps)
        for shard, steps in zip(shards(4), (180, 200, 190, 170), strict=True)
    ]

    def rest(count: int) -> None:
        for shard in shards(count, states):
            for _ in shard:
                pass

    return functools.partial(rest, 3), functools.partial(rest, 4)


def _from_generator(folder: Path) -> tuple[Call, Call]:
    path = _file(folder)
    ours = xt.data.parquet(path, _BATCH)

    def batches() -> Any:
        for batch in pq.ParquetFile(path).iter_batches(_BATCH):
            yield xt.from_arrow(batch)

    peer = tf.data.Dataset.from_generator(batches, output_signature=ours.element_spec)
    return _passes(ours), _passes(peer.prefetch(1))


def _drained(folder: Path, size: int, how: str) -> tuple[Call, Call]:
    path = _file(folder, _LARGE)
    dataset: Any = xt.data.parquet(path, size)
    if how == "skip":
        # It gets each batch, and calls no function. The function of reduce takes 40 us of CPU time
        # a call, whatever the dataset is: for 2,048 batches more than the peer takes for all.
        dataset = dataset.skip(len(dataset) - 1)

    @tf.function
    def ours() -> Any:
        return dataset.reduce(np.int64(0), lambda count, _: count + 1)

    def peer() -> None:
        xt.from_arrow(pq.read_table(path, use_threads=False))

    return ours, peer
