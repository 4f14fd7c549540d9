"""Every kind of Python value through every way in and out that needs no server: it comes back.

docs/formats/README.md lists what does not. Values of servers have tests of their own.
"""

import datetime as dt
import decimal
import functools
import itertools
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor import errors

EPOCH = dt.datetime(1970, 1, 1)
TIMES = st.integers(0, 2**52).map(lambda n: EPOCH + dt.timedelta(microseconds=n))
# For each kind of value: its Arrow type, and values.
KINDS = {
    "int": (pa.int64(), st.sampled_from([0, 2**53 + 1, -(2**63), 2**63 - 1]) | st.integers(-9, 9)),
    "big int": (pa.uint64(), st.sampled_from([0, 2**64 - 1, 2**63])),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
    "str": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=3)),
    "bytes": (pa.binary(), st.binary(max_size=3)),
    "date": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "datetime": (pa.timestamp("us"), TIMES),
    "datetime with a zone": (
        pa.timestamp("us", "UTC"), TIMES.map(lambda t: t.replace(tzinfo=dt.timezone.utc)),
    ),
    "time": (pa.time64("us"), st.times()),
    "timedelta": (
        pa.duration("us"), st.integers(-(2**52), 2**52).map(lambda n: dt.timedelta(microseconds=n)),
    ),
    "Decimal": (
        pa.decimal128(10, 2),
        st.integers(-(10**9), 10**9).map(lambda n: decimal.Decimal(n).scaleb(-2)),
    ),
    "long Decimal": (
        pa.decimal128(30, 2),
        st.integers(-(10**27), 10**27).map(
            lambda n: decimal.Decimal((n < 0, tuple(map(int, str(abs(n)))), -2))
        ),
    ),
    "UUID": (pa.uuid(), st.uuids()),
}  # fmt: skip

VALUES = {
    "int": 2**53 + 1, "big int": 2**64 - 1, "float": 0.1, "bool": True, "str": "é",
    "bytes": b"\xff\0", "date": dt.date(2020, 1, 1),
    "datetime": dt.datetime(2020, 1, 1, 3, 4, 5, 6),
    "datetime with a zone": dt.datetime(2020, 1, 1, 3, 4, 5, 6, dt.timezone.utc),
    "time": dt.time(3, 4, 5, 6), "timedelta": dt.timedelta(microseconds=-3),
    "Decimal": decimal.Decimal("-1.25"), "UUID": uuid.UUID(int=7),
    "long Decimal": decimal.Decimal("1234567890123456789012345.25"),
}  # fmt: skip


def maybe(values):
    return st.none() | values


# For each shape: the Arrow type, and values, which are null at every level.
SHAPES = {
    "one": (lambda arrow: arrow, maybe),
    "lists": (pa.list_, lambda values: maybe(st.lists(maybe(values), max_size=2))),
    "records": (
        lambda arrow: pa.struct({"v": arrow}),
        lambda values: maybe(st.fixed_dictionaries({"v": maybe(values)})),
    ),
    "records in lists": (
        lambda arrow: pa.list_(pa.struct({"v": arrow})),
        lambda values: maybe(
            st.lists(maybe(st.fixed_dictionaries({"v": maybe(values)})), max_size=2)
        ),
    ),
}


def file(write, read, name):
    def through(records, spec, folder):
        path = folder / f"{next(NUMBERS)}-{name}"
        write(records, path)
        return read(path, schema=spec)

    return through


def duckdb(records, spec, folder):
    connection = pytest.importorskip("duckdb").connect()
    xt.write_database(records, "them", connection)
    return xt.read_database("from them", connection, schema=spec)


def polars(records, spec, folder):
    return xt.from_arrow(pytest.importorskip("polars").DataFrame(records), schema=spec)


def once(make):
    """Makes a thing once for each spec of `spec_of`.

    Specs that differ only in whether strings are text or bytes are equal, so they are no keys.
    """
    made = {}

    def of(spec):
        if id(spec) not in made:
            made[id(spec)] = make(spec)
        return made[id(spec)]

    return of


@once
def function_of(spec):
    return tf.function(lambda r: r, input_signature=[spec])


@once
def client_of(spec):
    signature = xt.serving.flat_signature(function_of(spec))
    client = xt.serving.Client(signature.parameters, signature.inputs, signature.outputs)
    return client, signature.function


def of_client(records, spec, folder):
    client, function = client_of(spec)
    request = {n: tf.convert_to_tensor(t) for n, t in client.encode(records).items()}
    return client.decode(function(**request))


@once
def model_of(spec):
    class Same(xt.keras.Model):
        def call(self, inputs):
            return inputs

    return Same()


def predicted(records, spec, folder):
    return model_of(spec).predict(records, verbose=0)


