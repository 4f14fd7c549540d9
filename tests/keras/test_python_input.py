"""Models take Python records and Arrow tables where they know the spec of their input."""

import functools

import keras
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras.kinds import reused

RECORDS = [
    {"title": "Scones", "x": [1.0, 2.0, 3.0], "minutes": [5.0, 20.0]},
    {"title": "Flapjacks", "x": [4.0, 5.0, 6.0], "minutes": []},
    {"title": "Toast", "x": [7.0, 8.0, 9.0], "minutes": [2.0]},
]
SPEC = xt.DenseStructuredTensorSpec(
    [None],
    {
        "title": tf.TensorSpec([None], tf.string),
        "x": tf.TensorSpec([None, 3], tf.float32),
        "minutes": tf.RaggedTensorSpec([None, None], tf.float32),
    },
)
VALUE = SPEC.cast(RECORDS)
TABLE = pa.Table.from_pylist(RECORDS)
DATA = {
    "dicts": RECORDS,
    "table": TABLE,
    "record batch": TABLE.to_batches()[0],
    "DataFrame": pd.DataFrame(RECORDS),
}
Y = np.ones([3, 1], np.float32)


class Net(xt.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, records):
        minutes = tf.reduce_sum(records["minutes"], axis=1)[:, tf.newaxis]
        return self.dense(tf.concat([records["x"], minutes], axis=1))


def subclassed():
    model = Net()
    model(VALUE)
    return model


def functional():
    record = xt.keras.Input(SPEC, name="recipe")
    return xt.keras.Model(record, keras.layers.Dense(1, kernel_initializer="ones")(record["x"]))


def compiled(make):
    model = make()
    model.compile(keras.optimizers.SGD(0.001), "mse")
    return model


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("make", [subclassed, functional])
def test_records_and_tables_are_taken_where_the_spec_is_known(make, data):
    np.testing.assert_allclose(results(make, DATA[data]), results_of_value(make))


def results(make, x):
    """Returns the numbers that a model gives in all its ways for some data."""
    model = reused(compiled, make)
    return [
        *model.fit(x, Y, validation_data=(x, Y), verbose=0).history["val_loss"],
        model.evaluate(x, Y, verbose=0),
        *model.predict(x, batch_size=2, verbose=0)[:, 0],
        *model.predict_on_batch(x)[:, 0],
        model.train_on_batch(x, Y),
        model.test_on_batch(x, Y),
    ]


@functools.cache
def results_of_value(make):
    return results(make, VALUE)


@pytest.mark.parametrize("data", DATA)
def test_a_call_of_a_functional_model_takes_them_too(data):
    model = functional()
    np.testing.assert_array_equal(model(DATA[data]), model(VALUE))
    np.testing.assert_array_equal(tf.function(lambda: model(DATA[data]))(), model(VALUE))


# Keras 3.10 loads a model of one input as one of a list of one.
@pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match:UserWarning")
@pytest.mark.parametrize("data", DATA)
def test_a_model_of_a_list_of_one_input_takes_them_too(data):
    record = xt.keras.Input(SPEC, name="recipe")
    model = xt.keras.Model([record], keras.layers.Dense(1)(record["x"]))
    np.testing.assert_array_equal(model.predict_on_batch(DATA[data]), model(VALUE))
    np.testing.assert_array_equal(model.predict(DATA[data], verbose=0), model(VALUE))


def test_wrong_records_name_the_field():
    wrong = [{**RECORDS[0], "minutes": ["soon"]}]
    with pytest.raises(errors.DTypeError, match=r"minutes\[\*\], record 0: expected float32"):
        functional().predict(wrong, verbose=0)
    with pytest.raises(errors.ExtensorError, match="title"):
        functional().predict(TABLE.drop_columns(["title"]), verbose=0)


