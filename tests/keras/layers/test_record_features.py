"""RecordFeatures equals the stock layers of Keras on each field by itself."""

import decimal
import json

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras.layers import samples
from tests.keras.layers.samples import COUNT, WORDS, ragged

PY = samples.table().to_pylist()
FIELDS = ["title", "rating", "servings", "vegan", "cooked", "tags", "ids", "taste", "steps"]


def batches(records=None):
    records = samples.records() if records is None else records
    return tf.data.Dataset.from_tensor_slices(records).batch(5)


def adapted(**options):
    features = xt.keras.layers.RecordFeatures(num_bins=4, **options)
    features.adapt(batches())
    return features


def parts(features, vectors):
    """The columns of each field."""
    found, at = {}, 0
    for path in features.layers:
        size = features._vector(samples.records()[path], path).shape[1]
        found[path] = vectors[:, at : at + size]
        at += size
    assert at == vectors.shape[1]
    return found


def normalized(values, all_values):
    return (np.array(values) - np.mean(all_values)) / np.std(all_values)


@pytest.fixture(scope="module")
def columns():
    features = adapted()
    return parts(features, features(samples.records()).numpy())


@pytest.mark.whole("traces many functions")
def test_numbers_are_normalized_and_nulls_are_zero(columns):
    known = [row["rating"] for row in PY if row["rating"] is not None]
    expected = [0.0 if r["rating"] is None else normalized(r["rating"], known) for r in PY]
    np.testing.assert_allclose(columns["rating"][:, 0], expected, rtol=1e-4, atol=1e-5)
    servings = [row["servings"] for row in PY]
    np.testing.assert_allclose(
        columns["servings"][:, 0], normalized(servings, servings), rtol=1e-4, atol=1e-5
    )
    taste = np.array([row["taste"] for row in PY])
    expected = (taste - taste.mean(axis=0)) / taste.std(axis=0)
    np.testing.assert_allclose(columns["taste"], expected, rtol=1e-4, atol=1e-5)
    assert columns["vegan"][:, 0].tolist() == [float(row["vegan"]) for row in PY]


@pytest.mark.whole("traces many functions")
def test_strings_are_one_hot_and_nulls_are_zeros(columns):
    words = adapted().layers["title"].get_vocabulary()
    assert set(words) == {"[UNK]", *WORDS[:3]}
    expected = [[float(w == row["title"]) for w in words] for row in PY]
    assert columns["title"].tolist() == expected


@pytest.mark.whole("traces many functions")
def test_times_are_buckets(columns):
    assert columns["cooked"].shape == (COUNT, 4)
    assert columns["cooked"].sum(axis=1).tolist() == [float(i != 6) for i in range(COUNT)]
    number = [row.argmax() for i, row in enumerate(columns["cooked"]) if i != 6]
    assert number == sorted(number)
    assert set(number) == {0, 1, 2, 3}


@pytest.mark.whole("traces many functions")
def test_lists_are_means(columns):
    words = adapted().layers["tags"].get_vocabulary()
    for got, row in zip(columns["tags"], PY, strict=True):
        tags = [tag for tag in row["tags"] or () if tag is not None]
        expected = [tags.count(word) / max(1, len(tags)) for word in words]
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    every = [number for row in PY for number in row["ids"]]
    for got, row in zip(columns["ids"][:, 0], PY, strict=True):
        expected = np.mean(normalized(row["ids"], every)) if row["ids"] else 0.0
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.whole("traces many functions")
def test_fields_of_records_in_lists_are_means(columns):
    minutes = [[s["minutes"] for s in row["steps"] or () if s is not None] for row in PY]
    minutes = [[m for m in row if m is not None] for row in minutes]
    every = [m for row in minutes for m in row]
    for got, row in zip(columns["steps.minutes"][:, 0], minutes, strict=True):
        expected = np.mean(normalized(row, every)) if row else 0.0
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert {"steps.minutes", "steps.verb"} <= set(columns)