NUMBERS = itertools.count()
# For each door: from records to the records that came through it. A new door joins by one line.
DOORS = {
    "Python": lambda records, spec, folder: spec.cast(records.to_py()),
    "Python, inferred": lambda records, spec, folder: xt.struct.constant(
        records.to_py(), nulls="mask"
    ),
    "Arrow": lambda records, spec, folder: xt.from_arrow(xt.to_arrow(records), schema=spec),
    "capsule": lambda records, spec, folder: xt.from_arrow(pa.table(records), schema=spec),
    "polars": polars,
    "pandas": lambda records, spec, folder: xt.from_pandas(xt.to_pandas(records), schema=spec),
    "awkward": lambda records, spec, folder: xt.from_awkward(xt.to_awkward(records), schema=spec),
    "huggingface": lambda records, spec, folder: xt.from_huggingface(
        xt.to_huggingface(records), schema=spec
    ),
    "parquet": file(xt.write_parquet, xt.read_parquet, "it.parquet"),
    "arrow file": file(xt.write_arrow, xt.read_arrow, "it.arrow"),
    "arrow stream": file(xt.write_arrow, xt.read_arrow, "it.arrows"),
    "json": file(xt.write_json, xt.read_json, "it.jsonl"),
    "tfrecord": file(xt.write_tfrecord, xt.read_tfrecord, "it.tfrecord"),
    "tf.Example": lambda records, spec, folder: xt.from_tf_example(
        xt.to_tf_example(records), schema=spec
    ),
    "duckdb": duckdb,
    "tf.data": lambda records, spec, folder: next(
        iter(tf.data.Dataset.from_tensor_slices(records).ragged_batch(9))
    ),
    "tf.function": lambda records, spec, folder: function_of(spec)(records),
    "client": of_client,
    "predict": predicted,
}


def values_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [found for item in value for found in values_in(item)]
    return [] if value is None else [value]


def refusal(door, kind, shape, xs):
    """Returns the error with which a door refuses values; None if it takes them."""
    values = values_in(xs)
    if door in ("tfrecord", "tf.Example"):
        if "records" in shape:
            return errors.UnsupportedTypeError
        if kind in ("big int", "float"):
            return errors.DTypeError
        if shape == "lists" and any(x is None or None in x for x in xs):
            return errors.NullError
    if door == "Python, inferred":
        if kind == "big int" and any(value > 2**63 - 1 for value in values):
            return errors.DTypeError
        if kind == "float" and any(np.isfinite(v) and np.isinf(rounded(v)) for v in values):
            return errors.DTypeError
    if door == "awkward" and kind in ("Decimal", "long Decimal", "UUID"):
        return errors.UnsupportedTypeError
    if door == "huggingface" and kind == "UUID":
        return errors.UnsupportedTypeError
    if door == "duckdb" and (kind == "timedelta" or (kind == "UUID" and values)):
        return errors.DTypeError
    return None


def rounded(value):
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def changed(value, change):
    if isinstance(value, dict):
        return {name: changed(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [changed(item, change) for item in value]
    return None if value is None else change(value)


# What a door changes: for a door and a kind, the value that comes back.
LOSSES = {("Python, inferred", "float"): rounded, ("predict", "float"): rounded}


def with_types(value):
    """Returns values with their types: 1, 1.0 and True are equal in Python."""
    return changed(value, lambda each: (type(each), str(each) if each == 0 else each))


@functools.cache
def spec_of(kind, shape):
    arrow = SHAPES[shape][0](KINDS[kind][0])
    schema = pa.schema({"id": pa.int32(), "x": arrow})
    return xt.spec_from_schema(schema, nulls={"*": "mask", "id": "error"})


def check(door, kind, shape, xs, folder):
    spec = spec_of(kind, shape)
    rows = [{"id": i, "x": x} for i, x in enumerate(xs)]
    records = spec.cast(rows)
    assert with_types([row["x"] for row in records.to_py()]) == with_types(xs)
    error = refusal(door, kind, shape, xs)
    if error is not None:
        with pytest.raises(error):
            DOORS[door](records, spec, folder)
        return
    found = DOORS[door](records, spec, folder).to_py()
    assert [row["id"] for row in found] == list(range(len(xs)))
    wanted = changed(xs, LOSSES.get((door, kind), lambda value: value))
    assert with_types([row["x"] for row in found]) == with_types(wanted)


def columns(kind, shape):
    return st.lists(SHAPES[shape][1](KINDS[kind][1]), min_size=1, max_size=3)


FEW = [door for door in DOORS if door not in ("client", "predict", "tf.function")]


@pytest.mark.parametrize(
    ("door", "kind", "shape"),
    list(zip(FEW, itertools.cycle(KINDS), itertools.cycle(SHAPES), strict=False)),
)
def test_a_value_comes_back_or_is_refused(door, kind, shape, tmp_path):
    value = {
        "one": lambda v: [v, None],
        "lists": lambda v: [[v, None], [], None],
        "records": lambda v: [{"v": v}, {"v": None}, None],
        "records in lists": lambda v: [[{"v": v}, {"v": None}, None], [], None],
    }[shape]
    check(door, kind, shape, value(VALUES[kind]), tmp_path)


@pytest.mark.whole("each door with each kind of value, several times")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
def test_every_value_comes_back_or_is_refused(door, kind, tmp_path, data):
    shape = data.draw(st.sampled_from(list(SHAPES)))
    check(door, kind, shape, data.draw(columns(kind, shape)), tmp_path)


def test_the_docs_list_what_does_not_come_back():
    page = (Path(__file__).parents[2] / "docs" / "formats" / "README.md").read_text()
    table = page.partition("## What does not come back")[2]
    for door in ("TFRecord", "awkward", "Hugging Face", "DuckDB", "predict", "constant"):
        assert door in table
