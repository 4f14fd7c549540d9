"""Runs the main job and says what it does: `python -m demo [FOLDER]`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from demo import cities, model

BATCH = 256
EPOCHS = 5
HELD_OUT = 10  # every tenth city, by its number


def main(folder: Path, epochs: int = EPOCHS, count: int | None = None) -> None:
    """Runs the main job.

    Args:
        folder: The folder for the files.
        epochs: How often the model sees all cities.
        count: The number of countries. Default: all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(1)
    nested, scored, saved = (
        folder / "countries.parquet",
        folder / "scored.parquet",
        folder / "model",
    )

    with step("JSON to nested records") as say:
        table = cities.nested().slice(0, count)
        say(f"{cities.source().stat().st_size / 1e6:.1f} MB of JSON, {table.num_rows} countries")

    with step("Arrow to a StructuredTensor, and to nested Parquet") as say:
        countries = xt.from_arrow(table)
        xt.write_parquet(countries, nested, table.schema)
        names = countries["cities.names"].flat_values.shape[0]
        say(f"{len(countries['cities'].values):,} cities, {names:,} names")
        say(f"{nested.name}: {nested.stat().st_size / 1e6:.1f} MB")
        say(xt.struct.tree(countries))

    codes = table["country"].to_pylist()
    train, test = split(nested, codes, countries["cities.geonameid"].flat_values.numpy())

    with step("A model reads the list of names off the records, and is trained") as say:
        spec = train.element_spec[0]
        guesser = model.build(spec, codes)
        guesser.fit(train, epochs=epochs, verbose=1 if sys.stdout.isatty() else 2)

    with step("The same model without the list: each city's one name alone") as say:
        alone = model.build(spec, codes)
        alone.fit(train.map(without_list), epochs=epochs, verbose=0)

    with step("Accuracy on the tenth of the cities that was held out") as say:
        most = np.bincount(np.concatenate([y for _, y in train]))
        truth = np.concatenate([y for _, y in test])
        frequent = np.argsort(most)[::-1]
        report = {
            "most frequent country": (
                (truth == frequent[0]).mean(),
                np.isin(truth, frequent[:5]).mean(),
            ),
            "one name alone": alone.evaluate(test.map(without_list), verbose=0)[1:],
            "list of names": guesser.evaluate(test, verbose=0)[1:],
        }
        say(f"{'':24}{'top 1':>8}{'top 5':>8}")
        for name, (top1, top5) in report.items():
            say(f"{name:24}{top1:8.1%}{top5:8.1%}")

    with step("Export to a SavedModel that takes the records") as say:
        teller = model.served(guesser, spec, codes)
        teller.export(saved, verbose=False)
        size = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
        say(f"{size / 1e6:.1f} MB; signature: {xt.struct.tree(spec)}")

    with step("A fresh process, without Keras, predicts and writes nested Parquet") as say:
        command = [sys.executable, "-m", "demo.predict", str(saved), str(nested), str(scored)]
        subprocess.run(command, check=True)
        say(f"{scored.name}: {scored.stat().st_size / 1e6:.1f} MB")
        say(xt.struct.tree(xt.spec_from_schema(pq.read_schema(scored))))

    with step("The same numbers as here, to the last bit") as say:
        if not np.array_equal(served(scored), predicted(teller, nested)):
            raise AssertionError("The served model's numbers differ from the trained model's.")
        say(f"{len(served(scored)):,} probabilities are equal")


def split(
    path: Path, codes: list[str], numbers: np.ndarray
) -> tuple[tf.data.Dataset, tf.data.Dataset]:
    """Returns batches of cities with the numbers of their countries, to train and to test on."""
    number = keras.layers.StringLookup(vocabulary=codes, num_oov_indices=0)

    def cities_of(countries: xt.StructuredTensor) -> tuple[xt.StructuredTensor, tf.Tensor]:
        records = countries["cities"]
        return records.values, tf.repeat(number(countries["country"]), records.row_lengths())

    fields = ["country", "cities.geonameid", "cities.names"]
    every = xt.data.parquet(path, batch_size=32, columns=fields).map(cities_of).unbatch().cache()
    train = every.filter(lambda city, _: city["geonameid"] % HELD_OUT != 0)
    test = every.filter(lambda city, _: city["geonameid"] % HELD_OUT == 0)
    held_out = int((numbers % HELD_OUT == 0).sum())
    train = train.apply(tf.data.experimental.assert_cardinality(len(numbers) - held_out))
    test = test.apply(tf.data.experimental.assert_cardinality(held_out))
    return train.shuffle(40_000, seed=1).batch(BATCH), test.batch(BATCH)


def without_list(city: xt.StructuredTensor, country: tf.Tensor) -> tuple:
    return city.with_updates(names=city["names"][:, :1]), country


def served(path: Path) -> np.ndarray:
    """Returns the probabilities in a file of predictions."""
    records = xt.read_parquet(path, columns=["cities.probability"])
    return records["cities.probability"].flat_values.numpy()


def predicted(teller: xt.keras.Model, path: Path) -> np.ndarray:
    """Returns the probabilities that a model here gives the cities of a file."""
    columns = ["cities.geonameid", "cities.names"]
    countries = xt.data.parquet(path, batch_size=32, columns=columns)
    cities = countries.map(lambda records: records["cities"].values)
    return teller.predict(cities, verbose=0)["probability"]


@contextmanager
def step(title: str) -> Iterator:
    print(f"\n{title}", flush=True)
    start = time.perf_counter()
    yield lambda value: print("    " + str(value).replace("\n", "\n    "), flush=True)
    print(f"    {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build", "demo"))
