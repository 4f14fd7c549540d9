"""Errors about records of many fields: they name the field, and do not list all of the others."""

import keras
import pytest
import tensorflow as tf

import extensor as xt

RECORD = {f"field{i}": {"a": 1, "b": [{"c": 2.0, "d": "x"}]} for i in range(60)}
RECORDS = xt.struct.constant([RECORD, RECORD])
SPEC = xt.spec_of(RECORDS)


def error_of(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what it says is checked
        call()
    return str(caught.value)


def signature(value):
    return tf.function(lambda x: x, input_signature=[SPEC])(value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda: RECORDS.without("field3"),
            "field3: expected record, got no such field. Fix: records.with_updates({'field3': ",
        ),
        (
            lambda: RECORDS.with_updates(more=[1, 2]),
            'more: expected no such field, got int32. Fix: spec.cast(records, extra="ignore")',
        ),
        (
            lambda: RECORDS.with_updates({"field3.a": ["x", "y"]}),
            "field3.a: expected int32, got string. Fix: records.with_updates({'field3.a': "
            "tf.strings.to_number(records['field3.a'], tf.int32)})",
        ),
    ],
    ids=["missing", "more", "dtype"],
)
def test_a_cast_names_the_first_field_that_differs(change, text):
    assert error_of(lambda: SPEC.cast(change())).startswith(text)
    in_function = error_of(lambda: signature(change()))
    assert in_function.startswith(f"Binding inputs to tf.function failed due to `{text}")


def test_the_fix_of_text_works_and_lists_are_not_cast_to_a_number():
    records = xt.struct.constant([{"a": "7", "b": "x"}])
    spec = xt.spec_of(xt.struct.constant([{"a": 1, "b": "x"}]))
    fix = error_of(lambda: spec.cast(records)).partition("Fix: ")[2]
    assert spec.cast(eval(fix, {"records": records, "tf": tf})).to_py() == [{"a": 7, "b": "x"}]
    with pytest.raises(
        xt.errors.DTypeError, match=r"map_values\(st, tf\.strings\.to_number, path\)"
    ):
        xt.struct.cast(records, {"a": tf.int32})
    inputs = xt.keras.Input(spec)
    model = xt.keras.Model(inputs, inputs["a"])
    lists = xt.struct.constant([{"a": [7], "b": "x"}])
    assert error_of(lambda: model(lists)).endswith("Fix: records.with_updates({'a': ...})")


@pytest.mark.parametrize("data", [[{**RECORD, "typo": 1}], {**RECORD, "typo": [1, 1]}])
def test_data_with_other_fields_names_these(data):
    fields = data[0] if isinstance(data, list) else data
    del fields["field7"]
    text = error_of(lambda: SPEC.cast([fields, RECORD] if isinstance(data, list) else data))
    assert len(text) < 600
    assert "field19, ... (60 in all)" in text
    assert "Missing: field7; unknown: typo." in text


@pytest.mark.whole("makes very large values")
def test_errors_are_short():
    inputs = xt.keras.Input(SPEC)
    pooled = xt.keras.layers.ListPooling("sum")(inputs["field1.b.c"])
    model = xt.keras.Model(inputs, keras.layers.Dense(1)(pooled[:, None]))
    model.compile("adam", "mse")
    for call in (
        lambda: SPEC.cast(tf.constant(1.0)),
        lambda: SPEC.cast(3),
        lambda: RECORDS["fieldd"],
        lambda: RECORDS + 1,
        lambda: tf.reduce_sum(RECORDS),
        lambda: tf.concat([RECORDS, RECORDS.without("field3")], 0),
        lambda: tf.ragged.stack([RECORDS, RECORDS.with_updates({"field3.a": ["x", "y"]})]),
        lambda: model.predict(RECORDS.without("field1"), verbose=0),
        lambda: model.predict([{"field1": 3}], verbose=0),
        lambda: xt.types.MaskedTensor(RECORDS, [True, False]) + 1,
    ):
        text = error_of(call)
        assert len(text) < 900, text
