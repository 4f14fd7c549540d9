"""Records as plain Python."""

import copy
import pickle
import re

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, FormatError
from tests.samples.calls import calls_of

NESTED = [
    {"title": "Tee", "steps": [{"do": "Käse", "tools": ["pot", "cup"]}], "one": {"word": "a"}},
    {"title": "", "steps": [], "one": {"word": "b"}},
]


def test_text_is_str_at_every_depth():
    records = xt.struct.constant(NESTED)
    assert records.to_py(text=True) == NESTED
    assert records[0].to_py(text=True) == NESTED[0]
    assert records.to_py() == NESTED
    plain = records.to_py(text=False)[0]
    assert plain["steps"] == [{"do": "Käse".encode(), "tools": [b"pot", b"cup"]}]


def test_text_of_a_masked_field_is_str_and_none():
    words = xt.types.MaskedTensor(["a", "b"], [True, False])
    records = xt.DenseStructuredTensor([2], {"word": words})
    assert records.to_py(text=True) == [{"word": "a"}, {"word": None}]
    assert records[0].to_py(text=True) == {"word": "a"}


@given(st.lists(st.none() | st.integers(-9, 9)), st.data())
def test_masked_fields_and_lists_are_those_of_python(scores, data):
    n = len(scores)
    tags = data.draw(st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=n, max_size=n))
    mask = [score is not None for score in scores]
    score = xt.types.MaskedTensor(tf.constant([s or 0 for s in scores], tf.int64), mask)
    rows = tf.ragged.constant(tags, tf.string, ragged_rank=1)
    hidden = xt.types.MaskedTensor(rows, mask)
    records = xt.DenseStructuredTensor([n], {"score": score, "tags": rows, "hidden": hidden})
    assert records.to_py(text=True) == [
        {"score": s, "tags": t, "hidden": None if s is None else t}
        for s, t in zip(scores, tags, strict=True)
    ]


@given(st.lists(st.lists(st.none() | st.integers(0, 86_400 * 10**9 - 1)), max_size=4))
def test_times_of_day_come_back_with_all_their_digits(numbers):
    arrow = pa.list_(pa.time64("ns"))
    data = pa.table({"at": pa.array(numbers, pa.list_(pa.int64())).cast(arrow)})
    records = xt.from_arrow(data, nulls="mask")
    times = records.to_py()
    assert times == data.to_pylist()  # of which Arrow cuts the nanoseconds
    for kept in (times, copy.deepcopy(times), pickle.loads(pickle.dumps(times))):
        again = xt.to_arrow(xt.spec_of(records).cast(kept))
        assert again["at"].cast(pa.list_(pa.int64())).to_pylist() == numbers


def test_bytes_that_are_not_text_are_an_error_that_names_their_path():
    records = xt.struct.constant([{"r": {"raw": b"a"}}, {"r": {"raw": b"\xff"}}])
    assert records.to_py()[1] == {"r": {"raw": b"\xff"}}
    with pytest.raises(
        FormatError, match=r"^r\.raw, record 1: expected text in UTF-8, got b'\\xff'"
    ):
        records.to_py(text=True)


def test_a_symbolic_value_is_an_error_that_names_its_path():
    found = []

    @tf.function
    def call(x):
        inner = xt.DenseStructuredTensor([2], {"known": tf.constant([1, 2]), "x": x})
        records = xt.DenseStructuredTensor([2], {"r": inner})
        with pytest.raises(DTypeError, match=r"^to_py: r\.\w+: .*tensors of a graph") as caught:
            records.to_py()
        found.append(caught.value)
        return x

    call(tf.constant([1, 2]))
    assert found


@pytest.mark.parametrize("count", [1, 3, 101, 300])
def test_any_number_of_fields_and_any_name(count):
    names = [f"{i} \"quoted' \\ {{x}}\n" for i in range(count)]
    rows = [dict.fromkeys(names, i) for i in range(3)]
    assert xt.struct.constant(rows).to_py() == rows


def test_the_number_of_calls_does_not_depend_on_the_number_of_records():
    def calls(count):
        fields = {
            "word": tf.fill([count], "a"),
            "score": xt.types.MaskedTensor(tf.zeros([count]), [i % 3 == 0 for i in range(count)]),
            "tags": tf.RaggedTensor.from_row_lengths(tf.fill([2 * count], "b"), [2] * count),
        }
        records = xt.DenseStructuredTensor([count], fields)
        return calls_of(lambda: records.to_py(text=True))

    assert calls(1_000) == calls(10)


@pytest.mark.parametrize("zone", ["Nowhere/City", "+25:00", "abc"])
@pytest.mark.parametrize("kind", ["flat", "lists", "nulls"])
def test_a_zone_that_python_does_not_know_is_named(zone, kind):
    arrow = pa.timestamp("s", zone)
    numbers = pa.array([0, 1, None if kind == "nulls" else 2]).view(arrow)
    column = numbers if kind != "lists" else pa.ListArray.from_arrays([0, 2, 2, 3], numbers)
    records = xt.from_arrow(pa.table({"x": column}), nulls="mask" if kind == "nulls" else "error")
    with pytest.raises(xt.errors.FormatError, match=re.escape(f"zone {zone!r}")) as caught:
        records.to_py()
    assert caught.value.path.endswith("record 0")
    assert "records['x']" in caught.value.fix
    assert repr(records)
    assert pa.table(xt.to_arrow(records))["x"].equals(pa.chunked_array([column]))
