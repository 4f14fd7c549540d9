"""Models, layers, clients and Arrow functions get records in the units that they were made for."""

import datetime as dt
import decimal
import json

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

Decimal = decimal.Decimal
FINE = pa.schema({"when": pa.timestamp("us"), "price": pa.decimal128(10, 2)})
ROWS = [
    {"when": dt.datetime(1970, 1, 1, 0, 0, 1), "price": Decimal("1.5")},
    {"when": dt.datetime(1970, 1, 1, 0, 0, 2), "price": Decimal("2.2")},
]
COARSE = pa.schema({"when": pa.timestamp("s"), "price": pa.decimal64(5, 1)})
TABLE = pa.Table.from_pylist(ROWS, COARSE)
RECORDS = xt.from_arrow(TABLE)
SPEC = xt.spec_from_schema(FINE)
WANT = np.float32([2.5, 4.2])
OTHER = xt.from_arrow(
    pa.table({"when": TABLE["when"].cast(pa.timestamp("us", "UTC")), "price": TABLE["price"]})
)


def total(records):
    return tf.cast(records["when"], tf.float32) / 1e6 + tf.cast(records["price"], tf.float32) / 100


class Total(xt.keras.Layer):
    def call(self, records):
        return total(records)


class Subclassed(xt.keras.Model):
    def call(self, records):
        return total(records)


def functional():
    records = xt.keras.Input(SPEC)
    return xt.keras.Model(records, Total()(records))


def subclassed():
    model = Subclassed()
    model(SPEC.cast(RECORDS))
    return model


MODELS = {"functional": functional, "subclassed": subclassed}
# How records of another unit reach a model. A new way joins by one line.
WAYS = {
    "called": lambda model: model(RECORDS),
    "called by keyword": lambda model: model(
        **{"inputs" if type(model) is not Subclassed else "records": RECORDS}
    ),
    "predict": lambda model: model.predict(RECORDS, verbose=0),
    "predict on dataset": lambda model: model.predict(
        tf.data.Dataset.from_tensor_slices(RECORDS).batch(2), verbose=0
    ),
    "predict on Python data": lambda model: model.predict(ROWS, verbose=0),
    "predict on a table": lambda model: model.predict(TABLE, verbose=0),
    "predict_on_batch": lambda model: model.predict_on_batch(RECORDS),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_a_model_gets_the_units_that_it_was_built_for(make, way):
    model = make()
    if way == "called by keyword" and make is subclassed:
        model = functional()
    np.testing.assert_allclose(np.asarray(WAYS[way](model)), WANT, rtol=1e-6)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_fit_and_evaluate_too(make):
    model = make()
    model.compile("sgd", "mse")
    for data in (
        (RECORDS, WANT),
        (tf.data.Dataset.from_tensor_slices((RECORDS, WANT)).batch(2),),
    ):
        assert model.evaluate(*data, verbose=0) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("call", ["__call__", "predict", "predict_on_batch"])
def test_times_with_a_zone_are_no_times_without_one(make, call):
    with pytest.raises(errors.DTypeError, match=r"when.*zone|tz=UTC"):
        getattr(make(), call)(OTHER)


def test_an_adapted_layer_keeps_its_units(tmp_path):
    fine = SPEC.cast(RECORDS)
    features = xt.keras.layers.RecordFeatures()
    features.adapt(fine)
    expected = features(fine).numpy()
    assert np.ptp(expected, axis=0).max() > 0
    again = type(features).from_config(json.loads(json.dumps(features.get_config())))
    for layer in (features, again):
        np.testing.assert_array_equal(layer(RECORDS), expected)
        with pytest.raises(errors.DTypeError, match="when: expected timestamps without a zone"):
            layer(OTHER)


JSON = "\n".join(
    json.dumps({"when": row["when"].isoformat(), "price": float(row["price"]), "label": 7})
    for row in ROWS
)
# What a client may send. A new form joins by one line.
REQUESTS = {
    "records": RECORDS,
    "Python data": ROWS,
    "numbers of Python": [{**row, "price": float(row["price"])} for row in ROWS],
    "a table": TABLE,
    "a record batch": TABLE.to_batches()[0],
    "JSON lines": JSON,
    "bytes of JSON lines": JSON.encode(),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_client_sends_the_units_of_the_model(request_):
    signature = xt.serving.flat_signature(lambda r: {"total": total(r), "r": r}, SPEC)
    result = signature.decode(signature.function(**signature.encode(request_)))
    np.testing.assert_allclose(result["total"], WANT, rtol=1e-6)
    assert result["r"].to_py() == ROWS


def test_a_client_sends_whole_decimals_and_drops_fields_only_if_asked():
    signature = xt.serving.flat_signature(lambda records: records["price"], SPEC)
    two = {"when": dt.datetime(2026, 5, 1), "price": 2}
    assert signature.encode([two])["price"].numpy().tolist() == [200]
    with pytest.raises(errors.FieldError, match=r'Unknown: x.*extra="ignore"'):
        signature.encode([{**two, "x": 1}])
    for more in ([{**two, "x": 1}], pa.Table.from_pylist([{**two, "x": {"y": 1}}])):
        assert signature.encode(more, extra="ignore")["price"].numpy().tolist() == [200]
    signature = xt.serving.flat_signature(lambda r: {"r": r}, SPEC)
    assert signature.decode(signature.function(**signature.encode(ROWS)))["r"].to_py() == ROWS


def test_an_arrow_function_gets_the_units_of_its_schema():
    run = xt.arrow_function(lambda records: {"total": total(records)}, FINE)
    np.testing.assert_allclose(run(TABLE)["total"].to_numpy(), WANT, rtol=1e-6)