@pytest.mark.whole("traces many functions")
def test_the_records_themselves_keep_their_form():
    records, features = samples.records(), adapted(output_mode="records")
    result = features(records)
    assert result.field_names() == records.field_names()
    assert result["title"].mask.numpy().tolist() == records["title"].mask.numpy().tolist()
    words = features.layers["title"].get_vocabulary()
    known = [None if i is None else words[i] for i in result["title"].to_py()]
    assert known == [row["title"] for row in PY]
    assert result["title"].values[4] == 0
    words = features.layers["tags"].get_vocabulary()
    tags = [
        row and [None if i is None else words[i] for i in row] for row in result["tags"].to_py()
    ]
    assert tags == [row["tags"] for row in PY]
    assert [row is None for row in result["steps"].to_py()] == [row["steps"] is None for row in PY]
    assert result["steps.minutes"].dtype == tf.float32


@pytest.mark.whole("traces many functions")
def test_the_features_of_records_in_lists_are_lists_of_vectors():
    steps = samples.records()["steps"]
    features = xt.keras.layers.RecordFeatures()
    features.adapt(batches().map(lambda records: records["steps"]))
    assert set(features.layers) == {"minutes", "verb"}
    vectors = features(steps)
    known = [[s for s in row["steps"] or () if s is not None] for row in PY]
    pooled = xt.keras.layers.ListPooling("sum")(vectors)
    words = features.layers["verb"].get_vocabulary()
    for got, row in zip(pooled.numpy(), known, strict=True):
        verbs = [step["verb"] for step in row]
        assert got[1:].tolist() == [float(verbs.count(word)) for word in words]


@pytest.mark.whole("traces many functions")
def test_features_from_the_spec_alone():
    table = samples.table()
    features = xt.keras.layers.RecordFeatures.from_spec(batches().element_spec, num_bins=5)
    columns = parts(features, features(samples.records()).numpy())
    hashed = keras.layers.Hashing(5, output_mode="int")
    for got, row in zip(columns["title"], PY, strict=True):
        expected = np.zeros(5) if row["title"] is None else np.eye(5)[hashed([row["title"]])[0]]
        assert got.tolist() == expected.tolist()
    years = 54 + (table["cooked"].to_pylist()[0].timetuple().tm_yday - 1) / 365.2425
    np.testing.assert_allclose(columns["cooked"][0, 0], years, atol=0.01)
    assert columns["servings"][:, 0].tolist() == [row["servings"] for row in PY]


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        (pa.timestamp("s"), 31_556_952, 1.0),
        (pa.timestamp("ns"), 31_556_952 * 10**9, 1.0),
        (pa.date32(), 3652425, 10_000.0),
        (pa.duration("ms"), 43_200_000, 0.5),
        (pa.time64("us"), 6 * 3600 * 10**6, 0.25),
    ],
)
def test_times_without_data_are_years_or_days(kind, number, expected):
    column = pa.array([number], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    records = xt.from_arrow(pa.table({"t": column, "l": pa.array([[column[0]]], pa.list_(kind))}))
    features = xt.keras.layers.RecordFeatures.from_spec(xt.spec_of(records))
    np.testing.assert_allclose(features(records), [[expected, expected]], rtol=1e-5)


@pytest.mark.whole("traces many functions")
def test_chosen_layers_for_chosen_fields():
    boundaries = [1.0, 3.0]
    features = xt.keras.layers.RecordFeatures(
        {
            "servings": keras.layers.Discretization(boundaries),
            "steps.verb": keras.layers.StringLookup(output_mode="one_hot", vocabulary=WORDS),
            "tags": keras.layers.StringLookup(),
            "rating": keras.layers.Normalization(axis=None),
            "taste": keras.layers.Normalization(axis=-1),
        }
    )
    features.adapt(batches())
    columns = parts(features, features(samples.records()).numpy())
    expected = np.eye(3)[np.digitize([row["servings"] for row in PY], boundaries)]
    assert columns["servings"].tolist() == expected.tolist()
    assert columns["steps.verb"].shape == (COUNT, 5)
    assert columns["tags"].shape == (COUNT, 3)
    assert columns["taste"].shape == (COUNT, 3)


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("mode", ["multi_hot", "count", "tf_idf"])
def test_layers_that_count_categories_count_those_of_each_record(mode):
    words, lists = ["a", "b", "a"], [["b", "c"], [], ["a"]]
    records = xt.DenseStructuredTensor([3], {"word": words, "list": tf.ragged.constant(lists)})
    lookups = [keras.layers.StringLookup(output_mode=mode) for _ in range(3)]
    features = xt.keras.layers.RecordFeatures(dict(zip(["word", "list"], lookups, strict=False)))
    features.adapt(records)
    found = features(records).numpy()
    lookups[2].adapt(words)
    expected = np.array(lookups[2](tf.constant(words)[:, tf.newaxis]))
    np.testing.assert_allclose(found[:, : expected.shape[1]], expected, rtol=1e-6)
    of_items = np.array(features.layers["list"](tf.constant([["b"], ["c"], ["a"]])))
    means = [of_items[:2].mean(0), np.zeros_like(of_items[0]), of_items[2]]
    np.testing.assert_allclose(found[:, expected.shape[1] :], means, rtol=1e-6)


@pytest.mark.whole("traces many functions")
def test_the_configuration_has_all_that_was_learned():
    features = adapted()
    expected = features(samples.records())
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(features)))
    again = keras.saving.deserialize_keras_object(config)
    np.testing.assert_array_equal(again(samples.records()), expected)


