"""RecordFeatures reads the data once, learns what Keras learns, and merges what shards taught."""

import pickle
import warnings

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, StructureError, UnsupportedTypeError
from tests.keras.layers import samples

FEW = settings(max_examples=max(settings.default.max_examples // 10, 3), deadline=None)
NUMBERS = st.floats(-1000, 1000, width=32)
SCHEMA = pa.schema(
    {
        "word": pa.string(),
        "words": pa.list_(pa.string()),
        "code": pa.int64(),
        "number": pa.float32(),
        "numbers": pa.list_(pa.float64()),
        "vector": pa.list_(pa.float32(), 2),
        "bin": pa.float32(),
        "time": pa.timestamp("s"),
    }
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "word": st.sampled_from(["a", "b", "c", "é", ""]),
            "words": st.lists(st.sampled_from(["x", "y", "z", "[UNK]"]), max_size=3),
            "code": st.integers(0, 5),
            "number": NUMBERS,
            "numbers": st.lists(NUMBERS, max_size=3),
            "vector": st.lists(NUMBERS, min_size=2, max_size=2),
            "bin": st.integers(-50, 50).map(float),
            "time": st.integers(1_700_000_000, 1_700_100_000),
        }
    ),
    min_size=2,
    max_size=12,
)


def layers():
    return {
        "word": keras.layers.StringLookup(),
        "words": keras.layers.StringLookup(max_tokens=3),
        "code": keras.layers.IntegerLookup(),
        "number": keras.layers.Normalization(axis=None),
        "numbers": keras.layers.Normalization(axis=None),
        "vector": keras.layers.Normalization(axis=-1),
        "bin": keras.layers.Discretization(num_bins=3),
        "time": xt.keras.layers.TimeBuckets(3),
    }


def records(rows):
    return xt.from_arrow(pa.Table.from_pylist(rows, SCHEMA))


def features(rows, batch_size=3):
    made = xt.keras.layers.RecordFeatures(layers())
    made.adapt(tf.data.Dataset.from_tensor_slices(records(rows)).batch(batch_size))
    return made


def expect_same(one, other):
    for path, layer in one.layers.items():
        had, wanted = layer.get_config(), other.layers[path].get_config()
        for name in ("vocabulary", "mean", "variance", "bin_boundaries"):
            if isinstance(layer, keras.layers.Normalization) and name in ("mean", "variance"):
                np.testing.assert_allclose(had[name], wanted[name], rtol=1e-5, atol=1e-3)
            elif isinstance(layer, xt.keras.layers.TimeBuckets) and name == "bin_boundaries":
                np.testing.assert_allclose(had[name], wanted[name], rtol=0, atol=1)  # half seconds
            else:
                assert had.get(name) == wanted.get(name), path


@pytest.mark.whole("adapts many layers")
@FEW
@given(ROWS, st.integers(1, 5))
def test_each_layer_learns_what_keras_learns_of_the_field_alone(rows, batch_size):
    rows[0]["words"] = ["x"]  # a word that is no special token
    found = features(rows, batch_size).layers
    column = {name: [row[name] for row in rows] for name in SCHEMA.names}
    flat = {name: [x for items in column[name] for x in items] for name in ("words", "numbers")}
    for path in ("word", "words", "code"):
        wanted = layers()[path]
        wanted.adapt(np.array(flat.get(path, column[path])))
        assert found[path].get_vocabulary() == wanted.get_vocabulary()
    for path, values in (("number", column["number"]), ("numbers", flat["numbers"] or [0.0])):
        config = found[path].get_config()
        np.testing.assert_allclose(config["mean"], np.mean(values), rtol=1e-4, atol=1e-4)
        if flat["numbers"] or path == "number":
            np.testing.assert_allclose(config["variance"], np.var(values), rtol=1e-4, atol=1e-3)
    config = found["vector"].get_config()
    np.testing.assert_allclose(config["mean"], np.mean(column["vector"], 0), rtol=1e-4, atol=1e-4)
    wanted = layers()["bin"]
    wanted.adapt(tf.data.Dataset.from_tensor_slices(column["bin"]).batch(batch_size))
    assert found["bin"].bin_boundaries == wanted.bin_boundaries


