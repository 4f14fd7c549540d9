"""Masks inside masks: how they are shown and filled. Masked values in NumPy and pandas."""

import ast
import operator
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, MissingAttributeError, NullError
from extensor.types import MaskedTensor

NUMBERS = st.integers(-(2**31), 2**31 - 1)


def or_null(items):
    return st.none() | items


LISTS = st.lists(or_null(st.lists(or_null(NUMBERS), max_size=6)), max_size=6)
DEEP = st.lists(or_null(st.lists(or_null(st.lists(or_null(NUMBERS), max_size=3)), max_size=3)))
RECORDS = st.lists(
    or_null(st.lists(or_null(st.fixed_dictionaries({"a": or_null(NUMBERS)})), max_size=3)),
    max_size=6,
)
KINDS = {
    "lists": (LISTS, pa.list_(pa.int64())),
    "lists of lists": (DEEP, pa.list_(pa.list_(pa.int64()))),
    "lists of records": (RECORDS, pa.list_(pa.struct({"a": pa.int64()}))),
}


def of_rows(rows, arrow, nulls="mask"):
    return xt.from_arrow(pa.table({"x": pa.array(rows, arrow)}), nulls=nulls)["x"]


def filled(rows, value, depth):
    """Returns nested lists with a value in place of each None so deep, and [] outside of it."""
    if not depth:
        return value if rows is None else rows
    return [] if rows is None else [filled(row, value, depth - 1) for row in rows]


def shown(masked):
    """Returns the values in a repr as Python data."""
    text = re.fullmatch(r"<MaskedTensor of \w+ shape=\(.*?\)(?: dtype=\w+)? (.*)>", repr(masked))[1]
    return ast.literal_eval(re.sub(r"\ba: ", "'a': ", text.replace("--", "None")))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_repr_shows_the_values_with_dashes_for_nulls(kind, data):
    rows, arrow = KINDS[kind]
    rows = data.draw(rows)
    if len(rows) <= 6:
        assert shown(of_rows(rows, arrow)) == rows


def test_a_long_repr_shows_the_first_and_last_rows_and_items():
    long = of_rows([list(range(9)), None, [1], [2], [None], [3], [4]], pa.list_(pa.int64()))
    assert repr(long).endswith("[[0, 1, 2, ..., 6, 7, 8], --, [1], ..., [--], [3], [4]]>")
    floats = of_rows([[0.1, None], None], pa.list_(pa.float32()))
    assert repr(floats).endswith(" dtype=float32 [[0.1, --], --]>")
    texts = of_rows([["a", None], None], pa.list_(pa.string()))
    assert repr(texts).endswith("[[b'a', --], --]>")
    assert repr(texts[0]).endswith("[b'a', --]>")
    assert repr(texts[1]).endswith("-->")
    traced = []
    tf.function(lambda x: traced.append(repr(x)))(texts)
    assert traced == ["<MaskedTensor of MaskedTensor shape=(2, None) dtype=string>"]


def test_records_show_null_lists_as_null():
    table = pa.table({"x": [[1, None], None, []], "m": [{"a": 1}, None, {"a": None}]})
    shown = repr(xt.from_arrow(table, nulls="mask"))
    assert "[{x: [1, None], m: {a: 1}},\n  {x: None, m: None},\n  {x: [], m: {a: None}}]" in shown


@given(LISTS)
def test_a_number_fills_every_level_and_a_list_fills_null_lists(rows):
    arrow = pa.list_(pa.int64())
    masked = of_rows(rows, arrow)
    for x in (masked, tf.function(lambda x: x)(masked)):
        assert x.fill(7).to_list() == filled(rows, 7, 2)
        assert x.fill([8, 9]).to_py() == filled(rows, [8, 9], 1)
        assert x.fill([8]).fill(7).to_list() == filled(filled(rows, [8], 1), 7, 2)
    assert tf.function(lambda x: x.fill(7))(masked).to_list() == filled(rows, 7, 2)
    records = xt.DenseStructuredTensor([len(rows)], {"x": masked})
    assert xt.struct.fill_null(records, "x", 7)["x"].to_list() == filled(rows, 7, 2)


@pytest.mark.whole("draws values of four levels; two levels are quick")
@given(DEEP)
def test_a_value_fills_the_levels_that_it_fits_and_those_outside(rows):
    masked = of_rows(rows, pa.list_(pa.list_(pa.int64())))
    assert masked.fill(7).to_list() == filled(filled(rows, [], 2), 7, 3)
    assert masked.fill([8, 9]).to_py() == filled(rows, [8, 9], 2)
    assert masked.fill([[8], [9]]).to_py() == filled(rows, [[8], [9]], 1)