@pytest.mark.whole("traces many functions")
def test_features_in_a_dataset_and_in_a_function():
    features, records = adapted(), samples.records()
    expected = features(records).numpy()
    in_dataset = np.concatenate(list(batches().map(features).as_numpy_iterator()))
    np.testing.assert_allclose(in_dataset, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tf.function(features)(records), expected, rtol=1e-5, atol=1e-6)


def test_adapting_to_records_and_to_pairs_and_to_some_batches():
    records = samples.records().with_only("title")
    expected = xt.keras.layers.RecordFeatures()
    expected.adapt(records)
    pairs = tf.data.Dataset.from_tensor_slices((records, np.zeros(COUNT))).batch(4).repeat()
    features = xt.keras.layers.RecordFeatures()
    features.adapt(pairs, steps=3)
    assert (
        features.get_config()["layers"]["title"]["config"]["vocabulary"]
        == (expected.get_config()["layers"]["title"]["config"]["vocabulary"])
    )


def test_a_batch_without_a_value_is_left_out():
    numbers = xt.DenseStructuredTensor([4], {"x": ragged([[1.0, 3.0], [], None, [None]])})
    data = tf.data.Dataset.from_tensor_slices(numbers).batch(1)
    features = xt.keras.layers.RecordFeatures()
    features.adapt(data)
    assert features(numbers).numpy().tolist() == [[0.0]] * 4
    assert float(features.layers["x"].get_config()["mean"]) == 2.0


@pytest.mark.whole("traces many functions")
@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_what_is_wrong_is_named():
    with pytest.raises(errors.StructureError, match="Call adapt"):
        xt.keras.layers.RecordFeatures()(samples.records())
    with pytest.raises(errors.ArgumentError, match="'dict'"):
        xt.keras.layers.RecordFeatures(output_mode="dict")
    with pytest.raises(errors.UnsupportedTypeError, match="expected records"):
        adapted()(tf.constant([1.0]))
    labeled = xt.types.LabeledTensor(tf.zeros([2, 2]), ["a", "b"])
    records = xt.DenseStructuredTensor([2], {"x": [1, 2], "other": labeled})
    with pytest.raises(errors.UnsupportedTypeError, match="other: expected numbers"):
        xt.keras.layers.RecordFeatures().adapt(records)
    with pytest.raises(errors.FieldError, match="rate"):
        xt.keras.layers.RecordFeatures({"rate": keras.layers.Rescaling(1.0)})(samples.records())


UNIONS = [
    {"amount": 500.0, "steps": [{"note": 3}, {"note": "x"}]},
    {"amount": "a pinch", "steps": []},
    {"amount": {"cups": 2.0, "kinds": ["u", "v"]}, "steps": [{"note": "y"}, {"note": 5}]},
    {"amount": None, "steps": [{"note": "x"}]},
    {"amount": 300.0, "steps": []},
]


def unions():
    return xt.struct.constant(UNIONS, conflicts="union", nulls={"amount": "mask"})