@pytest.mark.whole("adapts many layers")
@FEW
@given(ROWS, ROWS, st.booleans())
def test_shards_that_are_merged_are_as_the_whole(one, other, pickled):
    for rows in (one, other):  # each shard needs a string
        rows[0]["words"] = ["x"]
    first, second = features(one), features(other)
    if pickled:
        second = pickle.loads(pickle.dumps(second))
    before = second.get_config()["layers"]
    first.merge(second)
    expect_same(first, features(one + other))
    assert second.get_config()["layers"] == before


@pytest.mark.whole("adapts many layers")
@FEW
@given(st.tuples(ROWS, ROWS, ROWS))
def test_the_order_of_merges_does_not_matter(shards):
    for rows in shards:
        rows[0]["words"] = ["x"]
    first, second, third = map(features, shards)
    again = [features(rows) for rows in reversed(shards)]
    first.merge(second)
    first.merge(third)
    again[1].merge(again[2])
    again[0].merge(again[1])
    expect_same(first, again[0])


def test_quantiles_of_many_numbers_are_about_those_of_all():
    numbers = np.random.default_rng(0).normal(size=4000).astype(np.float32)
    numbers[:2000] += 2
    times = 1_700_000_000 + (numbers * 10_000).astype(np.int64)
    made = []
    for part in (slice(0, 2000), slice(2000, 4000)):
        column = pa.array(times[part]).cast(pa.timestamp("s"))
        table = pa.table({"bin": numbers[part], "time": column})
        layer = xt.keras.layers.RecordFeatures(
            {
                "bin": keras.layers.Discretization(num_bins=5),
                "time": xt.keras.layers.TimeBuckets(5),
            }
        )
        layer.adapt(xt.from_arrow(table))
        made.append(layer)
    made[0].merge(made[1])
    for path, values in (("bin", numbers), ("time", times)):
        counts = np.bincount(np.digitize(values, made[0].layers[path].bin_boundaries))
        np.testing.assert_allclose(counts, 800, atol=80)


def test_all_fields_are_adapted_in_one_pass():
    read = []

    def count(number):
        read.append(int(number))
        return number

    data = tf.data.Dataset.from_tensor_slices(samples.records()).batch(5)
    counted = tf.data.Dataset.zip(data, tf.data.Dataset.range(3)).map(
        lambda batch, number: (batch, tf.py_function(count, [number], tf.int64))
    )
    xt.keras.layers.RecordFeatures(num_bins=4).adapt(counted)
    assert read == [0, 1, 2]


def test_records_are_learned_from_as_a_dataset_of_them_is():
    rows = [
        {"word": w, "words": [w, "z"], "code": i, "number": n, "numbers": [n] * i}
        | {"vector": [n, 1.0], "bin": n, "time": 1_700_000_000 + i}
        for i, (w, n) in enumerate([("a", 1.0), ("b", np.nan), (None, 4.0), ("a", np.inf)])
    ]
    given = xt.from_arrow(pa.Table.from_pylist(rows, SCHEMA), nulls="mask")
    made = [xt.keras.layers.RecordFeatures(layers()) for _ in range(2)]
    for one, data in zip(made, (given, tf.data.Dataset.from_tensors(given)), strict=True):
        with pytest.warns(UserWarning, match="NaN") as warned:
            one.adapt(data)
        assert len(warned) == 4
    configs = [one.get_config() for one in made]
    np.testing.assert_array_equal(made[0](given), made[1](given))
    for path in made[0].layers:
        settings_of = [config["layers"][path]["config"] for config in configs]
        assert {**settings_of[0], "name": ""} == {**settings_of[1], "name": ""}


