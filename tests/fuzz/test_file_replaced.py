"""A file that changes during a pass: each file as it was, or an error that names it."""

import functools
import importlib
import os
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.mutation import damaged
from tests.fuzz.test_parquet_files import outcome

ROWS, BATCH = 2000, 50


def _write_ipc(make, table, path):
    with make(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


FORMATS = {
    "parquet": (xt.data.parquet, pq.write_table),
    "arrow": (xt.data.arrow, functools.partial(_write_ipc, pa.ipc.new_file)),
    "arrows": (xt.data.arrow, functools.partial(_write_ipc, pa.ipc.new_stream)),
    "jsonl": (xt.data.json, lambda table, path: xt.write_json(xt.from_arrow(table), path)),
    "tfrecord": (
        xt.data.tfrecord,
        lambda table, path: xt.write_tfrecord(xt.from_arrow(table), path),
    ),
}


def test_a_pass_over_a_file_that_changes_gives_it_whole_or_an_error():
    ends = cases.run(__name__, cases.seeds(200))
    assert {"read", "refused"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    # A pass is several times what is read ahead.
    importlib.import_module("extensor._data.plan").PART_ROWS = dice.choice([100, 400])
    for name in ("json", "serialized"):
        importlib.import_module(f"extensor._streams.{name}").BLOCK = dice.choice([300, 5000])
    kind = dice.choice(["parquet", *FORMATS])
    make, write = FORMATS[kind]
    epochs = dice.choice([1, 1, 2])
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "row_group_size": dice.choice([None, 100, 1000]),
            "compression": dice.choice(["none", "zstd"]),
            "use_dictionary": False,
        }
        options = options if kind == "parquet" else {}
        paths = [Path(folder) / f"{i}.{kind}" for i in range(dice.choice([1, 1, 2, 3]))]
        for path in paths:
            write(_table(1), path, **options)
        shuffle = dice.choice([None, None, xt.data.Shuffle(seed, 300)])
        dataset = make(paths, BATCH, shuffle=shuffle, epochs=epochs)
        if dice.random() < 0.3:
            next(iter(dataset))  # a look
        seen, at = [], dice.randrange(epochs * len(paths) * ROWS // BATCH)

        def passed():
            for i, batch in enumerate(dataset):
                if i == at:
                    _change(dice, dice.choice(paths), write, options)
                seen.extend((int(x), int(age)) for x, age in _rows(batch))

        _, error = outcome(passed)
    numbers, ages = [x for x, _ in seen], [age for _, age in seen]
    assert len(set(ages)) < 2, "two states of one file"
    if shuffle is None:
        assert numbers == [i % ROWS for i in range(len(numbers))]
    assert error is not None or len(seen) == epochs * len(paths) * ROWS
    return "read" if error is None else "refused"


def _rows(batch):
    return zip(batch["x"].numpy(), batch["age"].numpy(), strict=True)


def _table(age, rows=ROWS):
    return pa.table({"x": pa.array(range(rows)), "age": pa.array([age] * rows), "s": ["a"] * rows})


def _change(dice, path, write, options):
    new = path.with_suffix(".new")
    rows = dice.choice([ROWS, ROWS, ROWS - 1, ROWS + 1, 10])
    table = _table(2, rows) if dice.random() < 0.8 else pa.table({"y": [1.5] * rows})
    write(table, new, **options)
    match dice.choice(["replace", "overwrite", "overwrite", "cut", "remove", "damage", "folder"]):
        case "replace":
            os.replace(new, path)
        case "overwrite":
            path.write_bytes(new.read_bytes())
        case "cut":
            os.truncate(path, dice.randrange(path.stat().st_size))
        case "remove":
            path.unlink()
        case "damage":
            path.write_bytes(damaged(dice, path.read_bytes()))
        case "folder":
            path.unlink()
            path.mkdir()
