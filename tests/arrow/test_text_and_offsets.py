"""Bytes that are no text, and more values than offsets of 32 bits reach, for each type."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor._arrow import buffers
from extensor.errors import FormatError, StructureError

Dense, Ragged, Masked = xt.DenseStructuredTensor, xt.RaggedStructuredTensor, xt.types.MaskedTensor

BAD = [b"fine", b"\xff", b"fine"]
TEXT = pa.string()
TEXTS = [
    TEXT,
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), TEXT),
    pa.dictionary(pa.int8(), pa.large_string()),
    pa.run_end_encoded(pa.int32(), TEXT),
]
PAIRS = Dense([3], {"key": BAD, "value": [1, 2, 3]})


def written(value, arrow=None):
    schema = None if arrow is None else pa.schema({"x": arrow})
    return xt.to_arrow(Dense([value.shape[0]], {"x": value}), schema)


def rows(values):
    return tf.RaggedTensor.from_row_splits(tf.constant(values), [0, 1, 3])


OUT = {
    **{str(t): (tf.constant(BAD), t, "x") for t in TEXTS},
    **{f"masked {t}": (Masked(BAD, [True] * 3), t, "x") for t in TEXTS},
    **{
        f"{make(t)}": (rows(BAD), make(t), "x")
        for t in TEXTS[:4]
        for make in (pa.list_, pa.large_list, pa.list_view)
    },
    "fixed-size list": (tf.constant([BAD]), pa.list_(TEXT, 3), "x"),
    "keys of a map": (Ragged.from_row_splits(PAIRS, [0, 1, 3]), pa.map_(TEXT, pa.int32()), "x.key"),
    "union": (xt.types.UnionTensor([0, 1, 1, 1], {"n": [1], "t": BAD}), None, "x.t"),
    "default": (tf.constant(BAD), None, "x"),
    "many": (tf.constant(BAD * 300), TEXT, "x"),
    "halves of a character": (tf.constant([b"\xc3", b"\xa9"] * 300), TEXT, "x"),
}


@pytest.mark.parametrize("case", OUT)
def test_bytes_that_are_no_text_are_not_written_as_text(case):
    value, arrow, path = OUT[case]
    with pytest.raises(FormatError, match="expected text in UTF-8") as caught:
        written(value, arrow)
    assert str(caught.value).startswith(f"{path}: ")
    assert "binary type" in str(caught.value)


def as_text(arrow, make):
    """Returns an array of a type of text over the buffers of the same bytes."""
    array = pa.array(BAD, make)
    return pa.Array.from_buffers(arrow, len(array), array.buffers())


BAD_TEXT = as_text(TEXT, pa.binary())
BYTES_IN = {
    "string": (BAD_TEXT, "x, record 1"),
    "large_string": (as_text(pa.large_string(), pa.large_binary()), "x, record 1"),
    "dictionary": (pa.DictionaryArray.from_arrays([0, 1, 1], BAD_TEXT), "x, record 1"),
    "list": (pa.ListArray.from_arrays([0, 1, 3], BAD_TEXT), r"x[*], record 1"),
    "map": (pa.MapArray.from_arrays([0, 1, 3], BAD_TEXT, [1, 2, 3]), "x[*].key, record 1"),
    "union": (
        pa.UnionArray.from_dense(
            pa.array([0] * 3, pa.int8()), pa.array([0, 1, 2], pa.int32()), [BAD_TEXT], ["t"]
        ),
        "x, record 1",
    ),
}


@pytest.mark.parametrize("nulls", ["error", "mask"])
@pytest.mark.parametrize("case", BYTES_IN)
def test_bytes_in_columns_of_text_are_read_and_no_text(case, nulls):
    array, path = BYTES_IN[case]
    records = xt.from_arrow(pa.table({"x": array}), nulls=nulls)
    second = records.to_py(text=False)[1]["x"]
    assert b"\xff" in second or second[0]["key"] == b"\xff"
    for text in (None, True):
        with pytest.raises(FormatError, match="expected text in UTF-8") as caught:
            records.to_py(text)
        assert str(caught.value).startswith(f"{path}: ")
        assert "to_py(text=False)" in str(caught.value)
    with pytest.raises(FormatError, match="expected text in UTF-8"):
        xt.to_arrow(records)


def is_utf8(value):
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize(
    ("arrow", "raw"), [(TEXT, pa.binary()), (pa.large_string(), pa.large_binary())]
)
def test_text_is_what_python_decodes(arrow, raw):
    rng = np.random.default_rng(0)
    parts = [b"a", b"bc", b"", "é".encode(), "€".encode(), "😀".encode(), None]
    wrong = [b"\xc3", b"\xa9", b"\xed\xa0\x80", b"\xff", b"\xf0\x9f"]
    refused = 0
    for i in range(300):
        pool = parts + wrong * (i % 2)
        values = [pool[j] for j in rng.integers(0, len(pool), rng.integers(0, 9))]
        array = pa.array(values, raw)[int(i % 3 == 0 and len(values) > 1) :]
        if all(map(is_utf8, array.to_pylist())):
            text = buffers.as_text(array, arrow)
            assert text.type == arrow
            assert text.to_pylist() == [v if v is None else v.decode() for v in array.to_pylist()]
        else:
            refused += 1
            with pytest.raises(pa.ArrowInvalid):
                buffers.as_text(array, arrow)
    assert refused > 50


REFUSED_IN = {
    "string_view": as_text(pa.string_view(), pa.binary_view()),
    "run ends": pa.Array.from_buffers(
        pa.run_end_encoded(pa.int32(), TEXT),
        3,
        [None],
        children=[pa.array([1, 2, 3], pa.int32()), BAD_TEXT],
    ),
}


@pytest.mark.parametrize("case", REFUSED_IN)
def test_text_that_arrow_itself_checks_is_refused(case):
    with pytest.raises(StructureError, match=r"^x: .*Invalid UTF8 sequence at string index 1"):
        xt.from_arrow(pa.table({"x": REFUSED_IN[case]}))


# Values of no bytes: more of them than 32-bit offsets reach need no memory.
COUNT = 2**31 + 5
NOTHING = pa.list_(pa.float32(), 0)
SPLITS = tf.constant([0, COUNT], tf.int64)


@pytest.mark.parametrize("make", [pa.list_, pa.list_view])
def test_lists_of_too_many_values_are_not_written_with_short_offsets(make):
    value = tf.RaggedTensor.from_row_splits(tf.zeros([COUNT, 0]), SPLITS, validate=False)
    with pytest.raises(StructureError, match=r"^x: expected at most 2\*\*31 - 1 values"):
        written(value, make(NOTHING))
    masked = Masked(value, [True])
    with pytest.raises(StructureError, match=r"^x: expected at most 2\*\*31 - 1 values"):
        written(masked, make(NOTHING))
    assert len(written(value, pa.large_list(NOTHING))) == 1


def test_maps_of_too_many_pairs_are_not_written():
    pairs = Dense([COUNT], {"key": tf.zeros([COUNT, 0]), "value": tf.zeros([COUNT, 0])})
    value = Ragged.from_row_splits(pairs, SPLITS)
    with pytest.raises(StructureError, match=r"^x: expected at most 2\*\*31 - 1 values"):
        written(value, pa.map_(NOTHING, NOTHING))


@pytest.mark.parametrize("nulls", ["error", "mask"])
@pytest.mark.parametrize("views", [False, True])
def test_lists_of_too_many_values_are_not_read_with_short_row_splits(views, nulls):
    values = pa.Array.from_buffers(NOTHING, COUNT, [None], children=[pa.array([], pa.float32())])
    numbers = [[0], [COUNT]] if views else [[0, COUNT]]
    make = pa.large_list_view if views else pa.large_list
    own = [None, *(pa.py_buffer(np.array(n, np.int64)) for n in numbers)]
    table = pa.table({"x": pa.Array.from_buffers(make(NOTHING), 1, own, children=[values])})
    with pytest.raises(StructureError, match=r"row_splits_dtype=tf\.int32") as caught:
        xt.from_arrow(table, nulls={"x": nulls}, row_splits_dtype=tf.int32)
    assert str(caught.value).startswith("x: ")


@pytest.mark.parametrize("count", [3, 900], ids=["few strings", "many strings"])
@pytest.mark.parametrize("case", ["plain", "masked", "list", "union"])
def test_strings_of_too_many_bytes_are_not_written_with_short_offsets(case, count, monkeypatch):
    monkeypatch.setattr(buffers, "_MAX_BYTES", 100)
    strings = tf.constant(["forty characters " * 3] * count)
    value, short, long = {
        "plain": (strings, TEXT, pa.large_string()),
        "masked": (Masked(strings), pa.binary(), pa.large_binary()),
        "list": (
            tf.RaggedTensor.from_row_splits(strings, [0, 1, count]),
            pa.list_(TEXT),
            pa.list_(pa.large_string()),
        ),
        "union": (
            xt.types.UnionTensor([0] * count, {"t": strings}),
            pa.dense_union([pa.field("t", TEXT)]),
            pa.dense_union([pa.field("t", pa.large_string())]),
        ),
    }[case]
    with pytest.raises(StructureError, match=r"^x(\.t)?: .* bytes.*large type"):
        written(value, short)
    assert len(written(value, long)) == value.shape[0]


ONE_ROW = tf.constant([0, 1], tf.int32)


def short_lists(count):
    """Returns one record with a list of values of no bytes, whose row splits are int32."""
    splits = tf.constant([0, count], tf.int32)
    lists = tf.RaggedTensor.from_row_splits(tf.zeros([count, 0]), splits, validate=False)
    return Dense([1], {"r": Dense([1], {"x": lists, "m": Masked(lists, [True])})})


@pytest.mark.whole("makes very large values")
@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: tf.concat([a, b], 0),
        lambda a, b: tf.stack([a, b]),
        lambda a, b: tf.concat([Ragged.from_row_splits(v, ONE_ROW) for v in (a, b)], 0),
    ],
    ids=["concat", "stack", "concat of rows"],
)
def test_row_splits_of_int32_do_not_overflow_when_records_are_joined(join):
    half = short_lists(2**30 + 5)
    with pytest.raises(StructureError, match=r"^r\.[mx]: expected at most 2\*\*31 - 1 values"):
        join(half, half)
    small = short_lists(2**29)
    joined = join(small, small)
    assert "int32" in str(xt.spec_of(joined))


@pytest.mark.parametrize("kind", ["records", "tensors"])
def test_row_splits_that_do_not_fit_are_not_cast_to_int32(kind):
    values = tf.zeros([COUNT, 0])
    lists = (
        Ragged.from_row_splits(Dense([COUNT], {"e": values}), SPLITS)
        if kind == "records"
        else tf.RaggedTensor.from_row_splits(values, SPLITS, validate=False)
    )
    with pytest.raises(StructureError, match=r"expected at most 2\*\*31 - 1 values"):
        Dense([1], {"x": lists}).with_row_splits_dtype(tf.int32)


def test_a_row_longer_than_lists_of_one_length_is_a_large_list():
    table = xt.to_arrow(Dense([1], {"x": tf.zeros([1, COUNT, 0])}))
    assert pa.types.is_large_list(table.schema.field("x").type)
    assert len(table.column("x").values) == COUNT


def test_chunks_of_lists_that_do_not_fit_into_one_array_are_an_error():
    values = pa.Array.from_buffers(
        NOTHING, 2**30 + 5, [None], children=[pa.array([], pa.float32())]
    )
    offsets = pa.py_buffer(np.array([0, 2**30 + 5], np.int32))
    half = pa.Array.from_buffers(pa.list_(NOTHING), 1, [None, offsets], children=[values])
    table = pa.table({"x": pa.chunked_array([half, half])})
    for nulls in ("error", "mask"):
        with pytest.raises(StructureError, match=r"^x: .*large_list"):
            xt.from_arrow(table, nulls=nulls)
    # Read one after the other, they are one value, whose Arrow type has to be a large one.
    one = xt.from_arrow(pa.table({"x": half}))
    joined = tf.concat([one, one], 0)
    with pytest.raises(StructureError, match=r"^x: expected at most 2\*\*31 - 1 .*large_list"):
        xt.to_arrow(joined)