@pytest.mark.whole("draws values of four levels; two levels are quick")
@given(RECORDS)
def test_a_dict_fills_null_records_in_lists_that_may_be_null(rows):
    masked = of_rows(rows, pa.list_(pa.struct({"a": pa.int64()})))
    assert masked.fill({"a": 7}).to_py() == filled(rows, {"a": 7}, 2)
    assert masked.fill([{"a": 7}]).to_py() == filled(rows, [{"a": 7}], 1)
    records = xt.DenseStructuredTensor([len(rows)], {"x": masked})
    assert xt.struct.fill_null(records, "x", {"a": 7})["x"].to_py() == filled(rows, {"a": 7}, 2)


@given(st.lists(st.lists(NUMBERS, max_size=4), max_size=4))
def test_without_nulls_filling_changes_no_value(rows):
    arrow = pa.list_(pa.int64())
    masked, plain = (of_rows(rows, arrow, nulls) for nulls in ("mask", "error"))
    for value in (7, [7]):
        found = masked.fill(value)
        assert (found.to_py() if isinstance(found, MaskedTensor) else found.to_list()) == rows
    assert masked.fill(7).row_splits.numpy().tolist() == plain.row_splits.numpy().tolist()
    records = xt.DenseStructuredTensor([len(rows)], {"x": plain})
    assert xt.struct.fill_null(records, "x", 7)["x"] is plain
    assert of_rows(rows, arrow, xt.fill([7])).to_list() == rows


def test_the_gradient_of_filled_items_is_zero():
    values = tf.ragged.constant([[1.0, np.nan], [3.0]])
    inner = MaskedTensor(values, tf.ragged.constant([[True, False], [True]]))
    masked = MaskedTensor(inner, [True, False])
    with tf.GradientTape() as tape:
        tape.watch(values.flat_values)
        total = tf.reduce_sum(masked.fill(0.0) ** 2)
    assert total.numpy() == 1.0
    assert tape.gradient(total, values.flat_values).numpy().tolist() == [2.0, 0.0, 0.0]


# NumPy and pandas.

FUNCTIONS = {
    "asarray": np.asarray, "array": np.array, "mean": np.mean, "sum": np.sum, "std": np.std,
    "max": np.max, "median": np.median, "sort": np.sort, "unique": np.unique,
    "concatenate": lambda x: np.concatenate([x, x]), "percentile": lambda x: np.percentile(x, 50),
    "Series": lambda x: pd.Series(x).to_numpy(), "isna": pd.isna, "cut": lambda x: pd.cut(x, 2),
    "DataFrame": lambda x: pd.DataFrame({"x": x})["x"].to_numpy(),
    "exp": lambda x: np.exp(x / 1e6), "isnan": np.isnan, "add": lambda x: np.add(x, 1),
    "add itself": lambda x: np.add(x, x), "add.reduce": np.add.reduce,
    "maximum.outer": lambda x: np.maximum.outer(x, x),
    "float": lambda x: np.array([float(v) for v in x]),
    "int": lambda x: np.array(list(map(int, x))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@given(
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=5, unique=True),
    data=st.data(),
)
def test_numpy_gets_values_without_nulls_and_never_hidden_ones(name, values, data):
    function, array = FUNCTIONS[name], np.array(values, "f")
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(array), max_size=len(array))))
    masked = MaskedTensor(array, mask)
    if mask.all():
        found, expected = function(masked), function(array)
        if name == "cut":
            assert list(found) == list(expected)
        else:
            np.testing.assert_array_equal(found, expected, strict=True)
        return
    count = 1 if name in ("float", "int") else (~mask).sum()  # of single numbers
    with pytest.raises(NullError, match=rf"{count} null.*x\.fill.*x\.to_numpy\(\)"):
        function(masked)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "lt", "ge", "eq"])
@pytest.mark.parametrize("kind", [np.array, pd.Series])
def test_an_operator_with_an_array_or_a_series_on_the_left_keeps_the_mask(kind, name):
    operator_of = getattr(operator, name)
    numbers, masked = kind([1.0, 2.0, 3.0]), MaskedTensor([2.0, 4.0, 2.0], [True, False, True])
    expected = operator_of(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 2.0])).tolist()
    assert operator_of(numbers, masked).to_py() == [expected[0], None, expected[2]]


