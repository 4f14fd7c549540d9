"""The cost of records in Keras, compared to plain tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from bench import first_fit
from bench.measure import Call, cpu_medians, fastest
from bench.row import ProcessRow, Row, Within

_ROWS = 256
_WIDTH = 8
_DENSE = [f"dense{i}" for i in range(5)]
_RAGGED = [f"ragged{i}" for i in range(3)]

_FILE_ROWS = 32 * 1024
_BATCH = 1024


def rows() -> list[Row | ProcessRow]:
    step = "8 fields, 3 of them ragged, 10k parameters, vs dict of tensors"
    return [
        Row(f"Keras train step, {step}", Within(1.05), lambda folder: _train_steps()),
        Row(f"Keras predict, 64 steps, {step}", Within(1.05), lambda folder: _predict_steps()),
        Row(f"Keras fit, 64 steps, {step}", Within(1.05), lambda folder: _fit_steps()),
        *(
            Row(
                f"Keras subclassed model, eager call, {fields} fields, vs dict of tensors",
                Within(1.1),
                functools.partial(_eager_calls, fields=fields),
            )
            for fields in (8, 100)
        ),
        Row(
            "Keras functional model, eager call, 40 fields, vs dict of tensors",
            Within(1.2),
            lambda folder: _functional_calls(lambda model, x: model(x)),
        ),
        Row(
            "Keras predict_on_batch of one row, 40 fields, vs dict of tensors",
            Within(1.05),
            lambda folder: _functional_calls(lambda model, x: model.predict_on_batch(x), rows=1),
        ),
        *(
            Row(
                f"Keras {method}, {count} rows given directly, {fields} fields, vs dict of "
                "tensors, CPU time",
                Within(1.0),
                functools.partial(_direct, method=method, count=count, fields=fields),
                statistic=cpu_medians,
            )
            for count, fields in ((32, 8), (512, 8), (32, 100))
            for method in ("fit", "evaluate", "predict")
        ),
        Row(
            "Keras fit of a functional model, 20,000 rows given directly, 3 of 300 fields read, vs "
            "records of the 3",
            Within(1.2),
            _fields_read,
        ),
        Row(
            "Keras predict, 64 steps, records two levels deep, vs dict of tensors",
            Within(1.05),
            lambda folder: _nested_steps(_predict_step),
        ),
        Row(
            "Keras train step, records two levels deep, vs dict of tensors",
            Within(1.05),
            lambda folder: _nested_steps(_train_step),
        ),
        *(
            ProcessRow(
                f"Keras first fit of {first_fit.FIELDS} fields, {how}: adapt, build, an epoch of "
                f"{first_fit.RECORDS:,} records, CPU of a fresh process, vs dict of tensors",
                Within(1.2),
                functools.partial(first_fit.times, side, "dict"),
            )
            for side, how in (("records", "layers of Keras"), ("features", "RecordFeatures"))
        ),
        Row(
            "Keras fit over Parquet, 1M parameters, vs tensors, the fastest of each",
            Within(1.1),
            _fit,
            statistic=fastest,
        ),
    ]


def _records(count: int = _ROWS) -> Any:
    random = np.random.default_rng(0)
    fields: dict[str, Any] = {
        name: tf.constant(random.random((count, _WIDTH), np.float32)) for name in _DENSE
    }
    for name in _RAGGED:
        lengths = random.integers(0, 9, count)
        values = tf.constant(random.random(int(lengths.sum()), np.float32))
        fields[name] = tf.RaggedTensor.from_row_lengths(values, lengths)
    return xt.DenseStructuredTensor([count], fields)


def _tensors(records: Any) -> dict[str, tf.Tensor]:
    """Returns the component tensors of records, each with the batch as the first dimension."""
    tensors = {name: records[name] for name in _DENSE}
    for name in _RAGGED:
        tensors[f"{name} values"] = records[name].flat_values
        tensors[f"{name} splits"] = records[name].row_splits
    return tensors


def _layers() -> list[Any]:
    return [keras.layers.Dense(128, "relu"), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)]


class OfRecords(xt.keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.stack = _layers()

    def call(self, records: Any) -> Any:
        sums = [tf.reduce_sum(records[name], axis=1)[:, tf.newaxis] for name in _RAGGED]
        x = tf.concat([*(records[name] for name in _DENSE), *sums], axis=1)
        for layer in self.stack:
            x = layer(x)
        return x


class OfTensors(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.stack = _layers()

    def call(self, tensors: Any) -> Any:
        sums = []
        for name in _RAGGED:
            parts = tensors[f"{name} values"], tensors[f"{name} splits"]
            ragged = tf.RaggedTensor.from_row_splits(*parts, validate=False)
            sums.append(tf.reduce_sum(ragged, axis=1)[:, tf.newaxis])
        x = tf.concat([*(tensors[name] for name in _DENSE), *sums], axis=1)
        for layer in self.stack:
            x = layer(x)
        return x


def _compiled(model: Any, x: Any) -> Any:
    model(x)
    model.compile("adam", "mse", jit_compile=False)
    return model


def _both() -> list[tuple[Any, Any]]:
    records = _records()
    tensors = _tensors(records)
    return [
        (_compiled(OfRecords(), records), records),
        (_compiled(OfTensors(), tensors), tensors),
    ]


def _train_steps() -> tuple[Call, Call]:
    return tuple(_train_step(model, x) for model, x in _both())  # type: ignore[return-value]


def _train_step(model: Any, x: Any) -> Call:
    steps = iter(tf.data.Dataset.from_tensors((x, tf.zeros([_ROWS, 1]))).repeat())
    model.make_train_function()
    return lambda: model.train_function(steps)


def _predict_steps() -> tuple[Call, Call]:
    return tuple(_predict_step(model, x) for model, x in _both())  # type: ignore[return-value]


def _predict_step(model: Any, x: Any) -> Call:
    steps = tf.data.Dataset.from_tensors(x).repeat(64)
    return lambda: model.predict(steps, verbose=0)


def _fit_steps() -> tuple[Call, Call]:
    return tuple(_fit_step(model, x) for model, x in _both())  # type: ignore[return-value]


def _fit_step(model: Any, x: Any) -> Call:
    steps = tf.data.Dataset.from_tensors((x, tf.zeros([_ROWS, 1]))).repeat(64)
    steps = steps.apply(tf.data.experimental.assert_cardinality(64))
    return lambda: model.fit(steps, verbose=0)


def _functional_calls(use: Callable[[Any, Any], Any], rows: int = 4) -> tuple[Call, Call]:
    random = np.random.default_rng(0)
    tensors = {f"f{i}": tf.constant(random.random((rows, 1), np.float32)) for i in range(40)}
    records = xt.DenseStructuredTensor([rows], tensors)
    record = xt.keras.Input(tf.type_spec_from_value(records))
    inputs = {name: keras.Input((1,), name=name) for name in tensors}
    ours = xt.keras.Model(record, _dense([record[name] for name in tensors]))
    peer = keras.Model(inputs, _dense(list(inputs.values())))
    for model in (ours, peer):
        model.compile("adam", "mse", jit_compile=False)
    return lambda: use(ours, records), lambda: use(peer, tensors)


def _dense(tensors: list[Any]) -> Any:
    return keras.layers.Dense(1)(keras.layers.Concatenate()(tensors))


def _eager_calls(folder: Path, fields: int) -> tuple[Call, Call]:
    random = np.random.default_rng(0)
    tensors = {f"f{i}": tf.constant(random.random((32, 1), np.float32)) for i in range(fields)}
    records = xt.DenseStructuredTensor([32], tensors)
    ours, peer = _concatenate(xt.keras.Model, tensors), _concatenate(keras.Model, tensors)
    return lambda: ours(records), lambda: peer(tensors)


def _concatenate(base: Any, names: Any) -> Any:
    class Concatenated(base):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(tf.concat([x[name] for name in names], axis=1))

    return Concatenated()


def _nested_steps(step: Callable[[Any, Any], Call]) -> tuple[Call, Call]:
    """Returns calls for recipes, of steps, of ingredients: `steps[*].ingredients[*].grams`."""
    random = np.random.default_rng(0)

    def ragged(count: int) -> tf.RaggedTensor:
        lengths = random.integers(0, 5, count)
        return tf.RaggedTensor.from_row_lengths(tf.range(lengths.sum()), lengths)

    of_recipes = ragged(_ROWS)
    of_steps = ragged(int(of_recipes.row_splits[-1]))
    grams = random.random(int(of_steps.row_splits[-1]), np.float32)
    minutes = random.random(int(of_recipes.row_splits[-1]), np.float32)
    taste = random.random((_ROWS, _WIDTH), np.float32)
    ingredients = xt.DenseStructuredTensor([len(grams)], {"grams": grams})
    steps = xt.DenseStructuredTensor(
        [len(minutes)],
        {
            "minutes": minutes,
            "ingredients": xt.RaggedStructuredTensor.from_row_splits(
                ingredients, of_steps.row_splits
            ),
        },
    )
    records = xt.DenseStructuredTensor(
        [_ROWS],
        {
            "taste": taste,
            "steps": xt.RaggedStructuredTensor.from_row_splits(steps, of_recipes.row_splits),
        },
    )
    tensors = {
        "taste": tf.constant(taste),
        "minutes": tf.constant(minutes),
        "grams": tf.constant(grams),
        "step splits": of_recipes.row_splits,
        "ingredient splits": of_steps.row_splits,
    }
    ours = step(_compiled(_nest_fields(xt.keras.Model, _parts_of_records), records), records)
    peer = step(_compiled(_nest_fields(keras.Model, _parts_of_tensors), tensors), tensors)
    return ours, peer


def _parts_of_records(records: Any) -> tuple[Any, Any, Any]:
    return records["taste"], records["steps.minutes"], records["steps.ingredients.grams"]


def _parts_of_tensors(tensors: Any) -> tuple[Any, Any, Any]:
    outer = tensors["step splits"]
    inner = tf.RaggedTensor.from_row_splits(
        tensors["grams"], tensors["ingredient splits"], validate=False
    )
    minutes = tf.RaggedTensor.from_row_splits(tensors["minutes"], outer, validate=False)
    grams = tf.RaggedTensor.from_row_splits(inner, outer, validate=False)
    return tensors["taste"], minutes, grams


def _nest_fields(base: Any, parts: Callable[[Any], tuple[Any, Any, Any]]) -> Any:
    class Nested(base):
        def __init__(self) -> None:
            super().__init__()
            self.stack = _layers()

        def call(self, x: Any) -> Any:
            taste, minutes, grams = parts(x)
            total = tf.reduce_sum(tf.reduce_sum(grams, axis=2), axis=1)
            x = tf.concat(
                [taste, tf.stack([tf.reduce_sum(minutes, axis=1), total], axis=1)], axis=1
            )
            for layer in self.stack:
                x = layer(x)
            return x

    return Nested()


def _direct(folder: Path, method: str, count: int, fields: int) -> tuple[Call, Call]:
    # Dense fields only, because Keras cannot cut the rows of ragged components.
    random = np.random.default_rng(0)
    names = [f"f{i}" for i in range(fields)]
    tensors = {name: tf.constant(random.random((count, _WIDTH), np.float32)) for name in names}
    records = xt.DenseStructuredTensor([count], tensors)
    target = () if method == "predict" else (tf.zeros([count, 1]),)
    calls: list[Call] = []
    for base, x in ((xt.keras.Model, records), (keras.Model, tensors)):
        model = _concatenate(base, names)
        model.compile("sgd", "mse", jit_compile=False)
        calls.append(functools.partial(getattr(model, method), x, *target, verbose=0))
    return calls[0], calls[1]


def _fields_read(folder: Path) -> tuple[Call, Call]:
    calls: list[Call] = []
    for fields in (300, 3):
        column = tf.random.uniform([20_000, 1])
        names = [f"f{i}" for i in range(fields)]
        records = xt.DenseStructuredTensor([20_000], dict.fromkeys(names, column))
        record = xt.keras.Input(tf.type_spec_from_value(records))
        model = xt.keras.Model(record, _dense([record[name] for name in names[:3]]))
        model.compile("sgd", "mse", jit_compile=False)
        calls.append(functools.partial(model.fit, records, column, batch_size=256, verbose=0))
    return calls[0], calls[1]


# Parquet.


def _file(folder: Path) -> Path:
    rows, path = _FILE_ROWS, folder / "to_fit.parquet"
    if not path.exists():
        random = np.random.default_rng(0)
        columns: dict[str, Any] = {
            f"number{i}": pa.array(random.random(rows), pa.float32()) for i in range(30)
        }
        lengths = random.integers(0, 9, rows)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        values = pa.array(random.random(int(lengths.sum())), pa.float32())
        columns["list"] = pa.ListArray.from_arrays(offsets, values)
        columns["label"] = pa.array(random.random(rows), pa.float32())
        pq.write_table(pa.table(columns), path, row_group_size=8 * _BATCH)
    return path


class Large(xt.keras.Model):
    """Returns a model with a million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = [
            keras.layers.Dense(1000, "relu"), keras.layers.Dense(970, "relu"), keras.layers.Dense(1)
        ]  # fmt: skip

    def call(self, records: Any) -> Any:
        numbers = tf.stack([records[f"number{i}"] for i in range(30)], axis=1)
        x = tf.concat([numbers, tf.reduce_sum(records["list"], axis=1)[:, tf.newaxis]], axis=1)
        for layer in self.stack:
            x = layer(x)
        return x


def _fit(folder: Path) -> tuple[Call, Call]:
    path = _file(folder)

    pairs = xt.data.parquet(path, _BATCH).map(
        lambda r: (r.without("label"), r["label"][:, tf.newaxis])
    )
    held = pairs.cache()
    for _ in held:
        pass  # read and converted once, before the measurement
    # One model for both, because the number of threads of products differs between functions.
    model = _compiled(Large(), next(iter(held))[0])

    def ours() -> None:
        model.fit(pairs, verbose=0)

    def peer() -> None:
        model.fit(held, verbose=0)

    return ours, peer
