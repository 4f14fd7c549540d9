"""MaskedTensors whose items are rows, lists or records."""

import itertools

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError
from extensor.types import MaskedTensor
from tests.types.test_masked import (
    BREAD,
    ITEMS,
    LISTS,
    NULL,
    RECORDS,
    SOUP,
    STEPS,
    lists,
    of_lists,
)


@given(rows=lists(), data=st.data())
def test_operations_on_lists_equal_those_of_python(rows, data):
    x = of_lists(rows)
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4))
    asked = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    begin, end = (data.draw(st.none() | st.integers(-5, 5)) for _ in range(2))
    assert x.to_py() == rows
    assert tf.gather(x, places).to_py() == [rows[i] for i in places]
    chosen = [row for row, wanted in zip(rows, asked, strict=True) if wanted]
    assert tf.boolean_mask(x, tf.constant(asked, tf.bool)).to_py() == chosen
    assert x[begin:end].to_py() == rows[begin:end]
    assert tf.concat([x, x[:1]], 0).to_py() == rows + rows[:1]
    assert tf.concat([x, tf.ragged.constant([[9]], tf.int64)], 0).to_py() == [*rows, [9]]
    assert tf.stack([x, x]).to_py() == [rows, rows]
    assert [row.to_py() or None for row in tf.unstack(x)] == [row or None for row in rows]
    assert (x + x).to_py() == [row and [2 * n for n in row] for row in rows]
    assert (10 - x).to_py() == [row and [10 - n for n in row] for row in rows]
    sums = [None if row is None else sum(row) for row in rows]
    assert tf.reduce_sum(x, 1).to_py() == sums
    first = x[0].to_py()
    assert first == rows[0] or (rows[0] is None and not any(first or []))
    if any(rows):
        assert tf.reduce_max(x).to_py() == max(n for row in rows for n in row or [])
        assert tf.reduce_sum(x).to_py() == sum(n for row in rows for n in row or [])


@given(rows=lists())
def test_operations_that_move_lists_keep_null_lists(rows):
    x = of_lists(rows)
    assert tf.tile(x, [2, 1]).to_py() == rows * 2
    assert tf.tile(x, tf.constant([1, 2])).to_py() == [row and row * 2 for row in rows]
    assert tf.reverse(x, [1]).to_py() == [row and row[::-1] for row in rows]
    assert tf.reverse(x, [-1, 0]).to_py() == [row and row[::-1] for row in rows[::-1]]
    assert tf.expand_dims(x, -1).to_py() == [row and [[n] for n in row] for row in rows]
    for one in (tf.expand_dims(x, 0), x[None]):
        assert one.to_py() == [rows]
        assert tf.squeeze(one, 0).to_py() == tf.squeeze(one, [-3]).to_py() == rows
    assert x[...].to_py() == x[..., :].to_py() == x[:, ...].to_py() == rows
    assert x[:, None].to_py() == tf.expand_dims(x, 1).to_py() == [[row] for row in rows]
    assert x[..., None].to_py() == tf.expand_dims(x, 2).to_py()
    sums = [row and list(itertools.accumulate(row)) for row in rows]
    assert tf.cumsum(x, 1).to_py() == sums
    assert tf.add_n([x, x]).to_py() == (x + x).to_py()