@pytest.mark.whole("traces many functions")
def test_each_variant_of_a_union_has_its_own_features():
    records = unions()
    features = xt.keras.layers.RecordFeatures()
    features.adapt(tf.data.Dataset.from_tensor_slices(records).batch(2))
    assert list(features.layers) == [
        "amount.float", "amount.string", "amount.record.cups", "amount.record.kinds",
        "steps.note.int", "steps.note.string",
    ]  # fmt: skip
    vectors = features(records).numpy()
    assert vectors[:, 0].tolist() == [1, 0, 0, 0, -1]  # normalized; zero where another variant is
    np.testing.assert_array_equal(vectors[:, 1:3], [[0, 0], [0, 1], [0, 0], [0, 0], [0, 0]])
    kinds = vectors[:, 4:7]
    np.testing.assert_array_equal(kinds.sum(axis=1), [0, 0, 1, 0, 0])
    assert sorted(kinds[2]) == [0, 0.5, 0.5]
    assert vectors[:, 7].tolist() == [-1, 0, 1, 0, 0]
    words = features.layers["steps.note.string"].get_vocabulary()
    x = 8 + words.index("x")
    assert vectors[:, x].tolist() == [1, 0, 0, 1, 0]
    np.testing.assert_array_equal(tf.function(features)(records), vectors)


def test_a_union_keeps_its_form_in_records():
    records = unions()
    layers = {
        "amount.float": keras.layers.Rescaling(0.01),
        "amount.string": keras.layers.Hashing(4),
    }
    features = xt.keras.layers.RecordFeatures(layers, output_mode="records")
    result = features(records)["amount"]
    amounts = result.to_py()
    assert amounts[::4] == [5.0, 3.0]
    assert amounts[1] in range(4)
    assert amounts[2:4] == [{"cups": 2.0, "kinds": ["u", "v"]}, None]


@pytest.mark.whole("saves and loads models")
def test_unions_go_through_saved_models(tmp_path):
    records = unions()
    features = xt.keras.layers.RecordFeatures.from_spec(tf.type_spec_from_value(records))
    inputs = xt.keras.Input(tf.data.Dataset.from_tensor_slices(records).batch(2).element_spec)
    model = xt.keras.Model(inputs, features(inputs))
    np.testing.assert_allclose(model.predict(records, verbose=0), features(records), rtol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(records), features(records), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_a_layer_for_a_whole_union_is_an_error_that_names_the_variants():
    features = xt.keras.layers.RecordFeatures({"amount": keras.layers.Rescaling(1.0)})
    with pytest.raises(errors.UnsupportedTypeError, match=r"amount: .*amount\.float"):
        features(unions())
    features = xt.keras.layers.RecordFeatures({"amount.ton": keras.layers.Rescaling(1.0)})
    with pytest.raises(errors.FieldError, match=r"amount\.ton: .*float"):
        features(unions())


def test_decimals_without_data_are_their_values():
    prices = [decimal.Decimal("1.50"), None, decimal.Decimal("-20.25")]
    lists = [prices[:1], [], [prices[2], prices[0]]]
    kind = pa.decimal128(10, 2)
    table = pa.table({"price": pa.array(prices, kind), "prices": pa.array(lists, pa.list_(kind))})
    records = xt.from_arrow(table, nulls="auto")
    features = xt.keras.layers.RecordFeatures.from_spec(xt.spec_of(records))
    expected = [[1.5, 1.5], [0, 0], [-20.25, -9.375]]
    np.testing.assert_allclose(features(records), expected)


@pytest.mark.parametrize("kind", [pa.decimal128(38, 2), pa.list_(pa.decimal256(50, 2))], ids=str)
def test_decimals_of_several_integers_are_refused_by_name(kind):
    records = xt.from_arrow(pa.table({"price": pa.array([], kind), "n": pa.array([], pa.int32())}))
    with pytest.raises(
        errors.UnsupportedTypeError, match=r"^price: expected numbers.* got decimal"
    ):
        xt.keras.layers.RecordFeatures.from_spec(xt.spec_of(records))
    with pytest.raises(
        errors.UnsupportedTypeError, match=r"^price: expected numbers.* got decimal"
    ):
        xt.keras.layers.RecordFeatures().adapt(records)
