"""The argument `nulls=` of every way in: each policy, for nulls of every kind, at any depth."""

import copy
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
from extensor._arrow.schema import masks_of_spec

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


def keys(place):
    """Returns the paths with nulls, as an error writes them."""
    return {(place + path).replace("[*].", ".") for path in VALUES}


def placed(record, place):
    return {"o": {"p": [{"q": record}]}} if place else record


def rows(place, changed):
    """Five records, of which those numbered 2 and 4 are changed."""
    found = [copy.deepcopy(changed if i in (2, 4) else FULL) for i in range(5)]
    return [placed(row, place) for row in found]


def table(place, changed):
    outer = pa.struct({"o": pa.struct({"p": pa.list_(pa.struct({"q": TYPE}))})}) if place else TYPE
    return pa.Table.from_pylist(rows(place, changed), pa.schema(list(outer)))


WAYS = {
    "from_arrow": lambda files, **words: xt.from_arrow(files["table"], **words),
    "constant": lambda files, **words: constant(files["rows"], **words),
    "from_pandas": lambda files, **words: xt.from_pandas(
        files["table"].to_pandas(types_mapper=pd.ArrowDtype), **words
    ),
    "read_parquet": lambda files, **words: xt.read_parquet(files["parquet"], **words),
    "read_arrow": lambda files, **words: xt.read_arrow(files["arrow"], **words),
    "read_json": lambda files, **words: xt.read_json(files["json"], **words),
    "data.parquet": lambda files, **words: xt.data.parquet(files["parquet"], 3, **words),
    "data.arrow": lambda files, **words: xt.data.arrow(files["arrow"], 3, **words),
    "data.json": lambda files, **words: xt.data.json(files["json"], 3, **words),
}


def constant(rows, schema=None, **words):
    return xt.struct.constant(rows, spec=schema, **words)


def plain(found):
    """Returns the records of a reader, or of the batches of a dataset, as Python values."""
    if hasattr(found, "to_py"):
        return found.to_py()
    return [row for batch in found for row in batch.to_py()]


def spec_of(found):
    """Returns the spec of any number of the records of a reader."""
    spec = xt.spec_of(found) if hasattr(found, "to_py") else found.element_spec
    return spec._any_length()


def masked(spec):
    return set(masks_of_spec(spec))


def pasted(text):
    """Returns the argument in the last line of an error."""
    return eval(text.splitlines()[-1].removeprefix("nulls="), {"xt": xt})


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("", id="top"),
        pytest.param(
            "o.p[*].q.",
            id="in lists of records in records",
            marks=pytest.mark.whole("reads each format again for fields in lists"),
        ),
    ],
)
def files(request, tmp_path_factory):
    return written(tmp_path_factory.mktemp("nulls"), request.param, WITH_NULLS)


@pytest.fixture(scope="module")
def full(files, tmp_path_factory):
    """The same files without nulls."""
    return written(tmp_path_factory.mktemp("full"), files["place"], FULL)


def written(folder, place, changed):
    data = table(place, changed)
    found = {kind: folder / f"rows.{kind}" for kind in ("parquet", "arrow", "json")}
    pq.write_table(data, found["parquet"])
    with pa.ipc.new_file(found["arrow"], data.schema) as writer:
        writer.write_table(data)
    records = xt.from_arrow(data, nulls="mask")
    xt.write_json(records, found["json"])
    return {"place": place, "table": data, "rows": rows(place, changed), **found}


@pytest.mark.parametrize("way", WAYS)
def test_each_policy_does_the_same_at_every_way_in(files, way):
    place = files["place"]

    def read(nulls):
        return plain(WAYS[way](files, nulls=nulls))

    assert read("mask") == rows(place, WITH_NULLS)
    assert read(dict.fromkeys((place + path for path in VALUES), "mask")) == rows(place, WITH_NULLS)
    assert read({place + path: value for path, value in VALUES.items()}) == rows(place, FILLED)
    empty = {"*": "mask", f"{place}lst": "empty", f"{place}recs": "empty"}
    assert read(empty) == rows(place, {**WITH_NULLS, "lst": [], "recs": []})


@pytest.mark.parametrize("way", WAYS)
def test_auto_masks_the_fields_that_have_nulls_and_no_others(files, full, way):
    place = files["place"]
    found = WAYS[way](files, nulls="auto")
    assert masked(spec_of(found)) == keys(place)
    assert plain(found) == rows(place, WITH_NULLS)
    without = WAYS[way](full, nulls="auto")
    assert masked(spec_of(without)) == set()
    assert plain(without) == rows(place, FULL)
    for key in keys(place):  # one path alone
        one, every = (WAYS[way](f, nulls={"*": "mask", key: "auto"}) for f in (files, full))
        assert masked(spec_of(one)) - masked(spec_of(every)) == {key}


def test_null_lists_of_records_that_arrow_before_26_did_not_count_are_masked():
    path = Path(__file__).parents[1] / "saved/arrow-24/nulls.parquet"
    expected = pq.read_table(path)
    statistics = pq.read_metadata(path).row_group(0).column(4).statistics
    assert statistics.null_count == 0  # of `onlynull`, which has a null list
    for found in (xt.data.parquet(path, 3, nulls="auto"), xt.read_parquet(path, nulls="auto")):
        assert plain(found) == expected.to_pylist()
        masks = {"lst", "recs", "recs.a", "r", "rr", "inner[*]", "onlynull"}
        assert masked(spec_of(found)) == masks


