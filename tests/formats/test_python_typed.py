"""Records that Arrow converts as a spec wants them: as Columns converts them, or not at all."""

import collections
import decimal
import enum

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor._formats.python import constant
from tests.samples.calls import calls_of

T, R = tf.TensorSpec, tf.RaggedTensorSpec
Dense, Ragged = xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec


class Color(enum.IntEnum):
    RED = 1


class Pair(tuple):
    __slots__ = ()


LEAVES = {
    "int8": [1, 300, -1, 1.0, 2.5, True, None, np.int64(3), np.float32(1.0), Color.RED, "1",
             decimal.Decimal("1.5"), 2**70],
    "int64": [1, 2**63, 1.0, False],
    "uint64": [1, 2**64 - 1, -1],
    "float32": [1, 0.5, 0, True, False, 1e300, float("inf"), float("nan"), 2**24 + 1, None,
                np.float64(0.1), np.True_, Color.RED, decimal.Decimal("0.5"), 10**400],
    "float64": [1, 2**53 + 1, True, 1e300],
    "float16": [1.5, 1e6],
    "bool": [True, np.False_, 1, 0.0, None],
    "string": ["a", b"b", b"\xff", "\udc80", bytearray(b"c"), np.str_("d"), 1, None],
}  # fmt: skip
LISTS = [[1.5], (), (2.5, 3), {4.0}, [True], np.array([1.0]), range(2), "ab", b"ab", None, [[1.0]],
         collections.deque([1.0]), Pair((1.0,)), {1.0: 2.0}, {}.values()]  # fmt: skip
RECORDS = [{"x": 1.5}, {}, {"x": 1.5, "y": 2}, {b"x": 1.5}, None, (1.5,), [("x", 1.5)],
           collections.OrderedDict(x=1.5), collections.defaultdict(float, y=1.5), 5]  # fmt: skip

FIELDS = {
    **{f"{name} {i}": (T([None], getattr(tf, name)), 1, value)
       for name, values in LEAVES.items() for i, value in enumerate(values)},
    **{f"masked {i}": (xt.types.MaskedTensor.Spec(T([None]), T([None], tf.bool)), 0.5, value)
       for i, value in enumerate([1.5, None, True, "a"])},
    **{f"ragged {i}": (R([None, None]), [0.5], value) for i, value in enumerate(LISTS)},
    **{f"dense {i}": (T([None, 1]), [0.5], value) for i, value in enumerate(LISTS)},
    **{f"record {i}": (Dense([None], {"x": T([None])}), {"x": 0.5}, value)
       for i, value in enumerate(RECORDS)},
    **{f"records {i}": (Ragged([None, None], Dense([None], {"x": T([None])})), [], [value])
       for i, value in enumerate(RECORDS)},
}  # fmt: skip
"""A spec of a field, a value that fits, and a value that may not fit."""


def outcome(function):
    """Returns the type and text of the error, or the records with their spec and Arrow schema."""
    try:
        records = function()
    except Exception as error:  # both ways must raise the same one
        return type(error), str(error)
    return repr(records.to_py()), xt.spec_of(records), xt.to_arrow(records).schema


@pytest.mark.parametrize("name", FIELDS)
def test_values_are_cast_as_without_arrow(name, monkeypatch):
    field, fits, value = FIELDS[name]
    # Text and bytes in one column become text or bytes by the first value.
    text = "a" if not isinstance(value, (bytes, bytearray)) else b"a"
    fits = {"string": text, "bool": True}.get(name.split()[0], fits)
    spec = Dense([None], {"f": field})
    for rows in ([{"f": fits}, {"f": value}], [{"f": value}, {"f": fits}], [{"f": value}]):
        found = outcome(lambda rows=rows: spec.cast(rows))
        with monkeypatch.context() as patch:
            patch.setattr(constant, "array_of_type", lambda *_: None)
            assert found == outcome(lambda rows=rows: spec.cast(rows))


def test_records_of_any_rank_are_cast():
    inner = Dense([None], {"x": T([None], tf.int32)})
    spec = Ragged([None, None], inner)
    rows = [[{"x": 1}, {"x": 2}], [], [{"x": 3}]]
    assert spec.cast(rows).to_py() == rows
    assert Dense([], {"x": T([], tf.int32)}).cast({"x": 1}).to_py() == {"x": 1}


def test_the_number_of_calls_does_not_depend_on_the_number_of_records():
    spec = Dense([None], {"id": T([None], tf.int64), "score": T([None]), "tags": R([None, None])})
    rows = [{"id": i, "score": i + 0.5, "tags": [0.5] * (i % 3)} for i in range(1_000)]
    few, many = (calls_of(lambda n=n: spec.cast(rows[:n])) for n in (10, 1_000))
    # len of each record is all that is called.
    assert many - few < 1_100


ODD = {
    "bytes as names": {b"id": 7, b"xs": [{"a": 1.5}]},
    "pairs": [("id", 7), ("xs", [{"a": 1.5}])],
    "another field": {"id": 7, "xs": [{"a": 1.5}], "y": 1},
    "another field inside": {"id": 7, "xs": [{"a": 1.5, "y": 1}]},
    "a set": {"id": 7, "xs": {1.5}},
    "a bool": {"id": True, "xs": []},
    "no record": 7,
    "a null": None,
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("at", [0, 3, 511, 512, 1023, 1100])
def test_an_odd_record_is_found_at_any_place(odd, at, monkeypatch):
    spec = Dense(
        [None],
        {"id": T([None], tf.int64), "xs": Ragged([None, None], Dense([None], {"a": T([None])}))},
    )
    records = [{"id": i, "xs": [{"a": 0.5}] * (i % 3)} for i in range(1101)]
    assert spec.cast(records).to_py() == records
    records[at] = ODD[odd]
    found = outcome(lambda: spec.cast(records))
    monkeypatch.setattr(constant, "array_of_type", lambda *_: None)
    assert found == outcome(lambda: spec.cast(records))


def test_the_values_of_each_level_are_read_once():
    def calls(depth):
        record = {"x": 1.0}
        for _ in range(depth):
            record = {"inner": [record], "y": 1.0}
        spec = xt.spec_of(xt.struct.constant([record]))
        return calls_of(lambda: spec.cast([record]))

    assert calls(24) < 1.05 * calls(12) * 2
