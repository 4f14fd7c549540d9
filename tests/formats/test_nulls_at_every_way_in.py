"""The argument `nulls=` of every way in: each policy, for nulls of every kind, at any depth."""

import copy
import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt

A = pa.struct({"a": pa.int64()})
TYPE = pa.struct({
    "num": pa.int64(), "str": pa.string(), "rec": A, "inner": A, "lst": pa.list_(pa.int64()),
    "items": pa.list_(pa.int64()), "recs": pa.list_(A), "some": pa.list_(A), "deep": pa.list_(A),
})  # fmt: skip
FULL = {"num": 7, "str": "s", "rec": {"a": 1}, "inner": {"a": 2}, "lst": [1, 2], "items": [1, 2],
        "recs": [{"a": 3}], "some": [{"a": 4}, {"a": 5}], "deep": [{"a": 6}]}  # fmt: skip
WITH_NULLS = {"num": None, "str": None, "rec": None, "inner": {"a": None}, "lst": None,
              "items": [1, None], "recs": None, "some": [None, {"a": 5}],
              "deep": [{"a": None}]}  # fmt: skip

# For each path: a value in the place of nulls.
VALUES = {"num": 0, "str": xt.fill("?"), "rec": {"a": 0}, "inner.a": -1, "lst": [0], "items[*]": 9,
          "recs": [{"a": 0}], "some[*]": {"a": 8}, "deep[*].a": xt.fill(5)}  # fmt: skip
FILLED = {"num": 0, "str": "?", "rec": {"a": 0}, "inner": {"a": -1}, "lst": [0], "items": [1, 9],
          "recs": [{"a": 0}], "some": [{"a": 8}, {"a": 5}], "deep": [{"a": 5}]}  # fmt: skip
PLACES = {"top": "", "in lists of records in records": "o.p[*].q."}


def placed(record, place):
    return {"o": {"p": [{"q": record}]}} if place else record


def rows(place, changed):
    """Five records, of which those numbered 2 and 4 are changed."""
    found = [copy.deepcopy(changed if i in (2, 4) else FULL) for i in range(5)]
    return [placed(row, place) for row in found]


def table(place):
    outer = pa.struct({"o": pa.struct({"p": pa.list_(pa.struct({"q": TYPE}))})}) if place else TYPE
    return pa.Table.from_pylist(rows(place, WITH_NULLS), pa.schema(list(outer)))


def streamed(dataset):
    return [row for batch in dataset for row in batch.to_py(text=True)]


def whole(records):
    return records.to_py(text=True)


WAYS = {
    "from_arrow": lambda files, n: whole(xt.from_arrow(table(files["place"]), nulls=n)),
    "constant": lambda files, n: whole(
        xt.struct.constant(rows(files["place"], WITH_NULLS), nulls=n)
    ),
    "from_pandas": lambda files, n: whole(
        xt.from_pandas(table(files["place"]).to_pandas(types_mapper=pd.ArrowDtype), nulls=n)
    ),
    "read_parquet": lambda files, n: whole(xt.read_parquet(files["parquet"], nulls=n)),
    "read_arrow": lambda files, n: whole(xt.read_arrow(files["arrow"], nulls=n)),
    "read_json": lambda files, n: whole(xt.read_json(files["json"], nulls=n)),
    "data.parquet": lambda files, n: streamed(xt.data.parquet(files["parquet"], 3, nulls=n)),
    "data.arrow": lambda files, n: streamed(xt.data.arrow(files["arrow"], 3, nulls=n)),
    "data.json": lambda files, n: streamed(xt.data.json(files["json"], 3, nulls=n)),
}


@pytest.fixture(scope="module", params=PLACES.values(), ids=PLACES)
def files(request, tmp_path_factory):
    folder, data = tmp_path_factory.mktemp("nulls"), table(request.param)
    found = {kind: folder / f"rows.{kind}" for kind in ("parquet", "arrow", "json")}
    pq.write_table(data, found["parquet"])
    with pa.ipc.new_file(found["arrow"], data.schema) as writer:
        writer.write_table(data)
    records = xt.from_arrow(data, nulls="mask")
    xt.write_json(records, found["json"])
    return {"place": request.param, **found}


@pytest.mark.parametrize("way", WAYS)
def test_each_policy_does_the_same_at_every_way_in(files, way):
    place = files["place"]

    def read(nulls):
        return WAYS[way](files, nulls)

    assert read("mask") == rows(place, WITH_NULLS)
    assert read(dict.fromkeys((place + path for path in VALUES), "mask")) == rows(place, WITH_NULLS)
    assert read({place + path: value for path, value in VALUES.items()}) == rows(place, FILLED)
    empty = {"*": "mask", f"{place}lst": "empty", f"{place}recs": "empty"}
    assert read(empty) == rows(place, {**WITH_NULLS, "lst": [], "recs": []})


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("way", WAYS)
def test_an_error_for_a_null_has_its_path_the_count_the_first_record_and_the_mend(files, way):
    for path in VALUES:
        whole_path = files["place"] + path
        with pytest.raises(xt.errors.NullError) as caught:
            WAYS[way](files, {"*": "mask", whole_path: "error"})
        text = str(caught.value)
        assert text.startswith(whole_path), text
        # A stream has read the batch of the records 0 to 2.
        count = 1 if way.startswith("data.") else 2
        assert re.search(rf"\b{count} null", text), text
        assert re.search(r"\brecord 2\b", text), text
        key = re.search(r"nulls=\{'([^']*)': \.\.\.\}", text)[1]
        assert WAYS[way](files, {"*": "mask", key: "mask"}) == rows(files["place"], WITH_NULLS)


@pytest.mark.parametrize("nulls", [None, "error"])
@pytest.mark.parametrize("path", VALUES)
def test_an_error_for_a_null_in_python_data_has_the_same_parts(nulls, path):
    name = re.match(r"\w+", path)[0]
    data = [{name: FULL[name]}, {name: WITH_NULLS[name]}, {name: WITH_NULLS[name]}]
    with pytest.raises(xt.errors.NullError) as caught:
        xt.struct.constant(data, nulls=nulls)
    text = str(caught.value)
    assert text.startswith(f"{path}, record 1: ")
    assert "got null, the first of 2 nulls." in text
    key = re.search(r"nulls=\{'([^']*)': \.\.\.\}", text)[1]
    assert xt.struct.constant(data, nulls={key: "mask"}).to_py(text=True) == data


def test_an_error_for_a_missing_key_has_the_same_parts():
    data = [{"r": {"a": 1, "xs": [1]}}, {"r": {"a": 2}}, {"r": {"a": 3}}]
    with pytest.raises(xt.errors.NullError) as caught:
        xt.struct.constant(data)
    text = str(caught.value)
    assert text.startswith("r.xs, record 1: ")
    assert "the first of 2 without the key" in text
    assert """nulls={'r.xs': ...} with xt.fill(value), "mask" or "empty".""" in text
    assert xt.struct.constant(data, nulls={"r.xs": "empty"})["r.xs"].to_list() == [[1], [], []]
