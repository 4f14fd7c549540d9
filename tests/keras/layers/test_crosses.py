"""Crosses of RecordFeatures equal those of keras.utils.FeatureSpace and HashedCrossing."""

import json

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ArgumentError, FieldError, UnsupportedTypeError

CITIES = ["Oslo", "Rome", "Oslo", "Bern", "Rome", "Oslo"]
KINDS = ["web", "web", "app", "app", "web", "web"]
CODES = np.array([3, 1, 2, 2, 3, 1])


def layers():
    return {
        "city": keras.layers.StringLookup(),
        "kind": keras.layers.StringLookup(),
        "code": keras.layers.IntegerLookup(),
    }


def orders():
    return xt.DenseStructuredTensor([6], {"city": CITIES, "kind": KINDS, "code": CODES})


def adapted(crosses, **options):
    features = xt.keras.layers.RecordFeatures(layers(), crosses=crosses, **options)
    features.adapt(orders())
    return features


@pytest.mark.parametrize("paths", [("city", "kind"), ("code", "city"), ("city", "kind", "code")])
def test_a_cross_is_that_of_hashed_crossing(paths):
    features = adapted([paths], crossing_dim=16)
    ids = [features.layers[path](orders()[path]) for path in paths]
    wanted = keras.layers.HashedCrossing(16, output_mode="one_hot")(ids)
    for call in (features, tf.function(features)):
        np.testing.assert_array_equal(call(orders())[:, -16:], wanted)
        assert call(orders()[:0]).shape == [0, *call(orders()).shape[1:]]


@pytest.mark.whole("adapts two of them")
def test_the_features_are_those_of_a_feature_space():
    kinds = {
        "city": "string_categorical",
        "code": "integer_categorical",
        "kind": "string_categorical",
    }
    cross = keras.utils.FeatureSpace.cross(("kind", "code"), crossing_dim=8)
    space = keras.utils.FeatureSpace(kinds, crosses=[("city", "kind"), cross], crossing_dim=32)
    columns = {"city": CITIES, "kind": KINDS, "code": CODES}
    space.adapt(tf.data.Dataset.from_tensor_slices(columns).batch(2))
    made = xt.keras.layers.RecordFeatures(
        {name: layers()[name] for name in sorted(kinds)}, crosses=[("city", "kind"), cross]
    )
    made.adapt(orders())
    wanted = space({name: np.array(column) for name, column in columns.items()})
    np.testing.assert_array_equal(made(orders()), wanted)


def test_a_cross_with_a_null_is_zeros_and_null_in_records():
    table = pa.table({"city": ["Oslo", None, "Rome"], "kind": ["web", "app", None]})
    records = xt.from_arrow(table, nulls="mask")
    features = xt.keras.layers.RecordFeatures(crosses=[("city", "kind")], crossing_dim=4)
    features.adapt(records)
    assert features(records)[:, -4:].numpy().sum(axis=1).tolist() == [1, 0, 0]
    bins = features(records)[:, -4:].numpy().argmax(axis=1)
    as_records = xt.keras.layers.RecordFeatures(
        features.layers, "records", crosses=[("city", "kind")], crossing_dim=4
    )
    assert as_records(records)["city_X_kind"].to_py() == [bins[0], None, None]


def test_fields_in_records_and_buckets_are_crossed():
    rows = [{"to": {"city": c}, "price": p} for c, p in zip(CITIES, [1.0, 5.0] * 3, strict=True)]
    records = xt.struct.constant(rows)
    bins = {
        "to.city": keras.layers.Hashing(50),
        "price": keras.layers.Discretization(bin_boundaries=[2.0]),
    }
    features = xt.keras.layers.RecordFeatures(
        bins, "records", crosses=[("to.city", ("price",))], crossing_dim=64
    )
    found = features(records)["to_city_X_price"]
    cities = keras.layers.Hashing(50)(tf.constant(CITIES))
    wanted = keras.layers.HashedCrossing(64)((cities, tf.constant([0, 1] * 3)))
    assert found.to_py() == wanted.numpy().tolist()


@pytest.mark.whole("saves and loads models")
def test_crosses_go_through_configurations_saved_models_and_datasets(tmp_path):
    features = adapted([("city", "kind")], crossing_dim=8)
    wanted = features(orders())
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(features)))
    again = keras.saving.deserialize_keras_object(config)
    np.testing.assert_array_equal(again(orders()), wanted)
    data = tf.data.Dataset.from_tensor_slices(orders()).batch(4)
    np.testing.assert_array_equal(tf.concat(list(data.map(features)), 0), wanted)
    inputs = xt.keras.Input(data.element_spec)
    model = xt.keras.Model(inputs, features(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(orders(), verbose=0), wanted)
    merged = adapted([("city", "kind")], crossing_dim=8)
    merged.merge(adapted([]))
    np.testing.assert_array_equal(merged(orders()), wanted)


def test_what_cannot_be_crossed_is_named():
    with pytest.raises(FieldError, match="town: expected a field with a layer, to cross: city"):
        adapted([("town", "kind")])
    with pytest.raises(FieldError, match="town"):
        xt.keras.layers.RecordFeatures(crosses=[("town", "kind")]).adapt(orders())
    for cross in ("city", ("city",), ("city", "city"), 3):
        with pytest.raises(ArgumentError, match="crosses: expected tuples of two paths or more"):
            xt.keras.layers.RecordFeatures(crosses=[cross])
    with pytest.raises(ArgumentError, match="crossing_dim: expected 1 or more, got 0"):
        xt.keras.layers.RecordFeatures(crosses=[("city", "kind")], crossing_dim=0)
    with pytest.raises(ArgumentError, match="crossing_dim: expected 1 or more, got True"):
        xt.keras.layers.RecordFeatures(crosses=[("city", "kind")], crossing_dim=True)
    with pytest.raises(UnsupportedTypeError, match=r"code: expected .*got Normalization.*Discreti"):
        xt.keras.layers.RecordFeatures(crosses=[("city", "code")]).adapt(orders())


def test_a_cross_never_replaces_a_field_or_another_cross():
    layers = {name: keras.layers.Hashing(4) for name in ("city", "kind", "city_X_kind")}
    for chosen, crosses in ((layers, 1), ({"city": layers["city"], "kind": layers["kind"]}, 2)):
        given = [("city", "kind")] * crosses
        with pytest.raises(ArgumentError, match=r"crosses: .*got city_X_kind\. Rename the field"):
            xt.keras.layers.RecordFeatures(chosen, crosses=given, output_mode="records")
        xt.keras.layers.RecordFeatures(chosen, crosses=given)


@pytest.mark.parametrize(
    ("tags", "received"), [(tf.ragged.constant([["a"], []]), "lists"), ([["a"], ["b"]], "vectors")]
)
@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_a_field_of_lists_in_a_cross_is_an_error(tags, received):
    records = xt.DenseStructuredTensor([2], {"tags": tags, "city": ["a", "b"]})
    features = xt.keras.layers.RecordFeatures(
        {"tags": keras.layers.Hashing(4), "city": keras.layers.Hashing(4)},
        crosses=[("city", "tags")],
    )
    with pytest.raises(UnsupportedTypeError, match=f"tags: expected .*, got {received}"):
        features(records)
