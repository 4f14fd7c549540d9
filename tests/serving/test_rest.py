"""Requests and responses as text, in the column format of TensorFlow Serving's REST API."""

import base64
import json

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, FieldError, FormatError, UnsupportedTypeError
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


# Written by hand, as the documentation of TensorFlow Serving's REST API describes the format.
RECORDS = [
    {
        "title": "soup ☃",
        "photo": b"\xff\x00",
        "steps": [{"minutes": 5.5, "tools": ["pan", "lid"]}, {"minutes": None, "tools": []}],
    },
    {"title": None, "photo": b"ok", "steps": []},
    {"title": "", "photo": b"", "steps": [{"minutes": 0.0, "tools": ['"\\']}]},
]
COLUMNS = """{
    "title": ["soup ☃", "", ""],
    "title__mask": [true, false, true],
    "photo": [{"b64": "/wA="}, "ok", ""],
    "steps__row_splits": [0, 2, 2, 3],
    "steps__minutes": [5.5, 0.0, 0.0],
    "steps__minutes__mask": [true, false, true],
    "steps__tools": ["pan", "lid", "\\"\\\\"],
    "steps__tools__row_splits": [0, 2, 2, 3]
}"""


def test_a_request_is_the_text_that_is_documented():
    assert json.loads(ECHO.encode_json(RECORDS)) == {"inputs": json.loads(COLUMNS)}
    assert "soup ☃" in ECHO.encode_json(RECORDS)
    assert TITLES.encode_json(RECORDS[:1]) in (
        '{"inputs": {"title__mask": [true], "title": ["soup ☃"]}}',
        '{"inputs": {"title": ["soup ☃"], "title__mask": [true]}}',
    )


def test_a_response_that_is_documented_has_the_records():
    assert ECHO.decode_json(f'{{"outputs": {COLUMNS}}}').to_py() == RECORDS
    in_base64 = COLUMNS.replace('"pan"', '{"b64": "cGFu"}').replace('"ok"', '{"b64": "b2s="}')
    assert ECHO.decode_json(f'{{"outputs": {in_base64}}}').to_py() == RECORDS
    assert TITLES.decode_json('{"outputs": ["soup ☃", "?", ""]}').numpy()[0].decode() == "soup ☃"


def answered(signature, body):
    """Returns the answer of a server that knows names and dtypes, and writes text in base64."""
    specs = {component.name: component.spec for component in signature.inputs.components}
    given_inputs = json.loads(body, object_hook=lambda o: o if "b64" not in o else _bytes(o))
    inputs = {name: tf.constant(x, specs[name].dtype) for name, x in given_inputs["inputs"].items()}
    outputs = {name: x.numpy().tolist() for name, x in signature.function(**inputs).items()}
    answer = {"outputs": outputs if len(outputs) > 1 else next(iter(outputs.values()))}
    return json.dumps(answer, default=lambda text: {"b64": base64.b64encode(text).decode()})


def _bytes(value):
    return base64.b64decode(value["b64"])


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


def test_bytes_that_are_no_text_come_as_the_server_writes_them():
    photo = flat_signature(lambda recipes: recipes["photo"], SPEC)
    body = b'{"outputs": ["\xff\\u0000", "ok", "a\xe2\x98\x83"]}'
    assert photo.decode_json(body).numpy().tolist() == [b"\xff\x00", b"ok", "a☃".encode()]


WRONG = {
    "no text": ("", r"response: expected JSON, got "),
    "no object": ("[1]", r'response: expected an object with the key "outputs", got no object'),
    "the row format": ('{"predictions": []}', r"got keys predictions\. Give the body of"),
    "an error": (
        '{"error": "Missing inputs: title"}',
        r"expected outputs, got the error 'Missing inputs: title'\. Correct the request",
    ),
    "base64": ('{"outputs": [{"b64": "*"}]}', r'expected text, numbers, or \{"b64"'),
    "half a character": ('{"outputs": ["\\ud800"]}', r'expected text, numbers, or \{"b64"'),
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


def test_complex_numbers_are_no_json():
    signature = flat_signature(lambda x: x, tf.TensorSpec([None], tf.complex64))
    with pytest.raises(UnsupportedTypeError, match=r"x: expected .* JSON .* complex numbers"):
        signature.encode_json([1 + 2j])


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