def test_operations_on_items_of_lists():
    assert (ITEMS * 2).to_py() == [[2, None], [], [6]]
    assert (ITEMS + ITEMS.values).to_py() == [[2, None], [], [6]]
    assert (MaskedTensor(ITEMS.values, [True, True, False]) + ITEMS).to_py() == [
        [2, None],
        [],
        [None],
    ]
    assert tf.reduce_sum(ITEMS, 1).to_py() == [1, 0, 3]
    assert tf.reduce_mean(tf.cast(ITEMS, tf.float64)).to_py() == 2.0
    assert tf.reduce_max(ITEMS, 0).to_py() == [3, None]
    assert tf.concat([ITEMS, ITEMS], 1).to_py() == [[1, None, 1, None], [], [3, 3]]
    assert tf.concat([LISTS, LISTS], 1).to_py() == [[1, 2, 1, 2], [], [], [3, 3]]
    assert tf.gather(ITEMS, [2, 0]).to_py() == [[3], [1, None]]
    assert [row.to_py() for row in tf.unstack(ITEMS)] == ITEMS.to_py()
    assert [row.to_py() for row in tf.function(tf.unstack)(ITEMS)] == ITEMS.to_py()
    with pytest.raises(DTypeError, match="unstack was not overridden"):
        tf.unstack(ITEMS, axis=1)
    assert ITEMS[0].to_py() == [1, None]
    assert ITEMS[:, :1].to_py() == [[1], [], [3]]
    assert tf.math.log(tf.cast(ITEMS, tf.float32)).to_py()[0][1] is None
    variance = tf.math.reduce_variance(tf.cast(ITEMS, tf.float64), 1)
    assert variance.to_py() == [0.0, None, 0.0]


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("is_graph", [False, True])
def test_operations_on_records_equal_those_of_python(is_graph):
    def run(function, *args):
        return (tf.function(function) if is_graph else function)(*args).to_py()

    rows = [BREAD, None, SOUP]
    assert RECORDS.to_py() == rows
    assert run(lambda x: tf.gather(x, [2, 1, 1]), RECORDS) == [SOUP, None, None]
    assert run(lambda x: tf.boolean_mask(x, [False, True, True]), RECORDS) == [None, SOUP]
    assert run(lambda x: tf.concat([x, x[1:]], 0), RECORDS) == [*rows, None, SOUP]
    assert run(lambda x: tf.concat([MaskedTensor(x.values), x], 0), RECORDS) == [
        BREAD,
        NULL,
        SOUP,
        *rows,
    ]
    assert run(lambda x: tf.stack([x, x[::-1]]), RECORDS) == [rows, rows[::-1]]
    assert run(lambda x: tf.identity(x), RECORDS) == rows
    assert [row.to_py() for row in tf.unstack(RECORDS)] == rows
    assert run(lambda x: x[0], RECORDS) == BREAD
    assert run(lambda x: x[1], RECORDS) is None
    assert run(lambda x: x[-2:], RECORDS) == [None, SOUP]
    assert run(lambda x: x["title"], RECORDS) == [b"bread", None, b"soup"]
    assert run(lambda x: x["minutes"], RECORDS) == [[5, 20], None, [8]]
    assert run(lambda x: x[1:, "title"], RECORDS) == [None, b"soup"]
    assert run(lambda x: tf.gather(x, [1, 0]), STEPS) == [None, [BREAD]]
    assert run(lambda x: tf.concat([x, x], 0), STEPS)[4] is None
    assert run(lambda x: x[1:], STEPS) == [None, [NULL, SOUP]]


def test_a_mask_is_a_field_of_records():
    records = xt.DenseStructuredTensor([2], {"minutes": MaskedTensor([5, 0], [True, False])})
    assert records["minutes"].to_py() == [5, None]
    assert records[1]["minutes"].to_py() is None


def test_rows_keep_a_mask_of_rows():
    x = MaskedTensor(tf.reshape(tf.range(12.0), [2, 3, 2]), [[True, False, True], [False] * 3])
    for result, rank in (
        (x + 1.0, 2),
        (tf.sqrt(x), 2),
        (x + x, 2),
        (tf.reduce_sum(x, -1), 2),
        (tf.gather(x, [1], axis=1), 2),
        (tf.expand_dims(x, 1), 3),
        (tf.reverse(x, [1]), 2),
        (tf.concat([x, x], 1), 2),
        (tf.concat([x, x.values], 0), 2),
        (tf.stack([x, x], 1), 3),
        (tf.unstack(x)[0], 1),
        (tf.split(x, 3, 1)[0], 2),
        (x[:, 1:], 2),
        (x[:, :, :1], 2),
        (x[0], 1),
        (tf.boolean_mask(x, [True, False]), 2),
    ):
        assert result.mask.shape == result.shape[:rank]
    full = MaskedTensor(x.values, tf.broadcast_to(x.mask[..., None], x.shape))
    for change in (
        lambda x: tf.reduce_sum(x, 1),
        lambda x: tf.reduce_sum(x, -1),
        lambda x: tf.reduce_mean(x),
        lambda x: tf.transpose(x),
        lambda x: tf.reshape(x, [-1]),
        lambda x: tf.tile(x, [1, 1, 2]),
        lambda x: tf.concat([x, tf.ones([2, 3, 1])], -1),
        lambda x: tf.concat([x, full], 0),
        lambda x: tf.gather(x, [1], axis=-1),
        lambda x: tf.pad(x, [[0, 0], [0, 0], [1, 1]]),
        lambda x: x[..., 1],
        lambda x: x * tf.ones([4, 1, 1, 1]),
        lambda x: x * full,
        lambda x: tf.where(x > 4.0, x, 0.0),
        lambda x: tf.cumsum(x, 2),
    ):
        assert change(x).to_py() == change(full).to_py()