def test_no_error_sends_a_masked_value_to_its_hidden_values():
    ragged = MaskedTensor(tf.ragged.constant([[1], [2, 3]]), [True, False])
    for x in (MaskedTensor([1, 2, 3], [True, False, True]), ragged):
        for function in (
            tf.unique, tf.nn.l2_loss, tf.convert_to_tensor, tf.Variable, tf.constant, np.mean,
            np.asarray, np.sum, tf.function(tf.unique),
        ):  # fmt: skip
            with pytest.raises((DTypeError, NullError)) as caught:
                function(x)
            assert ".fill(value)" in str(caught.value)
            assert "x.values" not in str(caught.value)
        with pytest.raises(MissingAttributeError, match=r"to_numpy\(\).*fill\(value\)"):
            x.numpy()
        assert not hasattr(x, "numpy")


def test_tensorflow_drops_no_mask_even_where_nothing_is_null():
    """A conversion through NumPy would have no gradient, and a graph would not have it."""
    valid = MaskedTensor([3.0, 1.0])
    for function in (tf.unique, tf.nn.l2_loss, tf.Variable):
        with pytest.raises(DTypeError, match=r"x\.fill\(value\)"):
            function(valid)
    values = tf.constant([3.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = tf.reduce_sum(tf.convert_to_tensor(MaskedTensor(values)) * 2)
    assert tape.gradient(total, values).numpy().tolist() == [2.0, 2.0]
    assert np.shape(MaskedTensor([1, 2], [True, False])) == (2,)


LISTS = [[1, 2], None, [3, None], []]


@pytest.fixture(scope="module")
def null_lists():
    return xt.from_arrow(pa.table({"x": pa.array(LISTS)}), nulls="mask")["x"]


def test_ragged_positions_gather_from_lists_that_may_be_null(null_lists):
    rows = [[3, 0], [], [2, 2, 1]]
    found = tf.gather(null_lists, tf.ragged.constant(rows))
    assert found.to_py() == [[LISTS[i] for i in row] for row in rows]
    inside = tf.ragged.constant([[1, 0, 0], [], [1], []], dtype=tf.int64)
    chosen = tf.gather(null_lists, inside, batch_dims=1)
    assert chosen.to_py() == [[2, 1, 1], None, [None], []]


@pytest.mark.parametrize(
    "key", [tf.ragged.constant([[0], [1, 2]]), tf.constant([0, 1]), np.array([True, False])]
)
def test_a_key_of_tensors_says_what_to_call(null_lists, key):
    for whole in (key, (slice(None), key)):
        with pytest.raises(xt.errors.DTypeError, match=r"MaskedTensor\[.*tf.gather.*boolean_mask"):
            null_lists[whole]


def lists_of(data, nulls):
    return xt.struct.constant([{"l": each} for each in data], nulls=nulls)["l"]


ROWS = [[{"v": 1}, {"v": 2}], [], [{"v": 3}]]
ITEM_KEYS = {
    "ragged positions": tf.ragged.constant([[1, 0], [], [0]]),
    "ragged bools": tf.ragged.constant([[True, False], [], [True]], tf.bool),
    "positions": tf.constant([2, 0]),
    "an array": np.array([2, 0]),
    "a list": [2, 0],
    "bools": [True, False, True],
}


@pytest.mark.parametrize("key", ITEM_KEYS)
@pytest.mark.parametrize("nulls", [{"l": "mask"}, {"l[*]": "mask"}, {"l": "mask", "l[*]": "mask"}])
def test_records_with_masks_take_the_keys_of_records(nulls, key):
    found = lists_of(ROWS, nulls)[ITEM_KEYS[key]]
    assert isinstance(found, xt.types.MaskedTensor)
    assert found.to_py() == lists_of(ROWS, "error")[ITEM_KEYS[key]].to_py()


def test_null_lists_and_null_items_stay_null():
    positions = tf.ragged.constant([[1, 0], [], [0]])
    data = [[{"v": 1}, {"v": 2}], None, [{"v": 3}]]
    lists = lists_of(data, {"l": "mask"})
    want = [[{"v": 2}, {"v": 1}], None, [{"v": 3}]]
    assert lists[positions].to_py() == tf.gather(lists, positions, batch_dims=1).to_py() == want
    items = lists_of([[{"v": 1}, None], [], [{"v": 3}]], {"l[*]": "mask"})
    want = [[None, {"v": 1}], [], [{"v": 3}]]
    assert items[positions].to_py() == tf.gather(items, positions, batch_dims=1).to_py() == want
