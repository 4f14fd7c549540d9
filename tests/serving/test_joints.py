"""Where new data meets a spec: one form of error, whose fix works when it is pasted."""

import io
import json
import re

import keras
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.serving.sample import content

SPEC = xt.DenseStructuredTensorSpec(
    [None], {"a": tf.TensorSpec([None]), "n": tf.TensorSpec([None], tf.int32)}
)
GOOD = xt.DenseStructuredTensor([2], {"a": [1.0, 2.0], "n": [1, 2]})
WIDE = tf.constant([1.0, 2.0], tf.float64)
INNER = xt.DenseStructuredTensor([2], {"y": [1, 2]})
PROBLEMS = {
    "a field more": GOOD.with_updates(x=[1, 2]),
    "records more": GOOD.with_updates(x=INNER),
    "a field less": GOOD.without("n"),
    "a wider dtype": GOOD.with_updates(a=WIDE),
    "a mask": GOOD.with_updates(a=xt.types.MaskedTensor([1.0, 2.0], [True, False])),
    "several": GOOD.with_updates(x=[1, 2], y=[1, 2], a=WIDE).without("n"),
}


def total(records):
    return records["a"] + tf.cast(records["n"], tf.float32)


def functional():
    """Returns a model that knows the spec of its input."""
    records = xt.keras.Input(SPEC)
    return xt.keras.Model(records, keras.ops.cast(records["n"], "float32") + records["a"])


def joints():
    model, signature = functional(), xt.serving.flat_signature(total, SPEC)
    return {
        "cast": SPEC.cast,
        "encode": signature.encode,
        "predict": lambda records: model.predict(records, verbose=0),
        "call": tf.function(total, input_signature=[SPEC]),
    }


JOINTS = ("cast", "encode", "predict", "call")


@pytest.fixture(scope="module")
def uses():
    return joints()


def mends(text):
    """Returns the code in the table of an error, or in an error of one place."""
    text = text.split("`. Received args")[0]
    if "Fix each:" in text:
        header, *rows = text.split("Fix each:\n")[1].splitlines()
        assert header.split() == ["path", "expected", "got", "fix"]
        return [re.split(r"  +", row.strip())[3] for row in rows]
    return [text.split("Fix: ")[1].splitlines()[0]]


def mended(records, code):
    code = code.replace("...", "[1, 2]")
    return eval(code, {"records": records, "spec": SPEC, "xt": xt, "tf": tf, "value": 2.0})


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_mend_works_when_it_is_pasted(uses, joint, problem):
    records = PROBLEMS[problem]
    try:
        uses[joint](records)
    except (TypeError, ValueError, KeyError) as error:
        text = str(error)
    else:
        pytest.fail("the joint took the records")
    for code in mends(text):
        records = mended(records, code)
    uses[joint](records)
    assert total(SPEC.cast(records)).numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("joint", JOINTS)
def test_records_of_python_get_an_argument_to_paste(uses, joint):
    with pytest.raises((KeyError, TypeError), match=r'record 0.*Unknown: x.*extra="ignore"'):
        uses[joint]([{"a": 1.0, "n": 1, "x": 5}])
    assert total(SPEC.cast([{"a": 1.0, "n": 1, "x": 5}], extra="ignore")).numpy().tolist() == [2.0]


def test_nulls_of_json_get_an_argument_to_paste():
    text, schema = b'{"a": 1.0}', xt.schema_from_spec(SPEC)
    with pytest.raises(errors.NullError) as raised:
        xt.read_json(text, schema=schema)
    argument = str(raised.value).splitlines()[-1]
    chosen = eval(f"dict({argument})", {"xt": xt})
    assert xt.read_json(text, schema=schema, **chosen).to_py() == [{"a": 1.0, "n": None}]


DATA = [[{"a": 1.0, "n": 1}] * 3, xt.struct.constant([{"a": 1.0, "n": 1}] * 3)]


@pytest.mark.parametrize("data", DATA, ids=["python", "records"])
def test_a_static_number_of_records_may_be_left_open(data):
    spec = SPEC.unstacked().stacked(2)
    with pytest.raises(errors.StructureError if data is DATA[0] else errors.DTypeError) as raised:
        spec.cast(data)
    assert "Pad or cut" not in raised.value.fix
    code = re.search(r"spec\.\S+\)", raised.value.fix)[0]
    assert eval(code, {"spec": spec}).cast(data).shape == [3]


def test_lists_of_one_static_length_are_still_padded():
    spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 2])})
    with pytest.raises(errors.StructureError, match="Pad or cut the lists"):
        spec.cast([{"x": [1.0]}])


# The same request of any form of data, with and without fields that the model does not have.

ROWS = [{"a": 1.5, "n": 2, "inner": {"s": ["x", "y"]}}, {"a": 2.5, "n": 3, "inner": {"s": []}}]
MORE = [{**row, "more": i, "inner": {**row["inner"], "t": "z"}} for i, row in enumerate(ROWS)]
FORMS = {
    "records": xt.struct.constant,
    "python": lambda rows: rows,
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "table": pa.Table.from_pylist,
    "batch": lambda rows: pa.Table.from_pylist(rows).to_batches()[0],
    "text": lambda rows: "\n".join(map(json.dumps, rows)),
    "bytes": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "a file": lambda rows: io.BytesIO("\n".join(map(json.dumps, rows)).encode()).read(),
    "array text": json.dumps,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_pruned", [False, True])
def test_a_request_is_the_same_for_every_form_of_data(form, is_pruned):
    spec = xt.spec_of(xt.struct.constant(ROWS)).unstacked().stacked(None)
    signature = xt.serving.flat_signature(
        lambda r: r["inner.s"] if is_pruned else r, spec, prune=is_pruned
    )
    expected = content(signature.encode(ROWS))
    assert expected["inner__s"] == [b"x", b"y"]
    assert ("a" in expected) == (not is_pruned)
    assert content(signature.encode(FORMS[form](ROWS))) == expected
    for extra in ("ignore", ["more", "inner.t"], ["r.more", "r.inner.t"]):
        assert content(signature.encode(FORMS[form](MORE), extra=extra)) == expected
    if form not in ("text", "bytes", "a file", "array text"):  # of JSON, fields are chosen
        with pytest.raises(errors.ExtensorError, match=r"more|\bt\b"):
            signature.encode(FORMS[form](MORE))
