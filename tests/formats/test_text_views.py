"""Each format has the text of views, and of dictionaries and runs of them, as polars exports it."""

import json
import shutil

import polars as pl
import pyarrow as pa
import pytest

import extensor as xt
from extensor._arrow.encoded_types import decode

VIEWS = pa.array(["a", None, "a longer text than one view", "a"], pa.string_view())
WORDS = pa.array(["a", "a longer text than one view", "unused"]).cast(pa.string_view())
INDICES = pa.array([0, None, 1, 0], pa.uint32())
DICTIONARY = pa.DictionaryArray.from_arrays(INDICES, WORDS, ordered=True)
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 4], pa.int32()), WORDS[:2])
COLUMNS = {
    "views": VIEWS,
    "dictionary": DICTIONARY,
    "runs": RUNS,
    "lists of views": pa.ListArray.from_arrays([0, 2, 2, 3, 4], VIEWS),
    "lists of dictionaries": pa.ListArray.from_arrays([0, 2, 2, 3, 4], DICTIONARY),
    "records": pa.StructArray.from_arrays([VIEWS, DICTIONARY], ["v", "d"]),
}


def _parquet(records, path):
    xt.write_parquet(records, path)
    return xt.read_parquet(path, nulls="mask").to_py()


def _partitioned(records, path):
    shutil.rmtree(path, ignore_errors=True)
    keyed = records.with_updates(key=[1, 1, 2, 2])
    xt.write_parquet(keyed, path, partition_by=["key"])
    return xt.read_parquet(path, nulls="mask").without("key").to_py()


def _json(records, path):
    xt.write_json(records, path)
    return xt.read_json(path, nulls="mask").to_py()


def _csv(records, path):
    xt.write_csv(records, path)
    return xt.read_csv(path, nulls="mask").to_py()


def _described(records, path):
    assert "longer text" in str(xt.data.describe(records))
    return xt.to_arrow(records).to_pylist()


WAYS = {
    "parquet": _parquet,
    "folders of parquet": _partitioned,
    "json": _json,
    "csv": _csv,
    "describe": _described,
    "awkward": lambda records, path: xt.to_awkward(records).to_list(),
    "huggingface": lambda records, path: list(xt.to_huggingface(records)),
    "pandas": lambda records, path: xt.from_pandas(records.to_pandas(), nulls="mask").to_py(),
}
HAS_NO_RUNS = ("parquet", "folders of parquet", "huggingface")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", COLUMNS)
def test_each_format_has_the_values(kind, way, tmp_path):
    table = pa.table({"x": COLUMNS[kind]})
    records = xt.from_arrow(table, nulls="mask")
    is_refused = (kind == "runs" and way in HAS_NO_RUNS) or (
        way == "csv" and kind not in ("views", "dictionary", "runs")
    )
    if is_refused:
        with pytest.raises(xt.errors.UnsupportedTypeError, match="x"):
            WAYS[way](records, tmp_path / "x")
    else:
        assert WAYS[way](records, tmp_path / "x") == table.to_pylist()


def test_categories_of_polars_come_back_from_parquet(tmp_path):
    frame = pl.DataFrame(
        {
            "category": pl.Series(["b", "a", None], dtype=pl.Categorical),
            "enum": pl.Series(["y", None, "y"], dtype=pl.Enum(["x", "y"])),
            "lists": pl.Series([["a"], [], None], dtype=pl.List(pl.Categorical)),
            "text": ["s", None, "t"],
        }
    )
    path = tmp_path / "frame.parquet"
    records = xt.from_arrow(frame, nulls="mask")
    xt.write_parquet(records, path)
    assert pl.read_parquet(path).equals(frame)
    back = xt.read_parquet(path, nulls="mask")
    assert back.to_py() == frame.to_dicts()
    # The words that no record has stay, in their order.
    assert xt.to_arrow(back)["enum"].dictionary.to_pylist() == ["x", "y"]


@pytest.mark.parametrize("array", [DICTIONARY, RUNS, DICTIONARY[1:3], RUNS[1:3]])
def test_values_of_views_are_those_that_arrow_shows(array):
    assert decode(array).to_pylist() == array.to_pylist()


KEYS = {
    "views": WORDS,
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([1, 0, 2], pa.uint8()), WORDS),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), WORDS),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_maps_become_those_of_objects(kind, tmp_path):
    maps = pa.MapArray.from_arrays([0, 2, 3], KEYS[kind], pa.array([1, 2, 3]))
    path = tmp_path / "it.json"
    xt.write_json(xt.from_arrow(pa.table({"m": maps})), path)
    expected = [{"m": dict(pairs)} for pairs in maps.to_pylist()]
    assert [json.loads(line) for line in path.read_text().splitlines()] == expected