def test_data_that_are_no_batches_of_records_are_an_error():
    given = xt.DenseStructuredTensor([2], {"x": [1.0, 2.0]})
    slices = tf.data.Dataset.from_tensor_slices(given)
    for data in ({"x": [1.0]}, np.ones(3), None, tf.data.Dataset.from_tensors({"x": [1.0]})):
        with pytest.raises(UnsupportedTypeError, match="expected batches of records, got"):
            xt.keras.layers.RecordFeatures().adapt(data)
    for data in (given[0], slices):
        with pytest.raises(StructureError, match=r"got single records.*after batch\(32\)"):
            xt.keras.layers.RecordFeatures().adapt(data)
    means = []
    for data in (given, (given, [1, 2]), slices.batch(1)):
        features = xt.keras.layers.RecordFeatures()
        features.adapt(data)
        means.append(features.layers["x"].get_config()["mean"])
    assert means == [1.5] * 3


def test_special_tokens_alone_are_no_words():
    with pytest.raises(StructureError, match="x: expected at least one string, got none"):
        of({"x": ["[UNK]", "[UNK]"]})


@pytest.mark.whole("adapts many layers")
def test_other_layers_adapt_as_in_keras():
    words = [["a b", "b"], ["c c"], ["a"]]
    rows = xt.from_arrow(pa.table({"text": ["a b", "b c", "c c c"], "words": pa.array(words[:3])}))

    class Own(keras.layers.Layer):
        def adapt(self, data):
            self.seen = [item for batch in data for item in batch.numpy().tolist()]

    class Lower(keras.layers.StringLookup):
        def adapt(self, data):
            super().adapt(data.map(lambda batch: tf.strings.upper(batch)))

    own = Own()
    made = xt.keras.layers.RecordFeatures(
        {
            "text": keras.layers.TextVectorization(output_mode="count"),
            "words": own,
        }
    )
    made.adapt(tf.data.Dataset.from_tensor_slices(rows).batch(2))
    wanted = keras.layers.TextVectorization(output_mode="count")
    wanted.adapt(["a b", "b c", "c c c"])
    assert made.layers["text"].get_vocabulary() == wanted.get_vocabulary()
    assert own.seen == [b"a b", b"b", b"c c", b"a"]
    upper = xt.keras.layers.RecordFeatures({"text": Lower()})
    upper.adapt(rows)
    assert upper.layers["text"].get_vocabulary()[1:] == ["C C C", "B C", "A B"]
    with pytest.raises(UnsupportedTypeError, match=r"text: expected .*StringLookup.*got TextVec"):
        made.merge(made)


def of(values, **options):
    made = xt.keras.layers.RecordFeatures(**options)
    made.adapt(xt.DenseStructuredTensor([len(next(iter(values.values())))], values))
    return made


def test_a_merge_of_other_fields_or_settings_is_an_error_that_names_them():
    title = of({"title": ["a"]})
    with pytest.raises(StructureError, match="same fields, got 'minutes' in one of them"):
        title.merge(of({"title": ["a"], "minutes": [1.0]}))
    text = "title: expected layers of the same settings, got max_tokens=None and max_tokens=9"
    with pytest.raises(StructureError, match=text):
        title.merge(of({"title": ["b"]}, max_tokens=9))
    with pytest.raises(StructureError, match=r"title: .*got StringLookup and Normalization"):
        title.merge(of({"title": [1.0]}))
    with pytest.raises(
        StructureError, match=r"x: expected vectors of shape \[2\], got shape \[3\]"
    ):
        of({"x": tf.ones([2, 2])}).merge(of({"x": tf.ones([2, 3])}))
    with pytest.raises(UnsupportedTypeError, match="expected RecordFeatures, got StringLookup"):
        title.merge(keras.layers.StringLookup())
    assert title.layers["title"].get_vocabulary() == ["[UNK]", "a"]


