"""Reading only the fields that a model uses: 3 of 30 columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Faster, Row, Within

_COUNT, _BATCH = 200_000, 1024


def rows() -> list[Row]:
    what = f"{_COUNT:,} records, 3 of 30 columns used"
    return [
        Row(f"columns=fields_used(...), {what}, vs columns= by hand", Within(1.05), _fields),
        Row(f"columns=fields_used(...), {what}, vs all columns", Faster(4), _fields_of_all),
        Row(f"predict of xt.keras, {what}, vs columns= by hand", Within(1.05), _predict),
        Row(f"predict of xt.keras, {what}, vs all columns", Faster(4), _predict_of_all),
    ]


def _file(folder: Path) -> Path:
    random = np.random.default_rng(0)
    columns = {f"number{i:02}": random.normal(size=_COUNT).astype("f4") for i in range(20)}
    words = np.array([f"word {i}" for i in range(5000)])
    texts = {f"text{i}": random.choice(words, _COUNT) for i in range(10)}
    pq.write_table(pa.table({**columns, **texts}), folder / "records.parquet")
    return folder / "records.parquet"


_BY_HAND = ["number01", "number07", "number15"]


def _score(records: xt.StructuredTensor) -> tf.Tensor:
    return tf.add_n([records[name] for name in _BY_HAND])


def _drain(dataset: tf.data.Dataset) -> Call:
    return lambda: dataset.reduce(0.0, lambda total, r: total + tf.reduce_sum(_score(r)))


def _fields(folder: Path) -> tuple[Call, Call]:
    path = _file(folder)
    fields = xt.data.fields_used(_score, xt.data.parquet(path, _BATCH).element_spec)
    if list(fields) != _BY_HAND:
        raise AssertionError(f"The fields are {fields}.")
    ours = xt.data.parquet(path, _BATCH, fields)
    return _drain(ours), _drain(xt.data.parquet(path, _BATCH, _BY_HAND))


def _fields_of_all(folder: Path) -> tuple[Call, Call]:
    ours, _ = _fields(folder)
    return ours, _drain(xt.data.parquet(folder / "records.parquet", _BATCH, None))


class Scorer(xt.keras.Model):
    def call(self, records: xt.StructuredTensor) -> tf.Tensor:
        return _score(records)


def _predicting(dataset: tf.data.Dataset) -> Call:
    model = Scorer()
    return lambda: model.predict(dataset, verbose=0)


def _predict(folder: Path) -> tuple[Call, Call]:
    path = _file(folder)
    ours = xt.data.parquet(path, _BATCH)
    return _predicting(ours), _predicting(xt.data.parquet(path, _BATCH, _BY_HAND))


def _predict_of_all(folder: Path) -> tuple[Call, Call]:
    ours, _ = _predict(folder)
    return ours, _predicting(xt.data.parquet(folder / "records.parquet", _BATCH, None))
