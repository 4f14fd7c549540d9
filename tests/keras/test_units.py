"""Models, layers, clients and Arrow functions get records in the units that they were made for."""

import datetime as dt
import decimal
import json

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

KERAS = tuple(map(int, keras.__version__.split(".")[:2]))
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


@xt.extension_type
class Box:
    records: xt.StructuredTensor | xt.types.MaskedTensor


def masked(records):
    return xt.types.MaskedTensor(records, [True, True])


def records_in(value):
    value = value.records if isinstance(value, Box) else value
    return value.values if isinstance(value, xt.types.MaskedTensor) else value


# Values with records in them. A new kind joins by one line.
KINDS = {
    "records": lambda records: records,
    "declared type": Box,
    "masked records": masked,
    "masked records in a declared type": lambda records: Box(masked(records)),
    "declared type in records": lambda records: xt.DenseStructuredTensor(
        [2], {"box": Box(records)}
    ),
}
OTHER = xt.from_arrow(
    pa.table({"when": TABLE["when"].cast(pa.timestamp("us", "UTC")), "price": TABLE["price"]})
)


def total(value):
    records = records_in(value)
    if "box" in records.field_names():
        return total(records["box"])
    return tf.cast(records["when"], tf.float32) / 1e6 + tf.cast(records["price"], tf.float32) / 100


class Total(xt.keras.Layer):
    def call(self, records):
        return total(records)


class Subclassed(xt.keras.Model):
    def call(self, records):
        return total(records)


def functional(kind="records"):
    spec = xt.spec_of(KINDS[kind](SPEC.cast(RECORDS))).unstacked().stacked(None)
    records = xt.keras.Input(spec)
    return xt.keras.Model(records, Total()(records))


def subclassed(kind="records"):
    model = Subclassed()
    model(KINDS[kind](SPEC.cast(RECORDS)))
    return model


def layer(kind="records"):
    made = Total()
    made(KINDS[kind](SPEC.cast(RECORDS)))
    return made


def chained(make):
    """A model that gives the records of another unit to a model."""

    def model(kind="records"):
        spec = xt.spec_of(KINDS[kind](RECORDS)).unstacked().stacked(None)
        records = xt.keras.Input(spec)
        return xt.keras.Model(records, make(kind)(records))

    return model