def test_a_layer_of_a_file_has_no_statistics_and_says_so(tmp_path):
    made = of({"title": ["a", "b", "b"]})
    loaded = xt.keras.layers.RecordFeatures.from_config(made.get_config())
    for one, other in ((made, loaded), (loaded, made), (xt.keras.layers.RecordFeatures(), made)):
        with pytest.raises(StructureError, match=r"without statistics, .*before you save.*pickl"):
            one.merge(other)
    copy = pickle.loads(pickle.dumps(made))
    copy.merge(of({"title": ["a", "a"]}))
    assert copy.layers["title"].get_vocabulary() == ["[UNK]", "a", "b"]
    assert made.layers["title"].get_vocabulary() == ["[UNK]", "b", "a"]


def test_chosen_layers_that_were_adapted_before_can_still_be_merged():
    records = xt.DenseStructuredTensor([2], {"title": ["a", "b"]})
    made = xt.keras.layers.RecordFeatures({"title": keras.layers.StringLookup()})
    made.adapt(records)
    made.adapt(xt.DenseStructuredTensor([1], {"title": ["c"]}))  # it is complete
    made.merge(of({"title": ["a"]}))
    assert made.layers["title"].get_vocabulary() == ["[UNK]", "a", "b"]


def test_shards_in_other_units_are_an_error():
    made = []
    for unit in ("s", "ms"):
        table = pa.table({"time": pa.array([1, 2, 3]).cast(pa.timestamp(unit))})
        layer = xt.keras.layers.RecordFeatures(num_bins=2)
        layer.adapt(xt.from_arrow(table))
        made.append(layer)
    with pytest.raises(StructureError, match="expected records of the same units"):
        made[0].merge(made[1])


def test_many_words_of_merged_shards_are_warned_of():
    shards = [of({"x": [str(i) for i in range(a, a + 600)]}) for a in (0, 600)]
    with pytest.warns(UserWarning, match="x: 1201 columns"):
        shards[0].merge(shards[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = [of({"x": [str(i)]}, max_tokens=2) for i in range(2)]
        few[0].merge(few[1])
    assert few[0].layers["x"].get_vocabulary() == ["[UNK]", "1"]


def test_integers_of_which_all_are_null_are_named():
    column = pa.array([None, None], pa.int64())
    made = xt.keras.layers.RecordFeatures({"x": keras.layers.IntegerLookup()})
    with pytest.raises(StructureError, match="x: expected at least one integer, got none"):
        made.adapt(xt.from_arrow(pa.table({"x": column}), nulls="mask"))


def test_a_layer_that_was_called_is_neither_adapted_nor_merged():
    records = xt.DenseStructuredTensor([2], {"title": ["a", "b"]})
    made, other = of({"title": ["a"]}), of({"title": ["b"]})
    wanted = made(records)
    for change in (lambda: made.adapt(records), lambda: made.merge(other)):
        with pytest.raises(StructureError, match="expected a layer that was not called yet"):
            change()
    np.testing.assert_array_equal(made(records), wanted)
    other.merge(made)
    assert other.layers["title"].get_vocabulary() == ["[UNK]", "b", "a"]


@pytest.mark.parametrize(
    ("layer", "wrong"),
    [(keras.layers.StringLookup(), [1, 2]), (keras.layers.Normalization(), ["a", "b"])],
    ids=["strings", "numbers"],
)
def test_a_field_of_the_other_kind_is_an_error_that_names_it(layer, wrong):
    right = ["a", "b"] if wrong == [1, 2] else [1, 2]
    records, others = (xt.DenseStructuredTensor([2], {"x": values}) for values in (right, wrong))
    with pytest.raises(DTypeError, match=rf"^x: expected .*{type(layer).__name__} takes"):
        xt.keras.layers.RecordFeatures({"x": layer}).adapt(others)
    features = xt.keras.layers.RecordFeatures()
    features.adapt(records)
    features(records)
    with pytest.raises(DTypeError, match=rf"x: expected .*{type(layer).__name__} takes"):
        features(others)
