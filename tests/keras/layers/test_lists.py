"""The items of lists, without nulls, of every form in which a field holds them."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._keras.layers.lists import ListItems
from tests.keras.layers.samples import nullable_lists, ragged, valid

ITEM = st.one_of(st.none(), st.integers(-9, 9))
LISTS = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.lists(ITEM, max_size=3)), max_size=3))


def items(value):
    lists = ListItems.of_field(value, "field")
    return lists.cut(lists.items)


@given(nullable_lists())
def test_nulls_are_left_out_of_lists(rows):
    expected = valid(rows)
    assert items(ragged(rows)).to_list() == expected
    assert items(ragged(expected)).to_list() == expected
    lists = ListItems.of_field(ragged(rows), "field")
    assert lists.lengths().numpy().tolist() == [len(row) for row in expected]
    values, mask = lists.padded()
    longest = max([1, *map(len, expected)])
    assert values.shape == mask.shape == (len(rows), longest)
    padded = [row + [0.0] * (longest - len(row)) for row in expected]
    assert values.numpy().tolist() == padded
    assert mask.numpy().sum(axis=1).tolist() == [len(row) for row in expected]


@given(st.lists(LISTS, max_size=4))
def test_nulls_are_left_out_of_lists_in_lists(rows):
    kind = pa.list_(pa.list_(pa.int64()))
    value = xt.from_arrow(pa.table({"x": pa.array(rows, kind)}), nulls="mask")["x"]
    expected = [[[i for i in inner or () if i is not None] for inner in row or ()] for row in rows]
    assert items(value).to_list() == expected
    of_records = ListItems.of_field(value, "field").of_records()
    flat = [[i for inner in row for i in inner] for row in expected]
    assert of_records.ragged(of_records.items).to_list() == flat


def test_the_items_of_a_null_list_that_is_not_empty_are_left_out():
    lists = tf.ragged.constant([[[1, 2], [3]], [[4]], [[5], [6, 7]]])
    by_row = xt.types.MaskedTensor(lists, [True, False, True])
    assert items(by_row).to_list() == [[[1, 2], [3]], [[]], [[5], [6, 7]]]
    by_list = xt.types.MaskedTensor(
        lists, tf.ragged.constant([[True, False], [True], [False, True]])
    )
    assert items(by_list).to_list() == [[[1, 2], []], [[4]], [[], [6, 7]]]


@pytest.mark.parametrize("splits", [tf.int32, tf.int64])
def test_lists_of_records_are_lists(splits):
    steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    steps = xt.RaggedStructuredTensor.from_row_splits(steps, tf.constant([0, 2, 2, 3], splits))
    lists = ListItems.of_field(steps, "field")
    assert lists.items["minutes"].numpy().tolist() == [5, 20, 8]
    assert lists.row_ids.numpy().tolist() == [0, 0, 2]
    mask = tf.RaggedTensor.from_row_splits([True, False, True], steps.row_splits)
    lists = ListItems.of_field(xt.types.MaskedTensor(steps, mask), "field")
    assert lists.items["minutes"].numpy().tolist() == [5, 8]
    assert lists.lengths().numpy().tolist() == [1, 0, 1]


def test_the_lists_of_a_dense_tensor_are_along_its_second_dimension():
    dense = tf.reshape(tf.range(12.0), [2, 3, 2])
    assert items(dense).to_list() == dense.numpy().tolist()
    mask = np.array([[True, False, True], [False, True, True]])
    assert items(xt.types.MaskedTensor(dense, mask)).to_list() == [
        [[0, 1], [4, 5]],
        [[8, 9], [10, 11]],
    ]
    assert items(xt.types.MaskedTensor(dense, [False, True])).to_list() == [
        [],
        dense[1].numpy().tolist(),
    ]


def test_numbers_in_an_item_that_are_not_valid_are_zero():
    dense = tf.reshape(tf.range(1.0, 7.0), [1, 3, 2])
    mask = [[[True, False], [False, False], [True, True]]]
    assert items(xt.types.MaskedTensor(dense, mask)).to_list() == [[[1, 0], [5, 6]]]


@pytest.mark.parametrize("value", [tf.range(3), xt.DenseStructuredTensor([1], {"a": [1]})])
def test_a_field_without_lists_is_refused(value):
    with pytest.raises(errors.UnsupportedTypeError, match=r"bag: expected a field of lists"):
        ListItems.of_field(value, "bag")