@pytest.mark.parametrize("way", WAYS)
def test_the_spec_of_auto_is_pinned_whether_nulls_are_seen_or_not(files, full, way):
    spec = spec_of(WAYS[way](files, nulls="auto"))
    for each, values in ((files, WITH_NULLS), (full, FULL)):
        for words in ({}, {"nulls": "auto"}):
            again = WAYS[way](each, schema=spec, **words)
            assert spec_of(again) == spec
            assert plain(again) == rows(files["place"], values)
    # What the spec does not mask has no nulls.
    with pytest.raises(xt.errors.NullError):
        plain(WAYS[way](files, schema=spec_of(WAYS[way](full, nulls="auto")), nulls="auto"))


@pytest.mark.parametrize("way", WAYS)
def test_an_error_lists_all_fields_with_nulls_and_a_line_that_mends_it(files, way):
    place = files["place"]
    with pytest.raises(xt.errors.NullError) as caught:
        plain(WAYS[way](files))
    text = str(caught.value)
    count = 1 if way.startswith("data.") else 2  # a stream has read the batch of records 0 to 2
    assert all(f"{key} ({count})" in text for key in keys(place))
    mended = WAYS[way](files, nulls=pasted(text))
    assert masked(spec_of(mended)) == keys(place)
    assert plain(mended) == rows(place, WITH_NULLS)


@pytest.mark.parametrize("way", WAYS)
def test_an_error_for_a_null_that_a_spec_does_not_have_ends_in_a_line_that_works(tmp_path, way):
    plain_fields = {"num", "str", "lst"}
    changed = {**FULL, **{name: WITH_NULLS[name] for name in plain_fields}}
    spec = spec_of(WAYS[way](written(tmp_path, "", FULL)))
    files = written(tmp_path, "", changed)
    with pytest.raises(xt.errors.NullError) as caught:
        plain(WAYS[way](files, schema=spec))
    nulls = pasted(str(caught.value))
    assert set(nulls) == plain_fields
    if not way.startswith("data."):  # the masks of a stream may be others than those of schema=
        changed = {**FULL, "num": 0, "str": "", "lst": []}
    assert plain(WAYS[way](files, schema=spec, nulls=nulls)) == rows("", changed)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("way", WAYS)
def test_an_error_for_a_null_has_its_path_the_count_the_first_record_and_the_mend(files, way):
    for path in VALUES:
        whole_path = files["place"] + path
        with pytest.raises(xt.errors.NullError) as caught:
            plain(WAYS[way](files, nulls={"*": "mask", whole_path: "error"}))
        text = str(caught.value)
        assert text.startswith(whole_path), text
        # A stream has read the batch of the records 0 to 2.
        count = 1 if way.startswith("data.") else 2
        assert re.search(rf"\b{count} null", text), text
        assert re.search(r"\brecord 2\b", text), text
        assert plain(WAYS[way](files, nulls=pasted(text))) == rows(files["place"], WITH_NULLS)


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
    assert xt.struct.constant(data, nulls=pasted(text)).to_py() == data


def test_an_error_for_a_missing_key_has_the_same_parts():
    data = [{"r": {"a": 1, "xs": [1]}}, {"r": {"a": 2}}, {"r": {"a": 3}}]
    with pytest.raises(xt.errors.NullError) as caught:
        xt.struct.constant(data)
    text = str(caught.value)
    assert text.startswith("r.xs, record 1: ")
    assert "the first of 2 without the key" in text
    assert pasted(text) == {"r.xs": "mask"}
    assert xt.struct.constant(data, nulls={"r.xs": "empty"})["r.xs"].to_list() == [[1], [], []]


def test_auto_masks_the_features_that_messages_lack(tmp_path):
    data = [{"id": 1, "n": None, "xs": [1]}, {"id": 2, "n": 5, "xs": []}]
    path = tmp_path / "rows.tfrecord"
    xt.write_tfrecord(xt.struct.constant(data, nulls={"n": "mask"}), path)
    for found in (xt.read_tfrecord(path, nulls="auto"), xt.data.tfrecord(path, 2, nulls="auto")):
        assert masked(spec_of(found)) == {"n"}
        assert plain(found) == data
    pinned = xt.data.tfrecord(path, 2, schema=spec_of(found))
    assert spec_of(pinned) == spec_of(found)
    without = xt.data.tfrecord(path, 2, columns=["id", "xs"], nulls="auto")
    assert masked(spec_of(without)) == set()


@pytest.mark.parametrize("way", ["data.parquet", "data.arrow", "data.json"])
def test_another_process_and_a_pruned_dataset_have_the_same_masks(files, way):
    found = WAYS[way](files, nulls="auto")
    shard = WAYS[way](files, nulls="auto", shard=(1, 2))
    assert shard.element_spec == found.element_spec
    one = files["place"].split(".")[0] or "num"
    narrow = WAYS[way](files, columns=[one], nulls="auto")
    assert masked(spec_of(narrow)) == {key for key in keys(files["place"]) if key.startswith(one)}