@pytest.mark.parametrize("data", ["dicts", "table", "record batch"])
def test_a_model_that_knows_no_spec_says_what_to_give(data):
    model = compiled(Net)
    for use in (model.predict, model.predict_on_batch):
        with pytest.raises(errors.StructureError, match=r"xt\.from_arrow") as raised:
            use(DATA[data])
        assert isinstance(raised.value, ValueError)
        assert raised.value.path == f"{model.name}: input"
        assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("make", [subclassed, functional])
def test_a_single_record_is_an_error_with_the_mend(make):
    model = compiled(make)
    for use in (model.predict, model.predict_on_batch):
        with pytest.raises(errors.StructureError, match=r"records\[:1\]"):
            use(VALUE[0])
    with pytest.raises(errors.StructureError, match=r"records\[:1\]"):
        model.fit(VALUE[0], Y[:1], verbose=0)


@pytest.mark.parametrize("make", [subclassed, functional])
def test_a_dict_is_an_error_with_the_mend(make):
    model = compiled(make)
    for use in (model.predict, model.predict_on_batch):
        with pytest.raises(errors.StructureError, match=r"a list of dicts.*give \[record\]"):
            use(RECORDS[0])


NARROW = VALUE.with_updates(x=VALUE["x"][:, :2])


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("make", [subclassed, functional])
@pytest.mark.parametrize("how", ["values", "dataset"])
def test_a_field_of_another_width_is_named_after_training_too(make, how):
    model = compiled(make)
    model.fit(VALUE, Y, verbose=0)
    model.predict(VALUE, verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices((NARROW, Y)).batch(2)
    given = (NARROW, Y) if how == "values" else (dataset,)
    inputs = NARROW if how == "values" else dataset.map(lambda x, y: x)
    uses = [lambda: model.fit(*given, verbose=0)]
    if make is functional:  # a subclassed model that was not traced yet gets the error of its layer
        uses += [
            lambda: model.evaluate(*given, verbose=0),
            lambda: model.predict(inputs, verbose=0),
            lambda: model.train_on_batch(NARROW, Y),
            lambda: model.test_on_batch(NARROW, Y),
        ]
    for use in uses:
        with pytest.raises(errors.DTypeError) as raised:
            use()
        assert raised.value.path == f"{model.name}: input x"
        assert "float32[3]" in raised.value.expected
        assert "float32[2]" in raised.value.received


def test_an_error_in_call_shows_the_spec_and_not_its_key():
    class Failing(xt.keras.Model):
        def call(self, records):
            return records["x"] @ tf.ones([7, 1])

    model = compiled(Failing)
    uses = (model, model.predict_on_batch, lambda x: model.predict(x, verbose=0),
            lambda x: model.fit(x, Y, verbose=0))  # fmt: skip
    for use in uses:
        with pytest.raises(Exception, match="DenseStructuredTensorSpec") as raised:
            use(VALUE)
        assert "extensor:" not in str(raised.value)


def test_the_name_of_an_input_is_in_the_flat_signature():
    model = functional()
    signature = xt.serving.flat_signature(model, SPEC, prune=False)
    names = {"title", "x", "minutes", "minutes__row_splits"}
    assert set(signature.encode(VALUE)) == names
    again = keras.models.clone_model(model)
    assert set(xt.serving.flat_signature(again, SPEC, prune=False).encode(recipe=VALUE)) == names
    for name in (None, "class"):
        unnamed = xt.keras.Input(SPEC, name=name)
        model = xt.keras.Model(unnamed, keras.layers.Dense(1)(unnamed["x"]))
        assert list(xt.serving.flat_signature(model, SPEC).encode(VALUE)) == ["x"]


@pytest.mark.parametrize("format", ["onnx", "litert"])
def test_other_formats_point_to_the_flat_signature(format, tmp_path):
    with pytest.raises(errors.UnsupportedTypeError, match=r"xt\.serving\.flat_signature"):
        functional().export(tmp_path / "model", format=format)