MODELS = {"functional": functional, "subclassed": subclassed}
CALLED = {
    **MODELS,
    "layer": layer,
    "functional in a model": chained(functional),
    "subclassed in a model": chained(subclassed),
    "layer in a model": chained(layer),
}
# How records of another unit reach a model. A new way joins by one line.
WAYS = {
    "called": lambda model: model(RECORDS),
    "called by keyword": lambda model: model(
        **{"inputs" if type(model) is not Subclassed else "records": RECORDS}
    ),
    "called in a list": lambda model: model(RECORDS if type(model) is Subclassed else [RECORDS]),
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", CALLED.values(), ids=CALLED)
def test_records_inside_other_values_get_the_units_of_the_first_call(make, kind):
    called = make(kind)
    np.testing.assert_allclose(called(KINDS[kind](RECORDS)), WANT, rtol=1e-6)
    if isinstance(called, xt.keras.Model):
        found = called.predict(KINDS[kind](RECORDS), verbose=0)
        np.testing.assert_allclose(found, WANT, rtol=1e-6)
    with pytest.raises(errors.DTypeError, match=r"(^|[ .\x1bm])when: expected .*(zone|tz=UTC)"):
        called(KINDS[kind](OTHER))


class Both(xt.keras.Layer):
    def call(self, first, second=None, *rest, third=None, **others):
        more = [second, third, *rest, *others.values()]
        return total(first) + sum(total(each) for each in more if each is not None)


class BothModel(xt.keras.Model):
    def call(self, first, second=None, *rest, third=None, **others):
        more = [second, third, *rest, *others.values()]
        return total(first) + sum(total(each) for each in more if each is not None)


# How a second argument is given. A new way joins by one line.
SECOND = {
    "by position": lambda call, records: call(SPEC.cast(RECORDS), records),
    "by name": lambda call, records: call(SPEC.cast(RECORDS), second=records),
    "by name only": lambda call, records: call(SPEC.cast(RECORDS), third=records),
    "in *args": lambda call, records: call(SPEC.cast(RECORDS), None, records),
    "in *args after others": lambda call, records: call(SPEC.cast(RECORDS), None, None, records),
    "in **kwargs": lambda call, records: call(SPEC.cast(RECORDS), fourth=records),
}


@pytest.mark.parametrize("way", SECOND)
@pytest.mark.parametrize("kind", [Both, BothModel])
def test_every_argument_gets_the_units_of_the_first_call(kind, way):
    if way == "in *args after others" and KERAS < (3, 13):
        pytest.skip("Keras before 3.13 takes no None before others in *args")
    call = kind()
    for records in (SPEC.cast(RECORDS), RECORDS):
        np.testing.assert_allclose(SECOND[way](call, records), 2 * WANT, rtol=1e-6)
    with pytest.raises(errors.DTypeError, match="when: expected timestamps without a zone"):
        SECOND[way](call, OTHER)


def test_a_layer_in_a_graph_has_one_unit_for_all_its_inputs():
    shared, fine = Total(), xt.keras.Input(SPEC)
    coarse = xt.keras.Input(xt.spec_from_schema(COARSE))
    model = xt.keras.Model([fine, coarse], [shared(fine), shared(coarse)])
    for data in ([SPEC.cast(RECORDS), RECORDS], [RECORDS, RECORDS], [ROWS, TABLE]):
        for found in (model(data), model.predict(data, verbose=0)):
            np.testing.assert_allclose(found, [WANT, WANT], rtol=1e-6)


@pytest.mark.parametrize("data", [RECORDS, ROWS, TABLE], ids=["records", "Python data", "table"])
def test_inputs_by_name_take_what_one_input_takes(data):
    inputs = {name: xt.keras.Input(SPEC, name=name) for name in "ab"}
    model = xt.keras.Model(inputs, Both()(inputs["a"], inputs["b"]))
    given = {"a": data, "b": RECORDS}
    for found in (model(given), model.predict(given, verbose=0)):
        np.testing.assert_allclose(found, 2 * WANT, rtol=1e-6)


def test_labels_get_the_units_of_the_outputs():
    inputs = xt.keras.Input(SPEC)
    model = xt.keras.Model(inputs, xt.keras.Lambda(lambda records: records)(inputs))
    model.compile(loss={"when": "mse", "price": "mse"}, metrics={"when": "mae"})
    assert model.evaluate(RECORDS, RECORDS, verbose=0) == [0, 0, 0, 0]
    with pytest.raises(errors.DTypeError, match="when: expected timestamps without a zone"):
        model.evaluate(RECORDS, OTHER, verbose=0)


def test_lists_are_cast_to_a_dense_field_where_values_tell_their_lengths():
    spec = xt.DenseStructuredTensorSpec([None], {"f": tf.TensorSpec([None, 2], tf.int64)})
    inputs = xt.keras.Input(spec)
    model = xt.keras.Model(inputs, xt.keras.Lambda(lambda r: tf.cast(r["f"], tf.float32))(inputs))
    lists = xt.DenseStructuredTensor([2], {"f": tf.ragged.constant([[1, 2], [3, 4]])})
    for found in (model(lists), model.predict(lists, verbose=0), model(spec.cast(lists))):
        np.testing.assert_array_equal(found, [[1, 2], [3, 4]])
    batches = tf.data.Dataset.from_tensor_slices(lists).batch(2)
    with pytest.raises(errors.DTypeError, match=r"f: expected .* Fix: spec\.cast\(records\)"):
        model.predict(batches)
    narrow = xt.keras.Input(
        xt.DenseStructuredTensorSpec([None], {"f": tf.TensorSpec([None, 2], tf.int32)})
    )
    outer = xt.keras.Model(narrow, model(narrow))
    values = xt.DenseStructuredTensor([2], {"f": [[1, 2], [3, 4]]})
    np.testing.assert_array_equal(outer(values), [[1, 2], [3, 4]])
    with pytest.raises(errors.DTypeError, match=r"f: expected .* Fix: spec\.cast\(records\)"):
        model(lists.with_updates(f=tf.ragged.constant([[1], [3, 4]])))


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


def test_decimals_and_numbers_without_a_unit_are_their_values():
    def prices(values, arrow):
        return xt.from_arrow(pa.table({"price": pa.array(values, arrow)}))

    decimals = prices([Decimal("1.5"), Decimal("2.5")], pa.decimal128(5, 1))
    floats = prices([1.5, 2.5], pa.float64())
    for data, other in ((decimals, floats), (floats, decimals)):
        layer = xt.keras.layers.RecordFeatures()
        layer.adapt(data)
        np.testing.assert_allclose(layer(data), [[-1.0], [1.0]], atol=1e-5)
        np.testing.assert_allclose(layer(prices([1, 3], pa.int64())), [[-2.0], [2.0]], atol=1e-5)
        with pytest.raises(errors.DTypeError, match=r"price: expected .*(a unit|scale 1), got "):
            layer(other)
