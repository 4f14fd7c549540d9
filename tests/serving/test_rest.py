"""Requests and responses as text, in the column format of TensorFlow Serving's REST API."""

import base64
import json

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, FieldError, FormatError
from extensor.serving import flat_signature

NULLS = {"title": "mask", "steps[*].minutes": "mask"}
ONE = [{"title": "soup", "photo": b"\xff", "steps": [{"minutes": 5.5, "tools": ["pan"]}]}]
SPEC = xt.spec_of(xt.struct.constant(ONE, nulls=NULLS)).unstacked().stacked(None)
ECHO = flat_signature(lambda recipes: recipes, SPEC)
TITLES = flat_signature(lambda recipes: recipes["title"].fill("?"), SPEC)

steps = st.fixed_dictionaries(
    {
        "minutes": st.none() | st.floats(0, 99, width=32),
        "tools": st.lists(st.text("aé☃ ", max_size=3), max_size=2),
    }
)
recipes = st.fixed_dictionaries(
    {
        "title": st.none() | st.text('aé☃"\\', max_size=4),
        "photo": st.binary(max_size=3),
        "steps": st.lists(steps, max_size=2),
    }
)


def answered(signature, body):
    """Returns what a server of the documented format answers: it knows names and dtypes only."""
    specs = {component.name: component.spec for component in signature.inputs.components}
    inputs = {
        name: tf.constant(_read(value), specs[name].dtype)
        for name, value in json.loads(body)["inputs"].items()
    }
    outputs = {
        name: _written(x.numpy().tolist()) for name, x in signature.function(**inputs).items()
    }
    return json.dumps({"outputs": outputs if len(outputs) > 1 else next(iter(outputs.values()))})


def _read(value):
    if isinstance(value, list):
        return [_read(each) for each in value]
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value


def _written(value):
    if isinstance(value, list):
        return [_written(each) for each in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    return value


@given(st.lists(recipes, min_size=1, max_size=3))
def test_records_go_to_a_server_and_back(records):
    result = ECHO.decode_json(answered(ECHO, ECHO.encode_json(records)))
    assert result.to_py() == xt.struct.constant(records, SPEC).to_py()


@given(st.lists(recipes.map(lambda r: {**r, "photo": b""}), min_size=1, max_size=3))
def test_the_text_of_json_lines_is_the_request_of_its_records(records):
    text = "\n".join(json.dumps({**each, "photo": ""}) for each in records)
    assert TITLES.encode_json(text) == TITLES.encode_json(records)
    titles = [each["title"] if each["title"] is not None else "?" for each in records]
    found = TITLES.decode_json(answered(TITLES, TITLES.encode_json(text)).encode())
    assert [each.decode() for each in found.numpy()] == titles


def test_a_single_output_may_have_its_name():
    [output] = TITLES.outputs.components
    for text in ('["a", "b"]', f'{{"{output.name}": ["a", "b"]}}'):
        assert TITLES.decode_json(f'{{"outputs": {text}}}').numpy().tolist() == [b"a", b"b"]
    photo = flat_signature(lambda recipes: recipes["photo"][0], SPEC)
    assert photo.decode_json('{"outputs": {"b64": "/w=="}}').numpy() == b"\xff"


WRONG = {
    "no text": ("", r"response: expected JSON, got "),
    "no object": ("[1]", r'response: expected an object with the key "outputs", got no object'),
    "the row format": ('{"predictions": []}', r"got keys predictions\. Give the body of"),
    "an error": (
        '{"error": "Missing inputs: title"}',
        r"expected outputs, got the error 'Missing inputs: title'\. Correct the request",
    ),
    "base64": ('{"outputs": [{"b64": "*"}]}', r'expected text, numbers, or \{"b64"'),
    "another object": ('{"outputs": [{"a": 1}]}', r'expected text, numbers, or \{"b64"'),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_text_that_is_no_response_is_an_error(name):
    text, message = WRONG[name]
    with pytest.raises(FormatError, match=message):
        TITLES.decode_json(text)


def test_a_response_that_does_not_fit_is_an_error():
    with pytest.raises(FormatError, match=r"expected the outputs photo, .* without names"):
        ECHO.decode_json('{"outputs": [1]}')
    with pytest.raises(FieldError):
        ECHO.decode_json('{"outputs": {"title": ["a"]}}')
    sizes = flat_signature(lambda x: x * 2, tf.TensorSpec([None], tf.int32))
    with pytest.raises(DTypeError):
        sizes.decode_json('{"outputs": ["a"]}')


def test_a_request_that_does_not_fit_names_the_field():
    with pytest.raises(DTypeError, match=r"title"):
        ECHO.encode_json([{**ONE[0], "title": 5}])


def test_numbers_keep_their_value():
    signature = flat_signature(lambda x: x, tf.TensorSpec([None], tf.int64))
    big = [2**62 + 1, -(2**63)]
    body = signature.encode_json(np.array(big))
    assert json.loads(body)["inputs"]["x"] == big
    assert signature.decode_json(answered(signature, body)).numpy().tolist() == big


def test_an_object_of_data_fits_a_model_that_does_not_read_its_keys():
    lines = b'{"towns": {"a": {"people": 5, "name": "x"}, "b": {"people": 6, "name": "y"}}}'
    records = xt.read_json(lines, maps=["towns"])
    spec = xt.spec_of(records).unstacked().stacked(None)
    people = flat_signature(lambda r: tf.reduce_sum(r["towns.value.people"], axis=1), spec)
    assert [str(path) for path in people.unused] == ["r.towns.value.name"]
    assert people.encode_json(lines) == people.encode_json(records)
    assert people.decode_json(answered(people, people.encode_json(lines))).numpy() == [11]
