"""The table of docs/serving.md that says what another language sends is that of a signature."""

import datetime as dt
import decimal
import json
import re
from pathlib import Path

import pyarrow as pa
import tensorflow as tf

import extensor as xt

KIND = pa.dense_union([pa.field("number", pa.int32()), pa.field("text", pa.string())])
SCHEMA = pa.schema(
    {
        "price": pa.float32(),
        "title": pa.string(),
        "grams": pa.float32(),
        "sizes": pa.list_(pa.int32()),
        "scores": pa.list_(pa.float32()),
        "steps": pa.list_(pa.struct({"minutes": pa.int32()})),
        "author": pa.struct({"name": pa.string()}),
        "kind": KIND,
        "when": pa.timestamp("ms", "UTC"),
        "day": pa.date32(),
        "at": pa.time32("s"),
        "cost": pa.decimal64(9, 2),
    }
)
WHEN = dt.datetime(2026, 5, 1, 12, 30, tzinfo=dt.timezone.utc)
ROWS = {
    "price": [1.5, 2.0],
    "title": ["soup", "tea"],
    "grams": [3.5, None],
    "sizes": [[1, 2], []],
    "scores": [[1.0], None],
    "steps": [[{"minutes": 5}], []],
    "author": [{"name": "Ann"}, None],
    "kind": [2, "pinch"],
    "when": [WHEN, WHEN + dt.timedelta(seconds=1)],
    "day": [dt.date(2026, 5, 1), dt.date(2026, 5, 2)],
    "at": [dt.time(12, 30), dt.time(12, 30, 1)],
    "cost": [decimal.Decimal("1.50"), decimal.Decimal("2.00")],
}


def table():
    """Returns the row of each field in the page: what Python has, and what is sent."""
    page = Path("docs/serving.md").read_text()
    rows = page.split("| field | in Python | send |\n| --- | --- | --- |\n")[1].split("\n\n")[0]
    for row in rows.splitlines():
        _, python, sent = re.fullmatch(r"\| (.*?) \| (.*) \| `(.*)` \|", row).groups()
        yield python, json.loads(f"{{{sent}}}")


def test_the_table_has_every_tensor_and_a_server_understands_it():
    nulls = dict.fromkeys(["grams", "scores", "author"], "mask")
    spec = xt.spec_from_schema(SCHEMA, nulls=nulls)
    signature = xt.serving.flat_signature(lambda r: {"r": r}, spec, validate=True)
    request = {name: values for _, sent in table() for name, values in sent.items()}
    assert set(request) == {component.name for component in signature.inputs.components}
    specs = {component.name: component.spec for component in signature.inputs.components}
    tensors = {name: tf.constant(values, specs[name].dtype) for name, values in request.items()}
    found = signature.decode(signature.function(**tensors))["r"].to_py()
    expected = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    assert found == expected
    own = signature.encode(expected)
    for name, tensor in tensors.items():
        if f"{name}__mask" not in tensors and not name.startswith("author__name"):
            assert own[name].numpy().tolist() == tensor.numpy().tolist()


def test_the_python_data_of_the_table_is_that_of_the_rows():
    shown = [python for python, _ in table()]
    for python, rows in zip(shown, ROWS.values(), strict=True):
        if python.startswith("`["):
            assert json.loads(python.strip("`").replace("None", "null")) == rows
        else:
            text = str(rows[0].isoformat() if hasattr(rows[0], "isoformat") else rows[0])
            assert python.startswith(f"`{text.replace('+00:00', 'Z')}`")
